"""Pooling methods over a packed batch: one vector for each sequence, without a loop over sequences."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from poolhook.config import PoolingType
from poolhook.errors import ConfigError
from poolhook.pooler.pooler import HiddenBatch
from poolhook.pooler.tokens import Tokens, places
from poolhook.tasks import PoolingTask


def pool(batch: HiddenBatch, methods: Sequence[PoolingType]) -> Tensor:
    """Pool each sequence by each method and lay the results side by side.

    Formulas are those of sentence-transformers' `Pooling` module. For the `k` hidden states `h_i` of a sequence that
    are read, `i` being their place in the whole sequence: CLS is the first of them, LAST the last, MEAN is
    `sum(h_i) / k`, MEAN_SQRT_LEN `sum(h_i) / sqrt(k)`, WEIGHTED_MEAN `sum(i * h_i) / sum(i)`.

    Args:
        batch: at least one token of each sequence is read.
        methods: at least one; neither ALL nor STEP (see `require_one_row`).

    Returns:
        Shape `[n, hidden * len(methods)]`, float32.

    Raises:
        ValueError: a sequence has no token that is read.
    """
    tokens = Tokens.some_of_each(batch)
    pooled = [_pool_one(batch, tokens, method) for method in methods]
    return pooled[0] if len(pooled) == 1 else torch.cat(pooled, dim=-1)


def require_one_row(methods: Sequence[PoolingType], task: PoolingTask) -> None:
    """Raise `ConfigError` unless each method makes one vector of a sequence, as `task` needs."""
    for method in methods:
        if method.is_of_tokens:
            raise ConfigError(
                f"Pooling type {method} answers with a row for each token: it is for tasks token_embed and "
                f"token_classify, not {task}."
            )


def _pool_one(batch: HiddenBatch, tokens: Tokens, method: PoolingType) -> Tensor:
    if method is PoolingType.CLS:
        return tokens.states[tokens.borders[:-1]].float()
    if method is PoolingType.LAST:
        return tokens.states[tokens.borders[1:] - 1].float()
    states, lengths = tokens.states.float(), tokens.borders.diff()
    if method is PoolingType.MAX:
        return torch.segment_reduce(states, "max", lengths=lengths)
    if method is PoolingType.MEAN:
        return torch.segment_reduce(states, "mean", lengths=lengths)
    if method is PoolingType.MEAN_SQRT_LEN:
        return torch.segment_reduce(states, "sum", lengths=lengths) / lengths.float().sqrt()[:, None]
    if method is PoolingType.WEIGHTED_MEAN:
        weights = places(batch).float()[:, None]
        total = torch.segment_reduce(weights, "sum", lengths=lengths)
        return torch.segment_reduce(states * weights, "sum", lengths=lengths) / total
    raise NotImplementedError(method)
