"""A client's mistakes on every pooling route: a 400 that names the field, for its whole text where it teaches."""

from __future__ import annotations

from typing import Any

import pytest

from poolhook.params import REMOVED_FIELDS
from served import Models

ROUTES: dict[str, tuple[str, dict[str, Any]]] = {
    # path -> a model that serves it, and a body that is right
    "/v1/embeddings": ("embedder", {"input": "w1"}),
    "/pooling": ("tagger", {"input": "w1"}),
    "/classify": ("classifier", {"input": "w1"}),
    "/score": ("reranker", {"queries": "w1", "documents": ["w2"]}),
    "/rerank": ("reranker", {"query": "w1", "documents": ["w2"]}),
}
LONG = "w1 " * 300
TOO_LONG = (
    "Prompt {index} has {length} tokens; this model takes at most 160. Shorten it, or set truncate_prompt_tokens to -1 "
    "to cut it to that length.",
    "input",
)
every_route = pytest.mark.parametrize("path", ROUTES)


@every_route
def test_the_right_body_is_right(models: Models, path: str):
    name, body = ROUTES[path]
    answer = models(name).post(path, **body)
    assert len(answer.get("data") or answer["results"]) == 1
    assert answer["usage"]["prompt_tokens"] == answer["usage"]["total_tokens"] > 0


@every_route
@pytest.mark.parametrize("field", REMOVED_FIELDS)
def test_a_removed_field_is_refused_by_name_with_what_to_use(models: Models, path: str, field: str):
    name, body = ROUTES[path]
    assert models(name).refused(path, **body, **{field: True}) == (
        f"The request is invalid: `{field}` was removed: use `use_activation`, which is the same for every task",
        field,
    )


@every_route
def test_a_field_that_does_not_exist_is_refused_by_name(models: Models, path: str):
    name, body = ROUTES[path]
    wanted = ("The request is invalid: truncate: there is no such field", "truncate")
    assert models(name).refused(path, **body, truncate=True) == wanted


@every_route
@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("truncate_prompt_tokens", -2, "Input should be greater than or equal to -1"),
        ("truncate_prompt_tokens", "many", "Input should be a valid integer"),
        ("truncation_side", "middle", "Input should be 'left' or 'right'"),
        ("use_activation", "perhaps", "Input should be a valid boolean"),
        ("use_activation", [], "Input should be a valid boolean"),
        ("priority", "high", "Input should be a valid integer"),
        ("model", 7, "Input should be a valid string"),
    ],
)
def test_a_wrong_value_is_refused_with_its_field(models: Models, path: str, field: str, value: Any, says: str):
    name, body = ROUTES[path]
    wanted = (f"The request is invalid: {field}: {says}", field)
    assert models(name).refused(path, **{**body, field: value}) == wanted


@every_route
def test_a_missing_field_is_named(models: Models, path: str):
    name, body = ROUTES[path]
    for left_out in body:
        message, param = models(name).refused(path, **{key: body[key] for key in body if key != left_out})
        if path == "/pooling":
            assert (message, param) == (
                "The request is invalid: give either `input` (prompts) or `data` (for an IO processor)",
                None,
            )
        else:
            assert (message, param) == (f"The request is invalid: {left_out}: Field required", left_out)


@every_route
def test_an_empty_list_is_refused(models: Models, path: str):
    name, body = ROUTES[path]
    field = "documents" if "documents" in body else "input"
    message, param = models(name).refused(path, **{**body, field: []})
    assert message.startswith(f"{field} is an empty list. Give at least one text")
    assert param == field


@every_route
@pytest.mark.parametrize("value", [7, None, ["w1", None], [["w1"]], {"nonsense": "w1"}, True], ids=str)
def test_what_is_no_text_is_refused_with_its_place(models: Models, path: str, value: Any):
    name, body = ROUTES[path]
    field = "documents" if "documents" in body else "input"
    message, param = models(name).refused(path, **{**body, field: value})
    assert len(message) < 600
    assert param is not None
    assert param.split(".")[0] == field


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/score", {"queries": None, "documents": "w1"}, "queries"),
        ("/score", {"queries": ["w1", 3], "documents": ["w1", "w2"]}, "queries.1"),
        ("/rerank", {"query": ["w1"], "documents": ["w1"]}, "query"),
        ("/rerank", {"query": "w1", "documents": "w1"}, "documents"),
        ("/rerank", {"query": "w1", "documents": ["w1"], "top_n": "two"}, "top_n"),
        ("/rerank", {"query": "w1", "documents": ["w1"], "top_n": -1}, "top_n"),
        ("/rerank", {"query": "w1", "documents": ["w1"], "return_documents": "perhaps"}, "return_documents"),
    ],
    ids=str,
)
def test_a_wrong_query_or_number_is_refused_with_its_field(models: Models, path: str, body: dict[str, Any], param: str):
    assert models("reranker").refused(path, **body)[1] == param


class TestTooLong:
    @every_route
    def test_is_refused_with_the_length_and_the_limit(self, models: Models, path: str):
        name, body = ROUTES[path]
        field, more = ("documents", 2) if "documents" in body else ("input", 0)
        texts = ["w1", LONG]
        message, param = models(name).refused(path, **{**body, field: texts})
        assert (message, param) == (TOO_LONG[0].format(index=1, length=302 + more), TOO_LONG[1])

    @every_route
    def test_is_cut_where_that_was_asked_for(self, models: Models, path: str):
        name, body = ROUTES[path]
        field = "documents" if "documents" in body else "input"
        answer = models(name).post(path, **{**body, field: [LONG]}, truncate_prompt_tokens=-1)
        assert answer["usage"]["prompt_tokens"] == 160
        answer = models(name).post(path, **{**body, field: [LONG, "w2"]}, truncate_prompt_tokens=9)
        assert answer["usage"]["prompt_tokens"] == 9 + (5 if field == "documents" else 3)

    @pytest.mark.parametrize("path", ["/score", "/rerank"])
    def test_of_a_pair_only_the_document_is_cut(self, models: Models, path: str):
        served = models("reranker")
        field = "queries" if path == "/score" else "query"
        answer = served.post(path, **{field: "w1 w2", "documents": ["w3 w4 w5 w6"]}, truncate_prompt_tokens=7)
        (scored,) = served.llm.score("w1 w2", "w3 w4")
        score = answer["data"][0]["score"] if path == "/score" else answer["results"][0]["relevance_score"]
        assert score == pytest.approx(scored.outputs.score, abs=1e-6)
        assert served.refused(path, **{field: LONG, "documents": ["w3"]}, truncate_prompt_tokens=-1) == (
            "Prompt 0 has a query of 300 tokens, which with 3 special tokens is more than 160. Truncation cuts the "
            "document only; shorten the query.",
            "input",
        )

    def test_limits_that_no_prompt_may_have_are_refused(self, models: Models):
        for path, (name, body) in ROUTES.items():
            assert models(name).refused(path, **body, truncate_prompt_tokens=161) == (
                "truncate_prompt_tokens is 161; give 1 to 160, this model's maximum, or -1 for that maximum.",
                "truncate_prompt_tokens",
            )


@pytest.mark.parametrize("field", ["dimensions", "encoding_format", "prompt_name"])
@pytest.mark.parametrize("path", ["/classify", "/score", "/rerank"])
def test_options_that_mean_nothing_to_a_route_are_no_fields_of_it(models: Models, path: str, field: str):
    name, body = ROUTES[path]
    wanted = (f"The request is invalid: {field}: there is no such field", field)
    assert models(name).refused(path, **body, **{field: 8}) == wanted
