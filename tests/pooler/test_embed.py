"""Specifies task `embed`: pooled, projected, cut before it is normalised, as the model or the caller says."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import normalize

from pooler_steps import DTYPES, MASKS, SIZE, Mask, assert_rows, linear, step, whole_step
from poolhook.config import PoolingType
from poolhook.errors import ConfigError, InvalidRequest
from poolhook.params import PoolingParams
from poolhook.pooler import EmbedPooler, HiddenBatch, TokenEmbedPooler, pool

EMBED = PoolingParams(task="embed")
CUT = PoolingParams(task="embed", dimensions=2)
HOW_TO_ALLOW = (
    "Leave dimensions out. If it was trained for it and its config.json does not say so, whoever starts it can: "
    'hf_overrides={"is_matryoshka": true} allows any length, {"matryoshka_dimensions": [...]} those listed.'
)


def pooler(matryoshka: tuple[int, ...] | None = None, *, normalized: bool = True) -> EmbedPooler:
    return EmbedPooler([PoolingType.CLS], normalize=normalized, size=SIZE, matryoshka_dimensions=matryoshka)


def wished(vector: Tensor, size: int | None, normalized: bool) -> Tensor:
    return normalize(vector[:size], dim=-1) if normalized else vector[:size]


class TestVectors:
    def test_are_normalised_where_the_model_says_so(self):
        batch = whole_step([2, 3])
        rows = pooler()(batch, [EMBED] * 2).rows
        torch.testing.assert_close(torch.stack(list(rows)), normalize(batch.hidden[[0, 2]], dim=-1))

    def test_are_left_alone_where_it_does_not(self):
        batch = whole_step([2, 3])
        rows = pooler(normalized=False)(batch, [EMBED] * 2).rows
        torch.testing.assert_close(torch.stack(list(rows)), batch.hidden[[0, 2]])

    @settings(deadline=None)
    @given(
        masks=MASKS, dtype=DTYPES, normalized=st.booleans(), default=st.none() | st.integers(1, SIZE), data=st.data()
    )
    def test_are_what_each_caller_in_a_batch_wishes(
        self, masks: list[Mask], dtype: torch.dtype, normalized: bool, default: int | None, data: st.DataObject
    ):
        batch = step(masks, dtype)
        wish = st.tuples(st.none() | st.integers(1, SIZE), st.none() | st.booleans())
        wishes = data.draw(st.lists(wish, min_size=len(masks), max_size=len(masks)))
        mean = EmbedPooler(
            [PoolingType.MEAN], normalize=normalized, size=SIZE, matryoshka_dimensions=(), dimensions=default
        )
        params = [PoolingParams(task="embed", dimensions=size, use_activation=act) for size, act in wishes]
        expected = [
            wished(vector, size or default, normalized if act is None else act)
            for vector, (size, act) in zip(pool(batch, [PoolingType.MEAN]), wishes, strict=True)
        ]
        assert_rows(mean(batch, params).rows, expected)

    def test_are_of_length_one_after_a_cut(self):
        (row,) = pooler()(whole_step([4]), [PoolingParams(task="embed", dimensions=3)]).rows
        assert row.shape == (3,)
        assert row.norm().item() == pytest.approx(1)

    def test_of_several_methods_are_concatenated_before_the_cut(self):
        batch = whole_step([4])
        both = EmbedPooler([PoolingType.CLS, PoolingType.LAST], normalize=False, size=2 * SIZE)
        (row,) = both(batch, [PoolingParams(task="embed", dimensions=SIZE + 1)]).rows
        assert torch.equal(row, torch.cat([batch.hidden[0], batch.hidden[-1, :1]]))

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
    def test_are_projected_in_float32_before_the_cut(self, dtype: torch.dtype):
        batch, dense = whole_step([4, 1], dtype), linear(5)
        projected = EmbedPooler([PoolingType.CLS], projection=dense, normalize=True, size=5, matryoshka_dimensions=())
        expected = [dense(batch.hidden[i].float()) for i in (0, 4)]
        whole, cut = projected(batch, [EMBED, CUT]).rows
        assert_rows([whole, cut], [wished(expected[0], None, True), wished(expected[1], 2, True)])

    def test_of_nothing_but_zeros_stay_zeros(self):
        batch = pooler()(HiddenBatch(torch.zeros(3, SIZE), torch.tensor([0, 3])), [EMBED])
        assert batch.finite.tolist() == [True]
        assert torch.equal(batch.rows[0], torch.zeros(SIZE))


class TestNonFiniteVectors:
    @pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
    @pytest.mark.parametrize("params", [EMBED, CUT])
    def test_are_flagged_row_by_row(self, bad: float, params: PoolingParams):
        batch = whole_step([2, 2, 2])
        batch.hidden[2, SIZE - 1] = bad
        pooled = pooler()(batch, [EMBED, params, EMBED])
        assert pooled.finite.tolist() == [True, False, True]
        assert torch.isfinite(torch.stack([pooled.rows[0], pooled.rows[2]])).all()

    def test_are_those_too_whose_norm_overflows(self):
        batch = whole_step([1, 1])
        batch.hidden[1] = 1e30
        assert pooler()(batch, [EMBED] * 2).finite.tolist() == [True, False]

    def test_are_not_hidden_by_a_projections_activation(self):
        batch = whole_step([1, 1])
        batch.hidden[1] = torch.inf
        tanh = EmbedPooler([PoolingType.CLS], projection=nn.Tanh(), normalize=True, size=SIZE)
        assert tanh(batch, [EMBED] * 2).finite.tolist() == [True, False]


@pytest.mark.parametrize("matryoshka", [None, (), (2, 4)])
@pytest.mark.parametrize("wanted", [None, SIZE])
def test_dimensions_may_always_be_the_whole_vectors(matryoshka: tuple[int, ...] | None, wanted: int | None):
    pooler(matryoshka).verify(PoolingParams(task="embed", dimensions=wanted))


def test_dimensions_may_be_any_where_the_model_was_trained_for_any():
    for wanted in range(1, SIZE + 1):
        pooler(()).verify(PoolingParams(task="embed", dimensions=wanted))


@pytest.mark.parametrize(
    ("matryoshka", "wanted", "message"),
    [
        (
            None,
            4,
            "dimensions is 4, but this model's embeddings have 8 and were not trained to be cut (no Matryoshka "
            f"model). {HOW_TO_ALLOW}",
        ),
        # No override would allow these.
        (None, 9, "dimensions is 9, but this model's embeddings have only 8. Leave dimensions out."),
        ((), 9, "dimensions is 9, but this model's embeddings have only 8. Leave dimensions out."),
        ((2, 4), 9, "dimensions is 9, but this model's embeddings have only 8. Leave dimensions out."),
        ((2, 4), 3, "dimensions is 3, but this model's can be cut to 2, 4. Leave dimensions out."),
    ],
)
class TestDimensionsThatTheModelDoesNotHave:
    def test_are_refused_with_those_it_has(self, matryoshka: tuple[int, ...] | None, wanted: int, message: str):
        with pytest.raises(InvalidRequest) as caught:
            pooler(matryoshka).verify(PoolingParams(task="embed", dimensions=wanted))
        assert str(caught.value) == message
        assert caught.value.param == "dimensions"

    def test_are_refused_at_start_as_a_default(self, matryoshka: tuple[int, ...] | None, wanted: int, message: str):
        settings = {"normalize": True, "size": SIZE, "matryoshka_dimensions": matryoshka, "dimensions": wanted}
        for start in (lambda: EmbedPooler([PoolingType.CLS], **settings), lambda: TokenEmbedPooler(**settings)):
            with pytest.raises(ConfigError) as caught:
                start()
            assert str(caught.value) == f"PoolerConfig: {message}"


class TestADefaultOfDimensions:
    def test_cuts_where_the_caller_does_not_say(self):
        cutting = EmbedPooler([PoolingType.CLS], normalize=True, size=SIZE, matryoshka_dimensions=(2, 4), dimensions=4)
        params = [EMBED, CUT, PoolingParams(task="embed", dimensions=SIZE)]
        for each in params:
            cutting.verify(each)
        rows = cutting(whole_step([1, 1, 1]), params).rows
        assert [len(row) for row in rows] == [4, 2, SIZE]
        assert all(row.norm().item() == pytest.approx(1) for row in rows)
