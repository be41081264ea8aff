"""Specifies instructions: part of what the model sees, and left out of pooling where the model says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poolhook.engine import EngineInput
from poolhook.errors import InvalidRequest
from poolhook.params import PoolingParams, TokenizationParams
from poolhook.render import Renderer, TextPrompt, TextTokenizer
from tiny import save_tiny_model

KINDS = ["demo", "bytes", "pieces", "roberta"]
EMBED = PoolingParams(task="embed")


def render(renderer: Renderer, prompt: TextPrompt, params: PoolingParams = EMBED, **tokenization: Any) -> EngineInput:
    (rendered,) = renderer.render([prompt], [params], TokenizationParams(**tokenization))
    return rendered


@pytest.fixture
def renderer(tokenizer_pair: Callable[[str], Any]) -> Renderer:
    return Renderer(tokenizer_pair("demo").ours, 64, include_prompt=False)


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_sees_the_instruction_before_the_text(tokenizer_pair: Callable[[str], Any], kind: str):
    renderer = Renderer(tokenizer_pair(kind).ours, 64)
    rendered = render(renderer, TextPrompt("the quick fox", instruction="query: "))
    assert rendered == render(renderer, TextPrompt("query: the quick fox"))
    assert rendered.pooled is None


class TestWhereTheyAreLeftOutOfPooling:
    @pytest.mark.parametrize("instruction", ["w5", "w5 w6 ", "[SEP]", "w7 [CLS]"])
    @pytest.mark.parametrize("ends", ["both", "before", "behind", "none"])
    def test_as_many_tokens_are_as_sentence_transformers_counts(self, tmp_path: Path, instruction: str, ends: str):
        from sentence_transformers.sentence_transformer.modules import Transformer

        save_tiny_model(tmp_path, "bert")
        edit_post_processor(tmp_path, before=ends in ("both", "before"), behind=ends in ("both", "behind"))
        counted = Transformer(str(tmp_path)).preprocess(["w1 w2"], prompt=instruction)["prompt_length"]
        renderer = Renderer(TextTokenizer.from_directory(tmp_path), 64, include_prompt=False)
        rendered = render(renderer, TextPrompt("w1 w2", instruction))
        pooled = rendered.pooled or [True] * rendered.cost
        assert list(pooled) == [False] * counted + [True] * (rendered.cost - counted)

    def test_special_tokens_before_them_are_left_out_too(self, renderer: Renderer):
        rendered = render(renderer, TextPrompt("the fox", instruction="query: "))
        assert rendered.pooled == [False, False, False, True, True, True]

    def test_texts_without_one_are_pooled_whole(self, renderer: Renderer):
        assert render(renderer, TextPrompt("the fox")).pooled is None

    def test_tasks_that_answer_for_each_token_answer_for_theirs_too(self, renderer: Renderer):
        prompt = TextPrompt("the fox", instruction="query: ")
        assert render(renderer, prompt, PoolingParams(task="token_embed")).pooled is None

    def test_a_cut_that_leaves_nothing_else_is_refused(self, tokenizer_pair: Callable[[str], Any]):
        renderer = Renderer(tokenizer_pair("bytes").ours, 64, include_prompt=False)
        with pytest.raises(InvalidRequest, match="Nothing is left of prompt 0 to pool: all of its 1 tokens belong"):
            render(renderer, TextPrompt("the", "query: "), truncate_prompt_tokens=1, add_special_tokens=False)

    @settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(words=st.integers(1, 600), keep=st.integers(8, 20))
    def test_a_cut_from_the_left_leaves_the_rest_of_the_instruction_out(
        self, renderer: Renderer, words: int, keep: int
    ):
        prompt = TextPrompt("fox " * words, instruction="quick: quick: ")
        whole = render(renderer, prompt, truncate_prompt_tokens=keep, truncation_side="right")
        rendered = render(renderer, prompt, truncate_prompt_tokens=keep, truncation_side="left")
        assert rendered.pooled is not None
        quick, colon = whole.token_ids[1:3]
        left_out = [token in (quick, colon, 101) for token in rendered.token_ids]
        assert list(rendered.pooled) == [not out for out in left_out]


def edit_post_processor(directory: Path, *, before: bool, behind: bool) -> None:
    file = directory / "tokenizer.json"
    content = json.loads(file.read_text())
    single = content["post_processor"]["single"]
    content["post_processor"]["single"] = single[0 if before else 1 : 3 if behind else 2]
    file.write_text(json.dumps(content))
