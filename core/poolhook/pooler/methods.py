"""Pooling methods over a packed batch: one vector for each sequence, without a loop over sequences."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from poolhook.config import PoolingType


def pool(hidden: Tensor, cu_seqlens: Tensor, methods: Sequence[PoolingType]) -> Tensor:
    """Pool each sequence by each method and lay the results side by side.

    Formulas are those of sentence-transformers' `Pooling` module. For a sequence of `n` hidden states `h_1 .. h_n`:
    MEAN is `sum(h) / n`, MEAN_SQRT_LEN `sum(h) / sqrt(n)`, WEIGHTED_MEAN `sum(i * h_i) / sum(i)`.

    Args:
        hidden: shape `[T, hidden]`, the sequences end to end.
        cu_seqlens: shape `[n + 1]`, where each sequence starts, and T. No sequence is empty.
        methods: at least one.

    Returns:
        Shape `[n, hidden * len(methods)]`, float32.
    """
    pooled = [_pool_one(hidden, cu_seqlens.long(), method) for method in methods]
    return pooled[0] if len(pooled) == 1 else torch.cat(pooled, dim=-1)


def _pool_one(hidden: Tensor, borders: Tensor, method: PoolingType) -> Tensor:
    if method is PoolingType.CLS:
        return hidden[borders[:-1]].float()
    if method is PoolingType.LAST:
        return hidden[borders[1:] - 1].float()
    hidden, lengths = hidden.float(), borders.diff()
    if method is PoolingType.MAX:
        return torch.segment_reduce(hidden, "max", lengths=lengths)
    if method is PoolingType.MEAN:
        return torch.segment_reduce(hidden, "mean", lengths=lengths)
    if method is PoolingType.MEAN_SQRT_LEN:
        return torch.segment_reduce(hidden, "sum", lengths=lengths) / lengths.float().sqrt()[:, None]
    if method is PoolingType.WEIGHTED_MEAN:
        starts = torch.repeat_interleave(borders[:-1], lengths, output_size=hidden.shape[0])
        weights = torch.arange(1, hidden.shape[0] + 1, device=hidden.device) - starts
        total = (lengths * (lengths + 1)).float() / 2
        return torch.segment_reduce(hidden * weights[:, None], "sum", lengths=lengths) / total[:, None]
    raise NotImplementedError(method)
