"""Refusing texts that are no valid Unicode: JSON can carry lone surrogates, tokenizers can't take them."""

from __future__ import annotations

from collections.abc import Iterator

from poolhook.errors import InvalidRequest
from poolhook.render.prompts import ChatPrompt, PairPrompt, Prompt, TextPrompt


def check_prompt(index: int, prompt: Prompt) -> None:
    """Check every text of a prompt.

    Raises:
        InvalidRequest: a text has a lone surrogate; the message says where.
    """
    for text in _texts(prompt):
        check_text(index, text)


def check_text(index: int, text: str) -> None:
    """Check one text of the prompt at position `index`.

    Raises:
        InvalidRequest: it has a lone surrogate; the message says where.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"Prompt {index} is no valid Unicode: it has a lone surrogate at position {error.start}.", param="input"
        ) from error


def _texts(prompt: Prompt) -> Iterator[str]:
    match prompt:
        case TextPrompt(text=text, instruction=instruction):
            yield text
            yield instruction
        case PairPrompt(text=text, text_pair=text_pair):
            yield text
            yield text_pair
        case ChatPrompt(messages=messages):
            for message in messages:
                content = message["content"]
                yield from [content] if isinstance(content, str) else [part["text"] for part in content]
