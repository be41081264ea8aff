"""Cutting a huge text before it is tokenized: to keep its first or last tokens must not cost its whole length.

What is tokenized is an end of the text that is grown until its border is far enough from the tokens that are kept. A
border changes the words beside it: the right one cuts a word in two, the left one is put where a word ends before a
space, so that what follows is split into words as in the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

Side = Literal["left", "right"]
"""The end of a text that is cut away."""

_HUGE = 32
"""Characters per token that is kept, beyond which a text is first cut to a part instead of tokenized whole."""

_MOST, _LEAST_MOST = 256, 2**17
"""Characters per token that is kept, and in all, beyond which nothing is read, settled or not. No language has so long
tokens, but a text without any word border would be read whole, for many seconds."""

EDGE = 32
"""The most characters of an `edge`."""

_WORD_ENDS = re.compile(r"(?<=\w)(?= )")


def is_huge(text: str, keep: int) -> bool:
    """Whether so many characters for `keep` tokens are to be tokenized in parts."""
    return len(text) > keep * _HUGE


def parts(text: str, keep: int, side: Side) -> Iterator[str]:
    """Ever longer ends of `text`, the first of which should hold `keep` tokens; the last one is all that is read."""
    length, most = max(keep * _HUGE // 4, 1), max(keep * _MOST, _LEAST_MOST)
    if len(text) > most:
        text = text[:most] if side == "right" else text[-most:]
    while length < len(text):
        if side == "right":
            yield text[:length]
        elif word_end := _WORD_ENDS.search(text, len(text) - length):
            yield text[word_end.start() :]
        length *= 2
    yield text


def edge(text: str, side: Side) -> str:
    """A few characters of the end of `text` that is cut away, so that what lies beyond meets what it would meet."""
    if side == "right":
        word_end = _WORD_ENDS.search(text, max(len(text) - EDGE, 0))
        return text[word_end.start() :] if word_end else text[-EDGE:]
    word_ends = list(_WORD_ENDS.finditer(text, 0, EDGE))
    return text[: word_ends[-1].start()] if word_ends else text[:EDGE]


def is_settled(words: Sequence[int | None], keep: int, side: Side, beyond: int = 0) -> bool:
    """Whether the `keep` tokens that are kept of a part are those of the whole text.

    Args:
        words: the number of the word that each token of the part belongs to.
        keep: at least 1.
        side: the end that is cut away, which is where the part's border is.
        beyond: how many words there may be beyond the border.
    """
    if len(words) <= keep:
        return False
    kept, border = (words[keep - 1], words[-1]) if side == "right" else (words[-keep], words[0])
    return kept is not None and border is not None and abs(border - kept) > 1 + beyond
