"""A request that is over leaves nothing behind: memory stays flat."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_engine import UNLUCKY, Serve, runtime_of
from plugin_parts import Echo
from poolhook.errors import EngineError, InvalidRequest
from poolhook.plugins import DataRequest
from poolhook.runtime import OnlineRunner, Runtime, run_offline


class Watched(Echo):
    """Keeps weak references to the contexts that it met."""

    def __init__(self) -> None:
        self.met: list[weakref.ref[Any]] = []

    def parse_data(self, ctx: Any, data: Any) -> Any:
        self.met.append(weakref.ref(ctx))
        if data == "bad":
            raise InvalidRequest("bad")
        return data


@pytest.fixture
def _no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def met_by(tmp_path: Path, serve: Serve, data: Any) -> list[weakref.ref[Any]]:
    """Weak references to the contexts of a request for `data`, which is over."""
    processor = Watched()
    with contextlib.suppress(InvalidRequest, EngineError):
        serve(runtime_of(tmp_path, processor), DataRequest(data=data))
    assert len(processor.met) == 1
    return processor.met


def run_online_in_a_loop_that_goes_on(runtime: Runtime, request: DataRequest) -> None:
    # As under a server: `asyncio.run` itself would keep the error of what it ran.
    async def main() -> None:
        with contextlib.suppress(InvalidRequest, EngineError):
            await runner.run(request, lambda _, answer: answer)

    runner = OnlineRunner(runtime, threads=2)
    asyncio.run(main())
    runner.close()


both_ways = pytest.mark.parametrize(
    "serve", [run_offline, run_online_in_a_loop_that_goes_on], ids=["offline", "online"]
)


@pytest.mark.usefixtures("_no_collector")
@both_ways
@pytest.mark.parametrize("data", [[[5], [6]], [[5], [UNLUCKY]]], ids=["answered", "engine failed"])
def test_nothing_of_a_request_is_left_behind_not_even_until_a_collection(tmp_path: Path, serve: Serve, data: Any):
    assert [reference() for reference in met_by(tmp_path, serve, data)] == [None]


@both_ways
def test_nothing_of_a_refused_request_is_left_behind(tmp_path: Path, serve: Serve):
    met = met_by(tmp_path, serve, "bad")
    gc.collect()  # pluggy keeps an exception and its frame in a circle
    assert [reference() for reference in met] == [None]
