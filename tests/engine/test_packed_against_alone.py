"""Specifies the packed forward pass: every sequence comes out as transformers computes it alone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AutoModel

from poolhook.engine.attention import ATTENTION_NAME, packed_attention
from poolhook.engine.client import EngineInput
from poolhook.engine.forward import Forward
from poolhook.engine.proof import choose_forward
from poolhook.models import load_model, read_spec
from poolhook.params import PoolingParams
from tiny import VOCAB_SIZE, TinyModel

FAMILIES = ["bert", "roberta", "distilbert", "modernbert", "qwen3", "gemma3", "mpnet", "deberta_v2"]
LENGTHS = st.lists(st.integers(1, 158), min_size=1, max_size=6)


@cache
def forward_of(directory: Path) -> Forward:
    spec = read_spec(directory)
    return choose_forward(load_model(spec, torch.device("cpu"), torch.float32), spec)


@cache
def reference(directory: Path) -> Any:
    return AutoModel.from_pretrained(directory, attn_implementation="eager").eval()


@torch.inference_mode()
def alone(directory: Path, inputs: list[EngineInput]) -> Tensor:
    """Plain transformers, one sequence at a time."""
    model = reference(directory)
    return torch.cat([model(input_ids=torch.tensor([item.token_ids]))[0][0] for item in inputs])


@torch.inference_mode()
def together(directory: Path, inputs: list[EngineInput]) -> Tensor:
    return forward_of(directory)(inputs)[0].clone()


def sequences(lengths: list[int], seed: int) -> list[EngineInput]:
    """Random ids of those lengths; now and then the padding id (1), which is a token like any other."""
    rng = random.Random(seed)
    ids = [[rng.choice([1, rng.randrange(VOCAB_SIZE)]) if i % 4 == 0 else rng.randrange(VOCAB_SIZE) for i in range(n)]
           for n in lengths]  # fmt: skip
    return [EngineInput(row, PoolingParams(task="embed")) for row in ids]


@contextmanager
def leaking_attention() -> Iterator[None]:
    """While inside, the registered attention lets every token see the whole batch."""

    def attend(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any, **kwargs: Any) -> tuple[Tensor, None]:
        packed_attention(module, query, key, value, mask, **kwargs)  # so that it counts as called
        group = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(group, dim=1), value.repeat_interleave(group, dim=1)
        return scaled_dot_product_attention(query, key, value, scale=kwargs.get("scaling")).transpose(1, 2), None

    AttentionInterface.register(ATTENTION_NAME, attend)
    try:
        yield
    finally:
        AttentionInterface.register(ATTENTION_NAME, packed_attention)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lengths=LENGTHS, seed=st.integers(0, 10**6))
def test_hidden_states_are_those_of_each_sequence_alone(
    tiny_model: TinyModel, family: str, lengths: list[int], seed: int
):
    directory = tiny_model(family)
    inputs = sequences(lengths, seed)
    assert forward_of(directory).name == "packed"
    torch.testing.assert_close(together(directory, inputs), alone(directory, inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lengths=st.lists(st.integers(1, 20), min_size=2, max_size=30), seed=st.integers(0, 10**6))
def test_many_short_sequences_stay_apart(tiny_model: TinyModel, family: str, lengths: list[int], seed: int):
    directory = tiny_model(family)
    inputs = sequences(sorted(lengths), seed)
    torch.testing.assert_close(together(directory, inputs), alone(directory, inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_borders_are_those_of_the_sequences(tiny_model: TinyModel, family: str):
    directory = tiny_model(family)
    with torch.inference_mode():
        hidden, cu_seqlens = forward_of(directory)(sequences([3, 3, 1, 7], 0))
    assert hidden.shape == (14, 32)
    assert cu_seqlens.tolist() == [0, 3, 6, 7, 14]


@pytest.mark.parametrize("family", FAMILIES)
def test_these_tests_would_see_a_leak(tiny_model: TinyModel, family: str):
    directory = tiny_model(family)
    inputs = sequences([9, 9, 30, 5], 1)
    assert forward_of(directory).name == "packed"
    with leaking_attention():
        leaked = together(directory, inputs)
    expected = alone(directory, inputs)
    # A thousand times what the comparison above allows.
    assert ((leaked - expected).norm(dim=-1) / expected.norm(dim=-1)).median() > 0.1


@pytest.mark.parametrize("family", FAMILIES)
def test_a_batch_that_leaks_is_found_out_at_load(tiny_model: TinyModel, family: str, caplog: pytest.LogCaptureFixture):
    directory = tiny_model(family)
    spec = read_spec(directory, "the model's name")
    with leaking_attention():
        forward = choose_forward(load_model(spec, torch.device("cpu"), torch.float32), spec)
    assert forward.name == "padded"
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "the model's name" in record.getMessage()
    assert "differ from those of single sequences" in record.getMessage()
    inputs = sequences([1, 20, 5], 2)
    with torch.inference_mode():
        torch.testing.assert_close(forward(inputs)[0], alone(directory, inputs), rtol=1e-4, atol=1e-5)


def test_token_types_go_with_their_tokens(tiny_model: TinyModel):
    directory = tiny_model("bert")
    types = [[0, 0, 1, 1], [1, 0], None, [0] * 3]
    inputs = [EngineInput([5, 6, 7, 8][: len(t or [0])], PoolingParams(task="embed"), t) for t in types]
    with torch.inference_mode():
        expected = [
            reference(directory)(
                input_ids=torch.tensor([item.token_ids]), token_type_ids=torch.tensor([item.token_type_ids or [0]])
            )[0][0]
            for item in inputs
        ]
    torch.testing.assert_close(together(directory, inputs), torch.cat(expected), rtol=1e-4, atol=1e-5)
