"""`Encoded`: a prompt of any kind, once it is token ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Encoded:
    """What the model sees of a prompt.

    Args:
        ids: token ids, special tokens included.
        type_ids: the segment of each token; None for all zeros.
        unpooled: how many tokens, from the first, are left out of pooling.
    """

    ids: Sequence[int]
    type_ids: Sequence[int] | None = None
    unpooled: int = 0
