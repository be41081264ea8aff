"""Specifies the scheduler: who runs in which step, and that everybody runs once."""

from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fake_runner import sequence
from poolhook.engine.client import EngineInput
from poolhook.engine.scheduler import Job, Scheduler
from poolhook.errors import DeadlineExceeded
from poolhook.params import PoolingParams


def packed_cost(count: int, total: int, longest: int) -> int:
    return total


def padded_cost(count: int, total: int, longest: int) -> int:
    return count * longest


def job(length: int, priority: int = 0, task: Any = "embed", deadline: float | None = None) -> Job:
    item = EngineInput([1] * length, PoolingParams(task=task), priority=priority, deadline=deadline)
    return Job(item, Future())


def all_steps(scheduler: Scheduler) -> list[list[Job]]:
    return list(iter(scheduler.next_step, []))


def costs(jobs: list[Job]) -> list[int]:
    return [job.input.cost for job in jobs]


class TestAStep:
    def test_takes_what_fits_the_budget(self):
        scheduler = Scheduler(10, packed_cost)
        scheduler.add([job(4), job(4), job(4)])
        assert [costs(step) for step in all_steps(scheduler)] == [[4, 4], [4]]

    def test_takes_a_longer_sequence_alone(self):
        scheduler = Scheduler(10, packed_cost)
        for length in (3, 25, 3):
            scheduler.add([job(length)])
        assert [costs(step) for step in all_steps(scheduler)] == [[3], [25], [3]]

    def test_counts_padding_where_there_is_some(self):
        scheduler = Scheduler(10, padded_cost)
        scheduler.add([job(5)])
        scheduler.add([job(1), job(1)])
        assert [costs(step) for step in all_steps(scheduler)] == [[5, 1], [1]]

    def test_takes_older_requests_first(self):
        scheduler = Scheduler(4, packed_cost)
        jobs = [job(4) for _ in range(5)]
        for one in jobs:
            scheduler.add([one])
        assert all_steps(scheduler) == [[one] for one in jobs]

    def test_takes_a_lower_priority_number_before_an_older_request(self):
        scheduler = Scheduler(4, packed_cost)
        patient, urgent = job(4, priority=1), job(4, priority=-1)
        scheduler.add([patient])
        scheduler.add([urgent])
        assert all_steps(scheduler) == [[urgent], [patient]]

    def test_takes_the_long_ones_of_a_request_first(self):
        scheduler = Scheduler(100, packed_cost)
        scheduler.add([job(1), job(5), job(3)])
        assert costs(scheduler.next_step()) == [5, 3, 1]

    def test_is_of_one_kind_beginning_with_the_oldest(self):
        scheduler = Scheduler(100, packed_cost)
        for task in ("embed", "classify", "embed", "classify"):
            scheduler.add([job(1, task=task)])
        kinds = [[one.input.batch_key for one in step] for step in all_steps(scheduler)]
        assert kinds == [["embed", "embed"], ["classify", "classify"]]

    def test_is_empty_where_nothing_waits(self):
        assert Scheduler(10, packed_cost).next_step() == []


class TestWhoDoesNotWaitAnyLonger:
    def test_a_cancelled_one_is_dropped_and_the_next_takes_its_place(self):
        scheduler = Scheduler(4, packed_cost)
        left, stays = job(4), job(4)
        scheduler.add([left, stays])
        assert left.future.cancel()
        assert scheduler.next_step() == [stays]
        assert scheduler.queued_tokens == len(scheduler) == 0

    def test_a_late_one_is_told_so_and_dropped(self):
        scheduler = Scheduler(100, packed_cost)
        late, in_time = job(4, deadline=time.monotonic() - 1), job(4, deadline=time.monotonic() + 3600)
        scheduler.add([late, in_time])
        assert scheduler.next_step() == [in_time]
        with pytest.raises(DeadlineExceeded, match="deadline passed while it waited"):
            late.future.result(0)

    def test_once_in_a_step_it_can_no_longer_be_cancelled(self):
        scheduler = Scheduler(4, packed_cost)
        scheduler.add([job(4)])
        (running,) = scheduler.next_step()
        assert not running.future.cancel()

    def test_the_cancelled_ones_can_be_discarded_from_anywhere_in_the_queue(self):
        scheduler = Scheduler(4, packed_cost)
        jobs = [job(n, task=task) for n in range(1, 6) for task in ("embed", "classify")]
        for one in jobs:
            scheduler.add([one])
        for one in jobs[::3]:
            one.future.cancel()
        scheduler.discard_cancelled()
        left = [one for i, one in enumerate(jobs) if i % 3]
        assert len(scheduler) == len(left)
        assert scheduler.queued_tokens == sum(costs(left))
        assert sorted(costs([one for step in all_steps(scheduler) for one in step])) == sorted(costs(left))

    def test_draining_takes_everyone_but_those_who_left(self):
        scheduler = Scheduler(4, packed_cost)
        jobs = [job(4), job(4, task="classify"), job(4)]
        scheduler.add(jobs)
        jobs[0].future.cancel()
        assert set(scheduler.drain()) == set(jobs[1:])
        assert scheduler.queued_tokens == len(scheduler) == 0


