"""Scores in all three ways, on both faces, against plain loops over what the model itself answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from poolhook import LLM, PoolingParams
from served import Models, Served, refusal
from tiny_models import expected, tiny_trained

QUERIES = ["w1 w2", "w3 w4 w5", "w6"]
DOCUMENTS = ["w2 w1 w7", "w9", "w3 w4 w5"]


def offline(served: Served, queries: Any, documents: Any) -> list[float]:
    return [output.outputs.score for output in served.llm.score(queries, documents)]


def online(served: Served, queries: Any, documents: Any) -> list[float]:
    data = served.post("/score", queries=queries, documents=documents)["data"]
    assert [(item["object"], item["index"]) for item in data] == [("score", index) for index in range(len(data))]
    return [item["score"] for item in data]


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def bi_encoder(llm: LLM, query: str, document: str) -> float:
    vectors = [
        llm.embed(text, prompt_name=name)[0].outputs.numpy()
        for text, name in ((query, "query"), (document, "document"))
    ]
    return cosine(*vectors)


def late_interaction(llm: LLM, query: str, document: str) -> float:
    rows = [
        llm.encode(text, pooling_task="token_embed", prompt_name=name)[0].outputs.data.tolist()
        for text, name in ((query, "query"), (document, "document"))
    ]
    return sum(max(float(np.dot(q, d)) for d in rows[1]) for q in rows[0])


def cross_encoder(llm: LLM, query: str, document: str) -> float:
    return llm.classify({"text": query, "text_pair": document})[0].outputs.probs[0]


WAYS = {"embedder": bi_encoder, "colbert": late_interaction, "reranker": cross_encoder}


@pytest.mark.parametrize("face", [offline, online])
@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize(
    ("queries", "documents"),
    [("w1", "w2"), ("w1 w2", DOCUMENTS), (["w1 w2"], DOCUMENTS), (QUERIES, DOCUMENTS), ("w1", ["w1"] * 3)],
    ids=["1:1", "1:N", "list of 1:N", "N:N", "the same N times"],
)
def test_a_score_is_what_a_plain_loop_makes_of_what_the_model_answers(
    models: Models, name: str, face: Any, queries: Any, documents: Any
):
    served = models(name)
    documents_listed = [documents] if isinstance(documents, str) else documents
    queries_listed = [queries] if isinstance(queries, str) else queries
    queries_listed = queries_listed * (len(documents_listed) // len(queries_listed))
    wanted = [WAYS[name](served.llm, *pair) for pair in zip(queries_listed, documents_listed, strict=True)]
    assert face(served, queries, documents) == pytest.approx(wanted, abs=1e-5)


def test_a_cross_encoder_scores_as_transformers_does(models: Models):
    model = AutoModelForSequenceClassification.from_pretrained(models.path("reranker")).eval()
    encoded = AutoTokenizer.from_pretrained(models.path("reranker"))("w1 w2", "w3", return_tensors="pt")
    with torch.inference_mode():
        logit = model(**encoded).logits[0, 0]
    (output,) = models("reranker").llm.score("w1 w2", "w3")
    assert list(output.prompt_token_ids) == encoded["input_ids"][0].tolist()
    assert output.outputs.score == pytest.approx(float(logit.sigmoid().item()), abs=1e-5)
    (raw,) = models("reranker").llm.score("w1 w2", "w3", pooling_params=PoolingParams(use_activation=False))
    assert raw.outputs.score == pytest.approx(float(logit.item()), abs=1e-5)


def test_a_trained_cross_encoder_gives_the_expected_scores():
    items = expected("tiny-reranker")["items"]
    with LLM(str(tiny_trained("tiny-reranker")), device="cpu", dtype="float32") as llm:
        scores = llm.score([item["query"] for item in items], [item["document"] for item in items])
    assert [list(output.prompt_token_ids) for output in scores] == [item["input_ids"] for item in items]
    assert [output.outputs.score for output in scores] == pytest.approx([item["score"] for item in items], abs=1e-4)


def test_a_bi_encoders_prompts_are_put_before_its_texts_once(models: Models):
    served = models("embedder")
    (output,) = served.llm.score("w1", "w2")
    assert list(output.prompt_token_ids) == [2, 107, 6, 3]
    usage = served.post("/score", queries="w1", documents="w2")["usage"]
    assert usage["prompt_tokens"] == len([2, 105, 106, 5, 3]) + len([2, 107, 6, 3])
    plain = [served.llm.embed(text)[0].outputs.numpy() for text in ("w101 w102 w1", "w103 w2")]
    assert output.outputs.score == pytest.approx(cosine(*plain), abs=1e-6)


def test_a_query_with_many_documents_is_read_once_by_those_that_read_texts_alone(models: Models):
    usage = models("embedder").post("/score", queries="w1", documents=["w2", "w3"])["usage"]
    assert usage == {"prompt_tokens": 5 + 4 + 4, "total_tokens": 13}
    usage = models("reranker").post("/score", queries="w1", documents=["w2", "w3"])["usage"]
    assert usage == {"prompt_tokens": 5 + 5, "total_tokens": 10}


def test_the_same_pair_has_the_same_score_alone_and_among_others(models: Models):
    for name in WAYS:
        served = models(name)
        many = offline(served, "w1 w2", [*DOCUMENTS, "w1 " * 40])
        alone = [offline(served, "w1 w2", document)[0] for document in [*DOCUMENTS, "w1 " * 40]]
        assert many == pytest.approx(alone, abs=1e-5)


def test_the_dimensions_of_a_bi_encoders_score_can_be_cut(models: Models):
    llm, cut = models("embedder").llm, PoolingParams(dimensions=8)
    vectors = [
        llm.embed(text, prompt_name=name, pooling_params=cut)[0].outputs.numpy()
        for text, name in (("w1", "query"), ("w2", "document"))
    ]
    (output,) = llm.score("w1", "w2", pooling_params=cut)
    assert output.outputs.score == pytest.approx(cosine(*vectors), abs=1e-6)


@pytest.mark.parametrize(
    "documents", [("w1", "w2"), np.array(["w1", "w2"]), (text for text in ("w1", "w2"))], ids=["tuple", "array", "gen"]
)
def test_texts_may_come_in_any_sequence(models: Models, documents: Any):
    served = models("reranker")
    assert offline(served, "w5", documents) == offline(served, "w5", ["w1", "w2"])


@pytest.mark.parametrize("documents", [{"text": "w1"}, b"w1", 7, None], ids=repr)
def test_what_is_no_sequence_of_texts_is_refused(models: Models, documents: Any):
    llm = models("reranker").llm
    for call in (lambda: llm.score("w1", documents), lambda: llm.rerank("w1", documents)):
        message, param = refusal(call)
        assert message == "The data is invalid: documents: Input should be a valid list"
        assert param == "documents"


def test_documents_to_rerank_and_several_queries_may_come_in_any_sequence_too(models: Models):
    llm = models("reranker").llm
    assert llm.rerank("w5", np.array(DOCUMENTS)) == llm.rerank("w5", tuple(DOCUMENTS)) == llm.rerank("w5", DOCUMENTS)
    scores = [output.outputs.score for output in llm.score(np.array(QUERIES), tuple(DOCUMENTS))]
    assert scores == offline(models("reranker"), QUERIES, DOCUMENTS)


@pytest.mark.parametrize("name", WAYS)
def test_numbers_that_do_not_fit_and_empty_lists(models: Models, name: str):
    served = models(name)
    wrong = ("2 queries and 3 documents can't be paired. Give one query, or one for each document.", "queries")
    assert refusal(lambda: served.llm.score(QUERIES[:2], DOCUMENTS)) == wrong
    assert served.refused("/score", queries=QUERIES[:2], documents=DOCUMENTS) == wrong
    empty = ("documents is an empty list. Give at least one text.", "documents")
    for queries in ("w1", []):
        assert served.llm.score(queries, []) == []
        assert served.refused("/score", queries=queries, documents=[]) == empty
    assert served.llm.rerank("w1", []) == []
    assert served.refused("/rerank", query="w1", documents=[]) == empty


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("top_n", [None, 1, 2, 99])
def test_rerank_is_the_order_of_the_scores_on_both_faces(models: Models, name: str, top_n: int | None):
    served = models(name)
    documents = [*DOCUMENTS, "w2 w1 w7", "w8 w8"]
    scores = offline(served, "w1 w2", documents)
    results = served.llm.rerank("w1 w2", documents, top_n=top_n)
    order = sorted(range(len(documents)), key=lambda index: -scores[index])[:top_n]
    assert [result.index for result in results] == order
    assert [result.document for result in results] == [documents[index] for index in order]
    assert [result.score for result in results] == pytest.approx([scores[index] for index in order], abs=1e-6)
    answer = served.post("/rerank", query="w1 w2", documents=documents, top_n=top_n)
    assert [item["index"] for item in answer["results"]] == order
    assert [item["document"] for item in answer["results"]] == [{"text": documents[index]} for index in order]
    assert [item["relevance_score"] for item in answer["results"]] == pytest.approx(
        [result.score for result in results], abs=1e-6
    )


@pytest.mark.parametrize("top_n", [0, -1])
def test_a_top_n_below_1_is_refused_by_both_faces(models: Models, top_n: int):
    wanted = ("The data is invalid: top_n: Input should be greater than or equal to 1", "top_n")
    served = models("reranker")
    assert refusal(lambda: served.llm.rerank("w1", DOCUMENTS, top_n=top_n)) == wanted
    assert served.refused("/rerank", query="w1", documents=DOCUMENTS, top_n=top_n) == wanted


def test_documents_need_not_be_sent_back(models: Models):
    answer = models("reranker").post("/rerank", query="w1", documents=DOCUMENTS, return_documents=False)
    assert all(set(item) == {"index", "relevance_score"} for item in answer["results"])


def test_text_1_and_text_2_are_other_names(models: Models):
    served = models("reranker")
    data = served.post("/score", text_1="w1", text_2=DOCUMENTS)["data"]
    assert [item["score"] for item in data] == online(served, "w1", DOCUMENTS)
