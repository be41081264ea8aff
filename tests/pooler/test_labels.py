"""Specifies tasks `classify` and `token_classify`: a head's logits, calibrated, then activated, in float32."""

from __future__ import annotations

from typing import Any, get_args

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pooler_steps import (
    ANY_MASKS,
    DTYPES,
    LABELS,
    MASKS,
    SIZE,
    Mask,
    assert_rows,
    linear,
    states_of,
    step,
    whole_step,
)
from poolhook.config import PoolingType
from poolhook.errors import InvalidRequest
from poolhook.params import PoolingParams
from poolhook.pooler import Activation, ClassifyPooler, HiddenBatch, PooledBatch, TokenClassifyPooler, pool

ACTIVATIONS = st.sampled_from(get_args(Activation))
SETTINGS = st.fixed_dictionaries(
    {
        "activation": ACTIVATIONS,
        "logit_mean": st.none() | st.floats(-2, 2),
        "logit_sigma": st.none() | st.floats(0.5, 2),
        "use_activation": st.booleans(),
    }
)
WISHES = st.none() | st.booleans()


def by_formula(logits: Tensor, settings: dict[str, Any], wish: bool | None) -> Tensor:
    """What the logits of one vector, shape `[labels]`, become."""
    logits = (logits - (settings["logit_mean"] or 0)) / (settings["logit_sigma"] or 1)
    if not (settings["use_activation"] if wish is None else wish):
        return logits
    return {
        "softmax": logits.exp() / logits.exp().sum(),
        "sigmoid": 1 / (1 + (-logits).exp()),
        "identity": logits,
        "relu": logits.clamp(min=0),
    }[settings["activation"]]


def drawn_params(data: st.DataObject, count: int) -> list[PoolingParams]:
    wishes = data.draw(st.lists(WISHES, min_size=count, max_size=count))
    return [PoolingParams(use_activation=wish) for wish in wishes]


@settings(deadline=None)
@given(masks=MASKS, dtype=DTYPES, method=st.sampled_from(["CLS", "LAST", "MEAN"]), settings=SETTINGS, data=st.data())
def test_classify_answers_with_a_value_for_each_label_of_a_sequence(
    masks: list[Mask], dtype: torch.dtype, method: str, settings: dict[str, Any], data: st.DataObject
):
    batch, head, params = step(masks, dtype), linear(), drawn_params(data, len(masks))
    pooled = ClassifyPooler(PoolingType(method), head, **settings)(batch, params)
    vectors = pool(batch, [PoolingType(method)])
    expected = [
        by_formula(head(vector), settings, each.use_activation) for vector, each in zip(vectors, params, strict=True)
    ]
    assert_rows(pooled.rows, expected)
    assert pooled.finite.tolist() == [True] * len(masks)


@settings(deadline=None)
@given(masks=ANY_MASKS, dtype=DTYPES, settings=SETTINGS, data=st.data())
def test_token_classify_answers_with_a_value_for_each_label_of_each_token_that_is_read(
    masks: list[Mask], dtype: torch.dtype, settings: dict[str, Any], data: st.DataObject
):
    batch, head, params = step(masks, dtype), linear(), drawn_params(data, len(masks))
    pooled = TokenClassifyPooler(head, **settings)(batch, params)
    expected = []
    for states, each in zip(states_of(batch), params, strict=True):
        rows = [by_formula(head(state), settings, each.use_activation) for state in states]
        expected.append(torch.stack(rows) if rows else torch.empty(0, LABELS))
    assert_rows(pooled.rows, expected)
    assert pooled.finite.tolist() == [True] * len(masks)


def classify(batch: HiddenBatch, head: Any, activation: Activation) -> PooledBatch:
    params = [PoolingParams(task="classify")] * (len(batch.cu_seqlens) - 1)
    return ClassifyPooler(PoolingType.CLS, head, activation=activation)(batch, params)


def token_classify(batch: HiddenBatch, head: Any, activation: Activation) -> PooledBatch:
    params = [PoolingParams(task="token_classify")] * (len(batch.cu_seqlens) - 1)
    return TokenClassifyPooler(head, activation=activation)(batch, params)


@pytest.mark.parametrize("pooler", [classify, token_classify])
class TestEitherTask:
    def test_gives_probabilities_that_sum_to_one_by_softmax(self, pooler: Any):
        for row in pooler(whole_step([2, 3]), linear(), "softmax").rows:
            torch.testing.assert_close(row.sum(-1), torch.ones(row.shape[:-1]))

    @pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
    @pytest.mark.parametrize("activation", get_args(Activation))
    @pytest.mark.parametrize("head", [linear(), torch.tanh], ids=["linear", "tanh"])
    def test_flags_what_is_not_finite_where_an_activation_would_hide_it(
        self, pooler: Any, bad: float, activation: Activation, head: Any
    ):
        batch = whole_step([2, 2, 2])
        batch.hidden[2] = bad
        pooled = pooler(batch, head, activation)
        assert pooled.finite.tolist() == [True, False, True]
        assert all(torch.isfinite(pooled.rows[i]).all() for i in (0, 2))

    def test_flags_logits_that_overflow(self, pooler: Any):
        batch = whole_step([1, 1])
        batch.hidden[1] = 1e30
        assert pooler(batch, lambda states: states * 1e30, "sigmoid").finite.tolist() == [True, False]

    def test_takes_logits_of_any_finite_size(self, pooler: Any):
        batch = HiddenBatch(torch.tensor([[1.0, -3e38]]), torch.tensor([0, 1]))
        pooled = pooler(batch, torch.nn.Identity(), "softmax")
        assert pooled.finite.tolist() == [True]
        torch.testing.assert_close(pooled.rows[0].flatten(), torch.tensor([1.0, 0.0]))


def test_a_text_without_tokens_that_end_a_step_has_no_labels():
    pooled = token_classify(step([[False, False], [False, True]]), linear(), "softmax")
    assert [row.shape for row in pooled.rows] == [(0, LABELS), (1, LABELS)]
    assert pooled.finite.tolist() == [True, True]


def test_a_text_to_classify_has_a_token_that_is_read():
    with pytest.raises(ValueError, match=r"^no token is read of sequence 1 of the step$"):
        classify(step([[True], [False]]), linear(), "softmax")


@pytest.mark.parametrize(
    ("pooler", "message"),
    [
        (
            ClassifyPooler(PoolingType.CLS, linear(), activation="softmax"),
            "dimensions is for tasks embed and token_embed, not classify.",
        ),
        (
            TokenClassifyPooler(linear(), activation="softmax"),
            "dimensions is for tasks embed and token_embed, not token_classify.",
        ),
    ],
)
def test_dimensions_are_refused(pooler: ClassifyPooler | TokenClassifyPooler, message: str):
    pooler.verify(PoolingParams())
    with pytest.raises(InvalidRequest) as caught:
        pooler.verify(PoolingParams(dimensions=SIZE))
    assert str(caught.value) == message
    assert caught.value.param == "dimensions"
