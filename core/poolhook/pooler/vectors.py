"""What tasks `embed` and `token_embed` share: vectors are projected, cut as the caller asks, then normalised."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import normalize as l2_normalize

from poolhook.errors import ConfigError, InvalidRequest
from poolhook.params import PoolingParams, why_no_dimensions
from poolhook.pooler.pooler import Head
from poolhook.pooler.tokens import finite_rows


class VectorPooler:
    """The base of poolers whose rows are vectors, or hold one for each token.

    Args:
        projection: from what was pooled to vectors, such as the Dense modules of a sentence-transformer.
        normalize: L2-normalise unless the caller says otherwise.
        size: dimensions of a vector that was not cut.
        matryoshka_dimensions: the lengths to which the model lets its vectors be cut; empty for any, None for none.
        dimensions: the length to which they are cut unless the caller says otherwise.

    Raises:
        ConfigError: `dimensions` is not a length that the model can be cut to.
    """

    def __init__(
        self,
        *,
        projection: Head | None = None,
        normalize: bool,
        size: int,
        matryoshka_dimensions: Sequence[int] | None = None,
        dimensions: int | None = None,
    ) -> None:
        self._projection = projection
        self._normalize = normalize
        self._size = size
        self._matryoshka = matryoshka_dimensions
        if problem := why_no_dimensions(dimensions, size, matryoshka_dimensions):
            raise ConfigError(f"PoolerConfig: {problem}")
        self._dimensions = dimensions or size

    def verify(self, params: PoolingParams) -> None:
        """Raise `InvalidRequest` if `params.dimensions` is not a length that this model can be cut to."""
        if problem := why_no_dimensions(params.dimensions, self._size, self._matryoshka):
            raise InvalidRequest(problem, param="dimensions")

    def normalizes(self, params: PoolingParams) -> bool:
        """Whether the vectors of a prompt with `params` are normalised."""
        return self._normalize if params.use_activation is None else params.use_activation

    def _project(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Whole vectors, shape `[m, size]`, and which of them are finite, from float32 `[m, hidden]`."""
        vectors = states if self._projection is None else self._projection(states)
        # The norm, since it overflows before its values do, and dividing by infinity would hide that.
        finite = torch.isfinite(torch.linalg.vector_norm(vectors, dim=-1))
        # A projection's tanh would hide infinity too.
        return vectors, finite if self._projection is None else finite & finite_rows(states)

    def _wishes(self, params: Sequence[PoolingParams]) -> list[tuple[int, bool]]:
        return [(each.dimensions or self._dimensions, self.normalizes(each)) for each in params]

    @staticmethod
    def _finish(vectors: Tensor, wish: tuple[int, bool]) -> Tensor:
        dimensions, normalizes = wish
        vectors = vectors[:, :dimensions]
        return l2_normalize(vectors, dim=-1) if normalizes else vectors
