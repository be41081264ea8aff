"""Texts longer than the model takes, embedded in chunks whose vectors are averaged.

A chunk is what fits the model: full ones, one behind the other, and a last one with the rest. Where the whole has the
special tokens of a text around it, each chunk has them too. An instruction is part of the first chunk only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

from poolhook.engine import EngineInput
from poolhook.render.frame import Frame


@dataclass(frozen=True)
class Chunks:
    """Engine inputs that the model can take, in place of longer ones.

    Args:
        inputs: the chunks of all inputs, one behind the other.
        counts: how many of them belong to each input; at least 1.
    """

    inputs: list[EngineInput]
    counts: list[int]

    def merge(self, vectors: Sequence[Any]) -> list[Any]:
        """One vector for each input: the mean of its chunks' vectors, weighted by how many tokens were pooled in each.

        With mean pooling, and as long as chunks see nothing of each other anyway, that is the mean over all tokens.

        Args:
            vectors: an array or a tensor for each of `inputs`, in their order.
        """
        starts = accumulate(self.counts, initial=0)
        return [
            vectors[start] if end - start == 1 else _mean(vectors[start:end], self.inputs[start:end])
            for start, end in pairwise(starts)
        ]


def split(inputs: Sequence[EngineInput], max_length: int, frame: Frame | None) -> Chunks:
    """Cut what is longer than `max_length` tokens into chunks; the rest stays as it is.

    A chunk of which nothing is pooled is left out: it would have no vector.

    Args:
        inputs: as rendered.
        max_length: the longest chunk, special tokens included.
        frame: what the tokenizer puts around a text; None without a tokenizer.
    """
    chunks = [[item] if item.cost <= max_length else _chunks(item, max_length, frame) for item in inputs]
    return Chunks([chunk for of_one in chunks for chunk in of_one], [len(of_one) for of_one in chunks])


def _chunks(item: EngineInput, max_length: int, frame: Frame | None) -> list[EngineInput]:
    before, behind = _around(item.token_ids, frame)
    room = max_length - before - behind
    if room < 1:
        before, behind, room = 0, 0, max_length
    chunks = []
    for start in range(before, item.cost - behind, room):
        places = [
            *range(before),
            *range(start, min(start + room, item.cost - behind)),
            *range(item.cost - behind, item.cost),
        ]
        pooled = item.pooled and [item.pooled[place] or (place < before < start) for place in places]
        if pooled is None or any(pooled):
            types = item.token_type_ids and [item.token_type_ids[place] for place in places]
            ids = [item.token_ids[place] for place in places]
            chunks.append(replace(item, token_ids=ids, token_type_ids=types, pooled=pooled))
    return chunks


def _around(ids: Sequence[int], frame: Frame | None) -> tuple[int, int]:
    """How many of `ids` are the special tokens before and behind a text."""
    if frame is None:
        return 0, 0
    before, behind = frame.specials
    framed = tuple(ids[: len(before)]) == before and tuple(ids[len(ids) - len(behind) :]) == behind
    return (len(before), len(behind)) if framed else (0, 0)


def _mean(vectors: Sequence[Any], chunks: Sequence[EngineInput]) -> Any:
    weights = [chunk.cost if chunk.pooled is None else sum(chunk.pooled) for chunk in chunks]
    return sum(vector * (weight / sum(weights)) for vector, weight in zip(vectors, weights, strict=True))
