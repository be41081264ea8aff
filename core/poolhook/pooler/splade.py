"""Task `embed` of a masked language model: SPLADE's sparse vector, with a weight for each word of the vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from poolhook.errors import InvalidRequest
from poolhook.params import PoolingParams
from poolhook.pooler.pooler import Head, HiddenBatch, PooledBatch
from poolhook.pooler.tokens import Tokens, finite_rows

_CHUNK = 256
"""Tokens that go through the head at once. More were no faster, and each costs a float32 for each word."""


class SpladePooler:
    """Computes task `embed`: a row of shape `[size]`.

    The formula is that of sentence-transformers' `SpladePooling`: `log1p(relu(logits))` of each token, then the
    maximum (or sum) over the tokens of a sequence that are read.

    Args:
        head: the model's own, from hidden states to a logit for each word.
        strategy: how a sequence's tokens are combined.
        log1p_twice: another `log1p` of each token's weights, as OpenSearch's models have it.
        size: words of the vocabulary.
    """

    def __init__(self, head: Head, *, strategy: Literal["max", "sum"], log1p_twice: bool, size: int) -> None:
        self._head = head
        self._strategy = strategy
        self._log1p_twice = log1p_twice
        self._size = size

    def verify(self, params: PoolingParams) -> None:
        """Raise `InvalidRequest` for what makes no sense of a sparse vector: a cut, and normalisation."""
        if params.dimensions not in (None, self._size):
            raise InvalidRequest(
                f"dimensions is {params.dimensions}, but this model's embeddings are sparse: each of their "
                f"{self._size} values is a word's, and they can't be cut. Leave dimensions out.",
                param="dimensions",
            )
        if params.use_activation:
            raise InvalidRequest(
                "use_activation is true, but this model's embeddings are sparse and never normalised. "
                "Leave use_activation out.",
                param="use_activation",
            )

    def __call__(self, batch: HiddenBatch, params: Sequence[PoolingParams]) -> PooledBatch:
        """Weigh and combine, some tokens at a time; see `TaskPooler`."""
        tokens = Tokens.some_of_each(batch)
        # Weights are never negative, so zero is where both a maximum and a sum start.
        pooled = torch.zeros(len(params), self._size, dtype=torch.float32, device=batch.hidden.device)
        chunks = zip(torch.split(tokens.states, _CHUNK), torch.split(tokens.sequence_ids(), _CHUNK), strict=True)
        for states, of_sequence in chunks:
            self._combine(pooled, of_sequence, self._head(states.float()))
        pooled = self._weights(pooled) if self._strategy == "max" else pooled
        # The hidden states too: relu makes a zero of minus infinity.
        finite = tokens.whole(finite_rows(tokens.states)) & finite_rows(pooled)
        return PooledBatch(pooled.cpu().unbind(), finite)

    def _combine(self, pooled: Tensor, of_sequence: Tensor, logits: Tensor) -> None:
        index = of_sequence[:, None].expand_as(logits)
        if self._strategy == "max":
            # log1p and relu keep the order, so that the largest logit has the largest weight: weigh it alone.
            pooled.scatter_reduce_(0, index, logits, "amax")
        else:
            pooled.scatter_reduce_(0, index, self._weights(logits), "sum")

    def _weights(self, logits: Tensor) -> Tensor:
        weights = logits.relu().log1p_()
        return weights.log1p_() if self._log1p_twice else weights
