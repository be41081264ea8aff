"""Specifies pairs of a query and a document: put together as transformers does, and cut in the document alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from poolhook.engine import EngineInput
from poolhook.errors import InvalidRequest
from poolhook.params import PoolingParams, TokenizationParams
from poolhook.render import PairPrompt, Renderer, TextPrompt, TokensPrompt, tokenizer
from tiny_models import expected, tiny_trained

KINDS = ["demo", "limited", "bytes", "pieces", "roberta"]
CLASSIFY = PoolingParams(task="classify")
TEXTS = st.lists(st.sampled_from(["the", "quick", "fox's", "über", "日本語", "🙂", "w1", "12345", "\n"]), max_size=12)
relaxed = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def render(renderer: Renderer, *pairs: Any, **tokenization: Any) -> list[EngineInput]:
    return renderer.render(pairs, [CLASSIFY] * len(pairs), TokenizationParams(**tokenization))


def transformers_own(tokenizer: Any, query: str, document: str, **options: Any) -> tuple[list[int], list[int]]:
    """Ids and segments. As a batch: alone, an empty text counts as none."""
    encoded = tokenizer([[query, document]], **options)
    (ids,) = encoded.input_ids
    (segments,) = encoded.get("token_type_ids", [[0] * len(ids)])
    return ids, segments


def of(ours: EngineInput) -> tuple[list[int], list[int]]:
    return list(ours.token_ids), list(ours.token_type_ids or [0] * ours.cost)


@pytest.mark.parametrize("kind", KINDS)
@relaxed
@given(query=TEXTS, document=TEXTS, specials=st.booleans())
def test_a_pair_has_the_ids_and_segments_of_transformers(
    tokenizer_pair: Callable[[str], Any], kind: str, query: list[str], document: list[str], specials: bool
):
    both = tokenizer_pair(kind)
    texts = " ".join(query), " ".join(document)
    (ours,) = render(Renderer(both.ours, 999), PairPrompt(*texts), add_special_tokens=specials)
    assert of(ours) == transformers_own(both.theirs, *texts, add_special_tokens=specials)


@pytest.mark.parametrize("kind", KINDS)
@relaxed
@given(query=TEXTS, document=TEXTS, length=st.integers(1, 60), side=st.sampled_from(["left", "right"]))
def test_truncation_cuts_the_document_alone(
    tokenizer_pair: Callable[[str], Any], kind: str, query: list[str], document: list[str], length: int, side: str
):
    both = tokenizer_pair(kind)
    pair = PairPrompt(" ".join(query), " ".join(document))
    renderer = Renderer(both.ours, 999)
    (whole,), (bare,) = render(renderer, pair), render(renderer, PairPrompt(pair.text, ""))
    options: dict[str, Any] = {"truncate_prompt_tokens": length, "truncation_side": side}
    if bare.cost > length:
        with pytest.raises(InvalidRequest, match="Truncation cuts the document only; shorten the query"):
            render(renderer, pair, **options)
        return
    (ours,) = render(renderer, pair, **options)
    both.theirs.truncation_side = side
    # transformers refuses to cut a document to nothing.
    cut: dict[str, Any] = {"truncation": "only_second", "max_length": length} if bare.cost < length else {}
    assert of(ours) == transformers_own(both.theirs, pair.text, pair.text_pair if cut else "", **cut)
    assert ours.cost == min(length, whole.cost)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_huge_document_is_cut_as_the_whole_of_it(tokenizer_pair: Callable[[str], Any], kind: str, side: str):
    both = tokenizer_pair(kind)
    query, document = "the quick fox", "the quick brown fox's tail isn't 12345 lazy\n\n dogs " * 300
    (ours,) = render(
        Renderer(both.ours, 64), PairPrompt(query, document), truncate_prompt_tokens=-1, truncation_side=side
    )
    both.theirs.truncation_side = side
    assert of(ours) == transformers_own(both.theirs, query, document, truncation="only_second", max_length=64)


def test_a_trained_reranker_gets_what_it_was_trained_with():
    ours = tokenizer.TextTokenizer.from_directory(tiny_trained("tiny-reranker"))
    items = expected("tiny-reranker")["items"]
    inputs = render(Renderer(ours, 512), *(PairPrompt(item["query"], item["document"]) for item in items))
    assert [list(each.token_ids) for each in inputs] == [item["input_ids"] for item in items]
    assert [each.token_type_ids for each in inputs] == [item["token_type_ids"] for item in items]


class TestAmongOtherPrompts:
    def test_pairs_keep_their_places(self, tokenizer_pair: Callable[[str], Any]):
        renderer = Renderer(tokenizer_pair("demo").ours, 64)
        prompts = [PairPrompt("a", "b"), TokensPrompt((5,)), TextPrompt("the"), PairPrompt("a", "c"), TextPrompt("fox")]
        alone = [render(renderer, prompt)[0].token_ids for prompt in prompts]
        assert [each.token_ids for each in render(renderer, *prompts)] == alone

    def test_a_query_that_many_share_is_tokenized_once(
        self, tokenizer_pair: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
    ):
        ours = tokenizer_pair("demo").ours
        seen: list[str] = []
        tokenize = ours.tokenize
        monkeypatch.setattr(ours, "tokenize", lambda texts, *rest: seen.extend(texts) or tokenize(texts, *rest))
        render(Renderer(ours, 64), *(PairPrompt("the query", f"document {n}") for n in range(20)))
        assert seen.count("the query") == 1


class TestAPairThatIsTooLong:
    def test_is_refused_with_its_length_and_the_limit(self, tokenizer_pair: Callable[[str], Any]):
        with pytest.raises(InvalidRequest, match="Prompt 1 has 23 tokens; this model takes at most 16"):
            render(Renderer(tokenizer_pair("demo").ours, 16), PairPrompt("a", "b"), PairPrompt("the", "fox " * 19))

    def test_is_refused_alike_when_it_is_huge(self, tokenizer_pair: Callable[[str], Any]):
        with pytest.raises(InvalidRequest, match="Prompt 0 has more than 16 tokens; this model takes at most 16"):
            render(Renderer(tokenizer_pair("demo").ours, 16), PairPrompt("the", "fox " * 100_000))

    @pytest.mark.parametrize(("query", "said"), [("the " * 14, "14"), ("the " * 100_000, "more than 16")])
    def test_for_its_query_says_how_long_that_is(self, tokenizer_pair: Callable[[str], Any], query: str, said: str):
        with pytest.raises(InvalidRequest) as caught:
            render(Renderer(tokenizer_pair("demo").ours, 16), PairPrompt(query, "fox"), truncate_prompt_tokens=-1)
        assert str(caught.value) == (
            f"Prompt 0 has a query of {said} tokens, which with 3 special tokens is more than 16. "
            "Truncation cuts the document only; shorten the query."
        )


@pytest.mark.parametrize("pair", [PairPrompt("a\ud800", "b"), PairPrompt("a", "b" * 5000 + "\udfff")])
def test_texts_that_are_no_unicode_are_refused(tokenizer_pair: Callable[[str], Any], pair: PairPrompt):
    with pytest.raises(InvalidRequest, match="Prompt 1 is no valid Unicode"):
        render(Renderer(tokenizer_pair("demo").ours, 16), PairPrompt("a", "b"), pair, truncate_prompt_tokens=-1)
