"""The engine's one door: plain data in, futures out.

Today the engine lives in this process. Whoever stays behind `EngineClient` will not notice when it moves to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from poolhook.outputs import PoolingOutput
from poolhook.params import PoolingParams
from poolhook.tasks import PoolingTask


@dataclass(frozen=True, slots=True)
class EngineInput:
    """One sequence to run.

    Args:
        token_ids: what the model sees, special tokens included; not empty.
        params: how to pool it; `params.task` is set.
        token_type_ids: the segment of each token; None for all zeros.
        priority: lower runs earlier.
        deadline: on `time.monotonic()`'s clock; past it the input is dropped instead of run.
        pooled: for each token whether the pooler reads it; None for all. At least one is True for tasks that answer
            with one row.
        attended: how many tokens, from the first, can be attended to; the rest look at those and are looked at by
            nobody. None for all.
    """

    token_ids: Sequence[int]
    params: PoolingParams
    token_type_ids: Sequence[int] | None = None
    priority: int = 0
    deadline: float | None = None
    pooled: Sequence[bool] | None = None
    attended: int | None = None

    @property
    def cost(self) -> int:
        """What it takes from a step's budget, in tokens."""
        return len(self.token_ids)

    @property
    def batch_key(self) -> PoolingTask | None:
        """Inputs with the same key may share a step."""
        return self.params.task


@dataclass(frozen=True, slots=True)
class EngineStats:
    """What the engine has done and has to do.

    Args:
        steps: forward passes so far.
        tokens: tokens that went through them.
        queued_inputs: inputs that wait.
        queued_tokens: their tokens.
    """

    steps: int
    tokens: int
    queued_inputs: int
    queued_tokens: int


class EngineClient(Protocol):
    """What the faces may ask of an engine."""

    @property
    def supported_tasks(self) -> tuple[PoolingTask, ...]:
        """The tasks that the model's pooler computes."""

    @property
    def is_alive(self) -> bool:
        """Whether an input submitted now could be answered."""

    def verify(self, params: PoolingParams) -> None:
        """Raise `InvalidRequest` for params that the model can't honour."""

    def submit(self, inputs: Sequence[EngineInput]) -> list[Future[PoolingOutput]]:
        """Queue the inputs of one request. Cancelling a future withdraws its input if it still waits.

        Raises:
            InvalidRequest: an input is malformed; none of them is queued.
            Overloaded: the queue is full.
            EngineDead: the engine has stopped.
        """

    def stats(self) -> EngineStats:
        """Counts for monitoring."""

    def close(self) -> None:
        """Stop. What still waits fails with `EngineDead`."""
