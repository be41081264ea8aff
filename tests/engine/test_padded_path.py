"""Specifies what happens to architectures that can't be packed: padded batches, a warning, the same vectors."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AutoModel, PreTrainedModel

from poolhook.engine import EngineInput
from poolhook.engine.build import build_engine
from poolhook.engine.proof import choose_forward
from poolhook.models import load_model, read_spec
from poolhook.params import PoolingParams
from tiny import VOCAB_SIZE, TinyModel

EMBED = PoolingParams(task="embed")


@pytest.fixture(scope="module")
def directory(tiny_model: TinyModel) -> Path:
    return tiny_model("mpnet")


@pytest.fixture(scope="module")
def plain(directory: Path) -> PreTrainedModel:
    return AutoModel.from_pretrained(directory).eval()


def test_mpnet_is_served_padded_with_a_warning_that_says_why(directory: Path, caplog: pytest.LogCaptureFixture):
    spec = read_spec(directory, "my-mpnet")
    forward = choose_forward(load_model(spec, torch.device("cpu"), torch.float32), spec)
    assert forward.name == "padded"
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("my-mpnet (MPNetModel) can't be run without padding: ")


def test_a_padded_step_costs_its_padding(directory: Path):
    spec = read_spec(directory)
    forward = choose_forward(load_model(spec, torch.device("cpu"), torch.float32), spec)
    assert forward.cost(3, 3 + 4 + 10, 10) == 30


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.lists(st.integers(2, VOCAB_SIZE - 1), min_size=1, max_size=40), min_size=1, max_size=8))
def test_mpnets_hidden_states_are_those_of_transformers(directory: Path, plain: PreTrainedModel, rows: list[list[int]]):
    spec = read_spec(directory)
    forward = choose_forward(load_model(spec, torch.device("cpu"), torch.float32), spec)
    with torch.inference_mode():
        hidden, cu_seqlens = forward([EngineInput(row, EMBED) for row in rows])
        alone = [plain(input_ids=torch.tensor([row]))[0][0] for row in rows]
    torch.testing.assert_close(hidden, torch.cat(alone), rtol=1e-4, atol=1e-5)
    assert cu_seqlens.diff().tolist() == [len(row) for row in rows]


@pytest.mark.parametrize("family", ["mpnet", "bert", "qwen3"])
def test_an_engine_answers_alike_whichever_way_it_runs(tiny_model: TinyModel, family: str):
    spec = read_spec(tiny_model(family))
    rows = [[5, 6, 7], list(range(2, 60)), [9], [7, 6, 5]]
    built = build_engine(spec)
    try:
        assert built.forward == ("padded" if family == "mpnet" else "packed")
        apart = [built.core.submit([EngineInput(row, EMBED)])[0].result(60).data for row in rows]
        together = [future.result(60).data for future in built.core.submit([EngineInput(row, EMBED) for row in rows])]
    finally:
        built.core.close()
    torch.testing.assert_close(torch.stack(together), torch.stack(apart), rtol=1e-4, atol=1e-5)
