"""The engine core: one worker thread that takes steps from the scheduler, runs them and resolves futures.

Faults stay contained: a step that fails is split until the request at fault is alone, and only that one fails; out of
memory shrinks the budget; and if the worker itself dies, everybody who waits is told.
"""

from __future__ import annotations

import logging
import os
import threading
import traceback
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol

import torch

from poolhook.config import EngineConfig
from poolhook.engine.client import EngineInput, EngineStats
from poolhook.engine.device import free_cached_memory, is_device_lost, is_out_of_memory, step_tokens
from poolhook.engine.scheduler import Job, Scheduler
from poolhook.errors import (
    EngineDead,
    EngineError,
    InvalidRequest,
    NonFiniteOutput,
    Overloaded,
    PoolhookError,
    describe_error,
    shorten,
)
from poolhook.outputs import PoolingOutput
from poolhook.params import PoolingParams
from poolhook.tasks import PoolingTask

logger = logging.getLogger(__name__)

_ONE_ROW_TASKS = frozenset({"embed", "classify"})
_SMALLEST_STEP = 64  # tokens below which shrinking the budget further frees no memory worth having


class Runner(Protocol):
    """What the core runs steps with; `ModelRunner` is the one for transformers."""

    vocab_size: int
    max_length: int

    @property
    def supported_tasks(self) -> tuple[PoolingTask, ...]:
        """The tasks that it computes."""

    def verify(self, params: PoolingParams) -> PoolingTask:
        """The task of `params`, or `InvalidRequest`."""

    def cost(self, count: int, total: int, longest: int) -> int:
        """Tokens that a step computes."""

    def run(self, inputs: Sequence[EngineInput]) -> list[PoolingOutput | None]:
        """An output for each input, None where it is not finite."""


