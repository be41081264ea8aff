"""`Frame`: the special tokens that a tokenizer puts around one text, or around and between two.

Learned once from the tokenizer's own post-processor, so that texts can be tokenized without special tokens, cut as
plain lists, and framed afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Encoding, Tokenizer

from poolhook.errors import ModelError

_PROBES = (2**32 - 1, 2**32 - 2)
"""Token ids that no vocabulary has; they stand for the texts."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Special tokens around texts.

    Args:
        specials: the special tokens before the first text, after it, and so on: one more than there are texts.
        special_types: the segment of each of them.
        text_types: the segment of each text's tokens.
    """

    specials: tuple[tuple[int, ...], ...]
    special_types: tuple[tuple[int, ...], ...]
    text_types: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many special tokens there are."""
        return sum(map(len, self.specials))

    def around(self, *texts: Sequence[int]) -> list[int]:
        """The token ids of `texts` with the special tokens in their places."""
        ids = list(self.specials[0])
        for text, after in zip(texts, self.specials[1:], strict=True):
            ids += text
            ids += after
        return ids

    def type_ids(self, *lengths: int) -> list[int] | None:
        """The segment of each token around texts of these lengths; None for all zeros."""
        if not any(map(any, self.special_types)) and not any(self.text_types):
            return None
        types = list(self.special_types[0])
        for length, text_type, after in zip(lengths, self.text_types, self.special_types[1:], strict=True):
            types += [text_type] * length
            types += after
        return types

    def with_prefix(self, token_id: int) -> Frame:
        """The frame with one more token right after the first special token."""
        (before, *after), (types, *after_types) = self.specials, self.special_types
        return Frame(
            ((*before[:1], token_id, *before[1:]), *after),
            ((*types[:1], self.text_types[0], *types[1:]), *after_types),
            self.text_types,
        )


def frame_of(tokenizer: Tokenizer, texts: int, *, add_special_tokens: bool, segments: bool) -> Frame:
    """What `tokenizer` puts around one text or two.

    Args:
        texts: 1 or 2.
        add_special_tokens: False leaves the texts bare.
        segments: False makes every segment 0.

    Raises:
        ModelError: the texts do not come out once each and in their order.
    """
    first, second = (_probe(id_, segment) for segment, id_ in enumerate(_PROBES))
    encoding = tokenizer.post_process(first, second if texts == 2 else None, add_special_tokens)
    ids, types = encoding.ids, encoding.type_ids if segments else [0] * len(encoding.ids)
    at = [place for place, id_ in enumerate(ids) if id_ in _PROBES]
    if [ids[place] for place in at] != list(_PROBES[:texts]):
        raise ModelError(
            "The tokenizer's post-processor does not put each text once and in order into what the model sees, "
            "which poolhook does not support."
        )
    borders = list(zip([0, *(place + 1 for place in at)], [*at, len(ids)], strict=True))
    return Frame(
        tuple(tuple(ids[start:end]) for start, end in borders),
        tuple(tuple(types[start:end]) for start, end in borders),
        tuple(types[place] for place in at),
    )


def _probe(token_id: int, segment: int) -> Encoding:
    """An encoding of one token, which padding makes from nothing."""
    probe = Encoding()
    probe.pad(1, pad_id=token_id, pad_type_id=segment)
    return probe
