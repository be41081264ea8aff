"""Specifies the pooling methods: each equals its formula, computed for one sequence after the other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import Tensor

from pooler_steps import HALVES, MASKS, SIZE, Mask, linear, sequences_of, step, whole_step
from poolhook.config import PoolingType
from poolhook.errors import ConfigError
from poolhook.pooler import ClassifyPooler, EmbedPooler, HiddenBatch, pool

METHODS = [method for method in PoolingType if not method.is_of_tokens]
# As sentence-transformers' Pooling calls them, whose formulas these are.
NAMES = {
    PoolingType.CLS: "cls",
    PoolingType.LAST: "lasttoken",
    PoolingType.MEAN: "mean",
    PoolingType.MAX: "max",
    PoolingType.MEAN_SQRT_LEN: "mean_sqrt_len_tokens",
    PoolingType.WEIGHTED_MEAN: "weightedmean",
}
LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=12)


FORMULAS: dict[PoolingType, Callable[[Tensor, Tensor], Tensor]] = {
    PoolingType.CLS: lambda states, places: states[0],
    PoolingType.LAST: lambda states, places: states[-1],
    PoolingType.MEAN: lambda states, places: states.sum(0) / len(states),
    PoolingType.MAX: lambda states, places: states.max(0).values,
    PoolingType.MEAN_SQRT_LEN: lambda states, places: states.sum(0) / len(states) ** 0.5,
    PoolingType.WEIGHTED_MEAN: lambda states, places: (states * places[:, None]).sum(0) / places.sum(),
}
"""From the states and the places of the tokens that are read of one sequence to its vector."""


def all_by_formula(batch: HiddenBatch, method: PoolingType) -> Tensor:
    vectors = []
    for tokens in sequences_of(batch):
        places, states = zip(*tokens, strict=True)
        vectors.append(FORMULAS[method](torch.stack(states), torch.tensor(places)))
    return torch.stack(vectors)


@pytest.mark.parametrize("method", METHODS)
class TestMethod:
    @settings(deadline=None)
    @given(lengths=LENGTHS)
    def test_equals_its_formula_for_any_lengths(self, method: PoolingType, lengths: list[int]):
        batch = whole_step(lengths)
        torch.testing.assert_close(pool(batch, [method]), all_by_formula(batch, method), rtol=1e-5, atol=1e-5)

    @settings(deadline=None)
    @given(masks=MASKS)
    def test_reads_only_the_tokens_that_are_marked(self, method: PoolingType, masks: list[Mask]):
        batch = step(masks)
        torch.testing.assert_close(pool(batch, [method]), all_by_formula(batch, method), rtol=1e-5, atol=1e-5)

    @settings(deadline=None)
    @given(lengths=LENGTHS)
    def test_with_every_token_marked_is_as_without_marks(self, method: PoolingType, lengths: list[int]):
        marked, unmarked = step([[True] * length for length in lengths]), whole_step(lengths)
        assert torch.equal(pool(marked, [method]), pool(unmarked, [method]))

    @pytest.mark.parametrize("dtype", HALVES)
    def test_of_half_precision_is_computed_in_float32(self, method: PoolingType, dtype: torch.dtype):
        # A sum of 300 numbers near 300 would leave float16's range.
        batch = whole_step([300, 2], dtype)
        batch = HiddenBatch(batch.hidden + 300, batch.cu_seqlens)
        pooled = pool(batch, [method])
        assert pooled.dtype == torch.float32
        torch.testing.assert_close(pooled, all_by_formula(batch, method), rtol=1e-5, atol=1e-4)

    def test_keeps_one_sequences_nan_to_itself(self, method: PoolingType):
        batch = whole_step([3, 2, 4])
        batch.hidden[3:5] = torch.nan
        assert torch.isfinite(pool(batch, [method])).all(dim=-1).tolist() == [True, False, True]

    def test_never_sees_what_is_not_read(self, method: PoolingType):
        batch = step([[True, False, True], [False, True]])
        batch.hidden[[1, 3]] = torch.nan
        assert torch.isfinite(pool(batch, [method])).all()

    def test_of_a_sequence_without_marked_tokens_is_an_error(self, method: PoolingType):
        with pytest.raises(ValueError, match=r"^no token is read of sequence 1 of the step$"):
            pool(step([[True], [False, False], [True]]), [method])


def padded(batch: HiddenBatch, lengths: list[int]) -> dict[str, Tensor]:
    states = torch.nn.utils.rnn.pad_sequence(list(batch.hidden.split(lengths)), batch_first=True)
    mask = torch.arange(states.shape[1])[None] < torch.tensor(lengths)[:, None]
    return {"token_embeddings": states, "attention_mask": mask.long()}


def flattened(batch: HiddenBatch, lengths: list[int]) -> dict[str, Tensor]:
    cu_seqlens = torch.tensor([0, *accumulate(lengths)])
    return {"token_embeddings": batch.hidden[None], "cu_seq_lens_q": cu_seqlens}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("features_of", [padded, flattened])
class TestAgreesWithSentenceTransformers:
    def test_on_whole_sequences(self, method: PoolingType, features_of: Callable[..., dict[str, Tensor]]):
        lengths = [1, 5, 3, 17]
        batch = whole_step(lengths)
        theirs = Pooling(SIZE, pooling_mode=NAMES[method])(features_of(batch, lengths))["sentence_embedding"]
        torch.testing.assert_close(pool(batch, [method]), theirs, rtol=1e-5, atol=1e-5)

    def test_on_prompts_that_are_not_included(self, method: PoolingType, features_of: Callable[..., dict[str, Tensor]]):
        lengths, prompt = [4, 5, 9, 17], 3
        batch = step([[False] * prompt + [True] * (length - prompt) for length in lengths])
        pooling = Pooling(SIZE, pooling_mode=NAMES[method], include_prompt=False)
        theirs = pooling({**features_of(batch, lengths), "prompt_length": prompt})["sentence_embedding"]
        torch.testing.assert_close(pool(batch, [method]), theirs, rtol=1e-5, atol=1e-5)


@settings(deadline=None)
@given(masks=MASKS, methods=st.lists(st.sampled_from(METHODS), min_size=1, max_size=4))
def test_several_methods_lie_side_by_side_in_their_order(masks: list[Mask], methods: list[PoolingType]):
    batch = step(masks)
    apart = torch.cat([pool(batch, [method]) for method in methods], dim=-1)
    assert torch.equal(pool(batch, methods), apart)


@pytest.mark.parametrize("method", [PoolingType.ALL, PoolingType.STEP])
class TestMethodsOfTokens:
    def test_make_no_embedding(self, method: PoolingType):
        with pytest.raises(ConfigError) as caught:
            EmbedPooler([PoolingType.CLS, method], normalize=True, size=SIZE)
        assert str(caught.value) == (
            f"Pooling type {method} answers with a row for each token: it is for tasks token_embed and "
            "token_classify, not embed."
        )

    def test_make_nothing_to_classify(self, method: PoolingType):
        with pytest.raises(ConfigError) as caught:
            ClassifyPooler(method, linear(), activation="softmax")
        assert str(caught.value) == (
            f"Pooling type {method} answers with a row for each token: it is for tasks token_embed and "
            "token_classify, not classify."
        )
