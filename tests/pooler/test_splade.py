"""Specifies SPLADE's task `embed`: a weight for each word, from all tokens of a text that are read."""

from __future__ import annotations

import math
from typing import Any, Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers.sparse_encoder.modules import SpladePooling
from torch import Tensor

from pooler_steps import DTYPES, HALVES, MASKS, Mask, assert_rows, linear, states_of, step, whole_step
from poolhook.errors import InvalidRequest
from poolhook.params import PoolingParams
from poolhook.pooler import SpladePooler

WORDS = 11
EMBED = PoolingParams(task="embed")
STRATEGIES = ["max", "sum"]

Strategy = Literal["max", "sum"]


def pooler(head: Any = None, strategy: Strategy = "max", *, twice: bool = False) -> SpladePooler:
    return SpladePooler(head or linear(WORDS), strategy=strategy, log1p_twice=twice, size=WORDS)


def by_formula(states: Tensor, head: Any, strategy: Strategy, twice: bool) -> Tensor:
    """The row of one sequence, token by token."""
    weights = [head(state).clamp(min=0).log1p() for state in states]
    weights = [each.log1p() for each in weights] if twice else weights
    row = weights[0]
    for each in weights[1:]:
        row = torch.maximum(row, each) if strategy == "max" else row + each
    return row


@settings(deadline=None)
@given(masks=MASKS, dtype=DTYPES, strategy=st.sampled_from(STRATEGIES), twice=st.booleans())
def test_a_row_equals_the_formula(masks: list[Mask], dtype: torch.dtype, strategy: Strategy, twice: bool):
    batch, head = step(masks, dtype), linear(WORDS)
    pooled = pooler(head, strategy, twice=twice)(batch, [EMBED] * len(masks))
    assert_rows(pooled.rows, [by_formula(states, head, strategy, twice) for states in states_of(batch)])
    assert pooled.finite.tolist() == [True] * len(masks)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("activation", ["relu", "log1p_relu"])
def test_a_row_equals_sentence_transformers(strategy: Strategy, activation: Literal["relu", "log1p_relu"]):
    batch, head = whole_step([4, 1, 9]), linear(WORDS)
    features = {"token_embeddings": head(batch.hidden)[None], "cu_seq_lens_q": batch.cu_seqlens}
    theirs = SpladePooling(strategy, activation).eval()(features)["sentence_embedding"]
    pooled = pooler(head, strategy, twice=activation == "log1p_relu")(batch, [EMBED] * 3)
    assert_rows(pooled.rows, list(theirs))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("lengths", [[1000], [300, 1, 700, 2], [1] * 600, [256, 256], [255, 2]])
def test_the_head_never_sees_many_tokens_at_once(strategy: Strategy, lengths: list[int]):
    seen: list[int] = []
    head = linear(WORDS)

    def watched(states: Tensor) -> Tensor:
        seen.append(len(states))
        return head(states)

    batch = whole_step(lengths)
    pooled = pooler(watched, strategy)(batch, [EMBED] * len(lengths))
    assert max(seen) <= 256
    assert sum(seen) == sum(lengths)
    assert_rows(pooled.rows, [by_formula(states, head, strategy, False) for states in states_of(batch)])


@pytest.mark.parametrize("dtype", HALVES)
def test_a_sum_may_leave_the_range_of_half_precision(dtype: torch.dtype):
    def large(states: Tensor) -> Tensor:
        return torch.full((len(states), WORDS), 1e30)

    (row,) = pooler(large, "sum")(whole_step([1000], dtype), [EMBED]).rows
    torch.testing.assert_close(row, torch.full((WORDS,), 1000 * math.log1p(1e30)), rtol=1e-4, atol=0)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_a_token_that_is_not_finite_spoils_its_own_sequence(strategy: Strategy, bad: float):
    batch = step([[True, True], [True, True, True], [True, False]])
    batch.hidden[3] = bad
    batch.hidden[6] = bad  # not read
    pooled = pooler(strategy=strategy)(batch, [EMBED] * 3)
    assert pooled.finite.tolist() == [True, False, True]
    assert all(torch.isfinite(pooled.rows[i]).all() for i in (0, 2))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_minus_infinity_is_not_hidden_by_relu(strategy: Strategy):
    batch = whole_step([2, 2])
    batch.hidden[0] = -torch.inf
    pooled = pooler(lambda states: states[:, :1].expand(-1, WORDS), strategy)(batch, [EMBED] * 2)
    assert pooled.finite.tolist() == [False, True]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_logit_that_is_not_finite_spoils_its_own_sequence(strategy: Strategy):
    batch = whole_step([2, 2])
    batch.hidden[0] = 1e30
    pooled = pooler(lambda states: (states * 1e30)[:, :1].expand(-1, WORDS).abs(), strategy)(batch, [EMBED] * 2)
    assert not pooled.finite[0]


def test_a_text_of_which_no_token_is_read_is_an_error():
    with pytest.raises(ValueError, match=r"^no token is read of sequence 1 of the step$"):
        pooler()(step([[True], [False]]), [EMBED] * 2)


class TestParams:
    @pytest.mark.parametrize(
        "params", [EMBED, PoolingParams(use_activation=False), PoolingParams(dimensions=WORDS)], ids=str
    )
    def test_may_ask_for_what_a_row_is_anyway(self, params: PoolingParams):
        pooler().verify(params)

    @pytest.mark.parametrize("wanted", [2, WORDS + 1])
    def test_may_not_ask_for_a_cut(self, wanted: int):
        with pytest.raises(InvalidRequest) as caught:
            pooler().verify(PoolingParams(dimensions=wanted))
        assert str(caught.value) == (
            f"dimensions is {wanted}, but this model's embeddings are sparse: each of their 11 values is a word's, "
            "and they can't be cut. Leave dimensions out."
        )
        assert caught.value.param == "dimensions"

    def test_may_not_ask_for_normalisation(self):
        with pytest.raises(InvalidRequest) as caught:
            pooler().verify(PoolingParams(use_activation=True))
        assert str(caught.value) == (
            "use_activation is true, but this model's embeddings are sparse and never normalised. "
            "Leave use_activation out."
        )
        assert caught.value.param == "use_activation"
