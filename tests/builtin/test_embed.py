"""Built-in `embed`: the model's prompt before each text, once, and one output for each prompt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin_parts import MODEL_INFO, context, inputs_of, output_of, route_of
from poolhook.errors import InvalidRequest
from poolhook.plugins import Prompt, Route, TextPrompt, TokensPrompt
from poolhook_builtin.embed import EmbedIOProcessor


def route(default: str | None = None, prompts: dict[str, str] | None = None) -> Route:
    made = route_of(EmbedIOProcessor())
    model_info = replace(MODEL_INFO, default_prompt_name=default)
    made.processor.startup(model_info if prompts is None else replace(model_info, prompts=prompts))
    return made


def prompts_for(made: Route, value: Any, prompt_name: str | None = None, mode: str = "offline") -> list[Prompt]:
    ctx = context(mode)
    return made.pre_process(ctx, made.parse_data(ctx, {"input": value, "prompt_name": prompt_name}))


def test_a_model_without_a_default_prompt_puts_none():
    assert prompts_for(route(), ["a", "b"]) == [TextPrompt("a"), TextPrompt("b")]


@given(texts=st.lists(st.text(), min_size=1))
@pytest.mark.parametrize("mode", ["offline", "online"])
def test_the_default_prompt_is_put_once_before_each_text(mode: str, texts: list[str]):
    assert prompts_for(route("passage"), texts, mode=mode) == [TextPrompt(text, "passage: ") for text in texts]


def test_a_named_prompt_takes_the_default_ones_place():
    assert prompts_for(route("passage"), "a", "query") == [TextPrompt("a", "query: ")]


def test_a_prompt_that_is_empty_on_purpose_is_a_prompt():
    made = route("passage", {"passage": "passage: ", "plain": ""})
    assert prompts_for(made, "a", "plain") == [TextPrompt("a")]


def test_token_ids_are_seen_by_the_model_as_they_are():
    value = [[5, 6], {"prompt_token_ids": [7]}, {"prompt": "a"}]
    assert prompts_for(route("query"), value) == [TokensPrompt((5, 6)), TokensPrompt((7,)), TextPrompt("a", "query: ")]


@pytest.mark.parametrize("name", ["qury", ""])
def test_an_unknown_prompt_name_is_the_callers_mistake_and_lists_the_models(name: str):
    with pytest.raises(InvalidRequest, match=f"prompt_name is '{name}'; this model's prompts are query, passage") as e:
        prompts_for(route(), "a", name)
    assert e.value.param == "prompt_name"


def test_a_prompt_name_for_a_model_without_prompts_says_none():
    with pytest.raises(InvalidRequest, match="this model's prompts are none"):
        prompts_for(route(prompts={}), "a", "query")


def test_an_empty_list_is_an_empty_list_offline():
    made, ctx = route("query"), context("offline")
    assert prompts_for(made, []) == []
    assert made.post_process(ctx, []) == []


def test_an_empty_list_is_refused_online():
    with pytest.raises(InvalidRequest, match=r"input is an empty list. Give at least one text") as caught:
        prompts_for(route(), [], mode="online")
    assert caught.value.param == "input"


@pytest.mark.parametrize(
    ("data", "param"),
    [
        ({"input": 3}, "input"),
        ({"input": ["a", None]}, "input"),
        ({}, "input"),
        ({"input": "a", "prompt_name": 7}, "prompt_name"),
        ({"input": "a", "normalize": True}, "normalize"),
        ("a", "data"),
    ],
    ids=repr,
)
def test_wrong_data_is_the_callers_mistake_with_its_field(data: Any, param: str):
    with pytest.raises(InvalidRequest) as caught:
        route().parse_data(context(), data)
    assert caught.value.param == param


def test_the_answer_is_one_output_for_each_prompt_with_its_ids_and_an_id_of_its_own():
    ctx = context(inputs=inputs_of([5], [6, 7]))
    outputs = [output_of(0.5), output_of(1.5)]
    answer = route().post_process(ctx, outputs)
    assert [item.outputs for item in answer] == outputs
    assert [list(item.prompt_token_ids) for item in answer] == [[5], [6, 7]]
    assert [item.request_id for item in answer] == [f"{ctx.request_id}-0", f"{ctx.request_id}-1"]
    assert all(item.finished for item in answer)
