"""Packed batches: the sequences of a step laid end to end, without padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, groupby

import torch
from torch import Tensor

from poolhook.engine.client import EngineInput


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring sequences of equal length, of which equally many tokens are attended to.

    Args:
        start: the first token's place in the batch.
        count: sequences.
        length: tokens of each.
        attended: how many of them, from the first, are attended to.
    """

    start: int
    count: int
    length: int
    attended: int


@dataclass
class PackedBatch:
    """A step's model inputs.

    Args:
        input_ids: shape `[1, T]`.
        position_ids: shape `[1, T]`, starting again with each sequence.
        token_type_ids: shape `[1, T]`.
        cu_seqlens: shape `[n + 1]`, int32: where each sequence starts, and T.
        max_seqlen: tokens of the longest sequence.
        runs: neighbours that are alike.
        masks: attention masks made so far, by length, causality and window.
        attention_calls: how often the registered attention function has seen this batch.
    """

    input_ids: Tensor
    position_ids: Tensor
    token_type_ids: Tensor
    cu_seqlens: Tensor
    max_seqlen: int
    runs: list[Run]
    masks: dict[tuple[int, bool, int | None], Tensor] = field(default_factory=dict, compare=False)
    attention_calls: int = field(default=0, compare=False)


def pack(
    inputs: Sequence[EngineInput],
    device: torch.device,
    position_offset: int = 0,
    padding_id: int | None = None,
) -> PackedBatch:
    """Lay `inputs` end to end. Sort them by length first: the longer the runs of equal length, the faster the step.

    Args:
        inputs: not empty.
        device: where the tensors go.
        position_offset: the position id of a first token.
        padding_id: for families whose positions start behind their padding id: a token of this id is not counted and
            has that id as its position, as in transformers' RoBERTa.
    """
    lengths = [len(item.token_ids) for item in inputs]
    borders = [0, *accumulate(lengths)]
    input_ids = torch.tensor([list(chain.from_iterable(item.token_ids for item in inputs))])
    cu_seqlens = torch.tensor(borders)
    starts = torch.repeat_interleave(cu_seqlens[:-1], cu_seqlens.diff())
    if padding_id is None:
        position_ids = torch.arange(borders[-1]) - starts + position_offset
    else:
        counted = input_ids[0] != padding_id
        seen = torch.cat([torch.zeros(1, dtype=torch.long), counted.cumsum(0)])
        position_ids = (seen[1:] - seen[starts]) * counted + padding_id
    return PackedBatch(
        input_ids=input_ids.to(device),
        position_ids=position_ids[None].to(device),
        token_type_ids=_token_type_ids(inputs, borders[-1]).to(device),
        cu_seqlens=cu_seqlens.to(device, torch.int32),
        max_seqlen=max(lengths),
        runs=_runs(inputs),
    )


def _token_type_ids(inputs: Sequence[EngineInput], total: int) -> Tensor:
    if all(item.token_type_ids is None for item in inputs):
        return torch.zeros(1, total, dtype=torch.long)
    return torch.tensor(
        [list(chain.from_iterable(item.token_type_ids or [0] * len(item.token_ids) for item in inputs))]
    )


def _runs(inputs: Sequence[EngineInput]) -> list[Run]:
    runs, start = [], 0
    for (length, attended), group in groupby((item.cost, item.attended or item.cost) for item in inputs):
        count = sum(1 for _ in group)
        runs.append(Run(start, count, length, attended))
        start += count * length
    return runs
