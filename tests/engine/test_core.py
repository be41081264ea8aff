"""Specifies the engine core as its callers see it: submitting, waiting, refusing, closing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

from fake_runner import EMBED, FakeRunner, answer, sequence
from poolhook.config import EngineConfig
from poolhook.engine import EngineInput
from poolhook.engine.core import EngineCore
from poolhook.errors import DeadlineExceeded, EngineDead, InvalidRequest, Overloaded
from poolhook.params import PoolingParams

CPU = torch.device("cpu")
SOON = 30  # seconds; no test gets near


@pytest.fixture
def runner() -> Iterator[FakeRunner]:
    runner = FakeRunner()
    yield runner
    runner.may_step.set()


@pytest.fixture
def core(runner: FakeRunner) -> Iterator[EngineCore]:
    core = EngineCore(runner, EngineConfig(max_num_batched_tokens=100), CPU)
    yield core
    runner.may_step.set()
    core.close()


def hold(runner: FakeRunner, core: EngineCore) -> Any:
    """Keep the worker in a step of one token, so that what is submitted next waits."""
    runner.may_step.clear()
    (future,) = core.submit([sequence(1)])
    assert runner.is_stepping.wait(SOON)
    return future


class TestAnswers:
    def test_come_in_the_order_of_the_inputs(self, core: EngineCore):
        inputs = [sequence(*[i] * n) for i, n in enumerate([7, 1, 90, 3, 120, 1])]
        futures = core.submit(inputs)
        assert [future.result(SOON).data.tolist() for future in futures] == [answer(item) for item in inputs]

    def test_are_each_threads_own(self, core: EngineCore):
        def work(thread: int) -> bool:
            inputs = [sequence(*[thread] * (1 + (thread * i) % 40)) for i in range(20)]
            futures = core.submit(inputs)
            return [future.result(SOON).data.tolist() for future in futures] == [answer(item) for item in inputs]

        with ThreadPoolExecutor(32) as pool:
            assert all(pool.map(work, range(90)))
        stats = core.stats()
        assert (stats.queued_inputs, stats.queued_tokens) == (0, 0)
        assert stats.tokens == sum(1 + (thread * i) % 40 for thread in range(90) for i in range(20))

    def test_of_several_requests_come_from_one_step_if_they_fit(self, core: EngineCore, runner: FakeRunner):
        held = hold(runner, core)
        futures = [core.submit([sequence(2)])[0] for _ in range(10)]
        assert core.stats().queued_inputs == core.stats().queued_tokens == 10
        runner.may_step.set()
        for future in [held, *futures]:
            future.result(SOON)
        assert [len(step) for step in runner.steps] == [1, 10]
        assert core.stats().steps == 2

    def test_to_nothing_are_none(self, core: EngineCore):
        assert core.submit([]) == []

    def test_may_be_awaited_from_a_callback_that_submits_more(self, core: EngineCore):
        more = threading.Event()
        first = core.submit([sequence(1)])[0]
        first.add_done_callback(lambda _: core.submit([sequence(2)])[0].add_done_callback(lambda _: more.set()))
        assert more.wait(SOON)


class TestWhoDoesNotWaitAnyLonger:
    def test_costs_no_step(self, core: EngineCore, runner: FakeRunner):
        hold(runner, core)
        (left,) = core.submit([sequence(2)])
        (late,) = core.submit([sequence(3, deadline=time.monotonic() - 1)])
        (stays,) = core.submit([sequence(4)])
        assert left.cancel()
        runner.may_step.set()
        stays.result(SOON)
        with pytest.raises(DeadlineExceeded):
            late.result(SOON)
        assert runner.steps == [[[1]], [[4]]]

    def test_makes_room_in_a_full_queue_at_once(self, runner: FakeRunner):
        core = EngineCore(runner, EngineConfig(max_queued_tokens=10), CPU)
        hold(runner, core)
        for future in core.submit([sequence(2)] * 10):
            future.cancel()
        (stays,) = core.submit([sequence(*[3] * 10)])
        runner.may_step.set()
        assert stays.result(SOON).data.tolist() == [10, 30]
        core.close()


class TestAFullQueue:
    def test_refuses_what_does_not_fit_and_says_what_it_holds(self, runner: FakeRunner):
        core = EngineCore(runner, EngineConfig(max_queued_tokens=10), CPU)
        hold(runner, core)
        waiting = core.submit([sequence(2), sequence(2, 2, 2, 2, 2)])
        with pytest.raises(Overloaded, match="6 tokens are waiting and this request has 5; the queue holds 10") as full:
            core.submit([sequence(2), sequence(3, 3, 3, 3)])
        assert full.value.retry_after >= 1
        waiting += core.submit([sequence(2, 2, 2, 2)])  # there is room for exactly this
        runner.may_step.set()
        assert [future.result(SOON).data.tolist()[0] for future in waiting] == [1, 5, 4]
        core.close()

    def test_takes_a_request_of_any_size_when_nobody_waits(self, runner: FakeRunner):
        core = EngineCore(runner, EngineConfig(max_queued_tokens=10), CPU)
        assert core.submit([sequence(*[1] * 50)])[0].result(SOON).data.tolist() == [50, 50]
        core.close()


class TestTheDoor:
    @pytest.mark.parametrize(
        ("item", "message"),
        [
            (sequence(), "no tokens"),
            (sequence(1, 100), "Token id 100 is out of range: this model's ids run from 0 to 99"),
            (sequence(1, -1), "Token id -1 is out of range"),
            (sequence(10**5000), "is out of range"),
            (sequence(*[1] * 501), "501 tokens; this model takes at most 500"),
            (EngineInput([1], PoolingParams(task="classify")), "'classify' is not supported"),
            (EngineInput([1, 2], EMBED, [0]), "2 tokens and 1 token type ids"),
            (EngineInput([1, 2], EMBED, pooled=[True]), "2 tokens and 1 pooled marks"),
            (EngineInput([1, 2], EMBED, pooled=[False] * 2), "No token of a prompt is left to be pooled"),
            (EngineInput([1, 2], EMBED, attended=0), "2 tokens has 0 that are attended to; give 1 to 2"),
            (EngineInput([1, 2], EMBED, attended=3), "2 tokens has 3 that are attended to; give 1 to 2"),
        ],
    )
    def test_refuses_a_malformed_input_and_queues_none_of_its_request(
        self, core: EngineCore, runner: FakeRunner, item: EngineInput, message: str
    ):
        hold(runner, core)
        with pytest.raises(InvalidRequest, match=message):
            core.submit([sequence(1), item, sequence(2)])
        assert core.stats().queued_inputs == 0

    def test_takes_the_longest_and_the_last_of_the_vocabulary(self, core: EngineCore):
        item = EngineInput([96] * 500, EMBED, [0] * 500)
        assert core.submit([item])[0].result(SOON).data.tolist() == [500, 48000]

    def test_verifies_params_without_running_anything(self, core: EngineCore, runner: FakeRunner):
        core.verify(EMBED)
        with pytest.raises(InvalidRequest):
            core.verify(PoolingParams(task="classify"))
        assert runner.steps == []


class TestClosing:
    def test_fails_who_waits_and_who_comes_later(self, core: EngineCore, runner: FakeRunner):
        held = hold(runner, core)
        waiting = core.submit([sequence(2), sequence(3)])
        closing = threading.Thread(target=core.close)
        closing.start()
        for future in waiting:
            with pytest.raises(EngineDead, match="engine is closed"):
                future.result(SOON)
        runner.may_step.set()
        closing.join(SOON)
        assert held.result(SOON).data.tolist() == [1, 1]  # its step was running
        assert not core.is_alive
        with pytest.raises(EngineDead, match="engine is closed"):
            core.submit([sequence(1)])

    def test_twice_is_harmless(self, core: EngineCore):
        assert core.is_alive
        core.close()
        core.close()
        assert not core.is_alive

    def test_from_many_threads_is_harmless(self, core: EngineCore):
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: core.close(), range(8)))
        assert not core.is_alive

    def test_from_a_callback_of_its_own_is_harmless(self, core: EngineCore):
        core.submit([sequence(1)])[0].add_done_callback(lambda _: core.close())
        core.close()
        assert not core.is_alive

    def test_leaves_no_thread_behind(self):
        before = threading.active_count()
        core = EngineCore(FakeRunner(), EngineConfig(), CPU)
        assert threading.active_count() == before + 1
        core.close()
        assert threading.active_count() == before
