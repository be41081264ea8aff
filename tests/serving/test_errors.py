"""What a client's mistake gets: a 4xx in OpenAI's shape, with the field named and a bounded message; never a 500."""

from __future__ import annotations

from typing import Any

import httpx
import openai
import pytest

from servers import Server

MISTAKES: list[tuple[str, Any, str | None, str]] = [
    # endpoint, body, field, what the message says
    ("/v1/embeddings", {}, "input", "Field required"),
    ("/v1/embeddings", {"input": []}, "input", "empty list"),
    ("/v1/embeddings", {"input": [[]]}, "input", "no tokens"),
    ("/v1/embeddings", {"input": None}, "input", "NoneType"),
    ("/v1/embeddings", {"input": {"a": 1}}, "input", "{'a': 1}"),
    ("/v1/embeddings", {"input": ["ok", 3.5]}, "input", "Prompt 1 is float 3.5"),
    ("/v1/embeddings", {"input": [1, -1]}, "input", "-1 is out of range"),
    ("/v1/embeddings", {"input": [1, 30522]}, "input", "ids run from 0 to 30521"),
    ("/v1/embeddings", {"input": [1, "a"]}, "input", "token ids are integers"),
    ("/v1/embeddings", {"input": "word " * 300}, "input", "302 tokens; this model takes at most 256"),
    ("/v1/embeddings", {"input": [1] * 257}, "input", "257 tokens"),
    ("/v1/embeddings", {"input": "lone \ud800"}, None, "not valid JSON"),
    ("/v1/embeddings", {"input": "a", "dimension": 3}, "dimension", "no such field"),
    ("/v1/embeddings", {"input": "a", "dimensions": 0}, "dimensions", "greater than or equal to 1"),
    ("/v1/embeddings", {"input": "a", "dimensions": 100}, "dimensions", "384"),
    ("/v1/embeddings", {"input": "a", "dimensions": 10000}, "dimensions", "384"),
    ("/v1/embeddings", {"input": "a", "encoding_format": "hex"}, "encoding_format", "'float' or 'base64'"),
    ("/v1/embeddings", {"input": "a", "truncate_prompt_tokens": 257}, "truncate_prompt_tokens", "1 to 256"),
    ("/v1/embeddings", {"input": "a", "truncate_prompt_tokens": 1}, "truncate_prompt_tokens", "special tokens"),
    ("/v1/embeddings", {"input": "a", "truncate_prompt_tokens": -2}, "truncate_prompt_tokens", "-1"),
    ("/v1/embeddings", {"input": "a", "prompt_name": "query"}, "prompt_name", "this model's prompts are none"),
    ("/v1/embeddings", "text", None, "should be an object"),
    ("/v1/embeddings", ["text"], None, "should be an object"),
    ("/pooling", {}, None, "either `input` (prompts) or `data`"),
    ("/pooling", {"input": "a", "data": 1}, None, "either `input` (prompts) or `data`"),
    ("/pooling", {"input": "a", "task": "classify"}, "task", "Supported tasks: embed"),
    ("/pooling", {"input": "a", "task": "nonsense"}, "task", "Supported tasks: embed, token_embed."),
    ("/pooling", {"data": 1}, "data", "io_processor_plugin"),
    ("/pooling", {"data": 1, "task": "embed"}, "data", "takes `input`"),
]


@pytest.mark.parametrize(("endpoint", "body", "field", "says"), MISTAKES)
def test_a_mistake_is_a_400_that_names_the_field(server: Server, endpoint: str, body: Any, field: str, says: str):
    import json

    response = httpx.post(server.url + endpoint, content=json.dumps(body), headers={"content-type": "application/json"})
    error = response.json()["error"]
    assert response.status_code == error["code"] == 400
    assert error["type"] == "invalid_request_error"
    assert says in error["message"]
    if field is not None:
        assert error["param"] == field


def test_another_models_name_is_a_404_that_names_this_one(server: Server):
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
    with pytest.raises(openai.NotFoundError, match="'gpt-4' is not served here, but 'demo' is"):
        client.embeddings.create(model="gpt-4", input="a")


def test_broken_json_is_a_400(server: Server):
    response = httpx.post(f"{server.url}/v1/embeddings", content="{", headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert "not valid JSON" in response.json()["error"]["message"]


def test_a_wrong_content_type_is_a_400_that_says_which_is_right(server: Server):
    response = httpx.post(
        f"{server.url}/v1/embeddings", content='{"input": "a"}', headers={"content-type": "text/plain"}
    )
    assert response.status_code == 400
    assert "application/json" in response.json()["error"]["message"]


def test_an_unknown_path_and_method_are_in_the_same_shape(server: Server):
    assert httpx.get(f"{server.url}/nowhere").json()["error"]["code"] == 404
    assert httpx.get(f"{server.url}/v1/embeddings").json()["error"]["code"] == 405


def test_an_oversized_body_is_a_413_whether_announced_or_not(server: Server):
    chunk = b" " * 2**20
    announced = httpx.post(f"{server.url}/v1/embeddings", content=chunk * 65)
    streamed = httpx.post(f"{server.url}/v1/embeddings", content=(chunk for _ in range(65)))
    for response in (announced, streamed):
        assert response.status_code == 413
        assert "limit" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        {"input": "a", "x" * 100_000: 1},
        {"input": "a", "model": "y" * 100_000},
        {"input": "a", "encoding_format": "z" * 100_000},
        {"input": [{"q" * 100_000: 1}]},
        {"input": "a", **{f"field{i}": 1 for i in range(10_000)}},
    ],
)
def test_error_bodies_stay_small_whatever_was_sent(server: Server, body: dict[str, Any]):
    response = httpx.post(f"{server.url}/v1/embeddings", json=body)
    assert 400 <= response.status_code < 500
    assert len(response.content) < 4000
