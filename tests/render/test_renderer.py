"""Specifies `Renderer`: the limits of the model, applied to every prompt of a request alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from poolhook.errors import InvalidRequest
from poolhook.params import PoolingParams, TokenizationParams
from poolhook.render import Prompt, Renderer, TextPrompt, TokensPrompt

EMBED = PoolingParams(task="embed")
MAX = 16
LONG = TextPrompt("the quick brown fox " * 10)  # 42 tokens


@pytest.fixture
def renderer(tokenizer_pair: Callable[[str], Any]) -> Renderer:
    return Renderer(tokenizer_pair("demo").ours, MAX)


def render(renderer: Renderer, *prompts: Prompt, **tokenization: Any) -> list[list[int]]:
    inputs = renderer.render(prompts, [EMBED] * len(prompts), TokenizationParams(**tokenization))
    return [list(item.token_ids) for item in inputs]


class TestPrompts:
    def test_of_both_kinds_stay_in_their_order(self, renderer: Renderer):
        the, fox = render(renderer, TextPrompt("the"), TextPrompt("fox"))
        assert the != fox
        mixed = render(renderer, TokensPrompt((1,)), TextPrompt("the"), TokensPrompt((2, 3)), TextPrompt("fox"))
        assert mixed == [[1], the, [2, 3], fox]

    def test_keep_their_params_priority_and_deadline(self, renderer: Renderer):
        params = [EMBED, PoolingParams(task="embed", dimensions=3)]
        inputs = renderer.render(
            [TextPrompt("the"), TokensPrompt((1,))], params, TokenizationParams(), priority=5, deadline=9.0
        )
        assert [item.params for item in inputs] == params
        assert [(item.priority, item.deadline) for item in inputs] == [(5, 9.0)] * 2

    def test_may_be_none(self, renderer: Renderer):
        assert render(renderer) == []

    def test_as_token_ids_need_no_tokenizer(self):
        assert render(Renderer(None, MAX), TokensPrompt((1, 2))) == [[1, 2]]

    def test_as_text_without_a_tokenizer_are_refused(self):
        with pytest.raises(InvalidRequest, match="no tokenizer; send token ids"):
            render(Renderer(None, MAX), TokensPrompt((1, 2)), TextPrompt("the"))

    def test_may_go_without_special_tokens(self, renderer: Renderer):
        assert render(renderer, TextPrompt("the")) == [[101, 1996, 102]]
        assert render(renderer, TextPrompt("the"), add_special_tokens=False) == [[1996]]


class TestTruncation:
    @pytest.mark.parametrize(("wanted", "kept"), [(-1, MAX), (MAX, MAX), (5, 5), (2, 2)])
    @pytest.mark.parametrize("side", ["left", "right"])
    def test_applies_to_every_prompt_of_a_request(self, renderer: Renderer, wanted: int, kept: int, side: str):
        prompts = [LONG, TokensPrompt(tuple(range(40))), LONG, TextPrompt("the")]
        rows = render(renderer, *prompts, truncate_prompt_tokens=wanted, truncation_side=side)
        assert [len(row) for row in rows] == [kept, kept, kept, min(kept, 3)]

    def test_keeps_the_end_that_is_asked_for(self, renderer: Renderer):
        ids = TokensPrompt(tuple(range(10)))
        assert render(renderer, ids, truncate_prompt_tokens=3) == [[0, 1, 2]]
        assert render(renderer, ids, truncate_prompt_tokens=3, truncation_side="left") == [[7, 8, 9]]
        text = TextPrompt("the quick brown fox")
        (whole,) = render(renderer, text)
        assert render(renderer, text, truncate_prompt_tokens=4) == [[*whole[:3], 102]]
        assert render(renderer, text, truncate_prompt_tokens=4, truncation_side="left") == [[101, *whole[-3:]]]

    def test_leaves_alone_what_fits(self, renderer: Renderer):
        prompts = TextPrompt("the quick"), TokensPrompt((1, 2))
        assert render(renderer, *prompts, truncate_prompt_tokens=-1) == render(renderer, *prompts)

    @pytest.mark.parametrize("wanted", [0, MAX + 1, pytest.param(10**5000, id="huge")])
    def test_to_a_length_beyond_the_models_is_refused_with_what_is_allowed(self, renderer: Renderer, wanted: int):
        with pytest.raises(InvalidRequest, match="give 1 to 16, this model's maximum, or -1") as caught:
            render(renderer, TextPrompt("the"), truncate_prompt_tokens=wanted)
        assert caught.value.param == "truncate_prompt_tokens"

    def test_to_fewer_than_the_special_tokens_is_refused(self, renderer: Renderer):
        with pytest.raises(InvalidRequest, match="special tokens alone are 2"):
            render(renderer, TextPrompt("the"), truncate_prompt_tokens=1)
        assert render(renderer, TokensPrompt((5, 6)), truncate_prompt_tokens=1) == [[5]]


class TestAPromptThatIsTooLong:
    @pytest.mark.parametrize("prompt", [LONG, TokensPrompt((1,) * 42)])
    def test_is_refused_with_its_place_its_length_the_limit_and_the_remedy(self, renderer: Renderer, prompt: Prompt):
        with pytest.raises(InvalidRequest) as caught:
            render(renderer, TokensPrompt((1,)), TextPrompt("the"), prompt)
        assert str(caught.value) == (
            "Prompt 2 has 42 tokens; this model takes at most 16. "
            "Shorten it, or set truncate_prompt_tokens to -1 to cut it to that length."
        )
        assert caught.value.param == "input"

    def test_is_refused_alike_when_it_is_huge(self, renderer: Renderer):
        with pytest.raises(InvalidRequest, match="Prompt 1 has more than 16 tokens; this model takes at most 16"):
            render(renderer, TokensPrompt((1,)), TextPrompt("the quick brown fox " * 100_000))

    def test_is_one_token_over_the_limit(self, renderer: Renderer):
        at_the_limit = TextPrompt("the " * (MAX - 2))
        assert [len(row) for row in render(renderer, at_the_limit)] == [MAX]
        with pytest.raises(InvalidRequest, match="has 17 tokens"):
            render(renderer, TextPrompt("the " * (MAX - 1)))

    def test_is_not_so_for_its_many_characters(self, renderer: Renderer):
        assert render(renderer, TextPrompt(" " * 100_000 + "the")) == render(renderer, TextPrompt("the"))


class TestStepTags:
    @pytest.mark.parametrize("task", ["token_embed", "token_classify"])
    def test_are_all_that_is_pooled(self, tokenizer_pair: Callable[[str], Any], task: Any):
        renderer = Renderer(tokenizer_pair("demo").ours, MAX, step_tag_id=1996)
        prompts = [TextPrompt("the quick the"), TokensPrompt((5, 1996)), TokensPrompt((5,))]
        inputs = renderer.render(prompts, [PoolingParams(task=task)] * 3, TokenizationParams())
        assert [item.pooled for item in inputs] == [[False, True, False, True, False], [False, True], [False]]

    def test_make_no_difference_to_tasks_that_answer_with_one_row(self, tokenizer_pair: Callable[[str], Any]):
        renderer = Renderer(tokenizer_pair("demo").ours, MAX, step_tag_id=1996)
        (rendered,) = renderer.render([TextPrompt("the")], [EMBED], TokenizationParams())
        assert rendered.pooled is None


class TestTextsThatAreNoUnicode:
    @pytest.mark.parametrize("options", [{}, {"truncate_prompt_tokens": -1}])
    @pytest.mark.parametrize("text", ["ab\ud800c", "ab\udfff" + "c" * 10_000])
    def test_are_refused_with_their_place(self, renderer: Renderer, text: str, options: dict[str, Any]):
        with pytest.raises(InvalidRequest, match=r"Prompt 3 is no valid Unicode.* at position 2") as caught:
            render(renderer, TextPrompt("the"), TokensPrompt((1,)), TextPrompt("fox"), TextPrompt(text), **options)
        assert caught.value.param == "input"
