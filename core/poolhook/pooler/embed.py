"""Task `embed`: one vector for a text."""

from __future__ import annotations

from collections.abc import Sequence

from poolhook.config import PoolingType
from poolhook.params import PoolingParams
from poolhook.pooler.methods import pool, require_one_row
from poolhook.pooler.pooler import Head, HiddenBatch, PooledBatch
from poolhook.pooler.rows import rows_of_sequences
from poolhook.pooler.vectors import VectorPooler


class EmbedPooler(VectorPooler):
    """Computes task `embed`: a row of shape `[dimensions]`.

    Args:
        methods: the pooling methods, whose vectors are concatenated.
        projection, normalize, size, matryoshka_dimensions, dimensions: see `VectorPooler`.

    Raises:
        ConfigError: a method makes more than one vector, or the model can't be cut to `dimensions`.
    """

    def __init__(
        self,
        methods: Sequence[PoolingType],
        *,
        projection: Head | None = None,
        normalize: bool,
        size: int,
        matryoshka_dimensions: Sequence[int] | None = None,
        dimensions: int | None = None,
    ) -> None:
        super().__init__(
            projection=projection,
            normalize=normalize,
            size=size,
            matryoshka_dimensions=matryoshka_dimensions,
            dimensions=dimensions,
        )
        require_one_row(methods, "embed")
        self._methods = tuple(methods)

    def __call__(self, batch: HiddenBatch, params: Sequence[PoolingParams]) -> PooledBatch:
        """Pool, project, cut and normalise; see `TaskPooler`."""
        vectors, finite = self._project(pool(batch, self._methods))
        return PooledBatch(rows_of_sequences(vectors, self._wishes(params), self._finish), finite)
