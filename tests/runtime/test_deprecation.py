"""Several tasks of one model: the warning for those that were not chosen, and who does not get it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from distributions import Site
from poolhook import LLM
from poolhook.config import EngineConfig
from poolhook.errors import InvalidRequest
from poolhook.plugins import DataRequest, PromptsRequest, RouteRequest
from poolhook.runtime import Runtime, RuntimeConfig, build_runtime, run_offline
from served import Models

LOGGER = "poolhook.runtime.processors"


def warning(task: str, served: str = "embed") -> str:
    return (
        f"Task '{task}' is supported, but '{served}' is the one that is served. Several tasks of one model are "
        f"deprecated and will be removed in 0.20: choose when starting, with PoolerConfig(task='{task}') or "
        f"--pooler-config.task {task}."
    )


Load = Callable[..., Runtime]


@pytest.fixture
def load(models: Models, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Load:
    """`load("embedder")`: a model that nobody has asked for anything yet."""

    def load(name: str, **options: Any) -> Runtime:
        config = RuntimeConfig(model=str(models.path(name)), engine_config=EngineConfig(device="cpu"), **options)
        runtime = build_runtime(config)
        request.addfinalizer(runtime.close)
        caplog.clear()
        return runtime

    return load


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    assert {record.name for record in caplog.records if record.levelno >= logging.WARNING} <= {LOGGER}
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_a_task_that_was_not_chosen_is_warned_about_once_for_each_model(load: Load, caplog: pytest.LogCaptureFixture):
    request = PromptsRequest(prompts=[[5, 6]], task="token_embed")
    first, second = load("embedder"), load("embedder")
    for runtime in (first, first, second, first):
        assert len(run_offline(runtime, request).value) == 1
    assert warnings(caplog) == [warning("token_embed")] * 2


def test_each_task_has_its_own_warning(load: Load, caplog: pytest.LogCaptureFixture):
    runtime = load("bge-m3")
    for task in ("token_classify", "embed", "plugin", "token_embed", "plugin"):
        run_offline(runtime, PromptsRequest(prompts=[[5, 6]], task=task))
    assert warnings(caplog) == [warning("token_classify"), warning("plugin"), warning("token_embed")]


def test_the_chosen_task_is_none_that_was_not_chosen(load: Load, caplog: pytest.LogCaptureFixture):
    from poolhook import PoolerConfig

    runtime = load("embedder", pooler_config=PoolerConfig(task="token_embed"))
    for task in (None, "token_embed"):
        run_offline(runtime, PromptsRequest(prompts=[[5, 6]], task=task))
    assert warnings(caplog) == []
    run_offline(runtime, PromptsRequest(prompts=[[5, 6]], task="embed"))
    assert warnings(caplog) == [warning("embed", served="token_embed")]


@pytest.mark.parametrize("name", ["embedder", "reranker", "colbert"])
def test_scoring_and_rewards_are_no_tasks_of_their_own(load: Load, caplog: pytest.LogCaptureFixture, name: str):
    runtime = load(name)
    run_offline(runtime, RouteRequest(route="score", data={"queries": "w1", "documents": ["w2"]}))
    run_offline(runtime, RouteRequest(route="rerank", data={"query": "w1", "documents": ["w2"]}))
    if name == "reranker":
        run_offline(runtime, RouteRequest(route="reward", data={"input": "w1"}))
    assert warnings(caplog) == []


def test_the_data_of_a_chosen_io_processor_is_not_warned_about_nor_is_what_is_refused(
    site: Site, load: Load, caplog: pytest.LogCaptureFixture
):
    source = "from plugin_parts import Echo"
    site.add("acme", io_processors={"echo": "acme_echo:Echo"}, modules={"acme_echo": source})
    runtime = load("embedder", io_processor_plugins=["echo"])
    run_offline(runtime, DataRequest(data=[[5, 6]]))
    run_offline(runtime, DataRequest(data=[[5, 6]], task="plugin"))
    for request in (DataRequest(data=1, task="embed"), PromptsRequest(prompts="w1", task="plugin")):
        with pytest.raises(InvalidRequest):
            run_offline(runtime, request)
    assert warnings(caplog) == []


def test_both_faces_warn(models: Models, caplog: pytest.LogCaptureFixture):
    # Loaded by this test alone: the warning comes once.
    served = models("embedder", use_activation=False)
    served.llm.encode("w1", pooling_task="token_embed")
    served.post("/pooling", input="w1", task="token_embed")
    assert warnings(caplog) == [warning("token_embed")] * 2


def test_embedding_with_a_model_that_serves_another_task_warns(models: Models, caplog: pytest.LogCaptureFixture):
    with LLM(str(models.path("embedder")), device="cpu", pooler_config={"task": "token_embed"}) as llm:
        caplog.clear()
        llm.embed("w1")
    assert warnings(caplog) == [warning("embed", served="token_embed")]
