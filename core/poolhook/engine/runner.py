"""One step: sort, run the transformer, pool, bring the rows to the CPU in the order in which they came."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import torch
from torch import Tensor

from poolhook.engine.client import EngineInput
from poolhook.engine.forward import Forward
from poolhook.outputs import PoolingOutput
from poolhook.params import PoolingParams
from poolhook.pooler import HiddenBatch, Pooler
from poolhook.tasks import PoolingTask


class ModelRunner:
    """Runs steps.

    Args:
        forward: runs the transformer.
        pooler: turns hidden states into rows.
        vocab_size: token ids run from 0 to this, exclusive.
        max_length: the longest sequence, in tokens.
        unread_end: a token id that is not pooled where a sequence ends in it.
    """

    def __init__(
        self, forward: Forward, pooler: Pooler, *, vocab_size: int, max_length: int, unread_end: int | None = None
    ) -> None:
        self.forward = forward
        self.pooler = pooler
        self.vocab_size = vocab_size
        self.max_length = max_length
        self._unread_end = unread_end

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

    def run(self, inputs: Sequence[EngineInput]) -> list[PoolingOutput | None]:
        """Run one step of inputs for one task.

        Returns:
            For each input its output, on the CPU, or None where the model produced NaN or infinity.
        """
        order = sorted(range(len(inputs)), key=lambda i: (inputs[i].cost, inputs[i].attended or 0))
        ordered = [inputs[i] for i in order]
        params = [item.params for item in ordered]
        task = self.pooler.verify(params[0])
        with torch.inference_mode():
            hidden, cu_seqlens = self.forward(ordered)
            batch = HiddenBatch(hidden, cu_seqlens, self._pooled(ordered, hidden.device))
            pooled = self.pooler(task, batch, params)
            finite = pooled.finite.tolist()
        parts = pooled.parts or [{}] * len(inputs)
        outputs: list[PoolingOutput | None] = [None] * len(inputs)
        for i, row, named, good in zip(order, pooled.rows, parts, finite, strict=True):
            if good:
                # Copies outside inference mode: ordinary tensors that do not keep the whole batch alive.
                outputs[i] = PoolingOutput(row.clone(), {name: part.clone() for name, part in named.items()})
        return outputs

    def _pooled(self, inputs: Sequence[EngineInput], device: torch.device) -> Tensor | None:
        """Which tokens of the step are read, shape `[T]`; None for all."""
        masks = [self._read(item) for item in inputs]
        if all(mask is None for mask in masks):
            return None
        known = (mask if mask is not None else [True] * item.cost for mask, item in zip(masks, inputs, strict=True))
        return torch.tensor(list(chain.from_iterable(known)), dtype=torch.bool, device=device)

    def _read(self, item: EngineInput) -> Sequence[bool] | None:
        """Which tokens of `item` are read; None for all. Of one that is nothing but unread ends, the first is."""
        if self._unread_end is None or item.token_ids[-1] != self._unread_end:
            return item.pooled
        read = item.cost
        while read > 1 and item.token_ids[read - 1] == self._unread_end:
            read -= 1
        pooled = item.pooled if item.pooled is not None else [True] * item.cost
        return [place < read and mark for place, mark in enumerate(pooled)]
