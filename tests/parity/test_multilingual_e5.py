"""Multilingual E5, whose texts want a prompt: by its name, offline and served, it reproduces sentence-transformers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from parity.faces import CommandLine, Offline, Served
from parity.ways import backwards, from_many_callers, together
from real_models import real_model
from texts import varied_texts

pytestmark = pytest.mark.large

TEXTS = varied_texts(40)
NAMES = (None, "query", "document")


@pytest.fixture(scope="module")
def model() -> Path:
    return real_model("multilingual-e5-small-q4")


@pytest.fixture(scope="module")
def reference(model: Path) -> SentenceTransformer:
    return SentenceTransformer(str(model), device="cpu", model_kwargs={"dtype": torch.float32})


@pytest.fixture(scope="module")
def wanted(reference: SentenceTransformer) -> dict[str | None, np.ndarray]:
    """What sentence-transformers computes for each name of a prompt, and without one."""
    return {name: reference.encode(TEXTS, prompt_name=name) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_offline_it_reproduces_sentence_transformers(
    offline: Offline, wanted: dict[str | None, np.ndarray], name: str | None
) -> None:
    for way in (together, backwards):
        vectors = way(lambda texts: offline.encode(texts, name), TEXTS)
        np.testing.assert_allclose(vectors, wanted[name], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_served_to_many_callers_it_reproduces_sentence_transformers(
    served: Served, wanted: dict[str | None, np.ndarray], name: str | None
) -> None:
    for ask in (served.embed, served.encode):
        vectors = from_many_callers(lambda texts, ask=ask: ask(texts, name), TEXTS)
        np.testing.assert_allclose(vectors, wanted[name], rtol=0, atol=1e-5)


def test_from_the_command_line_a_prompt_goes_by_its_name(
    command_line: CommandLine, wanted: dict[str | None, np.ndarray]
) -> None:
    np.testing.assert_allclose(command_line.encode(TEXTS, "query"), wanted["query"], rtol=0, atol=1e-5)


@pytest.mark.parametrize("face", ["offline", "served"], indirect=True)
def test_a_score_is_the_cosine_of_a_query_and_a_document_with_their_prompts(
    face: Offline | Served, reference: SentenceTransformer
) -> None:
    query, documents = "wie backe ich Brot", ["Das Brot wird im Ofen gebacken.", "El tren llega tarde.", *TEXTS[17:]]
    wanted = reference.similarity(reference.encode_query([query]), reference.encode_document(documents))[0]
    assert wanted.argmax() == 0
    np.testing.assert_allclose(face.score(query, documents), wanted, rtol=0, atol=1e-5)


def test_info_tells_the_truth(command_line: CommandLine) -> None:
    facts = command_line.info()
    wanted = {"architecture": "BertModel", "pooling": ["MEAN"], "normalize": True, "max_length": 512}
    wanted |= {"embedding_size": 384, "vocab_size": 250037, "batches": "packed", "dtype": "float32"}
    wanted |= {"prompts": {"query": "query: ", "document": "passage: "}, "default_prompt_name": None}
    assert {fact: facts[fact] for fact in wanted} == wanted
    assert "embed" in facts["tasks"]
