"""Specifies what happens to architectures that can't be packed: a warning, another way, the same vectors."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AutoModel, PreTrainedModel

from poolhook.engine import EngineInput
from poolhook.engine.build import build_engine
from poolhook.engine.forward import Forward
from poolhook.engine.proof import choose_forward
from poolhook.errors import ModelError
from poolhook.models import load_model, read_spec
from poolhook.params import PoolingParams
from tiny import VOCAB_SIZE, TinyModel

CPU = torch.device("cpu")
ROWS = st.lists(st.lists(st.integers(2, VOCAB_SIZE - 1), min_size=1, max_size=40), min_size=1, max_size=8)
EMBED = PoolingParams(task="embed")


@pytest.fixture(scope="module")
def directory(tiny_model: TinyModel) -> Path:
    return tiny_model("roformer")


@cache
def plain_model(directory: Path) -> PreTrainedModel:
    return AutoModel.from_pretrained(directory).eval()


@cache
def forward_of(directory: Path) -> Forward:
    spec = read_spec(directory)
    return choose_forward(load_model(spec, CPU, torch.float32), spec)


def test_roformer_is_served_padded_with_a_warning_that_says_why(directory: Path, caplog: pytest.LogCaptureFixture):
    spec = read_spec(directory, "my-roformer")
    forward = choose_forward(load_model(spec, CPU, torch.float32), spec)
    assert forward.name == "padded"
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith("my-roformer (RoFormerModel) can't be run packed: ")
    assert "It runs padded instead" in record.getMessage()


def test_a_padded_step_costs_its_padding(directory: Path):
    assert forward_of(directory).cost(3, 3 + 4 + 10, 10) == 30


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS)
def test_roformers_hidden_states_are_those_of_transformers(directory: Path, rows: list[list[int]]):
    forward, plain = forward_of(directory), plain_model(directory)
    with torch.inference_mode():
        hidden, cu_seqlens = forward([EngineInput(row, EMBED) for row in rows])
        alone = [plain(input_ids=torch.tensor([row]))[0][0] for row in rows]
    torch.testing.assert_close(hidden, torch.cat(alone), rtol=1e-4, atol=1e-5)
    assert cu_seqlens.diff().tolist() == [len(row) for row in rows]


class TestAModelThatLetsPaddingIn:
    """FNet mixes all positions by a Fourier transform, whatever the mask says."""

    def test_is_run_one_length_at_a_time_with_a_warning(self, tiny_model: TinyModel, caplog: pytest.LogCaptureFixture):
        spec = read_spec(tiny_model("fnet"))
        assert choose_forward(load_model(spec, CPU, torch.float32), spec).name == "by length"
        (record,) = caplog.records
        assert "(FNetModel) can't be run packed" in record.getMessage()
        assert "It runs by length instead" in record.getMessage()

    @settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(rows=ROWS)
    def test_gives_each_sequence_what_it_gets_alone(self, tiny_model: TinyModel, rows: list[list[int]]):
        forward, plain = forward_of(tiny_model("fnet")), plain_model(tiny_model("fnet"))
        with torch.inference_mode():
            hidden, cu_seqlens = forward([EngineInput(row, EMBED) for row in rows])
            alone = [plain(input_ids=torch.tensor([row]))[0][0] for row in rows]
        torch.testing.assert_close(hidden, torch.cat(alone), rtol=1e-4, atol=1e-5)
        assert cu_seqlens.diff().tolist() == [len(row) for row in rows]
        assert forward.cost(len(rows), sum(map(len, rows)), max(map(len, rows))) == sum(map(len, rows))


class TestAModelThatNoWayAgreesWith:
    def test_is_refused_rather_than_served_wrong(self, tiny_model: TinyModel):
        spec = read_spec(tiny_model("bert"), "my-bert")
        model = load_model(spec, CPU, torch.float32).train()  # dropout makes each run another
        with pytest.raises(ModelError, match=r"my-bert \(BertModel\) can't be served in torch\.float32: .* differ"):
            choose_forward(model, spec)

    def test_is_refused_when_it_wants_more_than_token_ids(self, tiny_model: TinyModel, monkeypatch: pytest.MonkeyPatch):
        spec = read_spec(tiny_model("bert"), "my-bert")
        model = load_model(spec, CPU, torch.float32)

        def forward(input_ids: Any = None, pixel_values: Any = None, **kwargs: Any) -> Any:
            raise ValueError("You have to specify pixel_values")

        monkeypatch.setattr(model, "forward", forward)
        with pytest.raises(ModelError, match="can't be run on token ids: ValueError: You have to specify pixel_values"):
            choose_forward(model, spec)

    def test_is_told_to_try_float32_where_it_was_not(self, tiny_model: TinyModel):
        spec = read_spec(tiny_model("bert"))
        model = load_model(spec, CPU, torch.float16)
        model.embeddings.word_embeddings.weight.fill_(torch.inf)
        with pytest.raises(ModelError, match=r"Try dtype float32\."):
            choose_forward(model, spec)


@pytest.mark.parametrize("family", ["roformer", "fnet", "bert", "qwen3"])
def test_an_engine_answers_alike_whichever_way_it_runs(tiny_model: TinyModel, family: str):
    spec = read_spec(tiny_model(family))
    rows = [[5, 6, 7], list(range(2, 60)), [9], [7, 6, 5]]
    built = build_engine(spec)
    try:
        assert built.forward == {"roformer": "padded", "fnet": "by length"}.get(family, "packed")
        apart = [built.core.submit([EngineInput(row, EMBED)])[0].result(60).data for row in rows]
        together = [future.result(60).data for future in built.core.submit([EngineInput(row, EMBED) for row in rows])]
    finally:
        built.core.close()
    torch.testing.assert_close(torch.stack(together), torch.stack(apart), rtol=1e-4, atol=1e-5)


class TestWhatNoShortTextShows:
    def test_positions_that_change_with_the_longest_text_run_one_length_at_a_time(self, tmp_path: Path):
        import transformers

        rope = {
            "rope_type": "longrope",
            "rope_theta": 1e4,
            "short_factor": [1.0] * 4,
            "long_factor": [2.0] * 4,
            "original_max_position_embeddings": 40,
            "factor": 4.0,
        }
        config = transformers.Phi3Config(
            vocab_size=200,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=160,
            original_max_position_embeddings=40,
            rope_parameters=rope,
            pad_token_id=1,
            bos_token_id=2,
            eos_token_id=3,
        )
        torch.manual_seed(0)
        model = transformers.Phi3Model(config).eval()
        model.save_pretrained(tmp_path)
        built = build_engine(read_spec(tmp_path))
        assert built.forward == "by length"
        sequences = [list(range(5, 15)), list(range(5, 125))]
        params = PoolingParams(task="embed", use_activation=False)
        futures = built.core.submit([EngineInput(ids, params) for ids in sequences])
        for ids, future in zip(sequences, futures, strict=True):
            with torch.no_grad():
                alone = model(torch.tensor([ids]))[0][0, -1]
            torch.testing.assert_close(future.result(30).data, alone, rtol=1e-4, atol=1e-5)
        built.core.close()

    @pytest.mark.parametrize("option", [{"attention_chunk_size": 64}, {"floor_scale": 8192}])
    def test_attention_that_counts_places_of_the_batch_is_not_packed(
        self, tiny_model: TinyModel, option: dict[str, int]
    ):
        from transformers import AutoConfig

        from poolhook.models import objection_to_mixing, objection_to_packing

        config = AutoConfig.from_pretrained(tiny_model("bert"))
        assert objection_to_packing(config) is None
        for name, value in option.items():
            setattr(config, name, value)
        assert objection_to_packing(config) is not None
        assert objection_to_mixing(config) is None
