"""Late-interaction (ColBERT) models: what makes a text a query or a document.

Three layouts exist: PyLate's (flat keys in `config_sentence_transformers.json`), sentence-transformers' since 6.0
(`query_length`, `document_length` and `query_expansion` of its Transformer, a MultiVectorMask module), and the
Stanford code's (`artifact.metadata`, its markers of the roles being tokens that BERT left unused).
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from poolhook.errors import ModelError
from poolhook.models.files import read_optional_json
from poolhook.models.modules import DenseLayer, Module

Role = Literal["query", "document"]

STANFORD_ARCHITECTURE = "HF_ColBERT"

_DEFAULT_QUERY_LENGTH = 32
_DEFAULT_DOCUMENT_LENGTH = 180
_DEFAULT_DIMENSIONS = 128
_PUNCTUATION = tuple(string.punctuation)


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


def read_roles(
    path: Path, overall: Mapping[str, Any], transformer: Mapping[str, Any], mask: Module | None
) -> LateInteraction:
    """The roles, from PyLate's or sentence-transformers' files.

    Args:
        path: the model directory.
        overall: the object in `config_sentence_transformers.json`.
        transformer: the object in `sentence_bert_config.json`.
        mask: the MultiVectorMask module, if there is one.

    Raises:
        ModelError: the mask leaves out tokens in a way that poolhook does not support.
    """
    if mask is None:
        return _from_pylate(overall)
    file = mask.config_file(path)
    config = read_optional_json(file)
    if config.get("keep_only_token_ids"):
        raise ModelError(f"{file} has keep_only_token_ids, which poolhook does not support: it serves models of text.")
    expansion = transformer.get("query_expansion") or {}
    if expansion.get("strategy", "fixed") != "fixed" or expansion.get("token"):
        raise ModelError(
            f"query_expansion {expansion} of {path} is not supported; poolhook fills queries up to a fixed length "
            "with the mask token."
        )
    prompts = overall.get("prompts") or {}
    skip_words = tuple(config.get("skiplist_words") or ())
    tasks = config.get("skiplist_tasks") or ["document"]
    expand_to = expansion.get("length")
    return LateInteraction(
        TextRole(
            prompts.get("query") or "",
            expand_to or transformer.get("query_length"),
            expand_to,
            bool(expansion.get("attend")),
            skip_words if "query" in tasks else (),
        ),
        TextRole(
            prompts.get("document") or "",
            transformer.get("document_length"),
            skip_words=skip_words if "document" in tasks else (),
        ),
    )


def _from_pylate(config: Mapping[str, Any]) -> LateInteraction:
    prompts = config.get("prompts") or {}

    def prefix(role: Role) -> str:
        marker = config.get(f"{role}_prefix") or ""
        return marker + (prompts.get(role) or "").removeprefix(marker)

    # PyLate's defaults, which older releases of it did not write down.
    expands = config.get("do_query_expansion", True)
    length = config.get("query_length") or _DEFAULT_QUERY_LENGTH
    skip_words = config.get("skiplist_words")
    return LateInteraction(
        TextRole(
            prefix("query"),
            length,
            length if expands else None,
            bool(config.get("attend_to_expansion_tokens", config.get("attend_to_mask_tokens"))),
        ),
        TextRole(
            prefix("document"),
            config.get("document_length") or _DEFAULT_DOCUMENT_LENGTH,
            skip_words=_PUNCTUATION if skip_words is None else tuple(skip_words),
        ),
    )


def read_stanford(path: Path) -> tuple[LateInteraction, DenseLayer]:
    """The roles, from the Stanford code's `artifact.metadata`, and the projection, which lies with the weights."""
    metadata = read_optional_json(path / "artifact.metadata")
    length = metadata.get("query_maxlen") or _DEFAULT_QUERY_LENGTH
    roles = LateInteraction(
        TextRole(
            metadata.get("query_token_id") or "[unused0]",
            length,
            length,
            bool(metadata.get("attend_to_mask_tokens")),
        ),
        TextRole(
            metadata.get("doc_token_id") or "[unused1]",
            metadata.get("doc_maxlen"),
            skip_words=_PUNCTUATION if metadata.get("mask_punctuation", True) else (),
        ),
    )
    return roles, DenseLayer(path, metadata.get("dim") or _DEFAULT_DIMENSIONS)
