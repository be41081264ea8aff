"""One step: sort, run the transformer, pool, bring the rows to the CPU in the order in which they came."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from poolhook.engine.client import EngineInput
from poolhook.engine.forward import Forward
from poolhook.params import PoolingParams
from poolhook.pooler import Pooler
from poolhook.tasks import PoolingTask


class ModelRunner:
    """Runs steps.

    Args:
        forward: runs the transformer.
        pooler: turns hidden states into rows.
        vocab_size: token ids run from 0 to this, exclusive.
        max_length: the longest sequence, in tokens.
    """

    def __init__(self, forward: Forward, pooler: Pooler, *, vocab_size: int, max_length: int) -> None:
        self.forward = forward
        self.pooler = pooler
        self.vocab_size = vocab_size
        self.max_length = max_length

    @property
    def supported_tasks(self) -> tuple[PoolingTask, ...]:
        """The tasks that the pooler computes."""
        return self.pooler.supported_tasks

    def verify(self, params: PoolingParams) -> PoolingTask:
        """The task of `params`; see `Pooler.verify`."""
        return self.pooler.verify(params)

    def cost(self, count: int, total: int, longest: int) -> int:
        """Tokens that a step computes; see `Forward.cost`."""
        return self.forward.cost(count, total, longest)

    def run(self, inputs: Sequence[EngineInput]) -> list[Tensor | None]:
        """Run one step of inputs for one task.

        Returns:
            For each input its row, float32 on the CPU, or None where the model produced NaN or infinity.
        """
        order = sorted(range(len(inputs)), key=lambda i: len(inputs[i].token_ids))
        ordered = [inputs[i] for i in order]
        params = [item.params for item in ordered]
        task = self.pooler.verify(params[0])
        with torch.inference_mode():
            hidden, cu_seqlens = self.forward(ordered)
            pooled = self.pooler(task, hidden, cu_seqlens, params)
            finite = pooled.finite.tolist()
        rows: list[Tensor | None] = [None] * len(inputs)
        for i, row, good in zip(order, pooled.rows, finite, strict=True):
            if good:
                # A copy outside inference mode: an ordinary tensor that does not keep the whole batch alive.
                rows[i] = row.clone()
        return rows
