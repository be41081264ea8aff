"""The hook contract, whole. A plugin's methods are hooks by these names; no decorator is needed.

A request runs through the stages from `parse_data` to `post_process_*`. Each of those has one answer, the
processor's; a wrapper may go around it with a generator method that yields once, gets the answer and returns what
takes its place. The other hooks are called for every plugin that has them, one by one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

import pluggy

from poolhook.engine import EngineInput
from poolhook.outputs import PoolingOutput
from poolhook.params import PoolingParams
from poolhook.plugins.context import ModelInfo, RequestContext
from poolhook.render import Prompt

PROJECT = "poolhook"
_answer = pluggy.HookspecMarker(PROJECT)(firstresult=True)
_every = pluggy.HookspecMarker(PROJECT)


class HookSpecs:
    """Every hook with its arguments. A plugin may leave out arguments it does not need, but not rename them."""

    @_every
    def startup(self, settings: Any, model_info: ModelInfo) -> None:
        """Called once before the first request, with the plugin's validated settings."""

    @_every
    def shutdown(self) -> None:
        """Called once after the last request, if `startup` succeeded."""

    @_answer
    def parse_data(self, ctx: RequestContext, data: Any) -> Any:
        """Validate what the caller sent; `pydantic.ValidationError` and `InvalidRequest` are the caller's fault."""

    @_answer
    def prefetch_online(self, ctx: RequestContext, request: Any) -> Sequence[Awaitable[Any]]:
        """Awaitables that fetch what the request points at; results land in `ctx.fetched`. Runs on the event loop."""

    @_answer
    def pre_process_offline(self, ctx: RequestContext, request: Any) -> Prompt | Sequence[Prompt]:
        """The prompts of a request that came through `LLM`."""

    @_answer
    def pre_process_online(self, ctx: RequestContext, request: Any) -> Prompt | Sequence[Prompt]:
        """The prompts of a request that came over HTTP."""

    @_answer
    def merge_pooling_params(
        self, ctx: RequestContext, prompts: Sequence[Prompt], params: PoolingParams | Sequence[PoolingParams]
    ) -> Sequence[PoolingParams]:
        """Exactly one `PoolingParams` for each prompt, made from what the caller asked for."""

    @_every
    def lookup(self, ctx: RequestContext, inputs: Sequence[EngineInput]) -> Sequence[PoolingOutput | None]:
        """For each input a known output or None; only the Nones go to the engine."""

    @_every
    def store(self, ctx: RequestContext, inputs: Sequence[EngineInput], outputs: Sequence[PoolingOutput]) -> None:
        """Called with what the engine computed for the inputs that no `lookup` knew."""

    @_answer
    def post_process_offline(self, ctx: RequestContext, outputs: Sequence[PoolingOutput]) -> Any:
        """The answer to a request that came through `LLM`, from one output for each prompt."""

    @_answer
    def post_process_online(self, ctx: RequestContext, outputs: Sequence[PoolingOutput]) -> Any:
        """The answer to a request that came over HTTP, from one output for each prompt."""

    @_every
    def on_error(self, ctx: RequestContext, stage: str, error: BaseException) -> None:
        """Called when a request fails, with the stage in which it did."""

    @_every
    def on_finish(self, ctx: RequestContext) -> None:
        """Called last, always: after an answer, after an error, after the caller left."""


HOOKS: dict[str, Any] = {name: spec for name, spec in vars(HookSpecs).items() if not name.startswith("_")}
"""Hook name -> its specification."""

ANSWER_STAGES = frozenset(
    name for name, spec in HOOKS.items() if getattr(spec, f"{PROJECT}_spec", {}).get("firstresult")
)
"""Hooks with a single answer, the processor's, which wrappers may go around."""