@given(
    requests=st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=8), max_size=20),
    priorities=st.lists(st.integers(-2, 2), min_size=20, max_size=20),
    budget=st.integers(1, 40),
    cost=st.sampled_from([packed_cost, padded_cost]),
)
def test_priority_then_age_decides_for_any_requests(
    requests: list[list[int]], priorities: list[int], budget: int, cost: Any
):
    scheduler = Scheduler(budget, cost)
    rank: dict[int, tuple[int, int]] = {}
    for age, (lengths, priority) in enumerate(zip(requests, priorities, strict=False)):
        jobs = [job(length, priority) for length in lengths]
        rank |= {id(one): (priority, age) for one in jobs}
        scheduler.add(jobs)
    order = [rank[id(one)] for step in all_steps(scheduler) for one in step]
    assert order == sorted(rank.values())


LENGTHS = st.lists(st.integers(1, 30), max_size=5)


class AnyUse(RuleBasedStateMachine):
    """Submissions, steps and cancellations in any order."""

    BUDGET = 20

    def __init__(self) -> None:
        super().__init__()
        self.scheduler = Scheduler(self.BUDGET, packed_cost)
        self.waiting: list[Job] = []
        self.stepped: list[Job] = []

    @rule(
        lengths=st.lists(st.integers(1, 30), max_size=5),
        priority=st.integers(0, 2),
        task=st.sampled_from(["embed", "classify"]),
    )
    def submit(self, lengths: list[int], priority: int, task: str) -> None:
        jobs = [job(length, priority, task) for length in lengths]
        self.scheduler.add(jobs)
        self.waiting += jobs

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.waiting)).future.cancel()

    @rule()
    def discard(self) -> None:
        self.scheduler.discard_cancelled()
        self.waiting = [one for one in self.waiting if not one.future.cancelled()]

    @rule()
    def step(self) -> None:
        wanted = [one for one in self.waiting if not one.future.cancelled()]
        step = self.scheduler.next_step()
        assert bool(step) == bool(wanted)
        assert set(step) <= set(wanted)
        assert len({one.input.batch_key for one in step}) <= 1
        assert len(step) <= 1 or sum(costs(step)) <= self.BUDGET
        assert not set(step) & set(self.stepped)
        self.stepped += step
        # Who was dropped on the way is known by its future alone.
        self.waiting = [one for one in self.waiting if one not in step and not was_dropped(one)]

    @invariant()
    def counts_are_exact(self) -> None:
        assert self.scheduler.queued_tokens == sum(costs(self.waiting))
        assert len(self.scheduler) == len(self.waiting)

    def teardown(self) -> None:
        left = [one for one in self.waiting if not one.future.cancelled()]
        assert {one for step in all_steps(self.scheduler) for one in step} == set(left)
        assert self.scheduler.queued_tokens == len(self.scheduler) == 0


def was_dropped(one: Job) -> bool:
    """Whether the scheduler has taken a cancelled job out of its queue."""
    return one.future._state == "CANCELLED_AND_NOTIFIED"  # no public way


TestAnyUse = AnyUse.TestCase


def test_a_sequence_costs_its_tokens():
    assert sequence(1, 2, 3).cost == 3
