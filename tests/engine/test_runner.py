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
from poolhook.pooler import EmbedPooler, Pooler

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


@given(st.lists(st.lists(st.integers(20, 99), min_size=1, max_size=9), min_size=1, max_size=12))
def test_rows_come_in_the_order_of_the_inputs_though_the_model_sees_them_sorted(sequences: list[list[int]]):
    forward = Echo()
    rows = make_runner(forward).run([EngineInput(ids, EMBED) for ids in sequences])
    assert forward.lengths == sorted(map(len, sequences))
    means = torch.tensor([[sum(ids) / len(ids)] * 2 for ids in sequences])
    torch.testing.assert_close(torch.stack([row for row in rows if row is not None]), means)


def test_a_row_that_is_not_finite_is_none():
    rows = make_runner().run([EngineInput(ids, EMBED) for ids in ([20, 30], [NAN], [40])])
    assert [None if row is None else row.tolist() for row in rows] == [[25, 25], None, [40, 40]]


def test_params_go_with_their_inputs():
    cut = PoolingParams(task="embed", dimensions=1)
    rows = make_runner().run([EngineInput([20, 20], EMBED), EngineInput([30], cut)])
    assert [None if row is None else row.tolist() for row in rows] == [[20, 20], [30]]


def test_rows_are_ordinary_tensors_that_hold_only_themselves():
    first, second = make_runner().run([EngineInput([20], EMBED), EngineInput([30], EMBED)])
    assert first is not None
    assert second is not None
    first.add_(1)  # a tensor of inference mode would refuse this
    assert second.tolist() == [30, 30]
    assert first.untyped_storage().nbytes() == 8


def test_it_answers_for_its_forward_pass_and_its_pooler():
    runner = make_runner()
    assert runner.supported_tasks == ("embed",)
    assert runner.cost(2, 10, 6) == 2010
    assert runner.verify(EMBED) == "embed"
    with pytest.raises(InvalidRequest, match="dimensions"):
        runner.verify(PoolingParams(task="embed", dimensions=3))
