"""Specifies queries and documents of late-interaction models: prefixes, limits, expansion and skip words."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from poolhook.engine import EngineInput
from poolhook.errors import InvalidRequest, ModelError
from poolhook.models.late_interaction import LateInteraction, Role, TextRole
from poolhook.params import PoolingParams, TokenizationParams
from poolhook.render import PairPrompt, Prompt, Renderer, TextPrompt, TextTokenizer, TokensPrompt
from tiny import edit_json, save_tokenizer
from tiny_models import expected, tiny_trained

CLS, SEP, W1, W2, W3, Q, MASK = 2, 3, 5, 6, 7, 200, 201


@pytest.fixture
def tokenizer(tmp_path: Path) -> TextTokenizer:
    """`w0` is 4, `w1` is 5 and so on; with a token for queries and a mask, and none for documents."""
    save_tokenizer(tmp_path)
    file = str(tmp_path / "tokenizer.json")
    backend = Tokenizer.from_file(file)
    backend.add_special_tokens(["[Q]", "[MASK]"])
    backend.save(file)
    edit_json(tmp_path / "tokenizer_config.json", mask_token="[MASK]")
    made = TextTokenizer.from_directory(tmp_path)
    assert made is not None
    return made


def renderer_of(tokenizer: TextTokenizer | None, query: TextRole, document: TextRole | None = None) -> Renderer:
    return Renderer(tokenizer, 16, roles=LateInteraction(query, document or TextRole()))


def render(renderer: Renderer, *prompts: Prompt, **tokenization: Any) -> list[EngineInput]:
    params = [PoolingParams(task="token_embed")] * len(prompts)
    return renderer.render(prompts, params, TokenizationParams(**tokenization))


def ids(renderer: Renderer, *prompts: Prompt, **tokenization: Any) -> list[list[int]]:
    return [list(each.token_ids) for each in render(renderer, *prompts, **tokenization)]


def as_query(text: str) -> TextPrompt:
    return TextPrompt(text, role="query")


class TestAPrefix:
    @pytest.mark.parametrize("prefix", ["[Q]", "[Q] "])
    def test_goes_in_as_the_token_of_its_name(self, tokenizer: TextTokenizer, prefix: str):
        assert ids(renderer_of(tokenizer, TextRole(prefix)), as_query("w1")) == [[CLS, Q, W1, SEP]]

    @pytest.mark.parametrize(("prefix", "tokens"), [("[Q] w3 ", [Q, W3]), ("w2 w3 ", [W2, W3])])
    def test_of_several_words_goes_in_whole(self, tokenizer: TextTokenizer, prefix: str, tokens: list[int]):
        assert ids(renderer_of(tokenizer, TextRole(prefix)), as_query("w1")) == [[CLS, *tokens, W1, SEP]]

    def test_goes_in_as_text_where_there_is_no_such_token(self, tokenizer: TextTokenizer):
        assert ids(renderer_of(tokenizer, TextRole("(w3) w2 ")), as_query("w1")) == [[CLS, 0, W3, 0, W2, W1, SEP]]

    def test_comes_before_an_instruction(self, tokenizer: TextTokenizer):
        prompt = TextPrompt("w1", instruction="w2 ", role="query")
        assert ids(renderer_of(tokenizer, TextRole("[Q]")), prompt) == [[CLS, Q, W2, W1, SEP]]
        assert ids(renderer_of(tokenizer, TextRole("w3 ")), prompt) == [[CLS, W3, W2, W1, SEP]]

    def test_is_there_without_special_tokens(self, tokenizer: TextTokenizer):
        assert ids(renderer_of(tokenizer, TextRole("[Q]")), as_query("w1"), add_special_tokens=False) == [[Q, W1]]

    def test_survives_truncation_as_special_tokens_do(self, tokenizer: TextTokenizer):
        renderer = renderer_of(tokenizer, TextRole("[Q]"))
        for side, kept in (("left", W3), ("right", W1)):
            rows = ids(renderer, as_query("w1 w2 w3"), truncate_prompt_tokens=4, truncation_side=side)
            assert rows == [[CLS, Q, kept, SEP]]

    def test_is_that_of_the_role(self, tokenizer: TextTokenizer):
        renderer = renderer_of(tokenizer, TextRole("[Q]"), TextRole("w2 "))
        prompts = [TextPrompt("w1", role="document"), as_query("w1"), TextPrompt("w1"), PairPrompt("w1", "w2")]
        assert ids(renderer, *prompts) == [
            [CLS, W2, W1, SEP],
            [CLS, Q, W1, SEP],
            [CLS, W1, SEP],
            [CLS, W1, SEP, W2, SEP],
        ]

    def test_is_not_put_before_token_ids(self, tokenizer: TextTokenizer):
        assert ids(renderer_of(tokenizer, TextRole("[Q]")), TokensPrompt((W1,), role="query")) == [[W1]]


class TestTheLimitOfARole:
    @pytest.mark.parametrize("prompt", [as_query("w1 " * 9), TokensPrompt((W1,) * 12, role="query")])
    def test_refuses_what_is_longer(self, tokenizer: TextTokenizer, prompt: Prompt):
        with pytest.raises(InvalidRequest) as caught:
            render(renderer_of(tokenizer, TextRole("[Q]", max_length=8)), TextPrompt("w1 " * 9), prompt)
        assert str(caught.value) == (
            "Prompt 1 has 12 tokens; queries of this model have at most 8. "
            "Shorten it, or set truncate_prompt_tokens to -1 to cut it to that length."
        )

    @pytest.mark.parametrize("wanted", [-1, 8, 12])
    def test_is_what_truncation_cuts_to(self, tokenizer: TextTokenizer, wanted: int):
        renderer = renderer_of(tokenizer, TextRole("[Q]", max_length=8), TextRole("[Q]", max_length=12))
        prompts = [TextPrompt("w1 " * 20, role=role) for role in ("query", "document")]
        lengths = [each.cost for each in render(renderer, *prompts, truncate_prompt_tokens=wanted)]
        assert lengths == [8, 12 if wanted == -1 else wanted]

    def test_is_never_above_the_models(self, tokenizer: TextTokenizer):
        with pytest.raises(InvalidRequest, match="has 22 tokens; this model takes at most 16"):
            render(renderer_of(tokenizer, TextRole(max_length=99)), as_query("w1 " * 20))

    def test_refuses_what_is_huge_without_reading_all_of_it(self, tokenizer: TextTokenizer):
        with pytest.raises(InvalidRequest, match="has more than 8 tokens; queries of this model have at most 8"):
            render(renderer_of(tokenizer, TextRole(max_length=8)), as_query("w1 " * 100_000))


class TestExpansion:
    def test_fills_up_behind_the_special_tokens_and_is_not_attended_to(self, tokenizer: TextTokenizer):
        (rendered,) = render(renderer_of(tokenizer, TextRole("[Q]", expand_to=8)), as_query("w1"))
        assert rendered.token_ids == [CLS, Q, W1, SEP, MASK, MASK, MASK, MASK]
        assert (rendered.attended, rendered.pooled) == (4, None)

    def test_may_be_attended_to(self, tokenizer: TextTokenizer):
        role = TextRole("[Q]", expand_to=8, attend_to_expansion=True)
        (rendered,) = render(renderer_of(tokenizer, role), as_query("w1"))
        assert (rendered.cost, rendered.attended) == (8, None)

    def test_leaves_alone_what_is_long_enough(self, tokenizer: TextTokenizer):
        (rendered,) = render(renderer_of(tokenizer, TextRole(expand_to=4)), as_query("w1 w2 w3"))
        assert (rendered.token_ids, rendered.attended) == ([CLS, W1, W2, W3, SEP], None)

    def test_fills_up_token_ids_too(self, tokenizer: TextTokenizer):
        (rendered,) = render(renderer_of(tokenizer, TextRole(expand_to=4)), TokensPrompt((W1, W2), role="query"))
        assert (rendered.token_ids, rendered.attended) == ([W1, W2, MASK, MASK], 2)

    def test_stops_at_the_models_maximum(self, tokenizer: TextTokenizer):
        (rendered,) = render(renderer_of(tokenizer, TextRole(expand_to=99)), as_query("w1"))
        assert rendered.cost == 16

    def test_without_a_token_for_it_is_refused_at_start(self, tmp_path: Path):
        save_tokenizer(tmp_path)
        for tokenizer in (TextTokenizer.from_directory(tmp_path), None):
            with pytest.raises(ModelError, match="fills its queries up to 8 tokens with the mask token, but"):
                renderer_of(tokenizer, TextRole(expand_to=8))


class TestSkipWords:
    def test_are_left_out_of_pooling(self, tokenizer: TextTokenizer):
        renderer = renderer_of(tokenizer, TextRole(), TextRole(skip_words=("w2", "w3")))
        (rendered,) = render(renderer, TextPrompt("w1 w2 w3 w1", role="document"))
        assert rendered.pooled == [True, True, False, False, True, True]

    @pytest.mark.parametrize(("role", "pooled"), [("document", [True, False]), (None, [True, False]), ("query", None)])
    def test_are_those_of_the_role_and_no_role_is_a_document(
        self, tokenizer: TextTokenizer, role: Role | None, pooled: list[bool] | None
    ):
        renderer = renderer_of(tokenizer, TextRole(), TextRole(skip_words=("w2",)))
        assert render(renderer, TokensPrompt((W1, W2), role=role))[0].pooled == pooled

    def test_that_are_no_single_token_are_warned_about_once_and_stay_in(
        self, tokenizer: TextTokenizer, caplog: pytest.LogCaptureFixture
    ):
        words = ("w2", "~~", "w1 w2")
        with caplog.at_level(logging.WARNING):
            renderer = renderer_of(tokenizer, TextRole(skip_words=words), TextRole(skip_words=words))
            (rendered,) = render(renderer, TextPrompt("~~ w1 w2", role="document"))
        assert rendered.pooled == [True, True, True, False, True]
        (record,) = caplog.records
        assert "~~ w1 w2" in record.getMessage()

    def test_may_leave_nothing_for_tasks_that_answer_for_each_token(self, tokenizer: TextTokenizer):
        renderer = renderer_of(tokenizer, TextRole(), TextRole(skip_words=("w2",)))
        prompt = TokensPrompt((W2,))
        assert render(renderer, prompt)[0].pooled == [False]
        with pytest.raises(InvalidRequest, match="Nothing is left of prompt 0 to pool"):
            renderer.render([prompt], [PoolingParams(task="embed")], TokenizationParams())


def test_roles_make_no_difference_to_other_models(tokenizer: TextTokenizer):
    renderer = Renderer(tokenizer, 16)
    assert ids(renderer, as_query("w1"), TextPrompt("w1", role="document")) == [[CLS, W1, SEP]] * 2


class TestATrainedModel:
    def test_gets_what_it_was_trained_with(self):
        tokenizer = TextTokenizer.from_directory(tiny_trained("tiny-colbert"))
        renderer = Renderer(tokenizer, 512, roles=LateInteraction(TextRole("[Q] ", 32), TextRole("[D] ", 180)))
        items = expected("tiny-colbert")["items"]
        prompts = [TextPrompt(item["text"], role=item["kind"]) for item in items]
        assert ids(renderer, *prompts) == [item["input_ids"] for item in items]

    @pytest.mark.parametrize("attend", [True, False])
    def test_is_given_what_sentence_transformers_gives_it(self, tmp_path: Path, attend: bool):
        from sentence_transformers import MultiVectorEncoder

        directory, text = tmp_path / "colbert", "what is the capital"
        shutil.copytree(tiny_trained("tiny-colbert"), directory)
        edit_json(
            directory / "config_sentence_transformers.json",
            do_query_expansion=True,
            attend_to_expansion_tokens=attend,
        )
        model = MultiVectorEncoder(str(directory), device="cpu")
        theirs = model.preprocess([text], task="query", prompt=model.prompts["query"])
        roles = LateInteraction(TextRole("[Q] ", 32, 32, attend), TextRole("[D] ", 180))
        (ours,) = render(Renderer(TextTokenizer.from_directory(directory), 512, roles=roles), as_query(text))
        assert list(ours.token_ids) == theirs["input_ids"][0].tolist()
        assert (ours.attended or ours.cost) == theirs["attention_mask"].sum().item()
