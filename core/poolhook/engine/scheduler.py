"""Which inputs run next: one queue for both faces, taken by priority, then age, up to the token budget of a step."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import count

from poolhook.engine.client import EngineInput
from poolhook.errors import DeadlineExceeded
from poolhook.outputs import PoolingOutput
from poolhook.tasks import PoolingTask

StepCost = Callable[[int, int, int], int]
"""`(sequences, their tokens, tokens of the longest) -> tokens that a step computes`."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """An input that waits, and whom to tell."""

    input: EngineInput
    future: Future[PoolingOutput]

    def fail(self, error: Exception) -> None:
        """Answer with an error."""
        self.future.set_exception(error)


class Scheduler:
    """The queue. Not thread-safe: the engine core guards it.

    Args:
        max_tokens: the budget of a step. A longer sequence runs alone.
        step_cost: what a step costs.
    """

    def __init__(self, max_tokens: int, step_cost: StepCost) -> None:
        self.max_tokens = max_tokens
        self.queued_tokens = 0
        self._step_cost = step_cost
        self._submissions = count()
        self._heaps: dict[PoolingTask | None, list[tuple[tuple[int, int, int, int], Job]]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._heaps.values()))

    def add(self, jobs: Sequence[Job]) -> None:
        """Queue the inputs of one request.

        They are equally old; among themselves the long ones go first, so that neighbours in a step are alike.
        """
        submission = next(self._submissions)
        for index, job in enumerate(jobs):
            item = job.input
            rank = (item.priority, submission, -item.cost, index)
            heapq.heappush(self._heaps.setdefault(item.batch_key, []), (rank, job))
            self.queued_tokens += item.cost

    def next_step(self) -> list[Job]:
        """Take the jobs of the next step: those of the first in line's kind that fit the budget with it.

        Jobs that were cancelled or are too late are dropped. Empty when nothing is left to run.
        """
        step: list[Job] = []
        tokens = longest = 0
        while (heap := self._first_heap(step)) and heap:
            job = heap[0][1]
            fits = (
                self._step_cost(len(step) + 1, tokens + job.input.cost, max(longest, job.input.cost)) <= self.max_tokens
            )
            if step and not fits:
                break
            heapq.heappop(heap)
            self.queued_tokens -= job.input.cost
            if self._is_wanted(job):
                step.append(job)
                tokens += job.input.cost
                longest = max(longest, job.input.cost)
        return step

    def discard_cancelled(self) -> None:
        """Drop the jobs that were cancelled, wherever they stand in the queue."""
        for key, heap in self._heaps.items():
            left = []
            for rank, job in heap:
                if job.future.cancelled():
                    self.queued_tokens -= job.input.cost
                    job.future.set_running_or_notify_cancel()  # tells those who wait for the future
                else:
                    left.append((rank, job))
            heapq.heapify(left)
            self._heaps[key] = left

    def drain(self) -> list[Job]:
        """Take everything that waits and is still wanted, for failing it."""
        jobs = [job for heap in self._heaps.values() for _, job in heap]
        self._heaps.clear()
        self.queued_tokens = 0
        return [job for job in jobs if job.future.set_running_or_notify_cancel()]

    def _first_heap(self, step: Sequence[Job]) -> list[tuple[tuple[int, int, int, int], Job]] | None:
        """The heap to take from: the one of the step's kind, or while it is empty, the one whose first job is due."""
        if step:
            return self._heaps.get(step[0].input.batch_key)
        return min((heap for heap in self._heaps.values() if heap), key=lambda heap: heap[0][0], default=None)

    @staticmethod
    def _is_wanted(job: Job) -> bool:
        if not job.future.set_running_or_notify_cancel():
            return False
        deadline = job.input.deadline
        if deadline is not None and time.monotonic() > deadline:
            job.fail(DeadlineExceeded("The request's deadline passed while it waited for its turn."))
            return False
        return True
