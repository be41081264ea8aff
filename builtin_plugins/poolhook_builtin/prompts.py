"""What the built-in processors share: prompts come in, and one output for each goes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from poolhook.errors import InvalidRequest, shorten
from poolhook.outputs import PoolingOutput, PoolingRequestOutput
from poolhook.plugins import ModelInfo, Prompt, RequestContext, TextPrompt, as_prompts


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


def put_model_prompt(request: PromptsInput, model_info: ModelInfo) -> list[Prompt]:
    """The prompts with the model's named or default prompt before each text; token ids are left as they are.

    Raises:
        InvalidRequest: the model has no prompt of that name.
    """
    name = request.prompt_name if request.prompt_name is not None else model_info.default_prompt_name
    if name is None:
        return request.prompts
    prefix = model_info.prompts.get(name)
    if prefix is None:
        raise InvalidRequest(
            f"prompt_name is {shorten(name)!r}; this model's prompts are {', '.join(model_info.prompts) or 'none'}.",
            param="prompt_name",
        )
    return [TextPrompt(prefix + p.text) if isinstance(p, TextPrompt) else p for p in request.prompts]


def one_for_each(ctx: RequestContext, outputs: Sequence[PoolingOutput]) -> list[PoolingRequestOutput[PoolingOutput]]:
    """The pooled outputs with the ids of the prompts that they belong to."""
    return [
        PoolingRequestOutput(f"{ctx.request_id}-{index}", output, item.token_ids)
        for index, (item, output) in enumerate(zip(ctx.inputs, outputs, strict=True))
    ]
