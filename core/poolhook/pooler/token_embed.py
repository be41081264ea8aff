"""Task `token_embed`: a vector for each token of a text, as late interaction compares them."""

from __future__ import annotations

from collections.abc import Sequence

from poolhook.params import PoolingParams
from poolhook.pooler.pooler import HiddenBatch, PooledBatch
from poolhook.pooler.rows import rows_of_tokens
from poolhook.pooler.tokens import Tokens
from poolhook.pooler.vectors import VectorPooler


class TokenEmbedPooler(VectorPooler):
    """Computes task `token_embed`: a row of shape `[tokens that are read, dimensions]`; see `VectorPooler`."""

    def __call__(self, batch: HiddenBatch, params: Sequence[PoolingParams]) -> PooledBatch:
        """Project, cut and normalise; see `TaskPooler`."""
        tokens = Tokens.of(batch)
        vectors, finite = self._project(tokens.states.float())
        rows = rows_of_tokens(vectors, tokens.lengths, self._wishes(params), self._finish)
        return PooledBatch(rows, tokens.whole(finite))
