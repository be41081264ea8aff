"""Built-in `plugin`: prompts go to the model as they are, raw pooled data comes back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plugin_parts import MODEL_INFO, context, inputs_of, output_of, route_of
from poolhook.errors import InvalidRequest
from poolhook.plugins import Route, TextPrompt, TokensPrompt
from poolhook_builtin.passthrough import PassthroughIOProcessor


def route() -> Route:
    made = route_of(PassthroughIOProcessor())
    made.processor.startup(replace(MODEL_INFO, default_prompt_name="query"))
    return made


def test_prompts_pass_as_they_are_even_where_the_model_has_a_default_prompt():
    made, ctx = route(), context()
    request = made.parse_data(ctx, {"input": ["a", [5, 6]], "prompt_name": None})
    assert made.pre_process(ctx, request) == [TextPrompt("a"), TokensPrompt((5, 6))]


def test_a_prompt_name_is_refused_instead_of_ignored():
    with pytest.raises(InvalidRequest, match="passes prompts through as they are") as caught:
        route().parse_data(context(), {"input": "a", "prompt_name": "query"})
    assert caught.value.param == "prompt_name"


def test_the_pooled_data_of_each_prompt_comes_back():
    ctx = context(inputs=inputs_of([5], [6]))
    outputs = [output_of(1, 2), output_of(3)]
    assert [item.outputs for item in route().post_process(ctx, outputs)] == outputs


def test_an_empty_list_is_refused_online_and_empty_offline():
    made = route()
    assert made.parse_data(context("offline"), {"input": []}).prompts == []
    with pytest.raises(InvalidRequest, match="input is an empty list"):
        made.parse_data(context("online"), {"input": []})
