"""`/v1/embeddings`: OpenAI's clients work against it, and every caller gets the answer to its own texts."""

from __future__ import annotations

import asyncio
import base64

import httpx
import numpy as np
import openai
import pytest

from poolhook import LLM
from servers import Server
from texts import varied_texts


@pytest.fixture(scope="module")
def client(server: Server) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


def embed(llm: LLM, prompts: object) -> np.ndarray:
    outputs = llm.embed(prompts, use_tqdm=False, tokenization_kwargs={"truncate_prompt_tokens": -1})
    return np.stack([output.outputs.numpy() for output in outputs])


def test_the_openai_client_gets_the_vectors_of_the_offline_face(client: openai.OpenAI, demo_llm: LLM):
    texts = ["a cat", "a dog", "the stock market"]
    response = client.embeddings.create(model="demo", input=texts)
    assert [item.index for item in response.data] == [0, 1, 2]
    np.testing.assert_allclose([item.embedding for item in response.data], embed(demo_llm, texts), atol=1e-6)
    assert response.model == "demo"
    assert response.usage.prompt_tokens == response.usage.total_tokens == 4 + 4 + 5


def test_a_single_text_and_token_ids_are_inputs_too(client: openai.OpenAI, demo_llm: LLM):
    one = client.embeddings.create(model="demo", input="hello").data
    ids = client.embeddings.create(model="demo", input=[101, 7592, 102]).data
    many = client.embeddings.create(model="demo", input=[[101, 7592, 102], [101, 102]]).data
    assert [len(one), len(ids), len(many)] == [1, 1, 2]
    np.testing.assert_allclose(one[0].embedding, embed(demo_llm, "hello")[0], atol=1e-6)
    np.testing.assert_allclose(one[0].embedding, ids[0].embedding, atol=1e-6)
    np.testing.assert_allclose(one[0].embedding, many[0].embedding, atol=1e-6)


def test_base64_is_little_endian_float32_and_equals_float(server: Server):
    body = {"input": ["hello", "world"]}
    floats = httpx.post(f"{server.url}/v1/embeddings", json={**body, "encoding_format": "float"}).json()
    packed = httpx.post(f"{server.url}/v1/embeddings", json={**body, "encoding_format": "base64"}).json()
    for as_floats, as_base64 in zip(floats["data"], packed["data"], strict=True):
        decoded = np.frombuffer(base64.b64decode(as_base64["embedding"]), dtype="<f4")
        np.testing.assert_array_equal(decoded, np.array(as_floats["embedding"], dtype=np.float32))


@pytest.mark.parametrize("unset", [None, ""])
def test_an_empty_encoding_format_is_as_if_unset(server: Server, unset: str | None):
    response = httpx.post(f"{server.url}/v1/embeddings", json={"input": "hello", "encoding_format": unset})
    assert isinstance(response.json()["data"][0]["embedding"], list)


def test_three_hundred_varied_texts_equal_sentence_transformers(server: Server, client: openai.OpenAI):
    from sentence_transformers import SentenceTransformer

    from poolhook.models import resolve_model

    texts = varied_texts(300)
    reference = SentenceTransformer(str(resolve_model("demo")), device="cpu").encode(texts)
    response = client.embeddings.create(model="demo", input=texts, extra_body={"truncate_prompt_tokens": -1})
    got = np.array([item.embedding for item in response.data], dtype=np.float32)
    np.testing.assert_allclose(got, reference, atol=1e-5, rtol=0)


def test_sixty_four_clients_at_once_get_their_own_answers(server: Server, demo_llm: LLM):
    requests = [varied_texts(40, seed=number)[20 : 21 + number % 7] for number in range(64)]
    expected = [embed(demo_llm, texts) for texts in requests]

    async def ask_all() -> list[dict]:
        limits = httpx.Limits(max_connections=64)
        async with httpx.AsyncClient(base_url=server.url, timeout=120, limits=limits) as http:
            posts = [
                http.post("/v1/embeddings", json={"input": texts, "truncate_prompt_tokens": -1}) for texts in requests
            ]
            return [response.raise_for_status().json() for response in await asyncio.gather(*posts)]

    for answer, vectors in zip(asyncio.run(ask_all()), expected, strict=True):
        assert [item["index"] for item in answer["data"]] == list(range(len(vectors)))
        np.testing.assert_allclose([item["embedding"] for item in answer["data"]], vectors, atol=1e-5)
