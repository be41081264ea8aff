"""Specifies task `token_embed`: a vector for each token that is read, cut and normalised as an embedding is."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import normalize

from pooler_steps import ANY_MASKS, DTYPES, SIZE, Mask, assert_rows, linear, states_of, step, whole_step
from poolhook.errors import InvalidRequest
from poolhook.params import PoolingParams
from poolhook.pooler import TokenEmbedPooler

TOKEN_EMBED = PoolingParams(task="token_embed")


@settings(deadline=None)
@given(masks=ANY_MASKS, dtype=DTYPES, normalized=st.booleans(), default=st.none() | st.integers(1, 5), data=st.data())
def test_rows_are_the_vectors_of_the_tokens_that_are_read_as_each_caller_wishes(
    masks: list[Mask], dtype: torch.dtype, normalized: bool, default: int | None, data: st.DataObject
):
    batch, dense = step(masks, dtype), linear(5)
    pooler = TokenEmbedPooler(
        projection=dense, normalize=normalized, size=5, matryoshka_dimensions=(), dimensions=default
    )
    wish = st.tuples(st.none() | st.integers(1, 5), st.none() | st.booleans())
    wishes = data.draw(st.lists(wish, min_size=len(masks), max_size=len(masks)))
    expected = []
    for states, (size, activate) in zip(states_of(batch), wishes, strict=True):
        vectors = dense(states)[:, : size or default]
        expected.append(normalize(vectors, dim=-1) if (normalized if activate is None else activate) else vectors)
    params = [PoolingParams(task="token_embed", dimensions=size, use_activation=act) for size, act in wishes]
    pooled = pooler(batch, params)
    assert_rows(pooled.rows, expected)
    assert pooled.finite.tolist() == [True] * len(masks)


def test_without_a_projection_rows_are_the_hidden_states():
    batch = whole_step([2, 3])
    rows = TokenEmbedPooler(normalize=False, size=SIZE)(batch, [TOKEN_EMBED] * 2).rows
    assert_rows(rows, [batch.hidden[:2], batch.hidden[2:]])


def test_a_sequence_of_which_no_token_is_read_has_an_empty_row():
    pooled = TokenEmbedPooler(normalize=True, size=SIZE)(step([[False, False]]), [TOKEN_EMBED])
    assert pooled.rows[0].shape == (0, SIZE)
    assert pooled.finite.tolist() == [True]


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("projected", [True, False])
def test_a_token_that_is_not_finite_spoils_its_own_sequence(bad: float, projected: bool):
    batch = step([[True, True], [False], [True, True, True], [True, False]])
    batch.hidden[4, 3] = bad
    batch.hidden[7] = bad  # not read
    projection = torch.tanh if projected else None
    pooled = TokenEmbedPooler(projection=projection, normalize=True, size=SIZE)(batch, [TOKEN_EMBED] * 4)
    assert pooled.finite.tolist() == [True, True, False, True]
    assert all(torch.isfinite(pooled.rows[i]).all() for i in (0, 1, 3))


def test_dimensions_follow_the_rules_of_embeddings():
    pooler = TokenEmbedPooler(normalize=True, size=SIZE, matryoshka_dimensions=(2, 4))
    pooler.verify(PoolingParams(task="token_embed", dimensions=4))
    with pytest.raises(InvalidRequest) as caught:
        pooler.verify(PoolingParams(task="token_embed", dimensions=3))
    assert str(caught.value) == "dimensions is 3, but this model's can be cut to 2, 4. Leave dimensions out."
    assert caught.value.param == "dimensions"
