"""The one straight way of a request, in the pieces that both faces string together.

`prepare` goes from data to engine inputs, `conclude` from pooled outputs to the answer; in between the engine works.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from poolhook.engine import EngineInput
from poolhook.outputs import PoolingOutput
from poolhook.plugins import PoolingRequest, RequestContext, Route
from poolhook.plugins.context import Mode
from poolhook.runtime.chunking import Pieces
from poolhook.runtime.runtime import Runtime


@dataclass(frozen=True)
class Prepared:
    """A request on the engine's doorstep.

    Args:
        known: for each prompt what a wrapper's `lookup` knew, or None.
        missing: the inputs that nobody knew, in order.
        pieces: what the engine has to run for them, where texts may be longer than the model takes.
    """

    known: list[PoolingOutput | None]
    missing: list[EngineInput]
    pieces: Pieces | None = None

    @property
    def to_run(self) -> list[EngineInput]:
        """What the engine has to run."""
        return self.missing if self.pieces is None else self.pieces.inputs


@dataclass(frozen=True)
class Answer:
    """What a request ends in.

    Args:
        request_id: the context's.
        value: what the route's `post_process_*` returned.
        prompt_tokens: tokens that the model was asked to read, or would have been without a wrapper that knew.
    """

    request_id: str
    value: Any
    prompt_tokens: int


def new_context(route: Route, request: PoolingRequest, mode: Mode) -> RequestContext:
    """The context of a request that has just arrived."""
    return RequestContext(
        mode=mode,
        route=route.name,
        task=route.task,
        params=request.params,
        tokenization=request.tokenization,
        priority=request.priority,
        deadline=request.deadline,
    )


def prepare(runtime: Runtime, route: Route, ctx: RequestContext, request: Any) -> Prepared:
    """From the validated request to what the engine has to run."""
    prompts = route.pre_process(ctx, request)
    params = route.merge_pooling_params(ctx, prompts)
    ctx.stage = "render"
    ctx.inputs = runtime.renderer.render(
        prompts, params, ctx.tokenization, priority=ctx.priority, deadline=ctx.deadline
    )
    known = route.lookup(ctx, ctx.inputs)
    missing = [item for item, output in zip(ctx.inputs, known, strict=True) if output is None]
    return Prepared(known, missing, runtime.chunking.split(missing) if runtime.chunking is not None else None)


def withdraw(futures: Iterable[Future[PoolingOutput]]) -> None:
    """Take back what still waits for the engine."""
    for future in futures:
        future.cancel()


def conclude(
    runtime: Runtime, route: Route, ctx: RequestContext, prepared: Prepared, computed: Sequence[PoolingOutput]
) -> Answer:
    """From what the engine computed to the answer."""
    if runtime.chunking is not None and prepared.pieces is not None:
        computed = runtime.chunking.merge(prepared.pieces, computed)
    if prepared.missing:
        route.store(ctx, prepared.missing, computed)
    fresh = iter(computed)
    outputs = [output if output is not None else next(fresh) for output in prepared.known]
    value = route.post_process(ctx, outputs)
    return Answer(ctx.request_id, value, sum(item.cost for item in ctx.inputs))
