"""How two texts that were embedded go together: the cosine of their vectors, or MaxSim over their tokens' vectors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity
from torch.nn.utils.rnn import pad_sequence

_CHUNK_ELEMENTS = 50_000_000
"""Float32 numbers that one chunk of documents may take, padded and compared."""


def cosines(queries: Sequence[Tensor], documents: Sequence[Tensor]) -> list[float]:
    """The cosine of each query with the document at its place; one query goes with every document.

    Args:
        queries: one, or as many as documents, each of shape `[dimensions]`.
        documents: each of shape `[dimensions]`.
    """
    values: list[float] = cosine_similarity(torch.stack(list(queries)), torch.stack(list(documents))).tolist()
    return values


def maxsim(query: Tensor, documents: Sequence[Tensor]) -> list[float]:
    """MaxSim of a query with each document: `sum_i max_j q_i . d_j` (ColBERT, https://arxiv.org/abs/2004.12832).

    Documents are padded and compared together, in chunks that stay small; a document without tokens scores 0.

    Args:
        query: shape `[query tokens, dimensions]`.
        documents: each of shape `[its tokens, dimensions]`.

    Returns:
        One score for each document, computed in float32.
    """
    query = query.float()
    scores = torch.zeros(len(documents))
    # Like lengths together, so that little is padded.
    order = sorted(range(len(documents)), key=lambda index: len(documents[index]))
    for places in _chunks(order, documents, query):
        lengths = torch.tensor([len(documents[place]) for place in places])
        padded = pad_sequence([documents[place].float() for place in places], batch_first=True)
        similar = torch.einsum("qd,ntd->nqt", query, padded)
        beyond = torch.arange(padded.shape[1])[None] >= lengths[:, None]
        best = similar.masked_fill(beyond[:, None], -torch.inf).amax(dim=-1) if padded.shape[1] else None
        if best is not None:
            scores[places] = torch.where(lengths > 0, best.sum(dim=-1), 0.0)
    values: list[float] = scores.tolist()
    return values


def _chunks(order: Sequence[int], documents: Sequence[Tensor], query: Tensor) -> list[list[int]]:
    chunks: list[list[int]] = [[]]
    for place in order:
        # The longest so far, since the order is by length.
        each = len(documents[place]) * sum(query.shape)
        if chunks[-1] and (len(chunks[-1]) + 1) * each > _CHUNK_ELEMENTS:
            chunks.append([])
        chunks[-1].append(place)
    return [chunk for chunk in chunks if chunk]
