"""How embeddings are compared: vectorised, and equal to plain loops and to sentence-transformers."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers import SimilarityFunction
from torch import Tensor

from poolhook.tasks import Similarity
from poolhook_builtin import similarity
from poolhook_builtin.similarity import compare, maxsim

SIZE = 5
lengths = st.lists(st.integers(0, 9), max_size=12)


def tokens(count: int, seed: int) -> Tensor:
    return torch.randn(count, SIZE, generator=torch.Generator().manual_seed(seed))


def plain_maxsim(query: Tensor, document: Tensor) -> float:
    """For each token of the query the largest dot product with a token of the document, summed."""
    if len(document) == 0:
        return 0.0
    return sum(max(sum(a * b for a, b in zip(q, d, strict=True)) for d in document.tolist()) for q in query.tolist())


def plain_cosine(a: Tensor, b: Tensor) -> float:
    dot = sum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True))
    return dot / math.sqrt(sum(x * x for x in a.tolist()) * sum(y * y for y in b.tolist()))


@given(query=st.integers(1, 6), documents=lengths)
def test_maxsim_is_the_plain_double_loop(query: int, documents: list[int]):
    vectors = [tokens(count, seed) for seed, count in enumerate(documents, 1)]
    wanted = [plain_maxsim(tokens(query, 0), vector) for vector in vectors]
    assert maxsim(tokens(query, 0), vectors) == pytest.approx(wanted, abs=1e-4)


@given(documents=lengths, elements=st.integers(1, 400))
def test_the_size_of_a_chunk_changes_nothing(documents: list[int], elements: int):
    vectors = [tokens(count, seed) for seed, count in enumerate(documents, 1)]
    whole = maxsim(tokens(3, 0), vectors)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "_CHUNK_ELEMENTS", elements)
        assert maxsim(tokens(3, 0), vectors) == pytest.approx(whole, abs=1e-5)


def test_many_documents_are_compared_in_chunks_that_stay_small(monkeypatch: pytest.MonkeyPatch):
    padded: list[int] = []
    real = torch.einsum

    def einsum(equation: str, query: Tensor, documents: Tensor) -> Tensor:
        padded.append(documents.shape[0] * documents.shape[1] * sum(query.shape))
        return real(equation, query, documents)

    monkeypatch.setattr(similarity, "_CHUNK_ELEMENTS", 1000)
    monkeypatch.setattr(torch, "einsum", einsum)
    documents = [tokens(1 + number % 20, number) for number in range(200)]
    scores = maxsim(tokens(4, 0), documents)
    assert len(padded) > 10
    assert max(padded) <= 1000
    assert scores[7] == pytest.approx(plain_maxsim(tokens(4, 0), documents[7]), abs=1e-4)


def test_a_document_beyond_a_chunk_is_compared_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(similarity, "_CHUNK_ELEMENTS", 1)
    documents = [tokens(30, 1), tokens(2, 2)]
    assert maxsim(tokens(2, 0), documents) == pytest.approx(
        [plain_maxsim(tokens(2, 0), d) for d in documents], abs=1e-4
    )


def test_a_document_without_tokens_scores_0_among_others_and_alone():
    empty = tokens(0, 1)
    assert maxsim(tokens(2, 0), [empty]) == [0.0]
    scores = maxsim(-torch.ones(1, SIZE), [empty, torch.ones(3, SIZE), empty])
    assert scores == pytest.approx([0, -SIZE, 0])


def test_a_query_without_tokens_scores_0_and_no_documents_have_no_scores():
    assert maxsim(tokens(0, 0), [tokens(2, 1), tokens(0, 2)]) == [0.0, 0.0]
    assert maxsim(tokens(2, 0), []) == []


def test_one_token_with_one_token_is_their_dot_product():
    a, b = tokens(1, 1), tokens(1, 2)
    assert maxsim(a, [b]) == pytest.approx([float((a @ b.T).item())], abs=1e-5)


def test_padding_never_wins_where_all_similarities_are_negative():
    query = torch.tensor([[1.0, 0, 0, 0, 0]])
    short, long = -2 * query, torch.cat([-3 * query] * 4)
    assert maxsim(query, [short, long]) == [-2.0, -3.0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_compared_in_float32(dtype: torch.dtype):
    query, document = tokens(3, 0).to(dtype), tokens(4, 1).to(dtype)
    assert maxsim(query, [document]) == pytest.approx([plain_maxsim(query.float(), document.float())], abs=1e-5)


@given(count=st.integers(1, 8), one_query=st.booleans())
def test_cosines_are_the_plain_formula_for_one_query_or_as_many_as_documents(count: int, one_query: bool):
    queries, documents = list(tokens(1 if one_query else count, 0)), list(tokens(count, 1))
    wanted = [plain_cosine(queries[0 if one_query else i], documents[i]) for i in range(count)]
    assert compare(queries, documents, "cosine") == pytest.approx(wanted, abs=1e-5)


def test_the_length_of_a_vector_makes_no_difference_to_a_cosine():
    a, b = tokens(2, 0)
    assert compare([a * 1e-3], [b * 1e4], "cosine") == pytest.approx([plain_cosine(a, b)], abs=1e-5)


@pytest.mark.parametrize("name", ["cosine", "dot", "euclidean", "manhattan"])
def test_vectors_are_compared_as_sentence_transformers_does(name: Similarity):
    queries, documents = tokens(4, 0), tokens(4, 1)
    wanted = SimilarityFunction.to_similarity_pairwise_fn(name)(queries, documents)
    assert compare(list(queries), list(documents), name) == pytest.approx(wanted.tolist(), abs=1e-5)


def test_the_mean_of_maxsim_is_over_the_querys_tokens():
    queries, documents = [tokens(2, 0), tokens(5, 1)], [tokens(3, 2), tokens(4, 3)]
    sums = compare(queries, documents, "maxsim")
    assert compare(queries, documents, "meanmaxsim") == pytest.approx([sums[0] / 2, sums[1] / 5])
    of_one = [score / 5 for score in maxsim(queries[1], documents)]
    assert compare(queries[1:], documents, "meanmaxsim") == pytest.approx(of_one)
