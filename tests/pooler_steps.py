"""Steps for tests of poolers: random hidden states of some sequences, of which some tokens are read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from poolhook.pooler import HiddenBatch
from tiny import packed

SIZE = 8
LABELS = 3
HALVES = [torch.float16, torch.bfloat16]
DTYPES = st.sampled_from([torch.float32, *HALVES])

Mask = list[bool]
"""For each token of a sequence whether it is read."""

ANY_MASKS = st.lists(st.lists(st.booleans(), min_size=1, max_size=12), min_size=1, max_size=8)
MASKS = st.lists(st.lists(st.booleans(), min_size=1, max_size=12).filter(any), min_size=1, max_size=8)
"""Those of steps in which some token of each sequence is read."""


def step(masks: Sequence[Mask], dtype: torch.dtype = torch.float32, size: int = SIZE) -> HiddenBatch:
    """A step of sequences with `masks`."""
    hidden, cu_seqlens = packed([len(mask) for mask in masks], size, dtype)
    return HiddenBatch(hidden, cu_seqlens, torch.tensor([read for mask in masks for read in mask]))


def whole_step(lengths: Sequence[int], dtype: torch.dtype = torch.float32, size: int = SIZE) -> HiddenBatch:
    """A step of sequences of which every token is read."""
    return HiddenBatch(*packed(lengths, size, dtype))


def sequences_of(batch: HiddenBatch) -> list[list[tuple[int, Tensor]]]:
    """For each sequence its tokens that are read, one by one: their place, from 1, and their state in float32."""
    read = [True] * len(batch.hidden) if batch.pooled is None else batch.pooled.tolist()
    return [
        [(i - start + 1, batch.hidden[i].float()) for i in range(start, end) if read[i]]
        for start, end in pairwise(batch.cu_seqlens.tolist())
    ]


def states_of(batch: HiddenBatch) -> list[Tensor]:
    """For each sequence the states of its tokens that are read, shape `[tokens, size]`, float32."""
    return [
        torch.stack([state for _, state in sequence]) if sequence else torch.empty(0, batch.hidden.shape[1])
        for sequence in sequences_of(batch)
    ]


def linear(size: int = LABELS, *, of: int = SIZE, seed: int = 0) -> nn.Linear:
    """A random head that refuses any dtype but float32."""
    torch.manual_seed(seed)
    return nn.Linear(of, size).requires_grad_(False)


def assert_rows(rows: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    """Rows are as expected: their number, shapes, values, and float32 on the CPU."""
    assert [row.shape for row in rows] == [row.shape for row in expected]
    for row, wanted in zip(rows, expected, strict=True):
        torch.testing.assert_close(row, wanted, rtol=1e-5, atol=1e-5)
