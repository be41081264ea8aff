"""`Pooler`: the pooling of one model, a `TaskPooler` for each task that it supports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from poolhook.errors import InvalidRequest
from poolhook.params import PoolingParams
from poolhook.tasks import PoolingTask, in_order, why_unsupported

Head = Callable[[Tensor], Tensor]
"""A model's own last layers: from float32 `[m, hidden]` to float32 `[m, labels]`, or `[m, size]`. m may be 0."""


@dataclass(frozen=True)
class HiddenBatch:
    """What the transformer made of a step.

    Args:
        hidden: shape `[T, hidden]`, the sequences end to end.
        cu_seqlens: shape `[n + 1]`, where each sequence starts, and T.
        pooled: shape `[T]`, bool: the tokens to read; None for all.
    """

    hidden: Tensor
    cu_seqlens: Tensor
    pooled: Tensor | None = None


@dataclass(frozen=True)
class PooledBatch:
    """What a step computed.

    Args:
        rows: one float32 tensor for each sequence, in the order of the batch, on the CPU.
        finite: shape `[n]`, bool: which rows hold neither NaN nor infinity.
        parts: further tensors for each sequence, by name; None where the task has none.
    """

    rows: Sequence[Tensor]
    finite: Tensor
    parts: Sequence[Mapping[str, Tensor]] | None = None


class TaskPooler(Protocol):
    """Computes one task."""

    def verify(self, params: PoolingParams) -> None:
        """Raise `InvalidRequest` for params that this model can't honour."""

    def __call__(self, batch: HiddenBatch, params: Sequence[PoolingParams]) -> PooledBatch:
        """Pool `batch`, whose sequences have one of `params` each."""


class Pooler:
    """The tasks of one model.

    Args:
        tasks: what computes each task.
    """

    def __init__(self, tasks: Mapping[PoolingTask, TaskPooler]) -> None:
        self._tasks = dict(tasks)
        self.supported_tasks: tuple[PoolingTask, ...] = in_order(tasks)

    def verify(self, params: PoolingParams) -> PoolingTask:
        """The task that `params` ask for, once they are known to be served.

        Raises:
            InvalidRequest: the task is not supported, or a parameter is not for this model.
        """
        task = params.task
        if task is None or task not in self._tasks:
            raise InvalidRequest(why_unsupported(task, self.supported_tasks), param="task")
        self._tasks[task].verify(params)
        return task

    def __call__(self, task: PoolingTask, batch: HiddenBatch, params: Sequence[PoolingParams]) -> PooledBatch:
        """Pool a batch in which every sequence is for `task`."""
        return self._tasks[task](batch, params)
