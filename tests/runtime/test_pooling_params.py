"""What a caller asks of pooling reaches an IO processor, and the engine, the same through both faces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from distributions import Site
from fake_engine import FakeEngine, Serve, both_faces, runtime_of
from plugin_parts import Echo
from poolhook import LLM, PoolingParams
from poolhook.config import EngineConfig
from poolhook.errors import InvalidRequest, PluginContractError
from poolhook.plugins import DataRequest
from poolhook.runtime import RuntimeConfig, build_runtime
from poolhook.serving.app import build_app
from served import Models

ONE = PoolingParams(dimensions=3, use_activation=False)
EACH = [PoolingParams(dimensions=1), PoolingParams(use_activation=True), PoolingParams(task="token_embed")]


class Sees(Echo):
    """Writes down the params of each request, as its hooks see them."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def parse_data(self, ctx: Any, data: Any) -> Any:
        self.seen.append(ctx.params)
        return data

    def merge_pooling_params(self, ctx: Any, prompts: Any, params: Any) -> Any:
        self.seen.append(params)
        return super().merge_pooling_params(ctx, prompts, params)


@both_faces
@pytest.mark.parametrize("params", [ONE, EACH], ids=["one", "one for each"])
def test_a_processor_sees_what_the_caller_gave(tmp_path: Path, serve: Serve, params: Any):
    processor = Sees()
    serve(runtime_of(tmp_path, processor), DataRequest(data=[[5], [6], [7]], params=params))
    assert processor.seen == [params, params]


@both_faces
def test_one_for_all_reaches_the_engine_with_each_prompt_and_the_routes_task(tmp_path: Path, serve: Serve):
    engine = FakeEngine()
    serve(runtime_of(tmp_path, Sees(), engine=engine), DataRequest(data=[[5], [6]], params=ONE))
    assert [item.params for item in engine.submitted] == [
        PoolingParams(task="embed", dimensions=3, use_activation=False)
    ] * 2


@both_faces
def test_one_for_each_reaches_the_engine_with_its_own_prompt_and_keeps_the_task_that_it_names(
    tmp_path: Path, serve: Serve
):
    engine = FakeEngine()
    serve(runtime_of(tmp_path, Sees(), engine=engine), DataRequest(data=[[5], [6], [7]], params=EACH))
    assert [(item.token_ids[0], item.params) for item in engine.submitted] == [
        (5, PoolingParams(task="embed", dimensions=1)),
        (6, PoolingParams(task="embed", use_activation=True)),
        (7, PoolingParams(task="token_embed")),
    ]


@both_faces
@pytest.mark.parametrize("count", [1, 3])
def test_another_number_of_them_than_of_prompts_is_the_callers_mistake(tmp_path: Path, serve: Serve, count: int):
    with pytest.raises(InvalidRequest) as caught:
        serve(runtime_of(tmp_path, Sees()), DataRequest(data=[[5], [6]], params=[ONE] * count))
    assert str(caught.value) == (f"pooling_params has {count} entries for 2 prompts. Give one, or one for each.")
    assert caught.value.param == "pooling_params"


class Decides(Echo):
    """Pools its prompts in ways of its own, whatever the caller gave."""

    def merge_pooling_params(self, prompts: Any, params: Any) -> Any:
        return [params.model_copy(update={"dimensions": 1 + index}) for index in range(len(prompts))]


@both_faces
def test_a_processor_may_pool_each_prompt_in_a_way_of_its_own(tmp_path: Path, serve: Serve):
    answer = serve(runtime_of(tmp_path, Decides()), DataRequest(data=[[5], [6], [7]], params=ONE))
    assert [row[-1] for row in answer.value] == [1, 2, 3]


class Miscounts(Echo):
    def merge_pooling_params(self, params: Any) -> Any:
        return [params]


@both_faces
def test_a_processor_that_returns_another_number_of_them_breaks_the_contract(tmp_path: Path, serve: Serve):
    with pytest.raises(PluginContractError, match="merge_pooling_params returned 1 PoolingParams for 2 prompts"):
        serve(runtime_of(tmp_path, Miscounts()), DataRequest(data=[[5], [6]]))


def test_an_io_processors_request_is_pooled_as_asked_by_llm_and_over_http(site: Site, models: Models):
    site.add("acme", io_processors={"echo": "acme_echo:Echo"}, modules={"acme_echo": "from plugin_parts import Echo"})
    model = str(models.path("embedder"))
    config = RuntimeConfig(model=model, engine_config=EngineConfig(device="cpu"), io_processor_plugins=["echo"])
    with (
        LLM(model, device="cpu", io_processor_plugin="echo") as llm,
        TestClient(build_app(build_runtime(config))) as http,
    ):
        for fields in ({}, {"dimensions": 8}, {"use_activation": False}, {"dimensions": 16, "use_activation": False}):
            (offline,) = llm.encode({"data": ["w1", [5, 6]]}, pooling_params=PoolingParams(**fields))
            online = http.post("/pooling", json={"data": ["w1", [5, 6]], **fields}).json()["data"]
            np.testing.assert_allclose(offline.outputs, online, atol=1e-6)
            assert len(online[0]) == fields.get("dimensions", 32)
            is_unit = np.linalg.norm(online[0]) == pytest.approx(1, abs=1e-5)
            assert is_unit == fields.get("use_activation", True)
        each = [PoolingParams(dimensions=8), PoolingParams(task="token_embed")]
        (offline,) = llm.encode({"data": ["w1", "w2 w3"]}, pooling_params=each)
        assert [np.shape(answer) for answer in offline.outputs] == [(8,), (4, 32)]
