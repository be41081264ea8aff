"""Specifies task `embed`: normalised as the model or the caller says, cut before it is normalised, checked."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import normalize

from poolhook.config import PoolingType
from poolhook.errors import InvalidRequest
from poolhook.params import PoolingParams
from poolhook.pooler import EmbedPooler, Pooler
from tiny import packed

SIZE = 8
EMBED = PoolingParams(task="embed")


def pooler(matryoshka: tuple[int, ...] | None = None, *, normalized: bool = True) -> EmbedPooler:
    return EmbedPooler([PoolingType.CLS], normalize=normalized, size=SIZE, matryoshka_dimensions=matryoshka)


class TestVectors:
    def test_are_normalised_where_the_model_says_so(self):
        hidden, cu_seqlens = packed([2, 3], SIZE)
        rows = pooler()(hidden, cu_seqlens, [EMBED] * 2).rows
        torch.testing.assert_close(torch.stack(list(rows)), normalize(hidden[[0, 2]], dim=-1))

    def test_are_left_alone_where_it_does_not(self):
        hidden, cu_seqlens = packed([2, 3], SIZE)
        rows = pooler(normalized=False)(hidden, cu_seqlens, [EMBED] * 2).rows
        torch.testing.assert_close(torch.stack(list(rows)), hidden[[0, 2]])

    @given(
        st.lists(
            st.tuples(st.integers(1, 9), st.none() | st.integers(1, SIZE), st.none() | st.booleans()),
            min_size=1,
            max_size=10,
        ),
        st.booleans(),
    )
    def test_are_what_each_caller_in_a_batch_wishes(
        self, wishes: list[tuple[int, int | None, bool | None]], normalized: bool
    ):
        hidden, cu_seqlens = packed([length for length, _, _ in wishes], SIZE)
        params = [PoolingParams(task="embed", dimensions=size, use_activation=act) for _, size, act in wishes]
        rows = pooler(normalized=normalized)(hidden, cu_seqlens, params).rows
        assert len(rows) == len(wishes)
        for row, start, (_, size, act) in zip(rows, cu_seqlens.tolist(), wishes, strict=False):
            vector = hidden[start, :size]
            expected = normalize(vector, dim=-1) if (normalized if act is None else act) else vector
            torch.testing.assert_close(row, expected)

    def test_are_of_length_one_after_a_cut(self):
        hidden, cu_seqlens = packed([4], SIZE)
        (row,) = pooler()(hidden, cu_seqlens, [PoolingParams(task="embed", dimensions=3)]).rows
        assert row.shape == (3,)
        assert row.norm().item() == pytest.approx(1)

    def test_of_several_methods_are_concatenated_before_the_cut(self):
        hidden, cu_seqlens = packed([4], SIZE)
        both = EmbedPooler([PoolingType.CLS, PoolingType.LAST], normalize=False, size=2 * SIZE)
        (row,) = both(hidden, cu_seqlens, [PoolingParams(task="embed", dimensions=SIZE + 1)]).rows
        assert torch.equal(row, torch.cat([hidden[0], hidden[-1, :1]]))

    def test_of_nothing_but_zeros_stay_zeros(self):
        batch = pooler()(torch.zeros(3, SIZE), torch.tensor([0, 3]), [EMBED])
        assert batch.finite.tolist() == [True]
        assert torch.equal(batch.rows[0], torch.zeros(SIZE))

    @pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
    @pytest.mark.parametrize("params", [EMBED, PoolingParams(task="embed", dimensions=2)])
    def test_that_are_not_finite_are_flagged_row_by_row(self, bad: float, params: PoolingParams):
        hidden, cu_seqlens = packed([2, 2, 2], SIZE)
        hidden[2, SIZE - 1] = bad
        batch = pooler()(hidden, cu_seqlens, [EMBED, params, EMBED])
        assert batch.finite.tolist() == [True, False, True]
        assert torch.isfinite(torch.stack([batch.rows[0], batch.rows[2]])).all()


class TestDimensions:
    @pytest.mark.parametrize("matryoshka", [None, (), (2, 4)])
    @pytest.mark.parametrize("wanted", [None, SIZE])
    def test_may_always_be_the_whole_vectors(self, matryoshka: tuple[int, ...] | None, wanted: int | None):
        pooler(matryoshka).verify(PoolingParams(task="embed", dimensions=wanted))

    def test_may_be_any_where_the_model_was_trained_for_any(self):
        for wanted in range(1, SIZE + 1):
            pooler(()).verify(PoolingParams(task="embed", dimensions=wanted))

    @pytest.mark.parametrize(
        ("matryoshka", "wanted", "message"),
        [
            (None, 4, "embeddings have 8 and were not trained to be cut"),
            (None, 9, "embeddings have 8"),
            ((), 9, "only 8"),
            ((2, 4), 9, "only 8"),
            ((2, 4), 3, "can be cut to 2, 4"),
        ],
    )
    def test_that_the_model_does_not_have_are_refused_with_those_it_has(
        self, matryoshka: tuple[int, ...] | None, wanted: int, message: str
    ):
        with pytest.raises(InvalidRequest, match=f"dimensions is {wanted}, but .*{message}") as caught:
            pooler(matryoshka).verify(PoolingParams(task="embed", dimensions=wanted))
        assert caught.value.param == "dimensions"


class TestPooler:
    def test_names_its_tasks_in_the_stable_order(self):
        assert Pooler({"plugin": pooler(), "embed": pooler()}).supported_tasks == ("embed", "plugin")

    @pytest.mark.parametrize("task", ["classify", None])
    def test_refuses_another_task_and_lists_its_own(self, task: str | None):
        with pytest.raises(InvalidRequest, match=f"Task {task!r} is not supported.*Supported tasks: embed") as caught:
            Pooler({"embed": pooler()}).verify(PoolingParams(task=task))
        assert caught.value.param == "task"

    def test_lets_the_task_check_its_own_params(self):
        whole = Pooler({"embed": pooler()})
        assert whole.verify(EMBED) == "embed"
        with pytest.raises(InvalidRequest, match="dimensions"):
            whole.verify(PoolingParams(task="embed", dimensions=SIZE + 1))
