"""Tasks that are not served: each message for its whole text, the same offline and online."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from poolhook import LLM, PoolingParams
from poolhook.errors import ConfigError
from served import Models, Refusal, refusal
from task_advice import ADVICE, EVERY_TASK

REFUSED = {
    **ADVICE,
    "classify": "Task 'classify' is not supported.",
    "plugin": "Task 'plugin' is not supported.",
    "Embed": "Task 'Embed' is not supported.",
    "": "Task '' is not supported.",
    "x" * 101: "Task of str is not supported.",
}
SUPPORTED = {
    "embedder": "Supported tasks: embed, token_embed.",
    "classifier": "Supported tasks: classify.",
    "tagger": "Supported tasks: token_classify.",
    "colbert": "Supported tasks: token_embed.",
    "bge-m3": "Supported tasks: embed, token_embed, token_classify, plugin.",
}
TASKS: dict[str, list[str]] = {
    "embedder": ["embed", "token_embed"],
    "classifier": ["classify"],
    "tagger": ["token_classify"],
    "colbert": ["token_embed"],
    "bge-m3": ["embed", "token_embed", "token_classify", "plugin"],
}


@pytest.mark.parametrize("task", REFUSED, ids=lambda task: task[:12] or "empty")
def test_a_task_that_is_not_served_is_refused_by_both_faces_with_all_that_are(models: Models, task: str):
    embedder = models("embedder")
    wanted: Refusal = (f"{REFUSED[task]} {SUPPORTED['embedder']}", "task")
    assert refusal(lambda: embedder.llm.encode("w1", pooling_task=task)) == wanted
    assert embedder.refused("/pooling", input="w1", task=task) == wanted


@pytest.mark.parametrize("name", TASKS)
def test_each_kind_of_model_supports_its_tasks_in_a_stable_order_and_answers_them(models: Models, name: str):
    served = models(name)
    assert list(served.llm.supported_tasks) == TASKS[name]
    wanted = (f"{ADVICE['score']} {SUPPORTED[name]}", "task")
    assert refusal(lambda: served.llm.encode("w1", pooling_task="score")) == wanted
    assert served.refused("/pooling", input="w1", task="score") == wanted
    for task in TASKS[name]:
        (offline,) = served.llm.encode([[5, 6, 7]], pooling_task=task)
        (online,) = served.post("/pooling", input=[[5, 6, 7]], task=task)["data"]
        np.testing.assert_allclose(offline.outputs.data, online["data"], atol=1e-6)


@pytest.mark.parametrize("task", [["embed"], {}, 7], ids=repr)
def test_a_task_that_is_no_name_is_refused(models: Models, task: Any):
    wanted = (f"Task of {type(task).__name__} is not supported. {SUPPORTED['embedder']}", "task")
    assert refusal(lambda: models("embedder").llm.encode("w1", pooling_task=task)) == wanted
    message, param = models("embedder").refused("/pooling", input="w1", task=task)
    assert (message, param) == ("The request is invalid: task: Input should be a valid string", "task")


SCORE = {"queries": "w1", "documents": "w2"}
RERANK = {"query": "w1", "documents": ["w2"]}
NO_SCORES: Refusal = (
    "This model can't score texts: that needs task 'embed', 'classify', 'token_embed'; this model supports "
    "token_classify.",
    "model",
)
SEVERAL_LABELS: Refusal = (
    "This model has 3 labels (LABEL_0, LABEL_1, LABEL_2), and a score is one number: scoring needs a cross-encoder "
    "with one label. Ask for task 'classify' instead.",
    "model",
)
TYPED: list[tuple[str, Callable[[LLM], Any], str, dict[str, Any], Refusal]] = [
    # model, what is asked offline, and online, why it is refused
    (
        "embedder",
        lambda llm: llm.classify("w1"),
        "/classify",
        {"input": "w1"},
        (f"Task 'classify' is not supported. {SUPPORTED['embedder']}", "task"),
    ),
    (
        "classifier",
        lambda llm: llm.embed("w1"),
        "/v1/embeddings",
        {"input": "w1"},
        (f"Task 'embed' is not supported. {SUPPORTED['classifier']}", "task"),
    ),
    ("tagger", lambda llm: llm.score("w1", "w2"), "/score", SCORE, NO_SCORES),
    ("tagger", lambda llm: llm.rerank("w1", ["w2"]), "/rerank", RERANK, NO_SCORES),
    ("classifier", lambda llm: llm.score("w1", "w2"), "/score", SCORE, SEVERAL_LABELS),
    ("classifier", lambda llm: llm.rerank("w1", ["w2"]), "/rerank", RERANK, SEVERAL_LABELS),
    (
        "classifier",
        lambda llm: llm.encode("w1", pooling_params=PoolingParams(dimensions=8)),
        "/pooling",
        {"input": "w1", "dimensions": 8},
        ("dimensions is for tasks embed and token_embed, not classify.", "dimensions"),
    ),
    (
        "tagger",
        lambda llm: llm.encode("w1", pooling_params=PoolingParams(dimensions=8)),
        "/pooling",
        {"input": "w1", "dimensions": 8},
        ("dimensions is for tasks embed and token_embed, not token_classify.", "dimensions"),
    ),
    (
        "embedder",
        lambda llm: llm.embed("w1", pooling_params=PoolingParams(dimensions=9)),
        "/v1/embeddings",
        {"input": "w1", "dimensions": 9},
        ("dimensions is 9, but this model's can be cut to 8, 16. Leave dimensions out.", "dimensions"),
    ),
]


@pytest.mark.parametrize(("name", "call", "path", "body", "wanted"), TYPED, ids=[f"{t[0]} {t[2]}" for t in TYPED])
def test_what_a_model_can_not_do_is_refused_alike_by_both_faces(
    models: Models, name: str, call: Callable[[LLM], Any], path: str, body: dict[str, Any], wanted: Refusal
):
    served = models(name)
    assert refusal(lambda: call(served.llm)) == wanted
    assert served.refused(path, **body) == wanted


@pytest.mark.parametrize("name", ["embedder", "classifier", "colbert"])
def test_rewards_need_a_model_that_gives_them(models: Models, name: str):
    supported = SUPPORTED[name].removeprefix("Supported tasks: ")
    assert refusal(lambda: models(name).llm.reward("w1")) == (
        "This model gives no rewards: that needs task 'token_classify', or 'classify' with one label; this model "
        f"supports {supported}",
        "model",
    )


def test_params_for_another_task_than_the_requests_are_refused_with_the_way_to_ask(models: Models):
    llm, params = models("embedder").llm, PoolingParams(task="token_embed")
    wanted = (
        "pooling_params are for task 'token_embed', but the request is for task 'embed'. Leave the task out of them, "
        "or ask for it with LLM.encode(pooling_task='token_embed').",
        "pooling_params",
    )
    assert refusal(lambda: llm.embed("w1", pooling_params=params)) == wanted
    assert refusal(lambda: llm.embed(["w1", "w2"], pooling_params=[PoolingParams(), params])) == wanted
    assert refusal(lambda: llm.score("w1", "w2", pooling_params=params)) == wanted
    assert llm.encode("w1", pooling_task="token_embed", pooling_params=params)[0].outputs.data.shape == (3, 32)


def test_params_for_a_task_that_is_not_served_are_refused_with_all_that_are(models: Models):
    wanted = (f"Task 'classify' is not supported. {SUPPORTED['embedder']}", "task")
    params = PoolingParams(task="classify")
    assert refusal(lambda: models("embedder").llm.embed("w1", pooling_params=params)) == wanted
    assert refusal(lambda: models("embedder").llm.score("w1", "w2", pooling_params=params)) == wanted


def test_the_name_of_a_prompt_with_an_io_processors_data_is_refused_instead_of_ignored(models: Models):
    served = models("embedder")
    assert refusal(lambda: served.llm.encode({"data": 1}, prompt_name="query")) == (
        "prompt_name goes with prompts; an IO processor's data has none.",
        "prompt_name",
    )
    message, _ = served.refused("/pooling", data=1, prompt_name="query")
    assert message == ("The request is invalid: `prompt_name` goes with `input`; an IO processor's data has none")


FIELDS = (
    "PoolerConfig takes task, pooling_type, use_activation, dimensions, enable_chunked_processing, max_embed_len, "
    "logit_mean, logit_sigma, step_tag_id, returned_token_ids."
)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"task": "classify"}, f"BertModel: Task 'classify' is not supported. {SUPPORTED['embedder']}"),
        ({"task": "plugin"}, f"BertModel: Task 'plugin' is not supported. {SUPPORTED['embedder']}"),
        ({"task": "score"}, f"task: {ADVICE['score']} {EVERY_TASK} {FIELDS}"),
        ({"task": "normalize"}, f"task: {ADVICE['normalize']} {EVERY_TASK} {FIELDS}"),
        ({"task": "nonsense"}, f"task: Task 'nonsense' is not supported. {EVERY_TASK} {FIELDS}"),
        ({"task": ["embed"]}, f"task: Task of list is not supported. {EVERY_TASK} {FIELDS}"),
    ],
    ids=str,
)
def test_a_configured_task_that_can_not_be_served_is_refused_before_anything_is_loaded(
    models: Models, config: dict[str, Any], says: str
):
    before = threading.active_count()
    with pytest.raises(ConfigError) as caught:
        LLM(str(models.path("embedder")), pooler_config=config)
    assert str(caught.value) == says
    assert threading.active_count() == before


@pytest.mark.parametrize(("name", "task"), [("embedder", "token_embed"), ("bge-m3", "plugin")])
def test_a_configured_task_is_the_one_that_is_served(models: Models, name: str, task: str):
    served = models(name, task=task)
    (unnamed,) = served.llm.encode("w1 w2")
    (named,) = models(name).llm.encode("w1 w2", pooling_task=task)
    (online,) = served.post("/pooling", input="w1 w2")["data"]
    np.testing.assert_allclose(unnamed.outputs.data, named.outputs.data, atol=1e-6)
    np.testing.assert_allclose(online["data"], named.outputs.data, atol=1e-6)
