"""What the built-in processors share: prompts come in, and one output for each goes out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from poolhook.errors import InvalidRequest
from poolhook.outputs import PoolingOutput, PoolingRequestOutput
from poolhook.params import PoolingParams
from poolhook.plugins import IOProcessor, ModelInfo, Prompt, RequestContext, Settings, as_prompts

Outputs = list[PoolingRequestOutput[PoolingOutput]]


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid")

    input: Any
    prompt_name: str | None = None


@dataclass(frozen=True)
class PromptsInput:
    """A validated request.

    Args:
        prompts: in their plain forms.
        prompt_name: one of the model's prompts, or None for its default.
    """

    prompts: list[Prompt]
    prompt_name: str | None = None


class PromptsIOProcessor(IOProcessor[PromptsInput, Outputs]):
    """Prompts in as they are, pooled data out. A task that does more says so in a subclass."""

    def startup(self, settings: Settings, model_info: ModelInfo) -> None:
        """Remember what the model is."""
        self.model_info = model_info

    def parse_data(self, ctx: RequestContext, data: Any) -> PromptsInput:
        """Read `{"input": prompts}`.

        Raises:
            InvalidRequest: something is no prompt, an online request has none, or it names a prompt of the model where
                those have no use.
        """
        parsed = parse_prompts(ctx, data)
        if parsed.prompt_name is not None:
            raise InvalidRequest(
                f"prompt_name is not for task {ctx.task!r}, which passes prompts through as they are. "
                "Put the model's prompt before each text yourself.",
                param="prompt_name",
            )
        return parsed

    def pre_process(self, ctx: RequestContext, request: PromptsInput) -> Sequence[Prompt]:
        """The prompts as they came."""
        return request.prompts

    def merge_pooling_params(
        self, ctx: RequestContext, prompts: Sequence[Prompt], params: PoolingParams | Sequence[PoolingParams]
    ) -> Sequence[PoolingParams]:
        """One `PoolingParams` for each prompt.

        Raises:
            InvalidRequest: there are more or fewer, or one is for another task that the model supports.
        """
        merged = super().merge_pooling_params(ctx, prompts, params)
        check_task(ctx, merged, self.model_info)
        return merged

    def post_process(self, ctx: RequestContext, outputs: Sequence[PoolingOutput]) -> Outputs:
        """The pooled data of each prompt."""
        return one_for_each(ctx, outputs)


def parse_prompts(ctx: RequestContext, data: Any) -> PromptsInput:
    """Validate `data`.

    Raises:
        InvalidRequest: something is no prompt, or an online request has none.
    """
    parsed = _Data.model_validate(data)
    prompts = as_prompts(parsed.input)
    if not prompts and ctx.mode == "online":
        raise InvalidRequest("input is an empty list. Give at least one text or list of token ids.", param="input")
    return PromptsInput(prompts, parsed.prompt_name)


def check_task(ctx: RequestContext, merged: Iterable[PoolingParams], model_info: ModelInfo) -> None:
    """Refuse params for another task than the route's: its answer would be read as something that it is not.

    Raises:
        InvalidRequest: it says how to ask. A task that is not supported is left to the engine, which lists those
            that are.
    """
    for params in merged:
        if params.task not in (None, ctx.task) and params.task in model_info.supported_tasks:
            raise InvalidRequest(
                f"pooling_params are for task {params.task!r}, but the request is for task {ctx.task!r}. Leave the "
                f"task out of them, or ask for it with LLM.encode(pooling_task={params.task!r}).",
                param="pooling_params",
            )


def one_for_each(ctx: RequestContext, outputs: Sequence[PoolingOutput]) -> Outputs:
    """The pooled outputs with the ids of the prompts that they belong to."""
    return [
        PoolingRequestOutput(f"{ctx.request_id}-{index}", output, item.token_ids)
        for index, (item, output) in enumerate(zip(ctx.inputs, outputs, strict=True))
    ]
