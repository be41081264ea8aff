"""The texts that a model wants before its inputs (`query: `), and its roles of texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from poolhook.errors import InvalidRequest, shorten
from poolhook.plugins import ModelInfo, PairPrompt, Prompt, TextPrompt, TokensPrompt

Role = Literal["query", "document"]

# What sentence-transformers' encode_query and encode_document look for, in this order.
_NAMES: dict[Role, tuple[str, ...]] = {"query": ("query",), "document": ("document", "passage", "corpus")}


def with_prompt(prompts: Sequence[Prompt], name: str | None, model_info: ModelInfo) -> list[Prompt]:
    """The prompts with the model's named or default prompt before each text; token ids are left as they are.

    For a late-interaction model the name is a role: it decides how a text is tokenized.

    Raises:
        InvalidRequest: the model has no prompt of that name.
    """
    name = name if name is not None else model_info.default_prompt_name
    if model_info.has_roles:
        return _in_role(prompts, name)
    if name is None:
        return list(prompts)
    instruction = model_info.prompts.get(name)
    if instruction is None:
        raise InvalidRequest(
            f"prompt_name is {shorten(name)!r}; this model's prompts are {', '.join(model_info.prompts) or 'none'}.",
            param="prompt_name",
        )
    return [replace(p, instruction=instruction) if isinstance(p, TextPrompt | PairPrompt) else p for p in prompts]


def as_role(text: str, role: Role, model_info: ModelInfo) -> Prompt:
    """`text` as the model wants its queries or its documents."""
    if model_info.has_roles:
        return TextPrompt(text, role=role)
    known = (model_info.prompts[name] for name in _NAMES[role] if name in model_info.prompts)
    default = model_info.prompts.get(model_info.default_prompt_name or "", "")
    return TextPrompt(text, instruction=next(known, default))


def _in_role(prompts: Sequence[Prompt], name: str | None) -> list[Prompt]:
    if name is None:
        return list(prompts)
    if name not in _NAMES:
        raise InvalidRequest(
            f"prompt_name is {shorten(name)!r}; this late-interaction model's are {', '.join(_NAMES)}.",
            param="prompt_name",
        )
    return [replace(p, role=name) if isinstance(p, TextPrompt | TokensPrompt) else p for p in prompts]
