"""Specifies `ModelRunner`: one step through a real model, rows in the order of the inputs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from poolhook.config import PoolingType
from poolhook.engine import EngineInput
from poolhook.engine.runner import ModelRunner
from poolhook.errors import InvalidRequest
from poolhook.params import PoolingParams
from poolhook.pooler import EmbedPooler, HiddenBatch, PooledBatch, Pooler

EMBED = PoolingParams(task="embed")
NAN = 13  # a token id


class Echo:
    """A transformer whose hidden states are the token ids."""

    name = "packed"

    def __init__(self) -> None:
        self.lengths: list[int] = []

    def __call__(self, inputs: Sequence[EngineInput]) -> tuple[Tensor, Tensor]:
        self.lengths = [len(item.token_ids) for item in inputs]
        ids = torch.tensor([float(i) for item in inputs for i in item.token_ids])
        hidden = torch.where(ids == NAN, torch.nan, ids)[:, None].expand(-1, 2)
        return hidden, torch.tensor([0, *torch.tensor(self.lengths).cumsum(0).tolist()])

    def cost(self, count: int, total: int, longest: int) -> int:
        return count * 1000 + total


def make_runner(forward: Echo | None = None) -> ModelRunner:
    pooler = EmbedPooler([PoolingType.MEAN], normalize=False, size=2, matryoshka_dimensions=())
    return ModelRunner(forward or Echo(), Pooler({"embed": pooler}), vocab_size=100, max_length=50)


def rows_of(runner: ModelRunner, inputs: Sequence[EngineInput]) -> list[list[float] | None]:
    return [None if output is None else output.data.tolist() for output in runner.run(inputs)]


@given(st.lists(st.lists(st.integers(20, 99), min_size=1, max_size=9), min_size=1, max_size=12))
def test_outputs_come_in_the_order_of_the_inputs_though_the_model_sees_them_sorted(sequences: list[list[int]]):
    forward = Echo()
    rows = rows_of(make_runner(forward), [EngineInput(ids, EMBED) for ids in sequences])
    assert forward.lengths == sorted(map(len, sequences))
    means = torch.tensor([[sum(ids) / len(ids)] * 2 for ids in sequences])
    torch.testing.assert_close(torch.tensor(rows), means)


def test_an_output_that_is_not_finite_is_none():
    inputs = [EngineInput(ids, EMBED) for ids in ([20, 30], [NAN], [40])]
    assert rows_of(make_runner(), inputs) == [[25, 25], None, [40, 40]]


def test_params_go_with_their_inputs():
    cut = PoolingParams(task="embed", dimensions=1)
    assert rows_of(make_runner(), [EngineInput([20, 20], EMBED), EngineInput([30], cut)]) == [[20, 20], [30]]


def test_rows_are_ordinary_tensors_that_hold_only_themselves():
    first, second = make_runner().run([EngineInput([20], EMBED), EngineInput([30], EMBED)])
    assert first is not None
    assert second is not None
    first.data.add_(1)  # a tensor of inference mode would refuse this
    assert second.data.tolist() == [30, 30]
    assert first.data.untyped_storage().nbytes() == 8


def test_only_the_tokens_that_are_to_be_pooled_are_read():
    some = EngineInput([20, 30, 40], EMBED, pooled=[True, False, True])
    assert rows_of(make_runner(), [EngineInput([20, 30], EMBED), some]) == [[25, 25], [30, 30]]


class Parts:
    """A task whose answer has parts: each row, and its double."""

    def verify(self, params: PoolingParams) -> None: ...

    def __call__(self, batch: HiddenBatch, params: Sequence[PoolingParams]) -> PooledBatch:
        rows = batch.hidden[batch.cu_seqlens[:-1].long()]
        return PooledBatch(rows, torch.ones(len(rows), dtype=torch.bool), [{"double": row * 2} for row in rows])


def test_parts_go_with_their_outputs():
    params = PoolingParams(task="plugin")
    runner = ModelRunner(Echo(), Pooler({"plugin": Parts()}), vocab_size=100, max_length=50)
    outputs = runner.run([EngineInput(ids, params) for ids in ([20, 30, 40], [50])])
    answered = [(output.data.tolist(), output.parts["double"].tolist()) for output in outputs if output is not None]
    assert answered == [([20, 20], [40, 40]), ([50, 50], [100, 100])]


def test_it_answers_for_its_forward_pass_and_its_pooler():
    runner = make_runner()
    assert runner.supported_tasks == ("embed",)
    assert runner.cost(2, 10, 6) == 2010
    assert runner.verify(EMBED) == "embed"
    with pytest.raises(InvalidRequest, match="dimensions"):
        runner.verify(PoolingParams(task="embed", dimensions=3))
