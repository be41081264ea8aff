"""One tokenizer for all threads, never reconfigured: ids are cut here, not by the tokenizer's own truncation.

Two threads that set different truncation on a shared `tokenizers.Tokenizer` silently get each other's lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tokenizers import Encoding, Tokenizer
from tokenizers.normalizers import Lowercase
from tokenizers.normalizers import Sequence as NormalizerSequence

from poolhook.errors import InvalidRequest, ModelError, shorten

_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "*.model")

_HUGE = 32
"""Characters per token that is kept, beyond which a text is first cut to a prefix instead of tokenized whole."""

Side = Literal["left", "right"]


@dataclass(frozen=True, slots=True)
class Encoded:
    """A tokenized text.

    Args:
        ids: token ids, special tokens included.
        type_ids: the segment of each token; None for all zeros.
    """

    ids: Sequence[int]
    type_ids: Sequence[int] | None


class TextTokenizer:
    """Texts to token ids, safe to share between threads.

    Args:
        tokenizer: taken over as a copy without truncation and padding, which files of models often carry.
        lower_case: lower-case texts first, as sentence-transformers' `do_lower_case` does.
        segments: give the model the segment of each token, which only some tokenizers mean it to see.
    """

    def __init__(self, tokenizer: Tokenizer, *, lower_case: bool = False, segments: bool = True) -> None:
        self._segments = segments
        self._tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        if lower_case:
            normalizer = self._tokenizer.normalizer
            lower = Lowercase()
            self._tokenizer.normalizer = NormalizerSequence([lower, normalizer]) if normalizer else lower

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
        segments = "token_type_ids" in tokenizer.model_input_names
        return cls(backend, lower_case=lower_case, segments=segments)

    def special_tokens(self) -> int:
        """How many special tokens are put around one text."""
        return self._tokenizer.num_special_tokens_to_add(is_pair=False)

    def encode(self, texts: Sequence[str], *, add_special_tokens: bool, keep: int | None, side: Side) -> list[Encoded]:
        """Tokenize `texts`.

        Args:
            texts: any strings but those with lone surrogates.
            add_special_tokens: put the model's special tokens around each.
            keep: cut each to at most this many tokens, special tokens included; None cuts nothing.
            side: the end that is cut away.

        Raises:
            InvalidRequest: `keep` leaves no room for the special tokens.
        """
        specials = self.special_tokens() if add_special_tokens else 0
        if keep is not None and keep < max(specials, 1):
            raise InvalidRequest(
                f"truncate_prompt_tokens is {keep}, but the special tokens alone are {specials}. Give a larger number.",
                param="truncate_prompt_tokens",
            )
        # A huge text is cut to a prefix before it is tokenized: it must not cost its whole length.
        huge = [keep is not None and side == "right" and len(text) > keep * _HUGE for text in texts]
        whole = iter(
            self._encode_batch([t for t, is_huge in zip(texts, huge, strict=True) if not is_huge], add_special_tokens)
        )
        encoded = []
        for text, is_huge in zip(texts, huge, strict=True):
            encoding = None if is_huge else next(whole)
            if keep is not None and (encoding is None or len(encoding) > keep):
                encoding = self._cut(text, keep - specials, add_special_tokens, side)
            encoded.append(self._encoded(encoding))
        return encoded

    def exceeds(self, text: str, limit: int) -> bool:
        """Whether `text` is sure to have more than `limit` tokens, found without tokenizing all of it."""
        return len(text) > limit * _HUGE and len(self._prefix(text, limit)) > limit

    def _encode_batch(self, texts: Sequence[str], add_special_tokens: bool) -> list[Encoding]:
        encodings: list[Encoding] = self._tokenizer.encode_batch_fast(
            list(texts), add_special_tokens=add_special_tokens
        )
        return encodings

    def _cut(self, text: str, keep: int, add_special_tokens: bool, side: Side) -> Encoding:
        """Tokenize without special tokens, cut, and put them around what is left."""
        encoding = self._prefix(text, keep) if side == "right" else self._encode_plain(text)
        encoding.truncate(keep, direction=side)
        return self._tokenizer.post_process(encoding, None, add_special_tokens)

    def _prefix(self, text: str, keep: int) -> Encoding:
        """Tokenize so much of `text` that its first `keep` tokens are those of the whole text."""
        length = keep * _HUGE // 4
        while True:
            encoding = self._encode_plain(text[:length])
            if length >= len(text) or _settled(encoding, keep):
                return encoding
            length = max(length, 1) * 2

    def _encode_plain(self, text: str) -> Encoding:
        # As a batch of one: alone it would keep every other thread waiting, since only batches release the GIL.
        (encoding,) = self._tokenizer.encode_batch([text], add_special_tokens=False)
        return encoding

    def _encoded(self, encoding: Any) -> Encoded:
        type_ids = encoding.type_ids if self._segments else ()
        return Encoded(encoding.ids, type_ids if any(type_ids) else None)


def _settled(encoding: Encoding, keep: int) -> bool:
    """Whether cutting the text left the first `keep` tokens alone: it can change its last word and the one before."""
    if len(encoding) <= keep:
        return False
    last_kept, last = encoding.word_ids[keep - 1 if keep else 0], encoding.word_ids[-1]
    return last_kept is not None and last is not None and last_kept < last - 1
