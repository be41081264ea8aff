"""A row for each sequence, when the sequences of a step may wish for different last steps."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import torch
from torch import Tensor

Wish = TypeVar("Wish", bound=Hashable)

Finish = Callable[[Tensor, Wish], Tensor]
"""The last steps: they work on each row of values by itself, and keep the rows' order and number."""


def rows_of_sequences(values: Tensor, wishes: Sequence[Wish], finish: Finish[Wish]) -> list[Tensor]:
    """Finish a vector for each sequence as it wishes.

    Args:
        values: shape `[n, size]`.
        wishes: one for each sequence; those with equal wishes are finished, and moved to the CPU, together.
        finish: the last steps.

    Returns:
        For each sequence a tensor of shape `[its size]` on the CPU, a view of those of equal wishes.
    """

    def some(chosen: Tensor | None, wish: Wish) -> Sequence[Tensor]:
        return finish(values if chosen is None else values[chosen], wish).cpu().unbind()

    return _as_wished(wishes, some)


def rows_of_tokens(
    values: Tensor, lengths: Sequence[int], wishes: Sequence[Wish], finish: Finish[Wish]
) -> list[Tensor]:
    """Finish the vectors of each sequence's tokens as the sequence wishes; see `rows_of_sequences`.

    Args:
        values: shape `[sum(lengths), size]`.
        lengths: how many of them each sequence has.
        wishes: one for each sequence.
        finish: the last steps.

    Returns:
        For each sequence a tensor of shape `[its length, its size]`.
    """

    def some(chosen: Tensor | None, wish: Wish) -> Sequence[Tensor]:
        if chosen is None:
            return torch.split_with_sizes(finish(values, wish).cpu(), list(lengths))
        of_lengths = torch.tensor(lengths)
        mine = values[chosen.repeat_interleave(of_lengths)]
        return torch.split_with_sizes(finish(mine, wish).cpu(), of_lengths[chosen].tolist())

    return _as_wished(wishes, some)


def _as_wished(wishes: Sequence[Wish], some: Callable[[Tensor | None, Wish], Sequence[Tensor]]) -> list[Tensor]:
    """The rows of `some(chosen, wish)`, put back in order; `chosen` masks the sequences of a wish, None is all."""
    distinct = set(wishes)
    if len(distinct) == 1:
        return list(some(None, wishes[0]))
    rows: dict[int, Tensor] = {}
    for wish in distinct:
        chosen = torch.tensor([other == wish for other in wishes])
        rows |= zip(chosen.nonzero().flatten().tolist(), some(chosen, wish), strict=True)
    return [rows[i] for i in range(len(wishes))]
