"""The classes that plugin authors subclass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from poolhook.engine import EngineInput
from poolhook.errors import InvalidRequest
from poolhook.outputs import PoolingOutput
from poolhook.params import PoolingParams
from poolhook.plugins.context import ModelInfo, RequestContext
from poolhook.render import Prompt

Request = TypeVar("Request")
Response = TypeVar("Response")
Hook = TypeVar("Hook", bound=Callable[..., Any])


def does_nothing(hook: Hook) -> Hook:
    """Mark a base class's empty hook: it is there for type checkers and is never registered or called."""
    hook.does_nothing = True  # type: ignore[attr-defined]
    return hook


class Settings(BaseModel):
    """A plugin's options. Subclass it, add fields, name the class in `Plugin.Settings`; unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Plugin:
    """What processors and wrappers have in common: settings and the hooks of their life. Override what you need."""

    Settings: ClassVar[type[Settings]] = Settings

    @does_nothing
    def startup(self, settings: Any, model_info: ModelInfo) -> None:
        """Get ready: called once before the first request. `settings` is an instance of `Settings`."""

    @does_nothing
    def shutdown(self) -> None:
        """Let go of what `startup` took."""

    @does_nothing
    def on_error(self, ctx: RequestContext, stage: str, error: BaseException) -> None:
        """A request failed in `stage`."""

    @does_nothing
    def on_finish(self, ctx: RequestContext) -> None:
        """A request is over, however it went."""


class IOProcessor(Plugin, ABC, Generic[Request, Response]):
    """Turns a request's data into prompts, and pooled outputs into an answer.

    Write `parse_data`, `pre_process` and `post_process`. Keep what one request needs later on `ctx.state`; the object
    itself serves many requests at once.
    """

    @abstractmethod
    def parse_data(self, ctx: RequestContext, data: Any) -> Request:
        """Validate what the caller sent, for instance with a pydantic model.

        Raises:
            InvalidRequest: the data is wrong; so is a `pydantic.ValidationError` understood.
        """

    @abstractmethod
    def pre_process(self, ctx: RequestContext, request: Request) -> Prompt | Sequence[Prompt]:
        """The prompts to run: one or many."""

    @abstractmethod
    def post_process(self, ctx: RequestContext, outputs: Sequence[PoolingOutput]) -> Response:
        """The answer, from one output for each prompt, in the order of the prompts."""

    def pre_process_offline(self, ctx: RequestContext, request: Request) -> Prompt | Sequence[Prompt]:
        """`pre_process`, unless `LLM` needs something else."""
        return self.pre_process(ctx, request)

    def pre_process_online(self, ctx: RequestContext, request: Request) -> Prompt | Sequence[Prompt]:
        """`pre_process`, unless HTTP needs something else."""
        return self.pre_process(ctx, request)

    def post_process_offline(self, ctx: RequestContext, outputs: Sequence[PoolingOutput]) -> Response:
        """`post_process`, unless `LLM` needs something else."""
        return self.post_process(ctx, outputs)

    def post_process_online(self, ctx: RequestContext, outputs: Sequence[PoolingOutput]) -> Response:
        """`post_process`, unless HTTP needs something else."""
        return self.post_process(ctx, outputs)

    def merge_pooling_params(
        self, ctx: RequestContext, prompts: Sequence[Prompt], params: PoolingParams | Sequence[PoolingParams]
    ) -> Sequence[PoolingParams]:
        """One `PoolingParams` for each prompt: the caller's single one for all, or the caller's list as it is."""
        if isinstance(params, PoolingParams):
            return [params] * len(prompts)
        if len(params) != len(prompts):
            raise InvalidRequest(
                f"pooling_params has {len(params)} entries for {len(prompts)} prompts. Give one, or one for each.",
                param="pooling_params",
            )
        return params


class Wrapper(Plugin):
    """Goes around the hooks of every processor whose route it is on.

    To change what a stage returns, write a generator method of the stage's name: `result = yield`, then `return` what
    takes its place. To answer prompts without the engine, write `lookup` and `store`.
    """

    @does_nothing
    def lookup(self, ctx: RequestContext, inputs: Sequence[EngineInput]) -> Sequence[PoolingOutput | None]:
        """For each input a known output, or None to have it computed."""
        return [None] * len(inputs)

    @does_nothing
    def store(self, ctx: RequestContext, inputs: Sequence[EngineInput], outputs: Sequence[PoolingOutput]) -> None:
        """Remember what was computed."""
