"""Odd texts in every kind of request: a finite answer, the same on both faces and alone, or a 400; never a 500."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from served import Models, Served, refusal
from texts import ODD

CUT = {"truncate_prompt_tokens": -1}
SCORING = ["embedder", "reranker", "colbert"]
any_text = st.text(max_size=60).map(lambda text: text.encode(errors="ignore").decode())


def offline(served: Served, query: str, documents: list[str]) -> list[float]:
    return [out.outputs.score for out in served.llm.score(query, documents, tokenization_kwargs=CUT, use_tqdm=False)]


@pytest.mark.parametrize("name", SCORING)
def test_every_odd_document_has_a_finite_score_the_same_on_both_faces(models: Models, name: str):
    served = models(name)
    scores = offline(served, "w1 w2", ODD)
    assert all(map(math.isfinite, scores))
    online = served.post("/score", queries="w1 w2", documents=ODD, **CUT)["data"]
    assert [item["score"] for item in online] == pytest.approx(scores, abs=1e-5)


@pytest.mark.parametrize("name", SCORING)
@pytest.mark.parametrize("query", [text for text in ODD if len(text) < 100], ids=ascii)
def test_so_has_every_odd_query(models: Models, name: str, query: str):
    assert all(map(math.isfinite, offline(models(name), query, ["w1", "", query])))


@pytest.mark.parametrize("name", SCORING)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=any_text, documents=st.lists(any_text, min_size=1, max_size=6))
def test_any_text_has_the_same_score_alone_and_among_others(
    models: Models, name: str, query: str, documents: list[str]
):
    served = models(name)
    among = offline(served, query, documents)
    assert all(map(math.isfinite, among))
    assert among == pytest.approx([offline(served, query, [document])[0] for document in documents], abs=1e-4)


@pytest.mark.parametrize("name", ["classifier", "tagger"])
def test_every_odd_text_has_probabilities(models: Models, name: str):
    served = models(name)
    outputs = served.llm.encode(ODD, tokenization_kwargs=CUT)
    answer = served.post("/pooling", input=ODD, **CUT)["data"]
    for output, item in zip(outputs, answer, strict=True):
        rows = output.outputs.data.reshape(-1, 3)
        assert rows.sum(-1).tolist() == pytest.approx([1.0] * len(rows), abs=1e-5)
        flat = [value for row in item["data"] for value in (row if isinstance(row, list) else [row])]
        assert flat == pytest.approx(rows.flatten().tolist(), abs=1e-5)


LONE: list[tuple[str, str, Any]] = [
    ("classifier", "/classify", {"input": ["w1", "\ud800"]}),
    ("tagger", "/pooling", {"input": "\ud800"}),
    ("reranker", "/score", {"queries": "\ud800", "documents": "w1"}),
    ("embedder", "/score", {"queries": "w1", "documents": ["w1", "\ud800"]}),
    ("colbert", "/rerank", {"query": "w1", "documents": ["w1", "\ud800"]}),
]


@pytest.mark.parametrize(("name", "path", "body"), LONE, ids=[f"{one[0]} {one[1]}" for one in LONE])
def test_a_lone_surrogate_is_refused_at_once(models: Models, name: str, path: str, body: dict[str, Any]):
    served = models(name)
    calls = {
        "/classify": lambda: served.llm.classify(body["input"]),
        "/pooling": lambda: served.llm.encode(body["input"]),
        "/score": lambda: served.llm.score(body["queries"], body["documents"]),
        "/rerank": lambda: served.llm.rerank(body["query"], body["documents"]),
    }
    message, _ = refusal(calls[path])
    assert len(message) < 300
    response = served.http.post(path, content=json.dumps(body), headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert served.http.get("/health").status_code == 200
