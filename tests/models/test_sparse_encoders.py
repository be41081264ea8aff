"""Specifies SPLADE: weights of words equal `SparseEncoder.encode`, in the layouts that its releases wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SparseEncoder
from sentence_transformers.sparse_encoder.modules import SpladePooling, Transformer

from model_directories import save_random_model
from poolhook import LLM
from poolhook.errors import ModelError
from poolhook.models import read_spec
from tiny import VOCAB_SIZE, edit_json, save_tiny_config

TEXTS = ["w1", "w5 w6 w7 w8", " ".join(f"w{i}" for i in range(40)), "w7 w7 w7"]
CLASSES = {"bert": "BertForMaskedLM", "distilbert": "DistilBertForMaskedLM", "modernbert": "ModernBertForMaskedLM"}


def save_encoder(directory: Path, family: str = "bert", **pooling: Any) -> Path:
    """A SparseEncoder as the installed release saves it."""
    save_random_model(directory / "plain", CLASSES[family], family)
    modules = [Transformer(str(directory / "plain"), transformer_task="fill-mask"), SpladePooling(**pooling)]
    prompts = {"query": "w21 ", "document": ""}
    SparseEncoder(modules=modules, prompts=prompts, device="cpu").save(str(directory / "saved"))
    return directory / "saved"


def assert_equal_vectors(directory: Path, prompt_name: str | None = None) -> None:
    """poolhook's vectors of `TEXTS` are sentence-transformers'."""
    reference = SparseEncoder(str(directory), device="cpu")
    theirs = reference.encode(TEXTS, prompt_name=prompt_name, convert_to_sparse_tensor=False)
    with LLM(str(directory), device="cpu", dtype="float32") as llm:
        ours = [one.outputs.data for one in llm.embed(TEXTS, prompt_name=prompt_name, use_tqdm=False)]
    torch.testing.assert_close(torch.stack(ours), theirs, rtol=1e-5, atol=1e-5)


class TestVectors:
    @pytest.mark.parametrize("strategy", ["max", "sum"])
    @pytest.mark.parametrize("activation", ["relu", "log1p_relu"])
    def test_of_each_strategy_and_activation(self, tmp_path: Path, strategy: str, activation: str):
        assert_equal_vectors(save_encoder(tmp_path, pooling_strategy=strategy, activation_function=activation))

    @pytest.mark.parametrize("family", CLASSES)
    def test_of_each_family(self, tmp_path: Path, family: str):
        assert_equal_vectors(save_encoder(tmp_path, family), prompt_name="query")

    def test_of_the_layout_before_5_4(self, tmp_path: Path):
        directory = save_encoder(tmp_path)
        modules = [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.sparse_encoder.models.MLMTransformer"},
            {
                "idx": 1,
                "name": "1",
                "path": "1_SpladePooling",
                "type": "sentence_transformers.sparse_encoder.models.SpladePooling",
            },
        ]
        (directory / "modules.json").write_text(json.dumps(modules))
        old = {"max_seq_length": 64, "do_lower_case": False}
        (directory / "sentence_bert_config.json").write_text(json.dumps(old))
        assert read_spec(directory).max_length == 64
        assert_equal_vectors(directory)


class TestSpec:
    def test_embeds_into_the_vocabulary_and_does_nothing_else(self, tmp_path: Path):
        spec = read_spec(save_encoder(tmp_path))
        assert (spec.tasks, spec.embedding_size, spec.head) == (("embed",), VOCAB_SIZE, "masked_lm")

    @pytest.mark.parametrize(
        "config",
        [{"pooling_strategy": "mean"}, {"activation_function": "gelu"}, {"pooling_strategy": ["max"]}],
    )
    def test_refuses_what_it_does_not_know(self, tmp_path: Path, config: dict[str, Any]):
        save_tiny_config(tmp_path, "bert", architectures=["BertForMaskedLM"])
        modules = [
            {"path": "", "type": "sentence_transformers.models.Transformer"},
            {"path": "1_Pooling", "type": "sentence_transformers.sparse_encoder.models.SpladePooling"},
        ]
        (tmp_path / "modules.json").write_text(json.dumps(modules))
        edit_json(tmp_path / "1_Pooling" / "config.json", **config)
        with pytest.raises(ModelError) as caught:
            read_spec(tmp_path)
        strategy, activation = config.get("pooling_strategy", "max"), config.get("activation_function", "relu")
        assert str(caught.value) == (
            f"{tmp_path / '1_Pooling' / 'config.json'} asks for pooling_strategy {strategy!r} and activation_function "
            f"{activation!r}. Supported are max and sum, relu and log1p_relu."
        )
