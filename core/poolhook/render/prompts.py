"""The forms in which a prompt may come, and the four that are left afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from poolhook.errors import InvalidRequest, shorten
from poolhook.models.late_interaction import Role

_FORMS = (
    "a text, a list of token ids, {'prompt': text}, {'prompt_token_ids': ids}, {'text': query, 'text_pair': document} "
    "or {'messages': [{'role': ..., 'content': ...}]}"
)
_KEYS = {"prompt", "prompt_token_ids", "text", "text_pair", "messages", "add_generation_prompt"}


@dataclass(frozen=True, slots=True)
class TextPrompt:
    """A text to tokenize.

    Args:
        text: the text itself.
        instruction: put before it, such as a model's own `query: `; some models leave its tokens out of pooling.
        role: what the text is to a late-interaction model; others make no difference.
    """

    text: str
    instruction: str = ""
    role: Role | None = None


@dataclass(frozen=True, slots=True)
class TokensPrompt:
    """Token ids, which the model sees as they are.

    Args:
        token_ids: with every special token and prefix that the model expects.
        role: as in `TextPrompt`; only limits, skip words and expansion depend on it here.
    """

    token_ids: tuple[int, ...]
    role: Role | None = None


@dataclass(frozen=True, slots=True)
class PairPrompt:
    """Two texts that the model reads together, as cross-encoders do.

    Args:
        text: the query; never cut.
        text_pair: the document.
        instruction: put before the query, or what a chat template makes of a system message.
    """

    text: str
    text_pair: str
    instruction: str = ""


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """A conversation, which the model's chat template makes one text of.

    Args:
        messages: each with a `role` and a `content`: a text, or parts of the form `{"type": "text", "text": ...}`.
        add_generation_prompt: end with what starts an answer.
    """

    messages: tuple[Mapping[str, Any], ...]
    add_generation_prompt: bool = False


Prompt = TextPrompt | TokensPrompt | PairPrompt | ChatPrompt


def as_prompts(value: Any) -> list[Prompt]:
    """Read one prompt or a list of prompts, each in any of its forms.

    A list of integers is one prompt of token ids; an empty list is no prompt; an iterator is read to its end.

    Raises:
        InvalidRequest: something is none of the forms; the message says which and what it is.
    """
    value = list(value) if isinstance(value, Iterator) else _plain(value)
    if isinstance(value, str | Mapping | Prompt):
        return [_as_prompt(value, None)]
    if not isinstance(value, list | tuple | range):
        raise _no_prompt(value, None)
    if value and _is_id(_plain(value[0])):
        return [_as_prompt(value, None)]
    return [_as_prompt(_plain(item), index) for index, item in enumerate(value)]


def _as_prompt(value: Any, index: int | None) -> Prompt:
    if isinstance(value, str):
        return TextPrompt(value)
    if isinstance(value, ChatPrompt):
        return ChatPrompt(_messages(value.messages, index), value.add_generation_prompt)
    if isinstance(value, Prompt):
        return value
    if isinstance(value, Mapping):
        return _from_mapping(value, index)
    if isinstance(value, list | tuple | range):
        return TokensPrompt(_ids(value, index))
    raise _no_prompt(value, index)


def _from_mapping(value: Mapping[Any, Any], index: int | None) -> Prompt:
    # null is the same as left out.
    given = {key: _plain(entry) for key, entry in value.items() if entry is not None or key not in _KEYS}
    match given:
        case {"prompt": str(text)} if len(given) == 1:
            return TextPrompt(text)
        case {"prompt_token_ids": list() | tuple() | range() as ids} if len(given) == 1:
            return TokensPrompt(_ids(ids, index))
        case {"text": str(text), "text_pair": str(text_pair)} if len(given) == 2:
            return PairPrompt(text, text_pair)
        case {"messages": messages} if len(given) == 1:
            return ChatPrompt(_messages(messages, index))
        case {"messages": messages, "add_generation_prompt": bool(add)} if len(given) == 2:
            return ChatPrompt(_messages(messages, index), add)
    raise _no_prompt(value, index)


def _ids(values: Iterable[Any], index: int | None) -> tuple[int, ...]:
    ids = tuple(values)
    if not all(type(value) is int for value in ids):
        ids = tuple(map(_plain, ids))
    for position, value in enumerate(ids):
        if not _is_id(value):
            hint = " A pair of texts is {'text': ..., 'text_pair': ...}." if isinstance(value, str) else ""
            raise InvalidRequest(
                f"{_where(index)} has {shorten(value)} ({type(value).__name__}) at position {position} of its token "
                f"ids; token ids are integers.{hint}",
                param="input",
            )
    return ids


def _messages(values: Any, index: int | None) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(values, list | tuple) or not values:
        raise InvalidRequest(
            f"{_where(index)} has {shorten(values)} for messages; give a list of at least one.", param="input"
        )
    for place, message in enumerate(values):
        if not _is_message(message):
            raise InvalidRequest(
                f"{_where(index)} has {shorten(message)} as message {place}; a message is "
                "{'role': text, 'content': text}, where the content may also be a list of "
                "{'type': 'text', 'text': text}.",
                param="input",
            )
    return tuple(values)


def _is_message(value: Any) -> bool:
    if not isinstance(value, Mapping) or not isinstance(value.get("role"), str):
        return False
    content = value.get("content")
    return isinstance(content, str) or (
        isinstance(content, list | tuple) and bool(content) and all(map(_is_text_part, content))
    )


def _is_text_part(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("type") == "text" and isinstance(value.get("text"), str)


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    """Arrays and tensors as lists, their scalars as numbers."""
    return value.tolist() if hasattr(value, "tolist") and not isinstance(value, type) else value


def _no_prompt(value: Any, index: int | None) -> InvalidRequest:
    return InvalidRequest(f"{_where(index)} is {type(value).__name__} {shorten(value)}; give {_FORMS}.", param="input")


def _where(index: int | None) -> str:
    return "The prompt" if index is None else f"Prompt {index}"
