"""The forms in which a prompt may come, and the two that are left afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from poolhook.errors import InvalidRequest, shorten

_FORMS = "a text, a list of token ids, {'prompt': text} or {'prompt_token_ids': ids}"


@dataclass(frozen=True, slots=True)
class TextPrompt:
    """A text to tokenize."""

    text: str


@dataclass(frozen=True, slots=True)
class TokensPrompt:
    """Token ids, which the model sees as they are."""

    token_ids: tuple[int, ...]


Prompt = TextPrompt | TokensPrompt


def as_prompts(value: Any) -> list[Prompt]:
    """Read one prompt or a list of prompts, each in any of its forms.

    A list of integers is one prompt of token ids; an empty list is no prompt; an iterator is read to its end.

    Raises:
        InvalidRequest: something is none of the forms; the message says which and what it is.
    """
    value = list(value) if isinstance(value, Iterator) else _plain(value)
    if isinstance(value, str | Mapping | TextPrompt | TokensPrompt):
        return [_as_prompt(value, None)]
    if not isinstance(value, list | tuple | range):
        raise _no_prompt(value, None)
    if value and _is_id(_plain(value[0])):
        return [_as_prompt(value, None)]
    return [_as_prompt(_plain(item), index) for index, item in enumerate(value)]


def _as_prompt(value: Any, index: int | None) -> Prompt:
    if isinstance(value, TextPrompt | TokensPrompt):
        return value
    if isinstance(value, str):
        return TextPrompt(value)
    if isinstance(value, Mapping):
        text, ids = value.get("prompt"), _plain(value.get("prompt_token_ids"))
        if isinstance(text, str) and ids is None and set(value) <= {"prompt", "prompt_token_ids"}:
            return TextPrompt(text)
        if isinstance(ids, list | tuple | range) and text is None and set(value) <= {"prompt", "prompt_token_ids"}:
            return TokensPrompt(_ids(ids, index))
        raise _no_prompt(value, index)
    if isinstance(value, list | tuple | range):
        return TokensPrompt(_ids(value, index))
    raise _no_prompt(value, index)


def _ids(values: Iterable[Any], index: int | None) -> tuple[int, ...]:
    ids = tuple(values)
    if not all(type(value) is int for value in ids):
        ids = tuple(map(_plain, ids))
    for position, value in enumerate(ids):
        if not _is_id(value):
            raise InvalidRequest(
                f"{_where(index)} has {shorten(value)} ({type(value).__name__}) at position {position} of its token "
                "ids; token ids are integers.",
                param="input",
            )
    return ids


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    """Arrays and tensors as lists, their scalars as numbers."""
    return value.tolist() if hasattr(value, "tolist") and not isinstance(value, type) else value


def _no_prompt(value: Any, index: int | None) -> InvalidRequest:
    return InvalidRequest(f"{_where(index)} is {type(value).__name__} {shorten(value)}; give {_FORMS}.", param="input")


def _where(index: int | None) -> str:
    return "The prompt" if index is None else f"Prompt {index}"
