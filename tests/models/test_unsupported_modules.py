"""Specifies that what poolhook does not run is refused by name, with the whole message: never a silent default."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    LSTM,
    Dense,
    LayerNorm,
    Normalize,
    Pooling,
    StaticEmbedding,
    Transformer,
    WeightedLayerPooling,
)
from tokenizers import Tokenizer
from torch import nn

from model_directories import new_layout, old_layout, write_modules
from poolhook import LLM
from poolhook.errors import ModelError
from poolhook.models import read_spec
from tiny import TinyModel, edit_json, save_tiny_config

SUPPORTED = "Transformer, Pooling, SpladePooling, LogitScore, Dense, MultiVectorMask, Normalize"


def message_of(directory: Path) -> str:
    """Why `directory` is refused."""
    with pytest.raises(ModelError) as caught:
        read_spec(directory)
    return str(caught.value)


class TestModules:
    @pytest.mark.parametrize(
        ("package", "name", "shown"),
        [
            ("sentence_transformers.models", "StaticEmbedding", "StaticEmbedding"),
            ("sentence_transformers.models", "CNN", "CNN"),
            ("sentence_transformers.models", "Router", "Router"),
            ("sentence_transformers.models", "Asym", "Asym"),
            ("sentence_transformers.models", "WeightedLayerPooling", "WeightedLayerPooling"),
            ("sentence_transformers.models", "CLIPModel", "CLIPModel"),
            ("sentence_transformers.sparse_encoder.models", "SparseAutoEncoder", "SparseAutoEncoder"),
            (
                "sentence_transformers.multi_vector_encoder.modules",
                "HierarchicalTokenPooling",
                "HierarchicalTokenPooling",
            ),
            ("modeling_own", "Transformer", "modeling_own.Transformer"),
            ("modeling_own", "Pooling", "modeling_own.Pooling"),
            ("sentence_transformers_evil.models", "Dense", "sentence_transformers_evil.models.Dense"),
        ],
    )
    def test_of_another_kind_or_of_the_models_own_are_named(self, tmp_path: Path, package: str, name: str, shown: str):
        old_layout(tmp_path, "mean")
        modules = json.loads((tmp_path / "modules.json").read_text())
        modules.insert(1, {"idx": 9, "name": "9", "path": "9_Other", "type": f"{package}.{name}"})
        (tmp_path / "modules.json").write_text(json.dumps(modules))
        assert message_of(tmp_path) == (
            f"{tmp_path / 'modules.json'} has a module {shown!r}, which poolhook does not support. "
            f"Supported: {SUPPORTED}."
        )

    @pytest.mark.parametrize("name", ["LSTM", "WeightedLayerPooling", "LayerNorm", "StaticEmbedding"])
    def test_are_named_as_the_installed_release_saves_them(self, tiny_model: TinyModel, tmp_path: Path, name: str):
        transformer = Transformer(str(tiny_model("bert")))
        words = Tokenizer.from_file(str(tiny_model("bert") / "tokenizer.json"))
        chains: dict[str, list[nn.Module]] = {
            "LSTM": [transformer, LSTM(32, 16), Pooling(32)],
            "WeightedLayerPooling": [transformer, WeightedLayerPooling(32, num_hidden_layers=2), Pooling(32)],
            "LayerNorm": [transformer, Pooling(32), LayerNorm(32)],
            "StaticEmbedding": [StaticEmbedding(words, embedding_dim=8), Normalize()],
        }
        SentenceTransformer(modules=chains[name], device="cpu").save(str(tmp_path), create_model_card=False)
        assert f"has a module {name!r}, which poolhook does not support" in message_of(tmp_path)

    @pytest.mark.parametrize("folder", ["../x", "/etc", "1_Pooling/../../x", "..", "a\\b"])
    def test_outside_of_the_model_directory_are_not_read(self, tmp_path: Path, folder: str):
        write_modules(old_layout(tmp_path, "mean"), {"": "Transformer", folder: "Pooling"})
        assert message_of(tmp_path) == (
            f"{tmp_path / 'modules.json'} has a module in {folder!r}, which is no folder within the model directory."
        )

    def test_without_a_type_are_shown(self, tmp_path: Path):
        (old_layout(tmp_path, "mean") / "modules.json").write_text('[{"idx": 0, "path": ""}]')
        assert message_of(tmp_path) == (
            f"{tmp_path / 'modules.json'} has a module without a type: {{'idx': 0, 'path': ''}}."
        )


class TestFeatures:
    @pytest.mark.parametrize(("name", "folder"), [("Dense", "2_Dense"), ("Normalize", "2_Normalize")])
    @pytest.mark.parametrize("key", ["module_input_name", "module_output_name"])
    def test_that_no_other_module_reads_are_refused(self, tmp_path: Path, name: str, folder: str, key: str):
        write_modules(old_layout(tmp_path, "mean"), {"": "Transformer", "1_Pooling": "Pooling", folder: name})
        edit_json(tmp_path / folder / "config.json", out_features=8, **{key: "token_embeddings"})
        assert message_of(tmp_path) == (
            f"{key} in {tmp_path / folder / 'config.json'} is 'token_embeddings'; poolhook runs {name} on "
            "sentence_embedding only."
        )

    def test_of_the_transformer_other_than_hidden_states_are_refused(self, tmp_path: Path):
        old_layout(tmp_path, "mean")
        modality = {"text": {"method": "forward", "method_output_name": "pooler_output"}}
        edit_json(tmp_path / "sentence_bert_config.json", modality_config=modality)
        assert message_of(tmp_path) == (
            f"{tmp_path / 'sentence_bert_config.json'} reads 'pooler_output' off the transformer. Supported are "
            "last_hidden_state, logits."
        )


class TestLateInteraction:
    @pytest.mark.parametrize(
        "expansion",
        [
            {"length": 32, "strategy": "min"},
            {"length": 32, "strategy": "fixed", "token": "w3"},
            {"strategy": "fixed"},
            {"length": 32},
        ],
    )
    def test_of_another_query_expansion_is_refused(self, tmp_path: Path, expansion: dict[str, Any]):
        save_tiny_config(tmp_path, "bert")
        write_modules(tmp_path, {"": "Transformer", "1_Mask": "MultiVectorMask"})
        file = tmp_path / "sentence_bert_config.json"
        edit_json(file, query_expansion=expansion)
        assert message_of(tmp_path) == (
            f"query_expansion {expansion} in {file} is not supported; poolhook fills queries up to a fixed length with "
            "the mask token."
        )

    def test_that_keeps_only_some_tokens_is_refused(self, tmp_path: Path):
        save_tiny_config(tmp_path, "bert")
        write_modules(tmp_path, {"": "Transformer", "1_Mask": "MultiVectorMask"})
        edit_json(tmp_path / "1_Mask" / "config.json", keep_only_token_ids=[5])
        assert message_of(tmp_path) == (
            f"{tmp_path / '1_Mask' / 'config.json'} has keep_only_token_ids, which poolhook does not support: it "
            "serves models of text."
        )

    def test_with_a_pooling_is_refused(self, tmp_path: Path):
        edit_json(old_layout(tmp_path, "mean") / "config_sentence_transformers.json", model_type="ColBERT")
        assert message_of(tmp_path) == (
            f"{tmp_path / 'modules.json'} pools a ColBERT to one vector; a late-interaction model has one for each "
            "token."
        )


class TestDense:
    @pytest.fixture
    def directory(self, tiny_model: TinyModel, tmp_path: Path) -> Path:
        """A model with a Dense module to spoil."""
        return new_layout(tmp_path, tiny_model("bert"), "mean", behind=[Dense(32, 8)])

    @staticmethod
    def load(directory: Path) -> str:
        """Why `directory` can't be loaded."""
        with pytest.raises(ModelError) as caught:
            LLM(str(directory), device="cpu")
        return str(caught.value)

    @pytest.mark.parametrize(
        ("activation", "why"),
        [
            ("os.system", "which is none of torch.nn's"),
            ("my.own.Activation", "which is none of torch.nn's"),
            ("torch.nn.NoSuchThing", "which is none of torch.nn's"),
            ("torch.load", "which is none of torch.nn's"),
            ("torch.nn.Linear", "which needs arguments"),
        ],
    )
    def test_with_an_activation_that_is_none_is_refused(self, directory: Path, activation: str, why: str):
        edit_json(directory / "2_Dense" / "config.json", activation_function=activation)
        assert self.load(directory) == f"{directory / '2_Dense'} has the activation {activation!r}, {why}."

    def test_of_another_size_than_its_weights_is_refused(self, directory: Path):
        edit_json(directory / "2_Dense" / "config.json", out_features=12)
        assert self.load(directory) == f"{directory / '2_Dense'} states 12 dimensions, but its weights have 8."

    def test_that_takes_another_size_than_there_is_is_refused(self, directory: Path):
        edit_json(directory / "1_Pooling" / "config.json", pooling_mode=["mean", "cls"])
        assert self.load(directory) == f"{directory / '2_Dense'} takes 32 dimensions, but 64 come in."

    def test_layers_that_do_not_fit_together_are_refused(self, tiny_model: TinyModel, tmp_path: Path):
        layers = [Dense(32, 8), Dense(12, 4)]
        modules = [Transformer(str(tiny_model("bert"))), Pooling(32), *layers]
        SentenceTransformer(modules=modules, device="cpu").save(str(tmp_path), create_model_card=False)
        assert self.load(tmp_path) == f"{tmp_path / '3_Dense'} takes 12 dimensions, but 8 come in."

    def test_with_a_residual_that_does_not_fit_is_refused(self, directory: Path):
        edit_json(directory / "2_Dense" / "config.json", use_residual=True)
        assert self.load(directory) == f"The weights of {directory / '2_Dense'} lack the residual layer's."

    def test_without_weights_is_refused(self, directory: Path):
        save_file({"other": torch.zeros(1)}, directory / "2_Dense" / "model.safetensors")
        assert self.load(directory) == f"The weights of {directory / '2_Dense'} lack the linear layer's."

    @pytest.mark.parametrize(("weight", "bias"), [((8,), (8,)), ((8, 32), (7,)), ((8, 32, 1), None)])
    def test_with_weights_that_make_no_layer_is_refused(self, directory: Path, weight: Any, bias: Any):
        shapes = {"linear.weight": weight} | ({"linear.bias": bias} if bias else {})
        tensors = {name: torch.zeros(shape) for name, shape in shapes.items()}
        save_file(tensors, directory / "2_Dense" / "model.safetensors")
        given = [list(shape) for shape in shapes.values()]
        assert self.load(directory) == (
            f"The weights of {directory / '2_Dense'} have the shapes {given}, which make no linear layer."
        )

    def test_with_pickled_weights_is_read_only_where_that_is_allowed(self, directory: Path):
        layer = Dense(32, 8)
        torch.save(layer.state_dict(), directory / "2_Dense" / "pytorch_model.bin")
        (directory / "2_Dense" / "model.safetensors").unlink()
        assert "set load_format to 'pt'" in self.load(directory)
        with LLM(str(directory), device="cpu", load_format="pt") as llm:
            assert llm.embed("w1", use_tqdm=False)[0].outputs.hidden_size == 8

    def test_without_a_pooling_before_it_is_refused(self, tmp_path: Path):
        write_modules(old_layout(tmp_path, "mean"), {"": "Transformer", "2_Dense": "Dense"})
        assert message_of(tmp_path) == f"{tmp_path / 'modules.json'} has a Dense module, but no Pooling before it."
