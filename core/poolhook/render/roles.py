"""Late-interaction models: what being a query or a document does to a prompt.

Follows PyLate and sentence-transformers' `MultiVectorEncoder`. As there, a prompt without a role is a document without
prefix and without a limit of its own: only the skip words of documents are left out.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from poolhook.errors import ModelError, shorten
from poolhook.models.late_interaction import LateInteraction, Role, TextRole
from poolhook.render.frame import Frame
from poolhook.render.limits import Limit
from poolhook.render.tokenizer import TextTokenizer

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Treatment:
    """What is done to prompts of one role, beyond tokenizing them.

    Args:
        limit: how long they may be.
        prefix: text put before them.
        prefix_id: a token put right after the first special token; None for none.
        expand_to: fill up to this many tokens.
        expansion_id: with this one.
        attend_to_expansion: whether the filling is attended to.
        skip_ids: tokens that are left out of pooling.
    """

    limit: Limit
    prefix: str = ""
    prefix_id: int | None = None
    expand_to: int = 0
    expansion_id: int = 0
    attend_to_expansion: bool = True
    skip_ids: frozenset[int] = frozenset()

    def frame(self, plain: Frame) -> Frame:
        """What goes around a text, given what goes around those without a role."""
        return plain if self.prefix_id is None else plain.with_prefix(self.prefix_id)

    def expand(self, ids: Sequence[int]) -> Sequence[int]:
        """`ids`, filled up behind their last special token."""
        missing = self.expand_to - len(ids)
        return [*ids, *[self.expansion_id] * missing] if missing > 0 else ids


Treatments = dict[Role | None, Treatment]


def treatments(roles: LateInteraction | None, tokenizer: TextTokenizer | None, max_length: int) -> Treatments:
    """The treatment of prompts of each role, and of those of none.

    Args:
        roles: None for models to which roles make no difference.
        tokenizer: the model's.
        max_length: the longest prompt that the model takes, in tokens.

    Raises:
        ModelError: queries are to be expanded, and the tokenizer has no token for that.
    """
    limit = Limit(max_length, "this model takes", max_length)
    if roles is None:
        plain = Treatment(limit)
        return {None: plain, "query": plain, "document": plain}
    words = list(dict.fromkeys([*roles.query.skip_words, *roles.document.skip_words]))
    ids = {word: tokenizer.token_id(word) if tokenizer else None for word in words}
    unknown = [word for word, token_id in ids.items() if token_id is None]
    if unknown:
        logger.warning(
            "The model leaves these words out of its answers, but they are no single tokens, so they stay in: %s",
            shorten(" ".join(unknown)),
        )
    known = {word: token_id for word, token_id in ids.items() if token_id is not None}
    return {
        None: Treatment(limit, skip_ids=_skip_ids(roles.document, known)),
        "query": _treatment("queries", roles.query, tokenizer, max_length, known),
        "document": _treatment("documents", roles.document, tokenizer, max_length, known),
    }


def _treatment(
    name: str, role: TextRole, tokenizer: TextTokenizer | None, max_length: int, known: dict[str, int]
) -> Treatment:
    length = min(role.max_length or max_length, max_length)
    expansion_id = tokenizer.expansion_id if tokenizer else None
    if role.expand_to and expansion_id is None:
        raise ModelError(
            f"The model fills its {name} up to {role.expand_to} tokens with the mask token, but its directory has no "
            "tokenizer with a mask or end-of-sequence token."
        )
    prefix_id = _prefix_id(role.prefix, tokenizer)
    return Treatment(
        Limit(length, f"{name} of this model have" if length < max_length else "this model takes", length),
        prefix=role.prefix if prefix_id is None else "",
        prefix_id=prefix_id,
        expand_to=min(role.expand_to or 0, max_length),
        expansion_id=expansion_id or 0,
        attend_to_expansion=role.attend_to_expansion,
        skip_ids=_skip_ids(role, known),
    )


def _prefix_id(prefix: str, tokenizer: TextTokenizer | None) -> int | None:
    """The token that stands for `prefix`: named like it, or like its only word (`[unused0]` for `[unused0] `)."""
    for name in (prefix, prefix.strip()):
        token_id = tokenizer.token_id(name) if tokenizer and name else None
        if token_id is not None:
            return token_id
    return None


def _skip_ids(role: TextRole, known: dict[str, int]) -> frozenset[int]:
    return frozenset(known[word] for word in role.skip_words if word in known)
