"""Specifies BGE-M3's task `plugin`: a dense embedding, and in parts token weights and token vectors, in one pass."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import normalize

from pooler_steps import DTYPES, MASKS, SIZE, Mask, assert_rows, linear, sequences_of, states_of, step, whole_step
from poolhook.config import PoolingType
from poolhook.errors import InvalidRequest
from poolhook.params import PoolingParams
from poolhook.pooler import BgeM3Pooler, BgeM3TokenPooler, EmbedPooler, Head, PooledBatch

PLUGIN = PoolingParams(task="plugin")
TOKEN_EMBED = PoolingParams(task="token_embed")
SPARSE, COLBERT = linear(1), linear(5, seed=1)


def dense(normalized: bool = True) -> EmbedPooler:
    return EmbedPooler([PoolingType.CLS], normalize=normalized, size=SIZE, matryoshka_dimensions=())


def pooler(normalized: bool = True) -> BgeM3Pooler:
    return BgeM3Pooler(dense(normalized), SPARSE, COLBERT)


def parts(pooled: PooledBatch, name: str) -> list[Tensor]:
    assert pooled.parts is not None
    return [each[name] for each in pooled.parts]


def drawn_params(data: st.DataObject, count: int) -> list[PoolingParams]:
    wish = st.tuples(st.none() | st.integers(1, SIZE), st.none() | st.booleans())
    wishes = data.draw(st.lists(wish, min_size=count, max_size=count))
    return [PoolingParams(task="plugin", dimensions=size, use_activation=act) for size, act in wishes]


@settings(deadline=None)
@given(masks=MASKS, dtype=DTYPES, normalized=st.booleans(), data=st.data())
def test_rows_are_dense_embeddings(masks: list[Mask], dtype: torch.dtype, normalized: bool, data: st.DataObject):
    batch, params = step(masks, dtype), drawn_params(data, len(masks))
    pooled = pooler(normalized)(batch, params)
    assert_rows(pooled.rows, dense(normalized)(batch, params).rows)
    assert pooled.finite.tolist() == [True] * len(masks)


@settings(deadline=None)
@given(masks=MASKS, dtype=DTYPES, data=st.data())
def test_sparse_is_a_weight_for_each_token_that_is_read(masks: list[Mask], dtype: torch.dtype, data: st.DataObject):
    batch = step(masks, dtype)
    pooled = pooler()(batch, drawn_params(data, len(masks)))
    expected = [torch.stack([SPARSE(state)[0].clamp(min=0) for state in states]) for states in states_of(batch)]
    assert_rows(parts(pooled, "sparse"), expected)


@settings(deadline=None)
@given(masks=MASKS, dtype=DTYPES, normalized=st.booleans(), data=st.data())
def test_colbert_is_a_vector_for_each_token_but_the_first_normalised_where_the_embedding_is(
    masks: list[Mask], dtype: torch.dtype, normalized: bool, data: st.DataObject
):
    batch, params = step(masks, dtype), drawn_params(data, len(masks))
    expected = []
    for tokens, each in zip(sequences_of(batch), params, strict=True):
        rows = [COLBERT(state) for place, state in tokens if place > 1]
        if normalized if each.use_activation is None else each.use_activation:
            rows = [normalize(row, dim=-1) for row in rows]
        expected.append(torch.stack(rows) if rows else torch.empty(0, 5))
    assert_rows(parts(pooler(normalized)(batch, params), "colbert"), expected)


@settings(deadline=None)
@given(masks=MASKS, dtype=DTYPES)
def test_its_vectors_of_tokens_can_be_had_alone(masks: list[Mask], dtype: torch.dtype):
    batch = step(masks, dtype)
    alone = BgeM3TokenPooler(projection=COLBERT, normalize=True, size=5)(batch, [TOKEN_EMBED] * len(masks))
    assert_rows(alone.rows, parts(pooler()(batch, [PLUGIN] * len(masks)), "colbert"))
    assert alone.finite.tolist() == [True] * len(masks)


def test_without_marks_every_token_is_read():
    lengths = [1, 4]
    marked, unmarked = step([[True] * length for length in lengths]), whole_step(lengths)
    for name, sizes in {"sparse": [(1,), (4,)], "colbert": [(0, 5), (3, 5)]}.items():
        theirs, ours = (parts(pooler()(batch, [PLUGIN] * 2), name) for batch in (marked, unmarked))
        assert [part.shape for part in ours] == sizes
        assert_rows(ours, theirs)


def test_the_marks_of_a_step_are_left_as_they_are():
    batch = step([[True, True], [True]])
    pooler()(batch, [PLUGIN] * 2)
    assert batch.pooled is not None
    assert batch.pooled.all()


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("at", [2, 3], ids=["first token", "later token"])
def test_what_is_not_finite_spoils_its_own_sequence(bad: float, at: int):
    batch = whole_step([2, 3, 1])
    batch.hidden[at] = bad
    pooled = pooler()(batch, [PLUGIN] * 3)
    assert pooled.finite.tolist() == [True, False, True]
    for tensors in (pooled.rows, parts(pooled, "sparse"), parts(pooled, "colbert")):
        assert all(torch.isfinite(tensors[i]).all() for i in (0, 2))


def nothing(size: int) -> Head:
    """A head that answers with zeros, whatever it reads."""
    return lambda states: torch.zeros(len(states), size)


@pytest.mark.parametrize(
    ("value", "sparse_head", "colbert_head"),
    [
        (1e10, lambda states: states[:, :1] * -1e30, nothing(5)),
        (1e10, nothing(1), lambda states: states * 1e12),
        (1e30, nothing(1), nothing(5)),
    ],
    ids=["sparse", "colbert", "dense"],
)
def test_one_answer_that_is_not_finite_spoils_its_sequence_where_a_last_step_hides_it(
    value: float, sparse_head: Head, colbert_head: Head
):
    batch = whole_step([2, 2])
    batch.hidden[2:] = value
    pooled = BgeM3Pooler(dense(), sparse_head, colbert_head)(batch, [PLUGIN] * 2)
    assert pooled.finite.tolist() == [True, False]


def test_a_state_that_is_not_finite_spoils_its_sequence_whatever_the_heads_make_of_it():
    batch = whole_step([2, 2])
    batch.hidden[3] = torch.inf
    assert BgeM3Pooler(dense(), nothing(1), nothing(5))(batch, [PLUGIN] * 2).finite.tolist() == [True, False]


def test_params_follow_the_rules_of_embeddings():
    pooler().verify(PoolingParams(task="plugin", dimensions=3, use_activation=False))
    with pytest.raises(InvalidRequest) as caught:
        pooler().verify(PoolingParams(task="plugin", dimensions=SIZE + 1))
    assert str(caught.value) == "dimensions is 9, but this model's embeddings have only 8. Leave dimensions out."
