"""Operating a server: health, the model list, metrics, the log, and how it stops."""

from __future__ import annotations

import threading

import httpx

from servers import Server, running_server


def test_health_is_ok_while_the_engine_works(server: Server):
    assert httpx.get(f"{server.url}/health").status_code == 200


def test_the_model_list_names_the_served_model(server: Server):
    (card,) = httpx.get(f"{server.url}/v1/models").json()["data"]
    assert card["id"] == "demo"
    assert card["max_model_len"] == 256


def test_metrics_count_steps_tokens_and_requests_by_known_paths_only(server: Server):
    httpx.post(f"{server.url}/v1/embeddings", json={"input": "hello"})
    for number in range(5):
        httpx.get(f"{server.url}/made-up-{number}")
    text = httpx.get(f"{server.url}/metrics").text
    assert "poolhook_engine_steps_total" in text
    assert "poolhook_queue_tokens 0.0" in text
    assert 'poolhook_http_requests_total{endpoint="/v1/embeddings",status="200"}' in text
    assert 'endpoint="other",status="404"' in text
    assert "made-up" not in text


def test_the_openapi_document_describes_the_bodies(server: Server):
    document = httpx.get(f"{server.url}/openapi.json").json()
    assert {"/v1/embeddings", "/pooling", "/health", "/v1/models", "/metrics"} <= set(document["paths"])
    for path in ("/v1/embeddings", "/pooling"):
        body = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert {"input", "model", "truncate_prompt_tokens"} <= set(body["properties"])


def test_the_log_says_what_was_loaded(server: Server):
    loaded = next(line for line in server.log.splitlines() if "Loaded demo" in line)
    for fact in ("task embed", "pooling MEAN", "packed", "device cpu", "dtype float32", "embed (poolhook "):
        assert fact in loaded


def test_sigterm_answers_what_runs_and_exits_with_0():
    with running_server("demo", "--device", "cpu", "--served-model-name", "my-model") as server:
        answers: list[httpx.Response] = []
        body = {"input": ["word " * 200] * 100, "model": "my-model"}
        asking = threading.Thread(
            target=lambda: answers.append(httpx.post(f"{server.url}/v1/embeddings", json=body, timeout=60))
        )
        asking.start()
        while "poolhook_queue_inputs 0.0" in httpx.get(f"{server.url}/metrics").text and asking.is_alive():
            pass
        assert server.stop() == 0
        asking.join()
    assert answers[0].status_code == 200
    assert len(answers[0].json()["data"]) == 100
