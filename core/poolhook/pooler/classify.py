"""Task `classify`: the labels of a text, or the score of a pair."""

from __future__ import annotations

from collections.abc import Sequence

from poolhook.config import PoolingType
from poolhook.params import PoolingParams
from poolhook.pooler.labels import Activation, LabelPooler
from poolhook.pooler.methods import pool, require_one_row
from poolhook.pooler.pooler import Head, HiddenBatch, PooledBatch
from poolhook.pooler.rows import rows_of_sequences


class ClassifyPooler(LabelPooler):
    """Computes task `classify`: a row of shape `[labels]`.

    Args:
        method: makes the vector that the head reads.
        head, activation, logit_mean, logit_sigma, use_activation: see `LabelPooler`.

    Raises:
        ConfigError: the method makes more than one vector.
    """

    task = "classify"

    def __init__(
        self,
        method: PoolingType,
        head: Head,
        *,
        activation: Activation,
        logit_mean: float | None = None,
        logit_sigma: float | None = None,
        use_activation: bool = True,
    ) -> None:
        super().__init__(
            head,
            activation=activation,
            logit_mean=logit_mean,
            logit_sigma=logit_sigma,
            use_activation=use_activation,
        )
        require_one_row([method], self.task)
        self._method = method

    def __call__(self, batch: HiddenBatch, params: Sequence[PoolingParams]) -> PooledBatch:
        """Pool, classify, calibrate and activate; see `TaskPooler`."""
        logits, finite = self._logits(pool(batch, [self._method]))
        return PooledBatch(rows_of_sequences(logits, self._wishes(params), self._finish), finite)
