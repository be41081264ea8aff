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

from poolhook.errors import ModelError, shorten
from poolhook.models.files import length, read_optional_json, typed, words
from poolhook.models.modules import DenseLayer

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
    prompts: Mapping[str, str], file: Path, transformer: Mapping[str, Any], mask_file: Path | None
) -> LateInteraction:
    """The roles, from sentence-transformers' files.

    Args:
        prompts: by name.
        file: `sentence_bert_config.json`.
        transformer: the object in it.
        mask_file: the configuration of the MultiVectorMask module, if there is one.

    Raises:
        ModelError: queries are expanded or tokens left out in a way that poolhook does not support.
    """
    expansion = typed(transformer, "query_expansion", dict, file)
    expand_to = _expansion_length(expansion, file) if expansion is not None else None
    tasks, skip_words = _skip_list(mask_file) if mask_file is not None else ((), ())
    return LateInteraction(
        TextRole(
            prompts.get("query", ""),
            expand_to or length(transformer, "query_length", file),
            expand_to,
            bool(expansion and typed(expansion, "attend", bool, file)),
            skip_words if "query" in tasks else (),
        ),
        TextRole(
            prompts.get("document", ""),
            length(transformer, "document_length", file),
            skip_words=skip_words if "document" in tasks else (),
        ),
    )


def _expansion_length(expansion: Mapping[str, Any], file: Path) -> int:
    filled_to = length(expansion, "length", file)
    if expansion.get("strategy") != "fixed" or expansion.get("token") is not None or filled_to is None:
        raise ModelError(
            f"query_expansion {shorten(expansion)} in {file} is not supported; poolhook fills queries up to a fixed "
            "length with the mask token."
        )
    return filled_to


def _skip_list(file: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tasks whose texts leave words out, and the words."""
    config = read_optional_json(file)
    if config.get("keep_only_token_ids"):
        raise ModelError(f"{file} has keep_only_token_ids, which poolhook does not support: it serves models of text.")
    tasks = config.get("skiplist_tasks")
    one = (tasks,) if isinstance(tasks, str) else words(config, "skiplist_tasks", file)
    return ("document",) if one is None else one, words(config, "skiplist_words", file) or ()


def read_pylate_roles(prompts: Mapping[str, str], file: Path, config: Mapping[str, Any]) -> LateInteraction:
    """The roles, from PyLate's files.

    Args:
        prompts: by name.
        file: `config_sentence_transformers.json`.
        config: the object in it.

    Raises:
        ModelError: a value is of another kind than PyLate writes.
    """

    def prefix(role: Role) -> str:
        marker = typed(config, f"{role}_prefix", str, file) or ""
        return marker + prompts.get(role, "").removeprefix(marker)

    # PyLate's defaults, which older releases of it did not write down.
    expands = typed(config, "do_query_expansion", bool, file) is not False
    filled_to = length(config, "query_length", file) or _DEFAULT_QUERY_LENGTH
    attends = [typed(config, key, bool, file) for key in ("attend_to_expansion_tokens", "attend_to_mask_tokens")]
    skip_words = words(config, "skiplist_words", file)
    return LateInteraction(
        TextRole(prefix("query"), filled_to, filled_to if expands else None, bool(_first_said(attends))),
        TextRole(
            prefix("document"),
            length(config, "document_length", file) or _DEFAULT_DOCUMENT_LENGTH,
            skip_words=_PUNCTUATION if skip_words is None else skip_words,
        ),
    )


def _first_said(values: list[bool | None]) -> bool | None:
    return next((value for value in values if value is not None), None)


def read_stanford(path: Path) -> tuple[LateInteraction, DenseLayer]:
    """The roles, from the Stanford code's `artifact.metadata`, and the projection, which lies with the weights.

    Raises:
        ModelError: a value is of another kind than that code writes.
    """
    file = path / "artifact.metadata"
    metadata = read_optional_json(file)
    filled_to = length(metadata, "query_maxlen", file) or _DEFAULT_QUERY_LENGTH
    roles = LateInteraction(
        TextRole(
            typed(metadata, "query_token_id", str, file) or "[unused0]",
            filled_to,
            filled_to,
            bool(typed(metadata, "attend_to_mask_tokens", bool, file)),
        ),
        TextRole(
            typed(metadata, "doc_token_id", str, file) or "[unused1]",
            length(metadata, "doc_maxlen", file),
            skip_words=() if typed(metadata, "mask_punctuation", bool, file) is False else _PUNCTUATION,
        ),
    )
    return roles, DenseLayer(path, length(metadata, "dim", file) or _DEFAULT_DIMENSIONS)
