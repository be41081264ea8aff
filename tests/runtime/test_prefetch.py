"""`prefetch_online` fetches on the event loop, and all of a request's hooks share one `contextvars` context."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fake_engine import Journal, runtime_of
from plugin_parts import Echo
from poolhook.errors import InvalidRequest, PluginContractError, PluginStageError
from poolhook.plugins import DataRequest
from poolhook.runtime import OnlineRunner, run_offline

VARIABLE: ContextVar[str] = ContextVar("VARIABLE", default="nobody's")


class Fetches(Journal, Echo):
    """Gets token ids from elsewhere: its data says after how many turns of the loop each arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: dict[str, int] = {}
        self.ended: list[str] = []

    def parse_data(self, ctx: Any, data: Any) -> Any:
        self.threads["parse_data"] = threading.get_ident()
        return data

    def prefetch_online(self, request: Any) -> Any:
        self.threads["prefetch_online"] = threading.get_ident()
        return [self.fetch(item) for item in request]

    def pre_process(self, ctx: Any, request: Any) -> Any:
        ctx.state = list(ctx.fetched)
        return [[20 + n] for n in ctx.fetched]

    def post_process(self, ctx: Any, outputs: Any) -> Any:
        return ctx.state

    async def fetch(self, item: Any) -> int:
        try:
            if isinstance(item, Exception):
                await asyncio.sleep(0)
                raise item
            for _ in range(item):
                await asyncio.sleep(0)
            return int(item)
        finally:
            self.ended.append("fetch")


def serve(directory: Path, processor: Any, *data: Any) -> list[Any]:
    """Answers to requests that are served at the same time."""

    async def main() -> list[Any]:
        asked = (runner.run(DataRequest(data=item), lambda _, answer: answer.value) for item in data)
        return await asyncio.gather(*asked)

    runner = OnlineRunner(runtime_of(directory, processor), threads=2)
    try:
        return asyncio.run(main())
    finally:
        runner.close()


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(delays=st.lists(st.integers(0, 20), max_size=6))
def test_results_reach_the_context_in_the_order_of_the_awaitables(tmp_path: Path, delays: list[int]):
    assert serve(tmp_path, Fetches(), delays) == [delays]


def test_it_alone_runs_on_the_event_loop(tmp_path: Path):
    processor = Fetches()
    serve(tmp_path, processor, [1])
    assert processor.threads["prefetch_online"] == threading.get_ident()
    assert processor.threads["parse_data"] != threading.get_ident()


def test_offline_nothing_is_prefetched(tmp_path: Path):
    processor = Fetches()
    assert run_offline(runtime_of(tmp_path, processor), DataRequest(data=[1])).value == []
    assert "prefetch_online" not in processor.threads


def test_a_fetch_that_fails_names_the_plugin_and_stops_the_others(tmp_path: Path):
    processor = Fetches()
    with pytest.raises(PluginStageError, match=r"'fetches'.* failed in prefetch_online: ConnectionError: away"):
        serve(tmp_path, processor, [10**9, ConnectionError("away")])
    assert processor.ended == ["fetch", "fetch"]
    assert processor.entries == [("on_error", "prefetch_online", "PluginStageError"), "on_finish"]


def test_a_fetch_that_finds_the_client_at_fault_says_so(tmp_path: Path):
    with pytest.raises(InvalidRequest, match="no such page"):
        serve(tmp_path, Fetches(), [InvalidRequest("no such page", param="url")])


def test_a_caller_who_leaves_stops_the_fetches(tmp_path: Path):
    processor = Fetches()
    runner = OnlineRunner(runtime_of(tmp_path, processor))

    async def main() -> None:
        task = asyncio.ensure_future(runner.run(DataRequest(data=[10**9]), lambda _, answer: answer))
        while "prefetch_online" not in processor.threads:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    runner.close()
    assert processor.ended == ["fetch"]
    assert processor.entries == [("on_error", "prefetch_online", "CancelledError"), "on_finish"]


def test_what_can_not_be_awaited_is_the_plugins_fault(tmp_path: Path):
    class Forgets(Fetches):
        def prefetch_online(self) -> Any:
            return None

    with pytest.raises(PluginContractError, match="prefetch_online must return a list of awaitables, not NoneType"):
        serve(tmp_path, Forgets(), [1])


class Carries(Echo):
    """Sets a context variable in its first hook and looks at it in all the others."""

    def parse_data(self, ctx: Any, data: Any) -> Any:
        ctx.state = [VARIABLE.get()]
        VARIABLE.set(data)
        return data

    def prefetch_online(self, ctx: Any, request: Any) -> Any:
        ctx.state.append(VARIABLE.get())
        return [self.look()]

    async def look(self) -> str:
        await asyncio.sleep(0)
        return VARIABLE.get()

    def pre_process(self, ctx: Any, request: Any) -> Any:
        ctx.state += [VARIABLE.get(), *ctx.fetched]
        return [[5]]

    def post_process(self, ctx: Any, outputs: Any) -> Any:
        return [*ctx.state, VARIABLE.get()]


def test_every_hook_of_a_request_sees_what_an_earlier_one_set_and_no_other_request_does(tmp_path: Path):
    token = VARIABLE.set("the caller's")
    names = [f"r{n}" for n in range(16)]
    assert serve(tmp_path, Carries(), *names) == [["the caller's", name, name, name, name] for name in names]
    assert VARIABLE.get() == "the caller's"
    VARIABLE.reset(token)
