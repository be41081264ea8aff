"""The tokens of a step that the pooler reads: all of them, or those that the engine's inputs mark."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import pad

from poolhook.pooler.pooler import HiddenBatch


@dataclass(frozen=True)
class Tokens:
    """The tokens that are read, `K` of them.

    Args:
        states: shape `[K, hidden]`, in the dtype of the model.
        borders: shape `[n + 1]`, int64: where each sequence starts among them, and K.
    """

    states: Tensor
    borders: Tensor

    @classmethod
    def of(cls, batch: HiddenBatch) -> Tokens:
        """The tokens of `batch`. Without a mask nothing is copied."""
        borders = batch.cu_seqlens.long()
        if batch.pooled is None:
            return cls(batch.hidden, borders)
        return cls(batch.hidden[batch.pooled], _counts_before(batch.pooled)[borders])

    @classmethod
    def some_of_each(cls, batch: HiddenBatch) -> Tokens:
        """As `of`, for what makes one row of a sequence's tokens.

        Raises:
            ValueError: a sequence has none. The engine refuses it at its door.
        """
        tokens = cls.of(batch)
        if batch.pooled is not None and 0 in tokens.lengths:
            raise ValueError(f"no token is read of sequence {tokens.lengths.index(0)} of the step")
        return tokens

    @cached_property
    def lengths(self) -> list[int]:
        """How many tokens of each sequence are read. On a GPU this waits for the step."""
        lengths: list[int] = self.borders.diff().tolist()
        return lengths

    def sequence_ids(self) -> Tensor:
        """Shape `[K]`: to which sequence each token belongs."""
        sequences = torch.arange(len(self.borders) - 1, device=self.borders.device)
        return sequences.repeat_interleave(self.borders.diff(), output_size=len(self.states))

    def whole(self, good: Tensor) -> Tensor:
        """Shape `[n]`, bool: for which sequences `good`, shape `[K]`, holds at every token; true of none."""
        return _counts_before(~good)[self.borders].diff() == 0


def places(batch: HiddenBatch) -> Tensor:
    """Shape `[K]`: the place, from 1, that each token that is read has in its whole sequence."""
    borders, total = batch.cu_seqlens.long(), len(batch.hidden)
    starts = borders[:-1].repeat_interleave(borders.diff(), output_size=total)
    all_places = torch.arange(1, total + 1, device=borders.device) - starts
    return all_places if batch.pooled is None else all_places[batch.pooled]


def finite_rows(values: Tensor) -> Tensor:
    """Shape `[m]`, bool: which rows of `values`, shape `[m, size]`, hold neither NaN nor infinity."""
    return torch.isfinite(values).all(dim=-1)


def _counts_before(marks: Tensor) -> Tensor:
    """Shape `[len(marks) + 1]`: how many of `marks` are set before each place, and how many in all."""
    return pad(marks.cumsum(0), (1, 0))
