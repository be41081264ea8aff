"""Built-in `rerank`: documents by falling score, ties as they came, at most `top_n`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin_parts import MODEL_INFO, context, inputs_of, output_of, route_of
from poolhook.errors import InvalidRequest
from poolhook.outputs import RerankResult
from poolhook.plugins import PairPrompt, Route
from poolhook_builtin.rerank import RerankIOProcessor


def route() -> Route:
    made = route_of(RerankIOProcessor(), name="rerank")
    made.processor.startup(replace(MODEL_INFO, score_type="cross-encoder", labels=("it",)))
    return made


def ranked(scores: list[float], top_n: int | None) -> list[RerankResult]:
    made = route()
    ctx = context(inputs=inputs_of(*[[5]] * len(scores)))
    documents = [f"document {number}" for number in range(len(scores))]
    made.pre_process(ctx, made.parse_data(ctx, {"query": "q", "documents": documents, "top_n": top_n}))
    results: list[RerankResult] = made.post_process(ctx, [output_of(score) for score in scores])
    return results


few_values = st.lists(st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0]), max_size=12)


@given(scores=few_values, top_n=st.none() | st.integers(1, 15))
def test_it_is_a_stable_sort_by_falling_score_cut_to_top_n(scores: list[float], top_n: int | None):
    results = ranked(scores, top_n)
    assert len(results) == min(len(scores), top_n or len(scores))
    order = [(-result.score, result.index) for result in results]
    assert order == sorted((-score, index) for index, score in enumerate(scores))[: len(results)]


@given(scores=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=12))
def test_each_result_is_its_document_with_its_own_score(scores: list[float]):
    results = ranked(scores, None)
    assert sorted(result.index for result in results) == list(range(len(scores)))
    for result in results:
        assert (result.score, result.document) == (scores[result.index], f"document {result.index}")


def test_documents_that_all_tie_stay_as_they_came():
    assert [result.index for result in ranked([0.5] * 20, None)] == list(range(20))


def test_each_document_is_read_with_the_query():
    made, ctx = route(), context()
    request = made.parse_data(ctx, {"query": "q", "documents": ["a", "b"], "top_n": 1})
    assert made.pre_process(ctx, request) == [PairPrompt("q", "a"), PairPrompt("q", "b")]


@pytest.mark.parametrize("top_n", [0, -1, -100])
@pytest.mark.parametrize("mode", ["offline", "online"])
def test_a_top_n_below_1_is_refused(mode: str, top_n: int):
    with pytest.raises(InvalidRequest, match="top_n: Input should be greater than or equal to 1") as caught:
        route().parse_data(context(mode), {"query": "q", "documents": ["a"], "top_n": top_n})
    assert caught.value.param == "top_n"


@pytest.mark.parametrize(
    ("data", "param"),
    [
        ({"query": "q"}, "documents"),
        ({"documents": ["a"]}, "query"),
        ({"query": ["q"], "documents": ["a"]}, "query"),
        ({"query": "q", "documents": "a"}, "documents"),
        ({"query": "q", "documents": ["a", 7]}, "documents.1"),
        ({"query": "q", "documents": ["a"], "top_n": "many"}, "top_n"),
        ({"query": "q", "documents": ["a"], "top_n": 1.5}, "top_n"),
        ({"query": "q", "documents": ["a"], "top_n": True}, "top_n"),
    ],
    ids=str,
)
def test_wrong_data_is_the_callers_mistake_with_its_field(data: Any, param: str):
    with pytest.raises(InvalidRequest) as caught:
        route().parse_data(context(), data)
    assert caught.value.param == param


def test_no_documents_are_refused_online_and_no_results_offline():
    with pytest.raises(InvalidRequest, match=r"^documents is an empty list\. Give at least one text\.$") as caught:
        route().parse_data(context("online"), {"query": "q", "documents": []})
    assert caught.value.param == "documents"
    assert ranked([], None) == []
