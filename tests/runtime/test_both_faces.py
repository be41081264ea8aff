"""The one way of a request: the same answer offline and online, and nothing of one request in another."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fake_engine import UNLUCKY, FakeEngine, Journal, Serve, both_faces, run_online, runtime_of
from plugin_parts import Echo
from poolhook.errors import EngineError, InvalidRequest, PluginStageError
from poolhook.params import PoolingParams, TokenizationParams
from poolhook.plugins import DataRequest
from poolhook.runtime import OnlineRunner, Runtime, run_offline

prompts = st.one_of(
    st.text(alphabet="w123 ", min_size=1).filter(str.strip),
    st.lists(st.integers(0, 199).filter(lambda n: n != UNLUCKY), min_size=1, max_size=40),
)
requests = st.builds(
    DataRequest,
    data=st.lists(prompts, max_size=6),
    params=st.builds(PoolingParams, dimensions=st.none() | st.integers(1, 4)),
    tokenization=st.builds(TokenizationParams, truncate_prompt_tokens=st.sampled_from([None, -1, 5])),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(request=requests)
def test_offline_equals_online(tmp_path: Path, request: DataRequest):
    runtime = runtime_of(tmp_path, Echo())
    ends = []
    for serve in (run_offline, run_online):
        try:
            answer = serve(runtime, request)
            ends.append((answer.value, answer.prompt_tokens))
        except InvalidRequest as error:
            ends.append((str(error), error.param))
    assert ends[0] == ends[1]


@both_faces
def test_outputs_come_in_the_order_of_the_prompts(tmp_path: Path, serve: Serve):
    answer = serve(runtime_of(tmp_path, Echo()), DataRequest(data=["w1 w2", [9], [8, 8]]))
    assert answer.value == [[4, 16, 2, 0], [1, 9, 9, 0], [2, 16, 8, 0]]
    assert answer.prompt_tokens == 7


@both_faces
def test_each_prompt_gets_its_own_params(tmp_path: Path, serve: Serve):
    params = [PoolingParams(dimensions=1), PoolingParams(dimensions=3)]
    answer = serve(runtime_of(tmp_path, Echo()), DataRequest(data=[[5], [6]], params=params))
    assert [row[-1] for row in answer.value] == [1, 3]


@both_faces
def test_a_request_without_prompts_is_answered(tmp_path: Path, serve: Serve):
    assert serve(runtime_of(tmp_path, Echo()), DataRequest(data=[])).value == []


class Faces(Echo):
    """Says through which face a request came, at both ends."""

    def parse_data(self, ctx: Any, data: Any) -> Any:
        ctx.state = [ctx.mode, ctx.route, ctx.task]
        return data

    def pre_process_online(self, ctx: Any, request: Any) -> Any:
        ctx.state.append("pre online")
        return request

    def post_process_offline(self, ctx: Any, outputs: Any) -> Any:
        return [*ctx.state, "post offline"]

    def post_process_online(self, ctx: Any, outputs: Any) -> Any:
        return [*ctx.state, "post online"]


def test_each_face_calls_its_own_hooks(tmp_path: Path):
    runtime = runtime_of(tmp_path, Faces())
    assert run_offline(runtime, DataRequest(data=[5])).value == ["offline", "it", "embed", "post offline"]
    assert run_online(runtime, DataRequest(data=[5])).value == ["online", "it", "embed", "pre online", "post online"]


class Remembers(Journal, Echo):
    """Needs in its second half what it learned in its first."""

    def parse_data(self, ctx: Any, data: Any) -> Any:
        ctx.state = data["name"]
        return data["ids"]

    def post_process(self, ctx: Any, outputs: Any) -> Any:
        return ctx.state, ctx.request_id, [output.data.tolist()[2] for output in outputs]


def interleaved(serve_all: Callable[[Runtime, list[DataRequest]], list[Any]], tmp_path: Path) -> None:
    engine, processor = FakeEngine(hold=True), Remembers()
    runtime = runtime_of(tmp_path, processor, engine=engine)
    asked = [DataRequest(data={"name": f"n{n}", "ids": [[100 + n], [150 + n % 7]]}) for n in range(32)]

    def release() -> None:
        engine.wait_for(64)
        engine.release(random.Random(0).shuffle)

    releasing = threading.Thread(target=release)
    releasing.start()
    answers = serve_all(runtime, asked)
    releasing.join()
    assert [(name, ids) for name, _, ids in answers] == [(f"n{n}", [100 + n, 150 + n % 7]) for n in range(32)]
    assert len({request_id for _, request_id, _ in answers}) == 32
    assert processor.entries == ["on_finish"] * 32


def test_32_interleaved_requests_keep_their_state_offline(tmp_path: Path):
    def serve_all(runtime: Runtime, asked: list[DataRequest]) -> list[Any]:
        with ThreadPoolExecutor(32) as threads:
            return list(threads.map(lambda request: run_offline(runtime, request).value, asked))

    interleaved(serve_all, tmp_path)


def test_32_interleaved_requests_keep_their_state_online(tmp_path: Path):
    def serve_all(runtime: Runtime, asked: list[DataRequest]) -> list[Any]:
        async def main() -> list[Any]:
            return await asyncio.gather(*(runner.run(request, lambda _, answer: answer.value) for request in asked))

        runner = OnlineRunner(runtime)
        try:
            return asyncio.run(main())
        finally:
            runner.close()

    interleaved(serve_all, tmp_path)


class Fails(Remembers):
    def __init__(self, stage: str) -> None:
        super().__init__()
        self.stage = stage

    def pre_process(self, ctx: Any, request: Any) -> Any:
        if self.stage == "pre_process":
            raise RuntimeError("no")
        return request

    def post_process(self, ctx: Any, outputs: Any) -> Any:
        raise RuntimeError("no")


@both_faces
def test_a_failing_engine_is_told_and_then_the_end(tmp_path: Path, serve: Serve):
    engine, processor = FakeEngine(), Remembers()
    with pytest.raises(EngineError, match="unlucky"):
        serve(runtime_of(tmp_path, processor, engine=engine), DataRequest(data={"name": "", "ids": [[1], [UNLUCKY]]}))
    assert processor.entries == [("on_error", "engine", "EngineError"), "on_finish"]


@both_faces
@pytest.mark.parametrize("stage", ["pre_process", "post_process"])
def test_a_failing_hook_is_told_and_then_the_end(tmp_path: Path, serve: Serve, stage: str):
    processor = Fails(stage)
    with pytest.raises(PluginStageError):
        serve(runtime_of(tmp_path, processor), DataRequest(data={"name": "", "ids": [1]}))
    face = "offline" if serve is run_offline else "online"
    assert processor.entries == [("on_error", f"{stage}_{face}", "PluginStageError"), "on_finish"]


@both_faces
def test_an_over_long_prompt_fails_in_render_before_the_engine(tmp_path: Path, serve: Serve):
    engine, processor = FakeEngine(), Remembers()
    with pytest.raises(InvalidRequest, match="has 33 tokens"):
        serve(runtime_of(tmp_path, processor, engine=engine), DataRequest(data={"name": "", "ids": [1] * 33}))
    assert processor.entries == [("on_error", "render", "InvalidRequest"), "on_finish"]
    assert engine.submitted == []


@both_faces
def test_a_request_that_no_route_serves_reaches_no_plugin(tmp_path: Path, serve: Serve):
    processor = Remembers()
    with pytest.raises(InvalidRequest, match="is not served here"):
        serve(runtime_of(tmp_path, processor), DataRequest(data=1, plugin="other"))
    assert processor.entries == []
