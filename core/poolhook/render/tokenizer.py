"""One tokenizer for all threads, never reconfigured: ids are cut here, not by the tokenizer's own truncation.

Two threads that set different truncation on a shared `tokenizers.Tokenizer` silently get each other's lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tokenizers import Encoding, Tokenizer
from tokenizers.normalizers import Lowercase
from tokenizers.normalizers import Sequence as NormalizerSequence

from poolhook.errors import ModelError, shorten
from poolhook.render.frame import Frame, frame_of
from poolhook.render.windows import Side, is_huge, is_settled, parts

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "*.model")


@dataclass(frozen=True, slots=True)
class Tokenized:
    """The tokens of a text, without special tokens.

    Args:
        ids: token ids.
        dropped: how many tokens were cut off before them, not counting those of `unread`.
        unread: how many characters before those were not even tokenized.
    """

    ids: list[int]
    dropped: int = 0
    unread: int = 0


class TextTokenizer:
    """Texts to token ids, safe to share between threads.

    Args:
        tokenizer: taken over as a copy without truncation and padding, which files of models often carry.
        lower_case: lower-case texts first, as sentence-transformers' `do_lower_case` does.
        segments: give the model the segment of each token, which only some tokenizers mean it to see.
        expansion_id: the token that fills up queries of late-interaction models; None if there is none.
        split_special_tokens: special tokens that are written in a text are tokenized like any other word.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        lower_case: bool = False,
        segments: bool = True,
        expansion_id: int | None = None,
        split_special_tokens: bool = False,
    ) -> None:
        self.expansion_id = expansion_id
        self._tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = split_special_tokens
        if lower_case:
            normalizer = self._tokenizer.normalizer
            lower = Lowercase()
            self._tokenizer.normalizer = NormalizerSequence([lower, normalizer]) if normalizer else lower
        self._special_ids = frozenset(
            token_id for token_id, token in self._tokenizer.get_added_tokens_decoder().items() if token.special
        )

        @cache
        def frame(texts: int, add_special_tokens: bool) -> Frame:
            return frame_of(self._tokenizer, texts, add_special_tokens=add_special_tokens, segments=segments)

        self._frame = frame

    @classmethod
    def from_directory(cls, path: Path, *, lower_case: bool = False) -> TextTokenizer | None:
        """The tokenizer in `path`; None if there is none, so that only token ids can be served.

        Raises:
            ModelError: there is one, but it can't be read or has no implementation in `tokenizers`.
        """
        if not any(file for pattern in _TOKENIZER_FILES for file in path.glob(pattern)):
            return None
        from transformers import AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=False, local_files_only=True)
        except Exception as error:
            # transformers raises OSError, ValueError, KeyError, ImportError and whatever tokenizers raises.
            raise ModelError(
                f"The tokenizer in {path} can't be loaded: {type(error).__name__}: {shorten(str(error), 500)}"
            ) from error
        backend = getattr(tokenizer, "backend_tokenizer", None)
        if not isinstance(backend, Tokenizer):
            raise ModelError(
                f"The tokenizer in {path} ({type(tokenizer).__name__}) has no implementation in `tokenizers`. "
                "Save a tokenizer.json beside it, or send token ids to a copy of the directory without tokenizer files."
            )
        # PyLate's and sentence-transformers' choice: decoders have no mask token.
        expansion_ids = (tokenizer.mask_token_id, tokenizer.eos_token_id)
        return cls(
            backend,
            lower_case=lower_case,
            segments="token_type_ids" in tokenizer.model_input_names,
            expansion_id=next((token_id for token_id in expansion_ids if token_id is not None), None),
            split_special_tokens=bool(getattr(tokenizer, "split_special_tokens", False)),
        )

    def frame(self, *, add_special_tokens: bool) -> Frame:
        """What goes around one text."""
        return self._frame(1, add_special_tokens)

    def pair_frame(self, *, add_special_tokens: bool) -> Frame:
        """What goes around and between two texts.

        Raises:
            ModelError: this tokenizer repeats or swaps the texts of a pair.
        """
        return self._frame(2, add_special_tokens)

    def token_id(self, token: str) -> int | None:
        """The id of the token of this name; None if there is none."""
        token_id: int | None = self._tokenizer.token_to_id(token)
        return token_id

    def is_special(self, token_id: int) -> bool:
        """Whether the tokenizer's file marks this token as special."""
        return token_id in self._special_ids

    def tokenize(self, texts: Sequence[str], keeps: Sequence[int | None], side: Side) -> list[Tokenized]:
        """Token ids without special tokens.

        Args:
            texts: any strings but those with lone surrogates.
            keeps: for each how many tokens are kept of it; None keeps all.
            side: the end that is cut away.
        """
        in_parts = [keep is not None and is_huge(text, keep) for text, keep in zip(texts, keeps, strict=True)]
        whole = iter(self._encode_batch([text for text, part in zip(texts, in_parts, strict=True) if not part]))
        return [
            self._end_of(text, keep, side) if keep is not None and part else _cut(next(whole).ids, keep, side)
            for text, keep, part in zip(texts, keeps, in_parts, strict=True)
        ]

    def encoding_of(self, text: str) -> Encoding:
        """The tokens of `text`, without special tokens, with the characters and the words that they come from."""
        # As a batch of one: alone it would keep every other thread waiting, since only batches release the GIL.
        (encoding,) = self._tokenizer.encode_batch([text], add_special_tokens=False)
        return encoding

    def exceeds(self, text: str, limit: int) -> bool:
        """Whether `text` is sure to have more than `limit` tokens, found without tokenizing all of it."""
        return is_huge(text, limit) and len(self._settled_part(text, limit, "right")[0]) > limit

    def _encode_batch(self, texts: Sequence[str]) -> list[Encoding]:
        encodings: list[Encoding] = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return encodings

    def _end_of(self, text: str, keep: int, side: Side) -> Tokenized:
        if not keep:
            return Tokenized([], unread=len(text) if side == "left" else 0)
        encoding, length = self._settled_part(text, keep, side)
        cut = _cut(encoding.ids, keep, side)
        return Tokenized(cut.ids, cut.dropped, len(text) - length if side == "left" else 0)

    def _settled_part(self, text: str, keep: int, side: Side) -> tuple[Encoding, int]:
        """So much of an end of `text` that its `keep` outermost tokens are those of the whole text, and its length."""
        for part in parts(text, keep, side):
            encoding = self.encoding_of(part)
            if is_settled(encoding.word_ids, keep, side):
                break
        return encoding, len(part)


def _cut(ids: list[int], keep: int | None, side: Side) -> Tokenized:
    excess = 0 if keep is None else len(ids) - keep
    if excess <= 0:
        return Tokenized(ids)
    return Tokenized(ids[:keep]) if side == "right" else Tokenized(ids[excess:], excess)
