"""Specifies chunked processing: long texts are cut into what the model takes, and their vectors are averaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poolhook.engine import EngineInput
from poolhook.errors import InvalidRequest
from poolhook.params import PoolingParams, TokenizationParams
from poolhook.render import PairPrompt, Prompt, Renderer, TextPrompt, TextTokenizer, TokensPrompt
from poolhook.tasks import PoolingTask
from tiny import save_tokenizer

MAX = 8
CLS, SEP = 2, 3


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    """`w0` is 4, `w1` is 5 and so on."""
    directory: Path = tmp_path_factory.mktemp("words")
    save_tokenizer(directory)
    made = TextTokenizer.from_directory(directory)
    assert made is not None
    return made


@pytest.fixture
def renderer(tokenizer: TextTokenizer) -> Renderer:
    return Renderer(tokenizer, MAX, chunked=True)


def render(renderer: Renderer, *prompts: Prompt, task: PoolingTask = "embed", **tokenization: Any) -> list[EngineInput]:
    return renderer.render(prompts, [PoolingParams(task=task)] * len(prompts), TokenizationParams(**tokenization))


def words(count: int) -> TextPrompt:
    return TextPrompt(" ".join(f"w{n}" for n in range(count)))


def chunk_ids(renderer: Renderer, prompt: Prompt, **tokenization: Any) -> list[list[int]]:
    return [list(chunk.token_ids) for chunk in renderer.split(render(renderer, prompt, **tokenization)).inputs]


class TestSplitting:
    def test_puts_the_special_tokens_around_each_chunk(self, renderer: Renderer):
        assert chunk_ids(renderer, words(14)) == [
            [CLS, 4, 5, 6, 7, 8, 9, SEP],
            [CLS, 10, 11, 12, 13, 14, 15, SEP],
            [CLS, 16, 17, SEP],
        ]

    def test_leaves_alone_what_fits(self, renderer: Renderer):
        inputs = render(renderer, words(6), words(7), words(1))
        chunks = renderer.split(inputs)
        assert chunks.counts == [1, 2, 1]
        assert [chunks.inputs[0], chunks.inputs[3]] == [inputs[0], inputs[2]]

    def test_of_bare_tokens_adds_nothing(self, renderer: Renderer):
        ids = list(range(4, 24))
        parts = [ids[:8], ids[8:16], ids[16:]]
        assert chunk_ids(renderer, TokensPrompt(tuple(ids))) == parts
        assert chunk_ids(Renderer(None, MAX, chunked=True), TokensPrompt(tuple(ids))) == parts
        assert chunk_ids(renderer, words(20), add_special_tokens=False) == parts

    def test_of_token_ids_that_carry_special_tokens_is_that_of_the_text(self, renderer: Renderer):
        (rendered,) = render(renderer, words(14))
        assert chunk_ids(renderer, TokensPrompt(tuple(rendered.token_ids))) == chunk_ids(renderer, words(14))

    @settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(counts=st.lists(st.integers(0, 40), max_size=5))
    def test_loses_and_repeats_no_token(self, renderer: Renderer, counts: list[int]):
        inputs = render(renderer, *map(words, counts))
        chunks = renderer.split(inputs)
        assert all(chunk.cost <= MAX for chunk in chunks.inputs)
        rest = iter(chunks.inputs)
        for item, count in zip(inputs, chunks.counts, strict=True):
            inner = [token for _ in range(count) for token in list(next(rest).token_ids)[1:-1]]
            assert inner == list(item.token_ids)[1:-1]
        assert next(rest, None) is None

    def test_keeps_params_priority_and_deadline(self, renderer: Renderer):
        params = PoolingParams(task="embed", dimensions=3)
        inputs = renderer.render([words(20)], [params], TokenizationParams(), priority=5, deadline=9.0)
        chunks = renderer.split(inputs).inputs
        assert [(c.params, c.priority, c.deadline) for c in chunks] == [(params, 5, 9.0)] * len(chunks)

    def test_leaves_the_instruction_out_where_it_is(self, tokenizer: TextTokenizer):
        renderer = Renderer(tokenizer, MAX, include_prompt=False, chunked=True)
        (rendered,) = render(renderer, TextPrompt("w4 w5 w6 w7 w8", instruction="w0 w1 w2 w3 "))
        first, second = renderer.split([rendered]).inputs
        assert (first.pooled, second.pooled) == ([False] * 5 + [True] * 3, [True] * 5)

    def test_leaves_out_chunks_of_which_nothing_is_pooled(self, tokenizer: TextTokenizer):
        renderer = Renderer(tokenizer, MAX, include_prompt=False, chunked=True)
        prompt = TextPrompt("w8", instruction="w0 w1 w2 w3 w4 w5 w6 w7 ")
        (rendered,) = render(renderer, prompt, add_special_tokens=False)
        (chunk,) = renderer.split([rendered]).inputs
        assert (chunk.token_ids, chunk.pooled) == ([12], [True])


class TestMerging:
    @pytest.mark.parametrize("array", [np.array, torch.tensor])
    def test_weighs_each_chunk_by_its_tokens(self, renderer: Renderer, array: Callable[[Any], Any]):
        chunks = renderer.split(render(renderer, words(14), words(2)))
        assert [chunk.cost for chunk in chunks.inputs] == [8, 8, 4, 4]
        vectors = [array([1.0, 0.0]), array([0.0, 1.0]), array([0.0, 10.0]), array([7.0, 7.0])]
        long, short = chunks.merge(vectors)
        assert long.tolist() == pytest.approx([0.4, 2.4])
        assert short is vectors[3]

    def test_counts_only_tokens_that_are_pooled(self, tokenizer: TextTokenizer):
        renderer = Renderer(tokenizer, MAX, include_prompt=False, chunked=True)
        inputs = render(renderer, TextPrompt("w4 w5 w6 w7 w8", instruction="w0 w1 w2 w3 "))
        (merged,) = renderer.split(inputs).merge([np.array([8.0]), np.array([16.0])])
        assert merged.tolist() == pytest.approx([8 * 3 / 8 + 16 * 5 / 8])

    def test_of_means_is_the_mean_of_all_tokens(self, renderer: Renderer):
        inputs = render(renderer, TokensPrompt(tuple(range(4, 25))))
        chunks = renderer.split(inputs)
        (merged,) = chunks.merge([np.array([np.mean(chunk.token_ids)]) for chunk in chunks.inputs])
        assert merged == pytest.approx(np.mean(inputs[0].token_ids))


class TestTheLimit:
    @pytest.mark.parametrize("prompt", [words(300), TokensPrompt((5,) * 302)])
    def test_is_gone_for_embeddings(self, renderer: Renderer, prompt: Prompt):
        assert render(renderer, prompt)[0].cost == 302

    @pytest.mark.parametrize("prompt", [words(30), TokensPrompt((5,) * 32), TextPrompt("w1 " * 100_000)])
    def test_may_be_max_embed_len(self, tokenizer: TextTokenizer, prompt: Prompt):
        renderer = Renderer(tokenizer, MAX, chunked=True, max_embed_len=20)
        assert render(renderer, words(18))[0].cost == 20
        with pytest.raises(InvalidRequest) as caught:
            render(renderer, prompt)
        length = "more than 20" if prompt == TextPrompt("w1 " * 100_000) else "32"
        assert str(caught.value) == (
            f"Prompt 0 has {length} tokens; max_embed_len allows at most 20. "
            "Shorten it, or set truncate_prompt_tokens to -1 to cut it to 8."
        )

    @pytest.mark.parametrize("task", ["classify", "token_embed", "token_classify"])
    def test_is_the_models_for_other_tasks(self, renderer: Renderer, task: PoolingTask):
        with pytest.raises(InvalidRequest, match="has 11 tokens; this model takes at most 8"):
            render(renderer, words(9), task=task)

    def test_is_the_models_for_pairs(self, renderer: Renderer):
        with pytest.raises(InvalidRequest, match="has 9 tokens; this model takes at most 8"):
            render(renderer, PairPrompt("w1 w2 w3", "w1 w2 w3"))

    def test_of_truncation_is_the_models_where_it_is_minus_one(self, renderer: Renderer):
        assert render(renderer, words(30), truncate_prompt_tokens=-1)[0].cost == MAX
        assert render(renderer, words(30), truncate_prompt_tokens=20)[0].cost == 20

    @pytest.mark.parametrize(("most", "allowed"), [(None, "1 or more"), (20, "1 to 20")])
    def test_of_truncation_is_said_where_it_is_exceeded(self, tokenizer: TextTokenizer, most: int | None, allowed: str):
        renderer = Renderer(tokenizer, MAX, chunked=True, max_embed_len=most)
        with pytest.raises(InvalidRequest, match=f"give {allowed}, or -1 for the 8 that the model takes at once"):
            render(renderer, words(1), truncate_prompt_tokens=0 if most is None else 21)
