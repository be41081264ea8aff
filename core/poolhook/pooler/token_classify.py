"""Task `token_classify`: the labels of each token of a text, or of those that end a step."""

from __future__ import annotations

from collections.abc import Sequence

from poolhook.params import PoolingParams
from poolhook.pooler.labels import LabelPooler
from poolhook.pooler.pooler import HiddenBatch, PooledBatch
from poolhook.pooler.rows import rows_of_tokens
from poolhook.pooler.tokens import Tokens


class TokenClassifyPooler(LabelPooler):
    """Computes task `token_classify`: a row of shape `[tokens that are read, labels]`; see `LabelPooler`."""

    task = "token_classify"

    def __call__(self, batch: HiddenBatch, params: Sequence[PoolingParams]) -> PooledBatch:
        """Classify, calibrate and activate; see `TaskPooler`."""
        tokens = Tokens.of(batch)
        logits, finite = self._logits(tokens.states.float())
        rows = rows_of_tokens(logits, tokens.lengths, self._wishes(params), self._finish)
        return PooledBatch(rows, tokens.whole(finite))
