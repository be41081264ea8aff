"""Many requests of many kinds at once: each gets its own answer, and every item its own index."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from served import Models, Served


def texts_of(number: int) -> list[str]:
    rng = random.Random(number)
    return [" ".join(f"w{rng.randrange(190)}" for _ in range(rng.randint(1, 40))) for _ in range(1 + number % 7)]


def ask_all(served: Served, asked: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    """The answers to requests that are all under way at the same time."""

    async def main() -> list[Any]:
        transport = httpx.ASGITransport(app=served.http.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=120) as http:
            responses = await asyncio.gather(*(http.post(path, json=body) for path, body in asked))
        return [response.raise_for_status().json() for response in responses]

    return asyncio.run(main())


def classify(served: Served, texts: list[str], answer: Any) -> None:
    wanted = [output.outputs.probs[0] for output in served.llm.classify(texts)]
    assert [item["probs"][0] for item in answer["data"]] == pytest.approx(wanted, abs=1e-5)


def pooling(served: Served, texts: list[str], answer: Any) -> None:
    classify(served, texts, {"data": [{**item, "probs": item["data"]} for item in answer["data"]]})


def score(served: Served, texts: list[str], answer: Any) -> None:
    wanted = [output.outputs.score for output in served.llm.score("w5 w6", texts)]
    assert [item["score"] for item in answer["data"]] == pytest.approx(wanted, abs=1e-5)


def rerank(served: Served, texts: list[str], answer: Any) -> None:
    scores = [output.outputs.score for output in served.llm.score("w5 w6", texts)]
    results = answer["results"]
    assert sorted(item["index"] for item in results) == list(range(len(texts)))
    assert [item["document"]["text"] for item in results] == [texts[item["index"]] for item in results]
    wanted = [scores[item["index"]] for item in results]
    assert [item["relevance_score"] for item in results] == pytest.approx(wanted, abs=1e-5)


KINDS: list[tuple[str, Callable[[list[str]], dict[str, Any]], Callable[[Served, list[str], Any], None]]] = [
    ("/classify", lambda texts: {"input": texts}, classify),
    ("/pooling", lambda texts: {"input": texts}, pooling),
    ("/score", lambda texts: {"queries": "w5 w6", "documents": texts}, score),
    ("/rerank", lambda texts: {"query": "w5 w6", "documents": texts}, rerank),
]


def test_sixty_requests_of_every_kind_at_once_get_their_own_answers_in_order(models: Models):
    served = models("reranker")
    numbered = [(number, *KINDS[number % len(KINDS)]) for number in range(60)]
    answers = ask_all(served, [(path, body_of(texts_of(number))) for number, path, body_of, _ in numbered])
    for (number, _, _, check), answer in zip(numbered, answers, strict=True):
        if "data" in answer:
            assert [item["index"] for item in answer["data"]] == list(range(len(texts_of(number))))
        check(served, texts_of(number), answer)
    assert len({answer["id"] for answer in answers}) == 60


def test_a_bad_request_among_many_fails_alone(models: Models):
    served = models("reranker")

    async def main() -> list[int]:
        transport = httpx.ASGITransport(app=served.http.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test", timeout=120) as http:
            bodies = [
                {"query": "w1", "documents": texts_of(number) if number % 5 else ["w1 " * 300]} for number in range(20)
            ]
            return [r.status_code for r in await asyncio.gather(*(http.post("/rerank", json=body) for body in bodies))]

    assert asyncio.run(main()) == [200 if number % 5 else 400 for number in range(20)]


def test_the_openapi_document_lists_every_route_with_its_body(models: Models):
    document = models("reranker").http.get("/openapi.json").json()
    fields = {
        "/v1/embeddings": {"input", "dimensions", "encoding_format", "prompt_name", "use_activation"},
        "/classify": {"input", "use_activation", "add_special_tokens"},
        "/score": {"queries", "documents", "use_activation"},
        "/rerank": {"query", "documents", "top_n", "return_documents"},
        "/pooling": {"input", "data", "plugin", "task", "encoding_format"},
    }
    for path, known in fields.items():
        operation = document["paths"][path]["post"]
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        assert known | {"model", "truncate_prompt_tokens", "truncation_side", "priority"} <= set(schema["properties"])
        assert schema["additionalProperties"] is False
        assert operation["description"]
