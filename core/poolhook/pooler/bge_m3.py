"""BGE-M3: a dense, a sparse and a multi-vector answer from one pass (task `plugin`), and the last alone."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import normalize

from poolhook.params import PoolingParams
from poolhook.pooler.embed import EmbedPooler
from poolhook.pooler.pooler import Head, HiddenBatch, PooledBatch
from poolhook.pooler.rows import rows_of_tokens
from poolhook.pooler.token_embed import TokenEmbedPooler
from poolhook.pooler.tokens import Tokens, finite_rows


class BgeM3Pooler:
    """Computes task `plugin`. The formulas are those of FlagEmbedding's `BGEM3FlagModel`.

    The row is the dense embedding. Parts of it:
        sparse: shape `[tokens]`, `relu` of the sparse head: the weight of each token that is read. Whoever reads them
            takes the largest of each token id, and leaves out special tokens.
        colbert: shape `[tokens but the first, size]`: a vector for each token that is read and is not the first of
            its sequence, normalised where the dense embedding is. `dimensions` does not cut it.

    Args:
        embed: computes the dense embedding.
        sparse_head: from hidden states to one weight.
        colbert_head: from hidden states to vectors.
    """

    def __init__(self, embed: EmbedPooler, sparse_head: Head, colbert_head: Head) -> None:
        self._embed = embed
        self._sparse_head = sparse_head
        self._colbert_head = colbert_head

    def verify(self, params: PoolingParams) -> None:
        """Raise `InvalidRequest` for params that the dense embedding can't honour."""
        self._embed.verify(params)

    def __call__(self, batch: HiddenBatch, params: Sequence[PoolingParams]) -> PooledBatch:
        """Pool three ways; see `TaskPooler`."""
        dense = self._embed(batch, params)
        tokens = Tokens.of(batch)
        states = tokens.states.float()
        logits = self._sparse_head(states)
        sparse = torch.split_with_sizes(logits[:, 0].relu().cpu(), tokens.lengths)

        later = Tokens.of(_without_first(batch))
        vectors = self._colbert_head(later.states.float())
        wishes = [self._embed.normalizes(each) for each in params]
        colbert = rows_of_tokens(vectors, later.lengths, wishes, _normalized_if)

        # Before relu and normalising, which hide infinity.
        finite = dense.finite & tokens.whole(finite_rows(states) & finite_rows(logits))
        finite &= later.whole(torch.isfinite(torch.linalg.vector_norm(vectors, dim=-1)))
        parts = [{"sparse": weights, "colbert": rows} for weights, rows in zip(sparse, colbert, strict=True)]
        return PooledBatch(dense.rows, finite, parts)


class BgeM3TokenPooler(TokenEmbedPooler):
    """Computes task `token_embed`: the multi-vector answer, which has none for the first token."""

    def __call__(self, batch: HiddenBatch, params: Sequence[PoolingParams]) -> PooledBatch:
        """Project all but the first tokens; see `TaskPooler`."""
        return super().__call__(_without_first(batch), params)


def _without_first(batch: HiddenBatch) -> HiddenBatch:
    everything = torch.ones(len(batch.hidden), dtype=torch.bool, device=batch.hidden.device)
    pooled = everything if batch.pooled is None else batch.pooled.clone()
    pooled[batch.cu_seqlens[:-1].long()] = False
    return HiddenBatch(batch.hidden, batch.cu_seqlens, pooled)


def _normalized_if(vectors: Tensor, wanted: bool) -> Tensor:
    return normalize(vectors, dim=-1) if wanted else vectors
