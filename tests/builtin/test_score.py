"""Built-in `score`: pairs of texts become the prompts of each way of scoring, and wrong pairs a clear error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plugin_parts import MODEL_INFO, context, inputs_of, output_of, route_of
from poolhook.errors import InvalidRequest
from poolhook.params import PoolingParams
from poolhook.plugins import PairPrompt, Prompt, Route, TextPrompt
from poolhook_builtin.score import ScoreIOProcessor

SEVERAL = ("good", "bad")


def route(**model: Any) -> Route:
    made = route_of(ScoreIOProcessor(), name="score")
    made.processor.startup(replace(MODEL_INFO, **{"score_type": "bi-encoder", **model}))
    return made


def prompts_for(made: Route, queries: Any, documents: Any) -> list[Prompt]:
    ctx = context("offline")
    return made.pre_process(ctx, made.parse_data(ctx, {"queries": queries, "documents": documents}))


class TestPrompts:
    def test_of_a_cross_encoder_are_pairs_of_the_query_with_each_document(self):
        made = route(score_type="cross-encoder", labels=("it",))
        assert prompts_for(made, "q", ["a", "b"]) == [PairPrompt("q", "a"), PairPrompt("q", "b")]
        assert prompts_for(made, ["q", "r"], ["a", "b"]) == [PairPrompt("q", "a"), PairPrompt("r", "b")]
        assert prompts_for(made, "q", "a") == [PairPrompt("q", "a")]

    def test_of_a_bi_encoder_are_its_texts_once_each_with_its_prompts_for_queries_and_documents(self):
        made = route(prompts={"query": "Q: ", "document": "D: "})
        assert prompts_for(made, "q", ["a", "b"]) == [
            TextPrompt("q", "Q: "),
            TextPrompt("a", "D: "),
            TextPrompt("b", "D: "),
        ]

    @pytest.mark.parametrize(
        ("prompts", "default", "query", "document"),
        [
            ({}, None, "", ""),
            ({"query": "Q: "}, None, "Q: ", ""),
            ({"query": "Q: ", "passage": "P: "}, None, "Q: ", "P: "),
            ({"query": "Q: ", "corpus": "C: "}, None, "Q: ", "C: "),
            ({"passage": "P: ", "document": "D: "}, None, "", "D: "),
            ({"any": "A: "}, "any", "A: ", "A: "),
            ({"any": "A: ", "query": "Q: "}, "any", "Q: ", "A: "),
            ({"query": "", "any": "A: "}, "any", "", "A: "),
        ],
        ids=str,
    )
    def test_of_a_bi_encoder_have_the_prompt_that_sentence_transformers_would_take(
        self, prompts: dict[str, str], default: str | None, query: str, document: str
    ):
        made = route(prompts=prompts, default_prompt_name=default)
        assert prompts_for(made, "q", "d") == [TextPrompt("q", query), TextPrompt("d", document)]

    def test_of_late_interaction_have_roles_and_no_prompts(self):
        made = route(score_type="late-interaction", has_roles=True)
        assert prompts_for(made, "q", "d") == [TextPrompt("q", role="query"), TextPrompt("d", role="document")]


class TestRefused:
    @pytest.mark.parametrize(("queries", "documents"), [(["q", "r"], ["a"]), (["q", "r"], ["a", "b", "c"]), ([], "a")])
    def test_are_numbers_that_do_not_fit(self, queries: Any, documents: Any):
        with pytest.raises(InvalidRequest) as caught:
            prompts_for(route(), queries, documents)
        count = len(documents) if isinstance(documents, list) else 1
        assert str(caught.value) == (
            f"{len(queries)} queries and {count} documents can't be paired. Give one query, or one for each document."
        )
        assert caught.value.param == "queries"

    @pytest.mark.parametrize("queries", ["q", ["q"], []], ids=repr)
    def test_are_no_documents_online_while_offline_they_have_no_scores(self, queries: Any):
        made, data = route(), {"queries": queries, "documents": []}
        with pytest.raises(InvalidRequest, match=r"^documents is an empty list\. Give at least one text\.$") as caught:
            made.parse_data(context("online"), data)
        assert caught.value.param == "documents"
        assert prompts_for(made, queries, []) == []

    @pytest.mark.parametrize(
        ("data", "param"),
        [
            ({"queries": "q"}, "documents"),
            ({"documents": "d"}, "queries"),
            ({"queries": 3, "documents": "d"}, "queries"),
            ({"queries": "q", "documents": ["a", None]}, "documents.1"),
            ({"queries": "q", "documents": {"text": "a"}}, "documents"),
            ({"queries": "q", "documents": "a", "top_n": 3}, "top_n"),
        ],
        ids=str,
    )
    def test_are_wrong_types_with_their_field(self, data: Any, param: str):
        with pytest.raises(InvalidRequest) as caught:
            route().parse_data(context(), data)
        assert caught.value.param == param

    @pytest.mark.parametrize("labels", [SEVERAL, ()])
    def test_is_a_cross_encoder_without_exactly_one_label(self, labels: tuple[str, ...]):
        with pytest.raises(InvalidRequest, match=f"This model has {len(labels)} labels .*one number") as caught:
            prompts_for(route(score_type="cross-encoder", labels=labels), "q", "d")
        assert caught.value.param == "model"

    def test_are_params_for_each_text(self):
        made = route()
        ctx = context(params=[PoolingParams(dimensions=2), PoolingParams(dimensions=3)])
        prompts = made.pre_process(ctx, made.parse_data(ctx, {"queries": "q", "documents": "d"}))
        with pytest.raises(InvalidRequest) as caught:
            made.merge_pooling_params(ctx, prompts)
        assert str(caught.value) == (
            "pooling_params is a list of 2, but texts that are compared are pooled in one way. Give one PoolingParams."
        )


def test_labels_do_not_matter_where_texts_are_compared_by_their_vectors():
    assert len(prompts_for(route(labels=SEVERAL), "q", "d")) == 2


def test_each_score_comes_with_the_ids_that_the_document_was_read_with_and_an_id_of_its_own():
    made = route()
    ctx = context(inputs=inputs_of([1], [2, 2], [3]))
    made.pre_process(ctx, made.parse_data(ctx, {"queries": "q", "documents": ["a", "b"]}))
    answer = made.post_process(ctx, [output_of(1.0, 0.0), output_of(0.0, 2.0), output_of(3.0, 0.0)])
    assert [item.outputs.score for item in answer] == pytest.approx([0.0, 1.0])
    assert [list(item.prompt_token_ids) for item in answer] == [[2, 2], [3]]
    assert [item.request_id for item in answer] == [f"{ctx.request_id}-0", f"{ctx.request_id}-1"]
