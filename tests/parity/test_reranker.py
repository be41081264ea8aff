"""The trained reranker: its scores and its order are those of `expected.json` and of sentence-transformers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import CrossEncoder

from parity.faces import CommandLine, Face, Offline, Pair
from poolhook import LLM
from texts import varied_texts
from tiny_models import expected, tiny_trained

ITEMS = expected("tiny-reranker")["items"]
PAIRS: list[Pair] = [(item["query"], item["document"]) for item in ITEMS]
SCORES = [item["score"] for item in ITEMS]
LOGITS = [item["logit"] for item in ITEMS]

CAPITAL = [item for item in ITEMS if item["query"] == "what is the capital of france"]
QUERY, DOCUMENTS = CAPITAL[0]["query"], [item["document"] for item in CAPITAL]
RANKING = sorted(((place, item["score"]) for place, item in enumerate(CAPITAL)), key=lambda entry: -entry[1])


@pytest.fixture(scope="module")
def model() -> Path:
    return tiny_trained("tiny-reranker")


@pytest.fixture(scope="module")
def reference(model: Path) -> CrossEncoder:
    return CrossEncoder(str(model), device="cpu", model_kwargs={"dtype": torch.float32})


def test_pairs_have_the_expected_scores(arrival: tuple[Face, Callable[..., list[float]]]) -> None:
    face, way = arrival
    np.testing.assert_allclose(way(face.score_pairs, PAIRS), SCORES, rtol=0, atol=1e-4)


def test_a_query_with_each_of_many_documents_has_the_expected_scores(face: Face) -> None:
    np.testing.assert_allclose(face.score(QUERY, DOCUMENTS), [item["score"] for item in CAPITAL], rtol=0, atol=1e-4)


def test_without_activation_a_score_is_the_expected_logit(raw: Face) -> None:
    np.testing.assert_allclose(raw.score_pairs(PAIRS), LOGITS, rtol=0, atol=1e-4)


def test_the_model_saw_the_expected_ids(llm: LLM) -> None:
    queries, documents = zip(*PAIRS, strict=True)
    scored = llm.score(queries, documents, use_tqdm=False)
    assert [list(output.prompt_token_ids) for output in scored] == [item["input_ids"] for item in ITEMS]


@pytest.mark.parametrize("top_n", [None, 1, 2, 100])
def test_the_documents_come_in_the_order_of_their_expected_scores(face: Face, top_n: int | None) -> None:
    assert [place for place, _ in RANKING] == [0, 2, 3, 1]
    places, scores = zip(*face.rerank(QUERY, DOCUMENTS, top_n), strict=True)
    assert list(places) == [place for place, _ in RANKING][:top_n]
    np.testing.assert_allclose(scores, [score for _, score in RANKING][:top_n], rtol=0, atol=1e-4)


@pytest.mark.parametrize("given", ["offline", "served"])
def test_classifying_a_pair_gives_its_score_as_the_only_probability(given: str, request: pytest.FixtureRequest) -> None:
    face: Face = request.getfixturevalue(given)
    labels, probabilities = zip(
        *face.classify([{"text": query, "text_pair": document} for query, document in PAIRS]), strict=True
    )
    np.testing.assert_allclose(probabilities, [[score] for score in SCORES], rtol=0, atol=1e-4)
    assert set(labels) == {"LABEL_0"}


@pytest.mark.parametrize("query", [QUERY, "", "the quick brown fox?!", "日本語 \x00 🎉"])
def test_varied_documents_have_the_scores_that_sentence_transformers_gives(
    offline: Offline, reference: CrossEncoder, query: str
) -> None:
    documents = varied_texts(60)
    wanted = reference.predict([(query, document) for document in documents])
    np.testing.assert_allclose(offline.score(query, documents), wanted, rtol=0, atol=1e-5)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.text(max_size=50), st.text(max_size=300)), min_size=1, max_size=12))
def test_any_pair_has_the_same_score_alone_and_among_others(offline: Offline, pairs: list[Pair]) -> None:
    alone = [offline.score(query, [document])[0] for query, document in pairs]
    np.testing.assert_allclose(offline.score_pairs(pairs), alone, rtol=0, atol=1e-6)


def test_info_tells_the_truth(command_line: CommandLine, config: dict[str, Any]) -> None:
    facts = command_line.info()
    assert {name: facts[name] for name in ("architecture", "tasks", "labels", "activation", "batches", "dtype")} == {
        "architecture": "BertForSequenceClassification",
        "tasks": ["classify"],
        "labels": ["LABEL_0"],
        "activation": "sigmoid",
        "batches": "packed",
        "dtype": "float32",
    }
    assert (facts["pooling"], facts["max_length"], facts["vocab_size"]) == (["CLS"], 512, config["vocab_size"])
    assert facts["checkpoint_dtype"] == "float16"
