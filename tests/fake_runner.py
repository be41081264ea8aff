"""A runner without a model, whose token ids say what goes wrong with them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import torch

from poolhook.engine import EngineInput
from poolhook.errors import InvalidRequest
from poolhook.outputs import PoolingOutput
from poolhook.params import PoolingParams
from poolhook.tasks import PoolingTask

EMBED = PoolingParams(task="embed")
FAILS, IS_NAN, KILLS = 97, 98, 99  # token ids


class FakeRunner:
    """Answers a sequence with `[its length, its sum]`.

    Args:
        memory: tokens of a step beyond which there is none left.
    """

    vocab_size = 100
    max_length = 500
    supported_tasks: tuple[PoolingTask, ...] = ("embed",)

    def __init__(self, memory: int | None = None) -> None:
        self.memory = memory
        self.steps: list[list[list[int]]] = []
        self.is_stepping = threading.Event()
        self.may_step = threading.Event()
        self.may_step.set()

    def verify(self, params: PoolingParams) -> PoolingTask:
        if params.task != "embed":
            raise InvalidRequest(f"Task {params.task!r} is not supported.", param="task")
        return "embed"

    def cost(self, count: int, total: int, longest: int) -> int:
        return total

    def run(self, inputs: Sequence[EngineInput]) -> list[PoolingOutput | None]:
        sequences = [list(item.token_ids) for item in inputs]
        self.steps.append(sequences)
        self.is_stepping.set()
        self.may_step.wait()
        if self.memory is not None and sum(map(len, sequences)) > self.memory:
            raise torch.OutOfMemoryError("no memory left")
        ids = {token for sequence in sequences for token in sequence}
        if KILLS in ids:
            raise SystemExit("the end")
        if FAILS in ids:
            raise ValueError("the model does not like this")
        return [None if IS_NAN in s else PoolingOutput(torch.tensor([len(s), float(sum(s))])) for s in sequences]


def sequence(*token_ids: int, priority: int = 0, deadline: float | None = None) -> EngineInput:
    """An input for task `embed`."""
    return EngineInput(token_ids, EMBED, priority=priority, deadline=deadline)


def answer(item: EngineInput) -> list[float]:
    """What `FakeRunner` answers to `item`."""
    return [len(item.token_ids), sum(item.token_ids)]
