"""Specifies the pooling methods: each equals its formula, computed for one sequence after the other."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor

from poolhook.config import PoolingType
from poolhook.pooler.methods import pool
from tiny import packed

# As sentence-transformers' Pooling calls them, whose formulas these are.
NAMES = {
    PoolingType.CLS: "cls",
    PoolingType.LAST: "lasttoken",
    PoolingType.MEAN: "mean",
    PoolingType.MAX: "max",
    PoolingType.MEAN_SQRT_LEN: "mean_sqrt_len_tokens",
    PoolingType.WEIGHTED_MEAN: "weightedmean",
}
LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=12)


def by_formula(sequence: Tensor, method: PoolingType) -> Tensor:
    """The vector of one sequence, shape `[n, hidden]`."""
    n = len(sequence)
    weights = torch.arange(1, n + 1, dtype=torch.float32)
    vectors = {
        PoolingType.CLS: sequence[0],
        PoolingType.LAST: sequence[-1],
        PoolingType.MEAN: sequence.sum(0) / n,
        PoolingType.MAX: sequence.max(0).values,
        PoolingType.MEAN_SQRT_LEN: sequence.sum(0) / n**0.5,
        PoolingType.WEIGHTED_MEAN: (sequence * weights[:, None]).sum(0) / weights.sum(),
    }
    return vectors[method]


@pytest.mark.parametrize("method", PoolingType)
@given(lengths=LENGTHS)
def test_a_method_equals_its_formula_for_any_lengths(method: PoolingType, lengths: list[int]):
    hidden, cu_seqlens = packed(lengths)
    expected = torch.stack([by_formula(sequence, method) for sequence in hidden.split(lengths)])
    torch.testing.assert_close(pool(hidden, cu_seqlens, [method]), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("method", PoolingType)
def test_a_method_equals_sentence_transformers(method: PoolingType):
    lengths = [1, 5, 3, 17]
    hidden, cu_seqlens = packed(lengths)
    padded = torch.nn.utils.rnn.pad_sequence(list(hidden.split(lengths)), batch_first=True)
    mask = torch.arange(padded.shape[1])[None] < torch.tensor(lengths)[:, None]
    theirs = Pooling(hidden.shape[1], pooling_mode=NAMES[method])
    expected = theirs({"token_embeddings": padded, "attention_mask": mask.long()})["sentence_embedding"]
    torch.testing.assert_close(pool(hidden, cu_seqlens, [method]), expected, rtol=1e-5, atol=1e-5)


@given(lengths=LENGTHS, methods=st.lists(st.sampled_from(PoolingType), min_size=1, max_size=4))
def test_several_methods_lie_side_by_side_in_their_order(lengths: list[int], methods: list[PoolingType]):
    hidden, cu_seqlens = packed(lengths)
    apart = torch.cat([pool(hidden, cu_seqlens, [method]) for method in methods], dim=-1)
    assert torch.equal(pool(hidden, cu_seqlens, methods), apart)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("method", PoolingType)
def test_half_precision_is_pooled_in_float32(method: PoolingType, dtype: torch.dtype):
    # A sum of 300 numbers near 300 would leave float16's range.
    hidden, cu_seqlens = packed([300, 2], dtype=dtype)
    hidden = hidden + 300
    pooled = pool(hidden, cu_seqlens, [method])
    assert pooled.dtype == torch.float32
    expected = torch.stack([by_formula(sequence.float(), method) for sequence in hidden.split([300, 2])])
    torch.testing.assert_close(pooled, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("method", PoolingType)
def test_one_sequences_nan_stays_its_own(method: PoolingType):
    lengths = [3, 2, 4]
    hidden, cu_seqlens = packed(lengths)
    hidden[3:5] = torch.nan
    pooled = pool(hidden, cu_seqlens, [method])
    assert torch.isfinite(pooled).all(dim=-1).tolist() == [True, False, True]
