"""A route: one processor, its wrappers, and a typed way to call each hook."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterator, Sequence
from inspect import isawaitable
from typing import Any

from poolhook.engine import EngineInput
from poolhook.errors import InvalidRequest, PluginContractError
from poolhook.outputs import PoolingOutput
from poolhook.params import PoolingParams
from poolhook.plugins.context import RequestContext
from poolhook.plugins.hookspecs import ANSWER_STAGES
from poolhook.plugins.instance import PLUGIN_FAULTS, PluginInstance
from poolhook.plugins.manager import HookManager
from poolhook.render import Prompt, as_prompts
from poolhook.tasks import PoolingTask

logger = logging.getLogger(__name__)


class Route:
    """One processor and its ordered wrappers.

    Args:
        name: the task, or the IO processor's name.
        task: what the pooler computes for prompts whose params name no task.
        processor: answers every stage.
        wrappers: go around it, the first outermost.
    """

    def __init__(
        self, name: str, task: PoolingTask, processor: PluginInstance, wrappers: Sequence[PluginInstance] = ()
    ) -> None:
        self.name = name
        self.task = task
        self.processor = processor
        self.wrappers = tuple(wrappers)
        self._manager = HookManager()
        self._manager.add(processor)
        # pluggy calls what was registered last first, so the outermost comes last.
        for wrapper in reversed(self.wrappers):
            self._manager.add(wrapper)
        self._manager.check_pending()
        self._check_answers()
        self._hook = self._manager.hook
        self.prefetches = bool(self._answering("prefetch_online"))

    @property
    def plugins(self) -> tuple[PluginInstance, ...]:
        """The wrappers, outermost first, then the processor."""
        return (*self.wrappers, self.processor)

    def parse_data(self, ctx: RequestContext, data: Any) -> Any:
        """The validated request."""
        ctx.stage = "parse_data"
        return self._hook.parse_data(ctx=ctx, data=data)

    def prefetch_online(self, ctx: RequestContext, request: Any) -> Sequence[Awaitable[Any]]:
        """What to await before `pre_process`.

        Raises:
            PluginContractError: the processor returned something that can't be awaited.
        """
        ctx.stage = "prefetch_online"
        awaitables = self._hook.prefetch_online(ctx=ctx, request=request)
        if not isinstance(awaitables, list | tuple) or not all(map(isawaitable, awaitables)):
            raise self._broken(ctx.stage, f"must return a list of awaitables, not {_describe(awaitables)}")
        return awaitables

    def pre_process(self, ctx: RequestContext, request: Any) -> list[Prompt]:
        """The prompts, in their plain forms.

        Raises:
            PluginContractError: the processor returned something that is no prompt.
        """
        ctx.stage = f"pre_process_{ctx.mode}"
        prompts = getattr(self._hook, ctx.stage)(ctx=ctx, request=request)
        try:
            return as_prompts(prompts)
        except InvalidRequest as error:
            raise self._broken(ctx.stage, f"must return prompts: {error}") from error

    def merge_pooling_params(self, ctx: RequestContext, prompts: Sequence[Prompt]) -> list[PoolingParams]:
        """One `PoolingParams` for each prompt, each with its task.

        Raises:
            PluginContractError: the processor returned another number of them, or something else.
        """
        ctx.stage = "merge_pooling_params"
        merged = self._hook.merge_pooling_params(ctx=ctx, prompts=tuple(prompts), params=ctx.params)
        if not isinstance(merged, list | tuple) or not all(isinstance(params, PoolingParams) for params in merged):
            raise self._broken(ctx.stage, f"must return a list of PoolingParams, not {_describe(merged)}")
        if len(merged) != len(prompts):
            raise self._broken(ctx.stage, f"returned {len(merged)} PoolingParams for {len(prompts)} prompts")
        # Mostly one object for all prompts, so it is completed once.
        distinct = {id(params): params for params in merged}
        complete = {key: self._with_task(params) for key, params in distinct.items()}
        return [complete[id(params)] for params in merged]

    def _with_task(self, params: PoolingParams) -> PoolingParams:
        return params if params.task is not None else params.model_copy(update={"task": self.task})

    def lookup(self, ctx: RequestContext, inputs: Sequence[EngineInput]) -> list[PoolingOutput | None]:
        """For each input what the first wrapper that knows it says, or None.

        Raises:
            PluginContractError: a wrapper answered another number of inputs than it was asked for, or something that
                is no output.
        """
        ctx.stage = "lookup"
        found: list[PoolingOutput | None] = [None] * len(inputs)
        for implementation in self._each("lookup"):
            missing = [i for i, output in enumerate(found) if output is None]
            if not missing:
                break
            answers = _call(implementation, ctx=ctx, inputs=[inputs[i] for i in missing])
            if (
                not isinstance(answers, list | tuple)
                or len(answers) != len(missing)
                or not all(answer is None or isinstance(answer, PoolingOutput) for answer in answers)
            ):
                raise PluginContractError(
                    implementation.plugin_name,
                    f"lookup must return a list of {len(missing)}, PoolingOutputs or Nones, not {_describe(answers)}.",
                )
            for i, answer in zip(missing, answers, strict=True):
                found[i] = answer
        return found

    def store(self, ctx: RequestContext, inputs: Sequence[EngineInput], outputs: Sequence[PoolingOutput]) -> None:
        """Offer what the engine computed to every wrapper."""
        ctx.stage = "store"
        for implementation in self._each("store"):
            _call(implementation, ctx=ctx, inputs=tuple(inputs), outputs=tuple(outputs))

    def post_process(self, ctx: RequestContext, outputs: Sequence[PoolingOutput]) -> Any:
        """The answer."""
        ctx.stage = f"post_process_{ctx.mode}"
        return getattr(self._hook, ctx.stage)(ctx=ctx, outputs=outputs)

    def fail(self, ctx: RequestContext, error: BaseException) -> None:
        """Tell every plugin that the request failed."""
        self._tell("on_error", ctx=ctx, stage=ctx.stage, error=error)

    def finish(self, ctx: RequestContext) -> None:
        """Tell every plugin that the request is over."""
        self._tell("on_finish", ctx=ctx)

    def _tell(self, hook: str, **arguments: Any) -> None:
        for implementation in self._each(hook):
            try:
                _call(implementation, **arguments)
            except PLUGIN_FAULTS:
                # The request's own outcome stands; every other plugin is still told.
                logger.exception("Plugin %s failed in %s.", implementation.plugin_name, hook)

    def _each(self, hook: str) -> Iterator[Any]:
        implementations: list[Any] = getattr(self._hook, hook).get_hookimpls()
        yield from reversed(implementations)

    def _check_answers(self) -> None:
        for stage in sorted(ANSWER_STAGES):
            answering = self._answering(stage)
            if len(answering) > 1 or (not answering and stage != "prefetch_online"):
                raise self._broken(stage, f"must have exactly one implementation on a route, not {len(answering)}")

    def _answering(self, stage: str) -> list[Any]:
        implementations: list[Any] = getattr(self._manager.hook, stage).get_hookimpls()
        return [implementation for implementation in implementations if not implementation.wrapper]

    def _broken(self, stage: str, problem: str) -> PluginContractError:
        implementations = getattr(self._manager.hook, stage).get_hookimpls()
        around = ", ".join(implementation.plugin_name for implementation in implementations if implementation.wrapper)
        suspects = f" (unless a wrapper around it is to blame: {around})" if around else ""
        return PluginContractError(str(self.processor.ref), f"{stage} {problem.removesuffix('.')}{suspects}.")


def _describe(value: Any) -> str:
    """The type of what was returned, and for a list its length and the types in it."""
    if isinstance(value, list | tuple):
        kinds = ", ".join(sorted({type(item).__name__ for item in value})) or "nothing"
        return f"a {type(value).__name__} of {len(value)} ({kinds})"
    return type(value).__name__


def _call(implementation: Any, **arguments: Any) -> Any:
    return implementation.function(*(arguments[name] for name in implementation.argnames))
