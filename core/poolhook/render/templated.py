"""Texts that a chat template makes: tokenized as they come out of it, and cut inside what they carry.

What may be cut is one content: the document of a pair, or the last message of a chat. Where it lies in the rendered
text is found by rendering the template with a word of our own in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokenizers import Encoding

from poolhook.errors import InvalidRequest
from poolhook.models.sentence_transformers import MessageFormat
from poolhook.render.encoded import Encoded
from poolhook.render.limits import Cutting
from poolhook.render.prompts import ChatPrompt, PairPrompt, TextPrompt
from poolhook.render.templates import ChatTemplates
from poolhook.render.tokenizer import TextTokenizer
from poolhook.render.unicode import check_text
from poolhook.render.windows import EDGE, Side, edge, is_huge, is_settled, parts

_STAND_IN = "poolhook-9c41e7-content"


@dataclass(frozen=True, slots=True)
class Templated:
    """A template with everything in it but one content.

    Args:
        index: the position of the prompt.
        content: what may be cut.
        render: the whole text with another content in its place.
    """

    index: int
    content: str
    render: Callable[[str], str]

    def rendered(self, content: str) -> str:
        """The whole text with `content` in it.

        Raises:
            InvalidRequest: the template refuses it, or makes no valid Unicode of it.
        """
        try:
            text = self.render(content)
        except InvalidRequest as error:
            raise InvalidRequest(f"Prompt {self.index}: {error.message}", param=error.param) from error
        # Once more, since a template may read other fields of messages than the checked ones.
        check_text(self.index, text)
        return text

    def borders(self) -> tuple[str, str] | None:
        """The texts before and behind the content; None if they can't be told from it."""
        before, found, behind = self.rendered(_STAND_IN).partition(_STAND_IN)
        return (before, behind) if found and _STAND_IN not in behind else None


def from_pair(index: int, pair: PairPrompt, templates: ChatTemplates, *, add_generation_prompt: bool) -> Templated:
    """A pair, of which the document may be cut."""

    def render(document: str) -> str:
        return templates.render_pair(
            pair.text, document, instruction=pair.instruction, add_generation_prompt=add_generation_prompt
        )

    return Templated(index, pair.text_pair, render)


def from_chat(index: int, chat: ChatPrompt, templates: ChatTemplates, *, add_generation_prompt: bool) -> Templated:
    """A chat, of which the last message may be cut."""
    *earlier, last = chat.messages
    content, replace = _last_text(last)
    ends_open = chat.add_generation_prompt or add_generation_prompt

    def render(text: str) -> str:
        return templates.render([*earlier, replace(text)], add_generation_prompt=ends_open)

    return Templated(index, content, render)


def as_chat(prompt: TextPrompt, form: MessageFormat) -> ChatPrompt:
    """A text as the message of a user, its instruction as that of the system; as sentence-transformers does."""

    def message(role: str, text: str) -> Mapping[str, Any]:
        return {"role": role, "content": text if form == "flat" else [{"type": "text", "text": text}]}

    system = [message("system", prompt.instruction)] if prompt.instruction else []
    return ChatPrompt((*system, message("user", prompt.text)))


def _last_text(message: Mapping[str, Any]) -> tuple[str, Callable[[str], Mapping[str, Any]]]:
    """The last text of a message, and the message with another in its place."""
    content = message["content"]
    if isinstance(content, str):
        return content, lambda text: {**message, "content": text}
    *earlier, last = content
    return last["text"], lambda text: {**message, "content": [*earlier, {**last, "text": text}]}


def encode_templated(tokenizer: TextTokenizer, texts: Sequence[Templated], cutting: Cutting) -> list[Encoded]:
    """Tokenize texts without adding the special tokens, which their templates bring along.

    Args:
        tokenizer: the model's.
        texts: what to render.
        cutting: how long a text may be; of what is longer the content alone is cut.

    Raises:
        InvalidRequest: the template can't be rendered, or a text is too long, even with an empty content where contents
            are cut.
    """
    keep, limit, side = cutting.keep, cutting.limit, cutting.side
    rendered: dict[int, str] = {}
    for place, text in enumerate(texts):
        if keep is not None and is_huge(text.content, keep):
            continue  # to be cut, so that rendering and tokenizing all of it would be for nothing
        rendered[place] = text.rendered(text.content)
        if keep is None and limit.tokens is not None and tokenizer.exceeds(rendered[place], limit.tokens):
            raise limit.exceeded(text.index, f"more than {limit.tokens}")
    whole = tokenizer.tokenize(list(rendered.values()), [None] * len(rendered), side)
    ids = {place: tokens.ids for place, tokens in zip(rendered, whole, strict=True)}
    return [
        Encoded(ids[place] if _fits(ids.get(place), keep) else _cut(tokenizer, text, keep or 0, side))
        for place, text in enumerate(texts)
    ]


def _fits(ids: list[int] | None, keep: int | None) -> bool:
    return ids is not None and (keep is None or len(ids) <= keep)


def _cut(tokenizer: TextTokenizer, text: Templated, keep: int, side: Side) -> list[int]:
    """`keep` of the tokens of `text`, without some of those that lie wholly inside its content."""
    borders = text.borders()
    for part in parts(text.content, keep, side) if is_huge(text.content, keep) else [text.content]:
        if len(part) == len(text.content):
            rendered = text.rendered(part)
        elif side == "right":
            rendered = text.rendered(part + edge(text.content, side))
        else:
            rendered = text.rendered(edge(text.content, side) + part)
        if borders is None or not _is_between(rendered, *borders):
            raise InvalidRequest(
                f"Prompt {text.index} is to be cut to {keep} tokens, but where its text lies in what the model's chat "
                "template makes of it can't be told. Shorten it instead.",
                param="input",
            )
        encoding = tokenizer.encoding_of(rendered)
        start, end = _inside(encoding, len(borders[0]), len(rendered) - len(borders[1]))
        excess = len(encoding) - keep
        left = end - start - max(excess, 0)
        if left < 0:
            raise InvalidRequest(
                f"Prompt {text.index} has {len(encoding) - (end - start)} tokens without the text that may be cut, "
                f"which is more than {keep}. Only a document or a chat's last message is cut; shorten the rest.",
                param="input",
            )
        if not left or len(part) == len(text.content) or is_settled(encoding.word_ids[start:end], left, side, EDGE):
            break
    ids: list[int] = encoding.ids
    return (
        ids if excess <= 0 else ids[: start + left] + ids[end:] if side == "right" else ids[:start] + ids[end - left :]
    )


def _is_between(rendered: str, before: str, behind: str) -> bool:
    return len(rendered) >= len(before) + len(behind) and rendered.startswith(before) and rendered.endswith(behind)


def _inside(encoding: Encoding, start: int, end: int) -> tuple[int, int]:
    """The range of the tokens that come from the characters `start` to `end` alone."""
    places = [place for place, (first, last) in enumerate(encoding.offsets) if start <= first and last <= end]
    return (places[0], places[-1] + 1) if places else (0, 0)
