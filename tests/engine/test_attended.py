"""Tokens that look but are not looked at (ColBERT's query expansion), packed and padded, against transformers' mask."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor
from transformers import AutoModel

from poolhook.engine import EngineInput
from poolhook.engine.forward import PackedForward, PaddedForward
from poolhook.models import read_spec
from poolhook.params import PoolingParams
from tiny import VOCAB_SIZE, TinyModel

PARAMS = PoolingParams(task="token_embed")
LENGTHS = [(5, 3), (5, None), (5, 3), (7, 1), (32, 9), (32, 32), (32, 20), (33, None)]


def inputs() -> list[EngineInput]:
    generator = torch.Generator().manual_seed(1)
    made = [
        EngineInput(torch.randint(4, VOCAB_SIZE, (length,), generator=generator).tolist(), PARAMS, attended=attended)
        for length, attended in LENGTHS
    ]
    return sorted(made, key=lambda item: (item.cost, item.attended or 0))


@torch.inference_mode()
def alone(model: torch.nn.Module, item: EngineInput) -> Tensor:
    mask = torch.zeros(1, item.cost, dtype=torch.long)
    mask[:, : item.attended or item.cost] = 1
    return model(torch.tensor([item.token_ids]), attention_mask=mask)[0][0]


@pytest.mark.parametrize("family", ["bert", "modernbert", "qwen3", "gemma3", "mpnet"])
def test_tokens_that_are_not_attended_to_change_nothing_and_are_still_computed(
    tiny_model: TinyModel, family: str
) -> None:
    directory = tiny_model(family)
    model = AutoModel.from_pretrained(directory).eval()
    expected = torch.cat([alone(model, item) for item in inputs()])
    packed = PackedForward(copy.deepcopy(model), read_spec(directory).position_offset)
    with torch.inference_mode():
        for forward in (packed, PaddedForward(model)):
            hidden, _ = forward(inputs())
            torch.testing.assert_close(hidden, expected, rtol=1e-4, atol=1e-5)
