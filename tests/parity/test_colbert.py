"""The trained late-interaction model: vectors and MaxSim are those of `expected.json` and of sentence-transformers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import MultiVectorEncoder

from parity.faces import CommandLine, Face, Offline
from poolhook import LLM
from texts import varied_texts
from tiny_models import expected, tiny_trained

ROLES = ("query", "document")
ITEMS = {role: [item for item in expected("tiny-colbert")["items"] if item["kind"] == role] for role in ROLES}
TEXTS = {role: [item["text"] for item in ITEMS[role]] for role in ROLES}
MAXSIM = expected("tiny-colbert")["maxsim"]


@pytest.fixture(scope="module")
def model() -> Path:
    return tiny_trained("tiny-colbert")


@pytest.fixture(scope="module")
def reference(model: Path) -> MultiVectorEncoder:
    return MultiVectorEncoder(str(model), device="cpu", model_kwargs={"dtype": torch.float32})


def encoded(reference: MultiVectorEncoder, texts: Sequence[str], role: str) -> list[np.ndarray]:
    encode = reference.encode_query if role == "query" else reference.encode_document
    return [np.asarray(vectors) for vectors in encode(list(texts))]


@pytest.mark.parametrize("role", ROLES)
def test_tokens_have_the_expected_vectors(arrival: tuple[Face, Callable[..., list[np.ndarray]]], role: str) -> None:
    face, way = arrival
    answers = way(lambda texts: face.encode(texts, prompt_name=role), TEXTS[role])
    for item, vectors in zip(ITEMS[role], answers, strict=True):
        assert list(vectors.shape) == item["shape"]
        np.testing.assert_allclose(vectors[:, :8], item["first_8"], rtol=0, atol=1e-4)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=0, atol=1e-5)


def test_a_query_with_each_document_has_the_expected_maxsim(face: Face) -> None:
    scores = [face.score(query, MAXSIM["documents"]) for query in MAXSIM["queries"]]
    np.testing.assert_allclose(scores, MAXSIM["scores"], rtol=0, atol=1e-4)


def test_each_query_with_the_document_at_its_place_has_the_expected_maxsim(
    arrival: tuple[Face, Callable[..., list[float]]],
) -> None:
    face, way = arrival
    pairs = list(zip(MAXSIM["queries"], MAXSIM["documents"], strict=True))
    np.testing.assert_allclose(way(face.score_pairs, pairs), np.diagonal(MAXSIM["scores"]), rtol=0, atol=1e-4)


def test_the_documents_come_in_the_order_of_their_maxsim(face: Face) -> None:
    wanted = np.array(MAXSIM["scores"][0])
    places, scores = zip(*face.rerank(MAXSIM["queries"][0], MAXSIM["documents"]), strict=True)
    assert list(places) == list(np.argsort(-wanted))
    np.testing.assert_allclose(scores, wanted[list(places)], rtol=0, atol=1e-4)


@pytest.mark.parametrize("role", ROLES)
def test_the_model_saw_the_expected_ids(llm: LLM, role: str) -> None:
    outputs = llm.encode(TEXTS[role], prompt_name=role, use_tqdm=False)
    assert [list(output.prompt_token_ids) for output in outputs] == [item["input_ids"] for item in ITEMS[role]]


@pytest.mark.parametrize("role", ROLES)
def test_varied_texts_have_the_vectors_that_sentence_transformers_gives(
    offline: Offline, reference: MultiVectorEncoder, role: str
) -> None:
    texts = varied_texts(80)
    for vectors, wanted in zip(offline.encode(texts, role), encoded(reference, texts, role), strict=True):
        np.testing.assert_allclose(vectors, wanted, rtol=0, atol=1e-5)


def test_varied_texts_have_the_maxsim_that_sentence_transformers_gives(
    offline: Offline, reference: MultiVectorEncoder
) -> None:
    queries, documents = varied_texts(40)[10:], varied_texts(60, seed=1)
    wanted = reference.similarity(encoded(reference, queries, "query"), encoded(reference, documents, "document"))
    scores = [offline.score(query, documents) for query in queries]
    np.testing.assert_allclose(scores, wanted, rtol=0, atol=1e-4)


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=80), st.lists(st.text(max_size=400), min_size=1, max_size=8))
def test_any_text_has_the_maxsim_that_sentence_transformers_gives_alone_and_among_others(
    offline: Offline, reference: MultiVectorEncoder, query: str, documents: list[str]
) -> None:
    (wanted,) = reference.similarity(
        encoded(reference, [query], "query"), encoded(reference, documents, "document")
    ).tolist()
    np.testing.assert_allclose(offline.score(query, documents), wanted, rtol=0, atol=1e-4)
    alone = [offline.score(query, [document])[0] for document in documents]
    np.testing.assert_allclose(alone, wanted, rtol=0, atol=1e-4)


def test_info_tells_the_truth(command_line: CommandLine, config: dict[str, Any]) -> None:
    facts = command_line.info()
    assert {name: facts[name] for name in ("architecture", "tasks", "normalize", "dense", "batches", "dtype")} == {
        "architecture": "BertModel",
        "tasks": ["token_embed"],
        "normalize": True,
        "dense": [64],
        "batches": "packed",
        "dtype": "float32",
    }
    assert facts["roles"] == {
        "query": "prefix '[Q] ', up to 32 tokens",
        "document": "prefix '[D] ', up to 180 tokens",
    }
    assert (facts["embedding_size"], facts["vocab_size"]) == (64, config["vocab_size"])
