"""Specifies `hf_overrides`: put over `config.json` as if it said so itself, before transformers reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from poolhook import LLM, PoolingParams
from poolhook.config import PoolingType
from poolhook.errors import ModelError
from poolhook.models import read_spec
from tiny import TinyModel, edit_json, save_tiny_config, tiny_config


class TestOverrides:
    @pytest.mark.parametrize(
        ("overrides", "changed"),
        [
            ({"is_matryoshka": True}, {"matryoshka_dimensions": ()}),
            ({"matryoshka_dimensions": [16, 8]}, {"matryoshka_dimensions": (8, 16)}),
            ({"max_position_embeddings": 64}, {"max_length": 64}),
            ({"io_processor_plugin": "answers"}, {"io_processor_plugins": ("answers",)}),
            ({"dtype": "bfloat16"}, {"checkpoint_dtype": "bfloat16"}),
            ({"architectures": ["BertForSequenceClassification"]}, {"head": "sequence", "tasks": ("classify",)}),
            ({"architectures": ["BertForTokenClassification"]}, {"head": "token", "tasks": ("token_classify",)}),
        ],
    )
    def test_change_what_the_spec_says(self, tmp_path: Path, overrides: dict[str, Any], changed: dict[str, Any]):
        save_tiny_config(tmp_path, "bert")
        spec = read_spec(tmp_path, hf_overrides=overrides)
        assert {name: getattr(spec, name) for name in changed} == changed
        assert spec.hf_overrides == overrides
        assert any(getattr(read_spec(tmp_path), name) != value for name, value in changed.items())

    def test_say_the_same_as_the_file_would(self, tmp_path: Path):
        save_tiny_config(tmp_path, "bert", architectures=["BertForSequenceClassification"])
        overrides = {"id2label": {"0": "a", "1": "b"}, "problem_type": "multi_label_classification"}
        over = read_spec(tmp_path, hf_overrides=overrides)
        edit_json(tmp_path / "config.json", **overrides)
        assert over.classifier == read_spec(tmp_path).classifier
        assert over.classifier is not None
        assert over.classifier.labels == ("a", "b")

    def test_mend_a_file_that_transformers_refuses(self, tmp_path: Path):
        edit_json(save_tiny_config(tmp_path, "bert") / "config.json", hidden_size="many")
        with pytest.raises(ModelError, match="hidden_size"):
            read_spec(tmp_path)
        assert read_spec(tmp_path, hf_overrides={"hidden_size": 32}).hidden_size == 32

    @pytest.mark.parametrize("overrides", [{"hidden_size": "many"}, {"model_type": "nothing"}, {"vocab_size": {1, 2}}])
    def test_that_transformers_refuses_are_refused(self, tmp_path: Path, overrides: dict[str, Any]):
        save_tiny_config(tmp_path, "bert")
        with pytest.raises(ModelError, match="transformers can't read"):
            read_spec(tmp_path, hf_overrides=overrides)

    def test_reach_into_a_nested_config_and_leave_the_rest_of_it(self, tmp_path: Path):
        text = tiny_config("gemma3").to_dict()
        nested = {"model_type": "gemma3", "architectures": ["Gemma3Model"], "text_config": text, "vision_config": None}
        (tmp_path / "config.json").write_text(json.dumps(nested))
        plain = read_spec(tmp_path)
        bidirectional = {"text_config": {"use_bidirectional_attention": True, "max_position_embeddings": 96}}
        over = read_spec(tmp_path, hf_overrides=bidirectional)
        assert (plain.pooling, plain.max_length) == ((PoolingType.LAST,), 160)
        assert (over.pooling, over.max_length) == ((PoolingType.MEAN,), 96)
        assert (over.hidden_size, over.vocab_size) == (32, 200)

    def test_reach_the_weights_too(self, tiny_model: TinyModel):
        whole, half = (run(tiny_model("bert"), hf_overrides={"num_hidden_layers": layers}) for layers in (2, 1))
        assert not torch.allclose(whole, half, atol=1e-2)

    def test_let_embeddings_be_cut(self, tiny_model: TinyModel):
        whole = run(tiny_model("bert"))
        cut = run(tiny_model("bert"), PoolingParams(dimensions=8), hf_overrides={"is_matryoshka": True})
        torch.testing.assert_close(cut, torch.nn.functional.normalize(whole[:8], dim=-1))


def run(directory: Path, params: PoolingParams | None = None, **options: Any) -> torch.Tensor:
    """The embedding of a text."""
    with LLM(str(directory), device="cpu", **options) as llm:
        return llm.embed("w1 w2 w3", pooling_params=params, use_tqdm=False)[0].outputs.data


def test_an_architecture_that_means_nothing_is_refused(tmp_path: Path):
    save_tiny_config(tmp_path, "bert")
    with pytest.raises(ModelError, match="choose the architecture 'FooModel', which transformers does not have"):
        read_spec(tmp_path, hf_overrides={"architectures": ["FooModel"]})
