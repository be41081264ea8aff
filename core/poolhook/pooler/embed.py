"""Task `embed`: one vector for a text, normalised where the model says so, cut where the caller asks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import normalize

from poolhook.config import PoolingType
from poolhook.errors import InvalidRequest
from poolhook.params import PoolingParams
from poolhook.pooler.methods import pool
from poolhook.pooler.pooler import PooledBatch


class EmbedPooler:
    """Computes task `embed`.

    Args:
        methods: the pooling methods, whose vectors are concatenated.
        normalize: L2-normalise unless the caller says otherwise.
        size: dimensions of an embedding that was not cut.
        matryoshka_dimensions: the lengths to which the model lets its embeddings be cut; empty for any, None for none.
    """

    def __init__(
        self,
        methods: Sequence[PoolingType],
        *,
        normalize: bool,
        size: int,
        matryoshka_dimensions: Sequence[int] | None = None,
    ) -> None:
        self._methods = tuple(methods)
        self._normalize = normalize
        self._size = size
        self._matryoshka = matryoshka_dimensions

    def verify(self, params: PoolingParams) -> None:
        """Raise `InvalidRequest` if `params.dimensions` is not a length that this model can be cut to."""
        wanted = params.dimensions
        if wanted is None or wanted == self._size:
            return
        if self._matryoshka is None:
            problem = f"this model's embeddings have {self._size} and were not trained to be cut (no Matryoshka model)"
        elif wanted > self._size:
            problem = f"this model's embeddings have only {self._size}"
        elif self._matryoshka and wanted not in self._matryoshka:
            problem = f"this model's can be cut to {', '.join(map(str, self._matryoshka))}"
        else:
            return
        raise InvalidRequest(f"dimensions is {wanted}, but {problem}. Leave dimensions out.", param="dimensions")

    def __call__(self, hidden: Tensor, cu_seqlens: Tensor, params: Sequence[PoolingParams]) -> PooledBatch:
        """Pool, cut and normalise; see `TaskPooler`."""
        vectors = pool(hidden, cu_seqlens, self._methods)
        # The norm, since it overflows before its values do, and dividing by infinity would hide that.
        finite = torch.isfinite(torch.linalg.vector_norm(vectors, dim=-1))
        wishes = [(p.dimensions or self._size, self._wants_normalize(p)) for p in params]
        if len(set(wishes)) == 1:
            return PooledBatch(list(self._finish(vectors, *wishes[0]).unbind()), finite)
        rows: list[Tensor] = [vectors] * len(wishes)
        for wish in set(wishes):
            chosen = [i for i, other in enumerate(wishes) if other == wish]
            for i, row in zip(chosen, self._finish(vectors[chosen], *wish).unbind(), strict=True):
                rows[i] = row
        return PooledBatch(rows, finite)

    def _wants_normalize(self, params: PoolingParams) -> bool:
        return self._normalize if params.use_activation is None else params.use_activation

    def _finish(self, vectors: Tensor, dimensions: int, wants_normalize: bool) -> Tensor:
        vectors = vectors[:, :dimensions]
        return (normalize(vectors, dim=-1) if wants_normalize else vectors).cpu()
