"""How two texts that were embedded go together: by their vectors, or by MaxSim over their tokens' vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity
from torch.nn.utils.rnn import pad_sequence

from poolhook.tasks import Similarity

_CHUNK_ELEMENTS = 50_000_000
"""Float32 numbers that one chunk of documents may take, padded and compared."""


def compare(queries: Sequence[Tensor], documents: Sequence[Tensor], similarity: Similarity) -> list[float]:
    """Each query with the document at its place; one query goes with every document. Computed in float32.

    As in sentence-transformers, `euclidean` and `manhattan` are distances with a minus, so that more is nearer, and
    `meanmaxsim` is MaxSim divided by the query's tokens.

    Args:
        queries: one, or as many as documents; each of shape `[dimensions]`, for the MaxSims `[tokens, dimensions]`.
        documents: likewise.
        similarity: how the model's embeddings are compared.
    """
    if similarity in _OF_VECTORS:
        values: list[float] = _OF_VECTORS[similarity](
            torch.stack(list(queries)).float(), torch.stack(list(documents)).float()
        ).tolist()
        return values
    if len(queries) == 1:
        scores = maxsim(queries[0], documents)
    else:
        scores = [maxsim(query, [document])[0] for query, document in zip(queries, documents, strict=True)]
    if similarity == "maxsim":
        return scores
    lengths = [max(len(query), 1) for query in queries] * (len(scores) if len(queries) == 1 else 1)
    return [score / length for score, length in zip(scores, lengths, strict=True)]


_OF_VECTORS: Mapping[Similarity, Callable[[Tensor, Tensor], Tensor]] = {
    "cosine": cosine_similarity,
    "dot": lambda queries, documents: (queries * documents).sum(dim=-1),
    "euclidean": lambda queries, documents: -(queries - documents).norm(dim=-1),
    "manhattan": lambda queries, documents: -(queries - documents).abs().sum(dim=-1),
}


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