class EngineCore:
    """The in-process `EngineClient`.

    Args:
        runner: runs steps.
        config: the budget of a step and the bound of the queue.
        device: where the runner computes.
    """

    def __init__(self, runner: Runner, config: EngineConfig, device: torch.device) -> None:
        self._runner = runner
        self._device = device
        self._max_queued_tokens = config.max_queued_tokens
        self._scheduler = Scheduler(config.max_num_batched_tokens or step_tokens(device), runner.cost)
        self._work = threading.Condition()
        self._process = os.getpid()
        self._stopped: str | None = None
        self._steps = self._tokens = 0
        # A daemon, so that a program that forgot close() still ends.
        self._worker = threading.Thread(target=self._serve, name="poolhook-engine", daemon=True)
        self._worker.start()

    @property
    def supported_tasks(self) -> tuple[PoolingTask, ...]:
        """The tasks that the model's pooler computes."""
        return self._runner.supported_tasks

    @property
    def is_alive(self) -> bool:
        """Whether an input submitted now could be answered."""
        return self._stopped is None and self._process == os.getpid() and self._worker.is_alive()

    def verify(self, params: PoolingParams) -> None:
        """Raise `InvalidRequest` for params that the model can't honour."""
        self._runner.verify(params)

    def submit(self, inputs: Sequence[EngineInput]) -> list[Future[PoolingOutput]]:
        """Queue the inputs of one request; see `EngineClient.submit`."""
        if self._process != os.getpid():
            raise EngineDead(
                "This engine was started before the process forked, and its worker stayed behind. Load the model in "
                "the child, or start children with multiprocessing's 'spawn'."
            )
        for item in inputs:
            self._check(item)
        jobs = [Job(item, Future()) for item in inputs]
        with self._work:
            if self._stopped is not None:
                raise EngineDead(self._stopped)
            self._admit(sum(item.cost for item in inputs))
            self._scheduler.add(jobs)
            self._work.notify()
        return [job.future for job in jobs]

    def stats(self) -> EngineStats:
        """Counts for monitoring."""
        with self._work:
            return EngineStats(self._steps, self._tokens, len(self._scheduler), self._scheduler.queued_tokens)

    def close(self) -> None:
        """Stop after the running step. What still waits fails with `EngineDead`. Closing twice is harmless."""
        if self._process != os.getpid():
            return  # the parent's worker is not ours to stop, and its lock may have been held when we forked
        self._stop("The engine is closed.")
        if threading.current_thread() is not self._worker:
            self._worker.join()

    def _check(self, item: EngineInput) -> None:
        self._runner.verify(item.params)
        if not item.token_ids:
            raise InvalidRequest("A prompt has no tokens. Give at least one.", param="input")
        limit = self._runner.max_length
        if item.cost > limit:
            raise InvalidRequest(f"A prompt has {item.cost} tokens; this model takes at most {limit}.", param="input")
        low, high = min(item.token_ids), max(item.token_ids)
        if low < 0 or high >= self._runner.vocab_size:
            raise InvalidRequest(
                f"Token id {shorten(low if low < 0 else high)} is out of range: this model's ids run from 0 to "
                f"{self._runner.vocab_size - 1}.",
                param="input",
            )
        for name, values in (("token type ids", item.token_type_ids), ("pooled marks", item.pooled)):
            if values is not None and len(values) != item.cost:
                raise InvalidRequest(
                    f"A prompt has {item.cost} tokens and {len(values)} {name}; give one for each.", param="input"
                )
        if item.pooled is not None and item.params.task in _ONE_ROW_TASKS and not any(item.pooled):
            raise InvalidRequest("No token of a prompt is left to be pooled.", param="input")
        if item.attended is not None and not 1 <= item.attended <= item.cost:
            raise InvalidRequest(
                f"A prompt of {item.cost} tokens has {item.attended} that are attended to; give 1 to {item.cost}.",
                param="input",
            )

    def _admit(self, cost: int) -> None:
        limit = self._max_queued_tokens
        if limit is None or not self._overflows(cost, limit):
            return
        # Whoever left makes room for who comes.
        self._scheduler.discard_cancelled()
        if self._overflows(cost, limit):
            waiting = self._scheduler.queued_tokens
            raise Overloaded(
                f"{waiting} tokens are waiting and this request has {cost}; the queue holds {limit}. Try again shortly."
            )

    def _overflows(self, cost: int, limit: int) -> bool:
        # An empty queue takes a request of any size: it could never be served otherwise.
        waiting = self._scheduler.queued_tokens
        return waiting > 0 and waiting + cost > limit

    def _serve(self) -> None:
        step: list[Job] | None = None
        try:
            while (step := self._next_step()) is not None:
                if step:
                    self._run(step)
        except BaseException as error:  # the worker's last words: whoever waits must hear of it
            logger.critical("The engine's worker died.", exc_info=error)
            reason = f"The engine's worker died: {describe_error(error)}"
            self._stop(reason)
            for job in step or ():
                if not job.future.done():
                    job.fail(EngineDead(reason))

    def _next_step(self) -> list[Job] | None:
        """Wait for work; None when the engine was stopped."""
        with self._work:
            self._work.wait_for(lambda: self._stopped is not None or len(self._scheduler) > 0)
            return None if self._stopped is not None else self._scheduler.next_step()

    def _stop(self, reason: str) -> None:
        with self._work:
            if self._stopped is None:
                self._stopped = reason
            abandoned = self._scheduler.drain()
            self._work.notify_all()
        for job in abandoned:
            # One error for each: raising adds to an exception's traceback.
            job.fail(EngineDead(self._stopped))

    def _run(self, step: list[Job]) -> None:
        outputs: list[PoolingOutput | None] = []
        failure: Exception | None = None
        try:
            outputs = self._runner.run([job.input for job in step])
        except Exception as error:
            if is_device_lost(error):
                raise
            # Whatever else a model raises is contained. Its traceback must not keep the step's tensors meanwhile.
            _forget_locals(error)
            failure = error
        if failure is not None:
            self._contain(step, failure)
            return
        with self._work:
            self._steps += 1
            self._tokens += sum(job.input.cost for job in step)
        for job, output in zip(step, outputs, strict=True):
            if output is None:
                job.fail(NonFiniteOutput("The model produced NaN or infinity for this prompt. Try dtype float32."))
            else:
                job.future.set_result(output)

    def _contain(self, step: list[Job], error: Exception) -> None:
        if is_out_of_memory(error):
            self._shrink_budget(sum(job.input.cost for job in step))
        if len(step) > 1:
            middle = len(step) // 2
            self._run(step[:middle])
            self._run(step[middle:])
            return
        job = step[0]
        logger.error("A request of %d tokens failed in the engine.", job.input.cost, exc_info=error)
        if isinstance(error, PoolhookError):
            job.fail(error)
            return
        failure = EngineError(f"The model failed on this prompt: {describe_error(error)}")
        failure.__cause__ = error
        job.fail(failure)

    def _shrink_budget(self, failed: int) -> None:
        """Keep steps to half of one of `failed` tokens. One long sequence, alone beyond the budget, leaves it alone."""
        free_cached_memory(self._device)
        with self._work:
            before = self._scheduler.max_tokens
            smaller = min(before, max(failed // 2, _SMALLEST_STEP))
            self._scheduler.max_tokens = smaller
        if smaller < before:
            logger.warning("Out of memory: steps take at most %d tokens from now on.", smaller)


def _forget_locals(error: BaseException | None) -> None:
    """Empty the frames that `error` and what led to it were raised through."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
