"""What the built-in processors share: prompts come in, and one output for each goes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from poolhook.errors import InvalidRequest
from poolhook.outputs import PoolingOutput, PoolingRequestOutput
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


def one_for_each(ctx: RequestContext, outputs: Sequence[PoolingOutput]) -> Outputs:
    """The pooled outputs with the ids of the prompts that they belong to."""
    return [
        PoolingRequestOutput(f"{ctx.request_id}-{index}", output, item.token_ids)
        for index, (item, output) in enumerate(zip(ctx.inputs, outputs, strict=True))
    ]
