"""Late-interaction (ColBERT) models: what makes a text a query or a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["query", "document"]


@dataclass(frozen=True)
class TextRole:
    """How texts of one role are tokenized.

    Args:
        prefix: put before each text; a token of its own where the tokenizer has one of that name.
        max_length: the longest text, in tokens, with special tokens and prefix; None is the model's own.
        expand_to: fill up to this many tokens with the mask token; None does not.
        attend_to_expansion: whether the text's own tokens see the mask tokens that were filled in.
        skip_words: tokens whose vectors are left out of the answer.
    """

    prefix: str = ""
    max_length: int | None = None
    expand_to: int | None = None
    attend_to_expansion: bool = False
    skip_words: tuple[str, ...] = ()


@dataclass(frozen=True)
class LateInteraction:
    """The roles of a late-interaction model."""

    query: TextRole
    document: TextRole

    def of(self, role: Role) -> TextRole:
        """What `role` means."""
        return self.query if role == "query" else self.document
