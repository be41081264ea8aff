"""An engine without a model, whose answers follow from the token ids, and a runtime around it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from plugin_parts import route_of
from poolhook.engine import EngineInput
from poolhook.engine.client import EngineStats
from poolhook.errors import EngineDead, EngineError
from poolhook.models import ModelSpec
from poolhook.outputs import PoolingOutput
from poolhook.params import PoolingParams
from poolhook.plugins import DataRequest, Plugin, PluginWithIOProcessorPlugins
from poolhook.render import Renderer, TextTokenizer
from poolhook.runtime import Answer, OnlineRunner, PoolingIOProcessors, Runtime, run_offline
from poolhook.tasks import PoolingTask
from tiny import save_tokenizer

UNLUCKY = 13
"""The token id on which the engine fails."""


def answer_to(item: EngineInput) -> list[float]:
    """What the fake engine pools of an input: length, sum, first id, dimensions asked for."""
    return [float(n) for n in (item.cost, sum(item.token_ids), item.token_ids[0], item.params.dimensions or 0)]


class FakeEngine:
    """An `EngineClient` that answers at once, or, with `hold`, when it is told to."""

    def __init__(self, hold: bool = False) -> None:
        self.hold = hold
        self.waiting: list[tuple[EngineInput, Future[PoolingOutput]]] = []
        self.submitted: list[EngineInput] = []
        self.closed = 0
        self.is_alive = True
        self._changed = threading.Condition()

    @property
    def supported_tasks(self) -> tuple[PoolingTask, ...]:
        return ("embed",)

    def verify(self, params: PoolingParams) -> None: ...

    def submit(self, inputs: Sequence[EngineInput]) -> list[Future[PoolingOutput]]:
        if not self.is_alive:
            raise EngineDead("The engine is closed.")
        pairs: list[tuple[EngineInput, Future[PoolingOutput]]] = [(item, Future()) for item in inputs]
        with self._changed:
            self.submitted += inputs
            if self.hold:
                self.waiting += pairs
            self._changed.notify_all()
        if not self.hold:
            self.answer(pairs)
        return [future for _, future in pairs]

    def wait_for(self, count: int) -> list[Future[PoolingOutput]]:
        """Block until `count` inputs wait, and return their futures."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.waiting) >= count, timeout=30)
            return [future for _, future in self.waiting]

    def release(self, order: Callable[[list[Any]], Any] = lambda pairs: None) -> None:
        """Answer everything that waits, after `order` has rearranged it in place."""
        with self._changed:
            pairs, self.waiting = self.waiting, []
        order(pairs)
        self.answer(pairs)

    def answer(self, pairs: Sequence[tuple[EngineInput, Future[PoolingOutput]]]) -> None:
        for item, future in pairs:
            if not future.set_running_or_notify_cancel():
                continue
            if UNLUCKY in item.token_ids:
                future.set_exception(EngineError("unlucky"))
            else:
                future.set_result(PoolingOutput(torch.tensor(answer_to(item))))

    def stats(self) -> EngineStats:
        return EngineStats(0, 0, len(self.waiting), 0)

    def close(self) -> None:
        self.closed += 1
        self.is_alive = False


def runtime_of(
    directory: Path, processor: Plugin, *wrappers: Plugin, engine: FakeEngine | None = None, max_length: int = 32
) -> Runtime:
    """A runtime that serves `processor` as its only IO processor, with a word-level tokenizer."""
    save_tokenizer(directory)
    routes: Mapping[str, Any] = {"it": route_of(processor, *wrappers, name="it")}
    return Runtime(
        spec=cast(ModelSpec, None),  # no request asks for it
        engine=engine or FakeEngine(),
        renderer=Renderer(TextTokenizer.from_directory(directory), max_length),
        processors=PoolingIOProcessors({"plugin": PluginWithIOProcessorPlugins(routes)}, "plugin"),
    )


class Journal:
    """Mixed into a plugin: writes down how requests end."""

    def __init__(self) -> None:
        self.entries: list[Any] = []

    def on_error(self, stage: str, error: BaseException) -> None:
        self.entries.append(("on_error", stage, type(error).__name__))

    def on_finish(self) -> None:
        self.entries.append("on_finish")


Serve = Callable[[Runtime, DataRequest], Answer]


def run_online(runtime: Runtime, request: DataRequest) -> Answer:
    runner = OnlineRunner(runtime, threads=2)
    try:
        return asyncio.run(runner.run(request, lambda _, answer: answer))
    finally:
        runner.close()


both_faces = pytest.mark.parametrize("serve", [run_offline, run_online], ids=["offline", "online"])
