"""Chunked processing: a long text's embedding is the mean of its chunks', on both faces; short texts are as ever."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from poolhook import LLM, PoolingParams
from poolhook.errors import ConfigError
from served import Models, Served, refusal

LONGEST = 160  # tokens that the tiny model takes, with [CLS] and [SEP]
ROOM = LONGEST - 2
CLS, SEP = 2, 3
RAW = PoolingParams(use_activation=False)


@pytest.fixture(scope="module")
def chunked(models: Models) -> Served:
    return models("embedder", enable_chunked_processing=True, max_embed_len=400)


def words(count: int, start: int = 0) -> list[str]:
    return [f"w{(start + 7 * number) % 190}" for number in range(count)]


def ids_of(count: int, start: int = 0) -> list[int]:
    return [4 + int(word[1:]) for word in words(count, start)]


def plain(llm: LLM, ids: list[int], dimensions: int | None = None, normalize: bool = True) -> np.ndarray:
    """Chunk by chunk: the vectors before normalising, weighted by the tokens that each was pooled from."""
    total, weights = np.zeros(32), 0
    for start in range(0, len(ids), ROOM):
        chunk = [CLS, *ids[start : start + ROOM], SEP]
        total += len(chunk) * llm.embed([chunk], pooling_params=RAW)[0].outputs.numpy().astype(float)
        weights += len(chunk)
    mean = (total / weights)[:dimensions]
    return mean / np.linalg.norm(mean) if normalize else mean


def offline(served: Served, prompts: Any, params: PoolingParams | None = None) -> np.ndarray:
    return np.stack([out.outputs.numpy() for out in served.llm.embed(prompts, pooling_params=params)])


def online(served: Served, prompts: Any, params: PoolingParams | None = None) -> np.ndarray:
    fields = (params or PoolingParams()).model_dump(include={"dimensions", "use_activation"})
    data = served.post("/v1/embeddings", input=prompts, **fields)["data"]
    assert [item["index"] for item in data] == list(range(len(data)))
    return np.array([item["embedding"] for item in data])


both = pytest.mark.parametrize("face", [offline, online])


@both
@pytest.mark.parametrize("count", [ROOM + 1, 2 * ROOM, 2 * ROOM + 1, 398])
def test_a_long_texts_vector_is_the_normalised_weighted_mean_of_its_chunks(
    models: Models, chunked: Served, face: Any, count: int
):
    wanted = plain(models("embedder").llm, ids_of(count))
    np.testing.assert_allclose(face(chunked, " ".join(words(count)))[0], wanted, atol=1e-5)


@both
@pytest.mark.parametrize("count", [0, 1, ROOM - 1, ROOM])
def test_a_text_that_fits_is_embedded_as_ever(models: Models, chunked: Served, face: Any, count: int):
    text = " ".join(words(count))
    np.testing.assert_allclose(face(chunked, text), face(models("embedder"), text), atol=1e-6)


@both
def test_long_and_short_texts_and_token_ids_go_together_in_one_request(models: Models, chunked: Served, face: Any):
    counts = [3, 200, 1, ROOM, 398, 170, 5]
    texts = [" ".join(words(count, start)) for start, count in enumerate(counts)]
    wanted = [plain(models("embedder").llm, ids_of(count, start)) for start, count in enumerate(counts)]
    np.testing.assert_allclose(face(chunked, texts), wanted, atol=1e-5)
    ids = [[CLS, *ids_of(count, start), SEP] for start, count in enumerate(counts)]
    np.testing.assert_allclose(face(chunked, ids), wanted, atol=1e-5)


@both
def test_dimensions_are_cut_after_the_mean_and_the_rest_normalised(models: Models, chunked: Served, face: Any):
    wanted = plain(models("embedder").llm, ids_of(300), dimensions=8)
    cut = face(chunked, [" ".join(words(300)), "w1"], PoolingParams(dimensions=8))
    assert cut.shape == (2, 8)
    np.testing.assert_allclose(cut[0], wanted, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(cut, axis=1), 1, atol=1e-5)


@both
def test_a_vector_that_is_not_to_be_normalised_is_the_mean_itself(models: Models, chunked: Served, face: Any):
    wanted = plain(models("embedder").llm, ids_of(300), normalize=False)
    np.testing.assert_allclose(face(chunked, " ".join(words(300)), RAW)[0], wanted, atol=1e-5)


def test_each_long_text_may_have_params_of_its_own(models: Models, chunked: Served):
    params = [PoolingParams(dimensions=16), RAW]
    outputs = chunked.llm.embed([" ".join(words(300)), " ".join(words(200))], pooling_params=params)
    llm = models("embedder").llm
    np.testing.assert_allclose(outputs[0].outputs.numpy(), plain(llm, ids_of(300), dimensions=16), atol=1e-5)
    np.testing.assert_allclose(outputs[1].outputs.numpy(), plain(llm, ids_of(200), normalize=False), atol=1e-5)


def test_a_prompt_of_the_model_stands_before_the_first_chunk_only(models: Models, chunked: Served):
    (output,) = chunked.llm.embed(" ".join(words(200)), prompt_name="query")
    assert list(output.prompt_token_ids) == [CLS, 105, 106, *ids_of(200), SEP]
    wanted = plain(models("embedder").llm, [105, 106, *ids_of(200)])
    np.testing.assert_allclose(output.outputs.numpy(), wanted, atol=1e-5)


def test_usage_and_prompt_token_ids_are_the_texts_own(chunked: Served):
    text = " ".join(words(300))
    assert chunked.post("/v1/embeddings", input=[text, "w1"])["usage"] == {"prompt_tokens": 305, "total_tokens": 305}
    assert list(chunked.llm.embed(text)[0].prompt_token_ids) == [CLS, *ids_of(300), SEP]


def test_beyond_max_embed_len_a_text_is_refused_by_both_faces(chunked: Served):
    texts = ["w1", " ".join(words(399))]
    wanted = (
        "Prompt 1 has 401 tokens; max_embed_len allows at most 400. Shorten it, or set truncate_prompt_tokens to -1 to "
        "cut it to 160.",
        "input",
    )
    assert refusal(lambda: chunked.llm.embed(texts)) == wanted
    assert chunked.refused("/v1/embeddings", input=texts) == wanted


def test_truncation_comes_before_chunks(models: Models, chunked: Served):
    text = " ".join(words(390))
    cut = {"truncate_prompt_tokens": -1}
    wanted = offline(models("embedder"), " ".join(words(ROOM)))
    np.testing.assert_allclose(
        chunked.llm.embed(text, tokenization_kwargs=cut)[0].outputs.numpy(), wanted[0], atol=1e-6
    )
    answer = chunked.post("/v1/embeddings", input=text, truncate_prompt_tokens=250)
    assert answer["usage"]["prompt_tokens"] == 250
    wanted = plain(models("embedder").llm, ids_of(248))
    np.testing.assert_allclose(answer["data"][0]["embedding"], wanted, atol=1e-5)


def test_params_that_can_not_be_honoured_are_refused_for_long_texts_too(chunked: Served):
    text = " ".join(words(300))
    wanted = ("dimensions is 9, but this model's can be cut to 8, 16. Leave dimensions out.", "dimensions")
    assert refusal(lambda: chunked.llm.embed(text, pooling_params=PoolingParams(dimensions=9))) == wanted
    assert chunked.refused("/v1/embeddings", input=text, dimensions=9) == wanted


def test_long_texts_can_be_scored(models: Models, chunked: Served):
    long = " ".join(words(300))
    vectors = [
        chunked.llm.embed(text, prompt_name=name)[0].outputs.numpy()
        for text, name in ((long, "query"), ("w1", "document"))
    ]
    (output,) = chunked.llm.score(long, "w1")
    assert output.outputs.score == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-5)


def test_tokens_vectors_are_not_averaged_so_long_texts_are_refused_there(chunked: Served):
    text = " ".join(words(300))
    wanted = (
        "Prompt 0 has 302 tokens; this model takes at most 160. Shorten it, or set truncate_prompt_tokens to -1 to cut "
        "it to that length.",
        "input",
    )
    assert refusal(lambda: chunked.llm.encode(text, pooling_task="token_embed")) == wanted
    assert chunked.refused("/pooling", input=text, task="token_embed") == wanted


def test_the_parts_of_an_answer_that_is_no_mean_are_kept(models: Models):
    served = models("bge-m3", enable_chunked_processing=True)
    (output,) = served.llm.encode("w1 w2", pooling_task="plugin")
    (wanted,) = models("bge-m3").llm.encode("w1 w2", pooling_task="plugin")
    assert set(output.outputs.parts) == {"sparse", "colbert"}
    for name, part in output.outputs.parts.items():
        np.testing.assert_allclose(part, wanted.outputs.parts[name], atol=1e-6)


@pytest.mark.parametrize("name", ["classifier", "tagger", "colbert"])
def test_it_is_for_models_that_embed_texts(models: Models, name: str):
    with pytest.raises(ConfigError, match=r"enable_chunked_processing in the pooler config does not fit .*: it is for"):
        LLM(str(models.path(name)), pooler_config={"enable_chunked_processing": True})
