"""Built-in `token_embed`, `classify`, `token_classify` and `reward`: whose prompts have a role or a prompt name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plugin_parts import MODEL_INFO, context, inputs_of, output_of, route_of
from poolhook.errors import InvalidRequest
from poolhook.params import PoolingParams
from poolhook.plugins import ChatPrompt, PairPrompt, Prompt, RequestContext, Route, TextPrompt, TokensPrompt
from poolhook_builtin.classify import ClassifyIOProcessor
from poolhook_builtin.embed import EmbedIOProcessor
from poolhook_builtin.reward import RewardIOProcessor
from poolhook_builtin.token_classify import TokenClassifyIOProcessor
from poolhook_builtin.token_embed import TokenEmbedIOProcessor

PASS_PROMPTS_ON = [ClassifyIOProcessor, TokenClassifyIOProcessor, RewardIOProcessor]
EMBED = [EmbedIOProcessor, TokenEmbedIOProcessor]
FORMS: list[Any] = ["a", [5, 6], {"text": "a", "text_pair": "b"}, {"messages": [{"role": "user", "content": "a"}]}]
PLAIN = [
    TextPrompt("a"),
    TokensPrompt((5, 6)),
    PairPrompt("a", "b"),
    ChatPrompt(({"role": "user", "content": "a"},)),
]

WITH_PROMPT = [TextPrompt("a", "query: "), PLAIN[1], PairPrompt("a", "b", "query: "), PLAIN[3]]


def route(processor: Any, **model: Any) -> Route:
    made = route_of(processor())
    made.processor.startup(replace(MODEL_INFO, **model))
    return made


def prompts_for(made: Route, value: Any, prompt_name: str | None = None) -> list[Prompt]:
    ctx = context()
    return made.pre_process(ctx, made.parse_data(ctx, {"input": value, "prompt_name": prompt_name}))


@pytest.mark.parametrize("processor", PASS_PROMPTS_ON)
def test_labels_are_of_prompts_as_they_are_but_for_a_classifiers_own_prompt(processor: Any):
    own = WITH_PROMPT if processor is ClassifyIOProcessor else PLAIN
    assert prompts_for(route(processor, default_prompt_name="query"), FORMS) == own
    assert prompts_for(route(processor), FORMS) == PLAIN
    with pytest.raises(InvalidRequest, match="prompt_name is not for task 'embed', which passes prompts") as caught:
        prompts_for(route(processor), "a", "query")
    assert caught.value.param == "prompt_name"


@pytest.mark.parametrize("processor", EMBED)
def test_only_texts_get_the_models_prompt(processor: Any):
    assert prompts_for(route(processor), FORMS, "query") == WITH_PROMPT
    assert prompts_for(route(processor, default_prompt_name="query"), FORMS) == WITH_PROMPT


@pytest.mark.parametrize("role", ["query", "document"])
def test_a_late_interaction_models_prompt_names_are_roles_of_texts_and_ids(role: Any):
    made = route(TokenEmbedIOProcessor, has_roles=True)
    assert prompts_for(made, FORMS, role) == [TextPrompt("a", role=role), TokensPrompt((5, 6), role), *PLAIN[2:]]
    assert prompts_for(made, FORMS) == PLAIN


@pytest.mark.parametrize("name", ["passage", "", "x" * 10**5])
def test_another_name_than_a_role_is_refused_with_the_roles(name: str):
    with pytest.raises(InvalidRequest, match=r"this late-interaction model's are query, document\.$") as caught:
        prompts_for(route(TokenEmbedIOProcessor, has_roles=True), "a", name)
    assert caught.value.param == "prompt_name"
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("processor", [*PASS_PROMPTS_ON, *EMBED])
def test_each_prompt_has_its_output_ids_and_id_whatever_was_asked(processor: Any):
    ctx = context(inputs=inputs_of([5], [6, 7]))
    outputs = [output_of(0.5), output_of(1.5)]
    answer = route(processor).post_process(ctx, outputs)
    assert [item.outputs for item in answer] == outputs
    assert [(item.request_id, list(item.prompt_token_ids)) for item in answer] == [
        (f"{ctx.request_id}-0", [5]),
        (f"{ctx.request_id}-1", [6, 7]),
    ]


@pytest.mark.parametrize("processor", [*PASS_PROMPTS_ON, *EMBED])
@pytest.mark.parametrize("is_list", [False, True])
def test_params_are_for_the_task_of_the_route(processor: Any, is_list: bool):
    def merged(task: Any) -> list[PoolingParams]:
        params = PoolingParams(task=task)
        ctx: RequestContext = context(params=[params] if is_list else params)
        return made.merge_pooling_params(ctx, made.pre_process(ctx, made.parse_data(ctx, {"input": "a"})))

    made = route(processor, supported_tasks=("embed", "token_embed"))
    assert merged(None) == merged("embed") == [PoolingParams(task="embed")]
    assert merged("classify") == [PoolingParams(task="classify")]  # for the engine, which lists what is supported
    with pytest.raises(InvalidRequest, match="pooling_params are for task 'token_embed', but the request is") as caught:
        merged("token_embed")
    assert caught.value.param == "pooling_params"
