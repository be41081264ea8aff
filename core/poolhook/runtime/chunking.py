"""Chunked processing: long texts go to the engine in pieces, and one embedding comes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING

from poolhook.engine import EngineClient, EngineInput
from poolhook.models import ModelSpec
from poolhook.outputs import PoolingOutput
from poolhook.params import PoolingParams
from poolhook.render import Chunks, Renderer

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Pieces:
    """What the engine gets in place of long inputs.

    Args:
        inputs: all pieces, those of one input together.
        chunks: how they make one again.
        wanted: what each input's caller asked for.
    """

    inputs: list[EngineInput]
    chunks: Chunks
    wanted: list[PoolingParams]


class Chunking:
    """Splits what is too long for a model, and makes one embedding of its pieces'.

    Pieces are embedded without the last steps. Those come after the mean, so that a long text's embedding is cut and
    normalised as a short one's is.

    Args:
        spec: of the model.
        renderer: knows what stands around a text.
        engine: checks what callers ask for.
    """

    def __init__(self, spec: ModelSpec, renderer: Renderer, engine: EngineClient) -> None:
        self._spec = spec
        self._renderer = renderer
        self._engine = engine

    def split(self, inputs: Sequence[EngineInput]) -> Pieces:
        """The pieces of all inputs, of which most are whole.

        Raises:
            InvalidRequest: the params of a long input can't be honoured.
        """
        chunks = self._renderer.split(inputs)
        pieces: list[EngineInput] = []
        for item, count in zip(inputs, chunks.counts, strict=True):
            of_this = chunks.inputs[len(pieces) : len(pieces) + count]
            if count > 1:
                self._engine.verify(item.params)
                raw = PoolingParams(task="embed", dimensions=self._spec.embedding_size, use_activation=False)
                of_this = [replace(piece, params=raw) for piece in of_this]
            pieces += of_this
        return Pieces(pieces, chunks, [item.params for item in inputs])

    def merge(self, pieces: Pieces, outputs: Sequence[PoolingOutput]) -> list[PoolingOutput]:
        """One output for each input of which there are `pieces`."""
        counts = pieces.chunks.counts
        merged = pieces.chunks.merge([output.data for output in outputs])
        starts = list(accumulate(counts, initial=0))[:-1]
        return [
            # What was whole stays as it is, with its parts.
            outputs[start] if count == 1 else PoolingOutput(self._finished(vector, params))
            for start, count, vector, params in zip(starts, counts, merged, pieces.wanted, strict=True)
        ]

    def _finished(self, vector: Tensor, params: PoolingParams) -> Tensor:
        from torch.nn.functional import normalize

        vector = vector[: params.dimensions or self._spec.dimensions or self._spec.embedding_size]
        normalizes = self._spec.normalize if params.use_activation is None else params.use_activation
        return normalize(vector, dim=-1) if normalizes else vector.clone()
