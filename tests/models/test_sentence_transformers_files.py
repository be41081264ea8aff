"""Specifies how sentence-transformers' own files are read, in their old and their new layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sentence_transformers.sentence_transformer.modules import Dense
from torch import nn

from model_directories import MODES, new_layout, old_layout, write_modules
from poolhook.config import PoolingType
from poolhook.errors import ModelError
from poolhook.models import read_spec, resolve_model
from tiny import TinyModel, edit_json


class TestTheDemo:
    def test_is_read_as_its_files_say(self):
        spec = read_spec(resolve_model("demo"), "demo")
        assert spec.name == "demo"
        assert (spec.architecture, spec.model_type) == ("BertModel", "bert")
        assert spec.pooling == (PoolingType.MEAN,)
        assert spec.normalize
        assert spec.max_length == 256  # its positions would allow 512
        assert spec.hidden_size == spec.embedding_size == 384
        assert spec.vocab_size == 30522
        assert spec.matryoshka_dimensions is None
        assert spec.origins == {
            "pooling": "1_Pooling/config.json",
            "normalize": "modules.json",
            "max_length": "sentence_bert_config.json",
        }


class TestTheOldLayout:
    @pytest.mark.parametrize("mode", MODES)
    def test_names_the_pooling_by_flags(self, tmp_path: Path, mode: str):
        assert read_spec(old_layout(tmp_path, mode)).pooling == (MODES[mode][1],)

    def test_with_two_flags_concatenates_two_vectors(self, tmp_path: Path):
        spec = read_spec(old_layout(tmp_path, "mean", "cls"))
        assert spec.pooling == (PoolingType.CLS, PoolingType.MEAN)
        assert spec.embedding_size == 64

    def test_without_a_flag_means_the_mean_as_it_does_there(self, tmp_path: Path):
        assert read_spec(old_layout(tmp_path)).pooling == (PoolingType.MEAN,)

    def test_may_keep_the_transformer_in_a_folder(self, tmp_path: Path):
        spec = read_spec(old_layout(tmp_path, "cls", transformer="0_Transformer"))
        assert spec.path == tmp_path
        assert spec.transformer_path == tmp_path / "0_Transformer"
        assert spec.max_length == 64

    def test_without_a_normalize_module_leaves_vectors_as_they_are(self, tmp_path: Path):
        spec = read_spec(old_layout(tmp_path, "cls", normalize=False))
        assert not spec.normalize
        assert spec.origins["normalize"] == "modules.json"

    def test_may_ask_for_lower_case(self, tmp_path: Path):
        assert not read_spec(old_layout(tmp_path, "cls")).do_lower_case
        edit_json(tmp_path / "sentence_bert_config.json", do_lower_case=True)
        assert read_spec(tmp_path).do_lower_case

    def test_may_name_the_transformers_settings_after_its_family(self, tmp_path: Path):
        old_layout(tmp_path, "cls")
        (tmp_path / "sentence_bert_config.json").rename(tmp_path / "sentence_roberta_config.json")
        spec = read_spec(tmp_path)
        assert (spec.max_length, spec.origins["max_length"]) == (64, "sentence_roberta_config.json")


class TestTheNewLayout:
    @pytest.mark.parametrize("mode", MODES)
    def test_names_the_pooling_by_one_word(self, tiny_model: TinyModel, tmp_path: Path, mode: str):
        spec = read_spec(new_layout(tmp_path, tiny_model("bert"), mode))
        assert spec.pooling == (MODES[mode][1],)
        assert spec.normalize
        assert (spec.max_length, spec.origins["max_length"]) == (48, "tokenizer_config.json")

    def test_concatenates_several_modes_in_their_own_order(self, tiny_model: TinyModel, tmp_path: Path):
        spec = read_spec(new_layout(tmp_path, tiny_model("bert"), "mean", "cls", "max"))
        assert spec.pooling == (PoolingType.MEAN, PoolingType.CLS, PoolingType.MAX)
        assert spec.embedding_size == 96

    def test_carries_prompts_and_which_is_the_default(self, tiny_model: TinyModel, tmp_path: Path):
        prompts = {"query": "w1 ", "document": ""}
        options = {"prompts": prompts, "default_prompt_name": "query"}
        spec = read_spec(new_layout(tmp_path, tiny_model("bert"), "cls", **options))
        assert spec.prompts == prompts
        assert spec.default_prompt_name == "query"

    @pytest.mark.parametrize("include_prompt", [True, False])
    def test_says_whether_prompts_are_pooled(self, tiny_model: TinyModel, tmp_path: Path, include_prompt: bool):
        spec = read_spec(new_layout(tmp_path, tiny_model("bert"), "mean", include_prompt=include_prompt))
        assert spec.include_prompt is include_prompt

    def test_goes_before_flags_of_the_old_one_in_the_same_file(self, tmp_path: Path):
        assert read_spec(old_layout(tmp_path, "cls", pooling_mode="max")).pooling == (PoolingType.MAX,)


class TestDense:
    def test_layers_are_read_in_their_order_and_the_last_decides_the_size(self, tiny_model: TinyModel, tmp_path: Path):
        layers = [
            Dense(64, 48),
            Dense(48, 48, activation_function=nn.GELU(), use_residual=True),
            Dense(48, 12, bias=False, activation_function=nn.Identity()),
        ]
        spec = read_spec(new_layout(tmp_path, tiny_model("bert"), "cls", "mean", behind=layers))
        assert [(layer.path.name, layer.size, layer.residual) for layer in spec.dense] == [
            ("2_Dense", 48, False),
            ("3_Dense", 48, True),
            ("4_Dense", 12, False),
        ]
        assert [layer.activation.rpartition(".")[2] for layer in spec.dense] == ["Tanh", "GELU", "Identity"]
        assert spec.embedding_size == 12

    def test_has_a_tanh_where_old_files_name_no_activation(self, tmp_path: Path):
        write_modules(old_layout(tmp_path, "mean"), {"": "Transformer", "1_Pooling": "Pooling", "2_Dense": "Dense"})
        edit_json(tmp_path / "2_Dense" / "config.json", in_features=32, out_features=8)
        (layer,) = read_spec(tmp_path).dense
        assert layer.activation == "torch.nn.modules.activation.Tanh"

    def test_dropout_does_nothing_and_is_passed_over(self, tmp_path: Path):
        chain = {"": "Transformer", "1_Pooling": "Pooling", "2_Dropout": "Dropout", "3_Normalize": "Normalize"}
        write_modules(old_layout(tmp_path, "mean"), chain)
        assert read_spec(tmp_path).normalize


class TestPrompts:
    def test_are_none_where_nothing_is_said(self, tmp_path: Path):
        spec = read_spec(old_layout(tmp_path, "cls"))
        assert spec.prompts == {}
        assert spec.default_prompt_name is None

    @pytest.mark.parametrize(("given", "read"), [(None, {}), ({"query": None}, {"query": ""}), ({}, {})])
    def test_of_null_are_empty(self, tmp_path: Path, given: Any, read: dict[str, str]):
        old_layout(tmp_path, "cls")
        (tmp_path / "config_sentence_transformers.json").write_text(json.dumps({"prompts": given}))
        assert read_spec(tmp_path).prompts == read

    def test_without_the_one_that_is_the_default_are_refused(self, tmp_path: Path):
        edit_json(
            old_layout(tmp_path, "cls") / "config_sentence_transformers.json",
            prompts={"query": "q: "},
            default_prompt_name="passage",
        )
        with pytest.raises(ModelError, match="default prompt 'passage', but has query"):
            read_spec(tmp_path)

    @pytest.mark.parametrize("prompts", [["query"], "query: ", {"query": 3}])
    def test_that_are_no_texts_by_name_are_refused(self, tmp_path: Path, prompts: Any):
        edit_json(old_layout(tmp_path, "cls") / "config_sentence_transformers.json", prompts=prompts)
        with pytest.raises(ModelError, match=r"prompts in .*config_sentence_transformers\.json must be an object"):
            read_spec(tmp_path)

    @pytest.mark.parametrize("include_prompt", [True, False])
    def test_may_be_left_out_of_pooling(self, tmp_path: Path, include_prompt: bool):
        assert read_spec(old_layout(tmp_path, "mean")).include_prompt
        old_layout(tmp_path, "mean", include_prompt=include_prompt)
        assert read_spec(tmp_path).include_prompt is include_prompt


class TestWhatIsRefusedByName:
    @pytest.mark.parametrize(
        "chain",
        [
            [],
            ["Pooling"],
            ["Pooling", "Transformer"],
            ["Transformer", "Pooling", "Pooling"],
            ["Transformer", "Normalize", "Pooling"],
            ["Transformer", "Dense", "Pooling"],
            ["Transformer", "SpladePooling", "Normalize"],
            ["Transformer", "Pooling", "LogitScore"],
        ],
    )
    def test_a_chain_in_another_order(self, tmp_path: Path, chain: list[str]):
        old_layout(tmp_path, "cls")
        modules = [{"path": "", "type": f"sentence_transformers.models.{name}"} for name in chain]
        (tmp_path / "modules.json").write_text(json.dumps(modules))
        with pytest.raises(ModelError) as caught:
            read_spec(tmp_path)
        assert str(caught.value) == (
            f"{tmp_path / 'modules.json'} chains {' -> '.join(chain) or 'nothing'}; poolhook runs Transformer, then in "
            "this order, each of them or not, Pooling, Dense, Normalize; or Dense, MultiVectorMask, Normalize; or "
            "SpladePooling; or LogitScore."
        )

    @pytest.mark.parametrize("mode", ["median", ["cls", "median"], 7, [["cls"]], []])
    def test_a_pooling_mode_of_the_new_layout(self, tmp_path: Path, mode: Any):
        old_layout(tmp_path, "cls")
        edit_json(tmp_path / "1_Pooling" / "config.json", pooling_mode=mode)
        with pytest.raises(ModelError, match="Supported modes: cls, max, mean"):
            read_spec(tmp_path)

    def test_a_flag_of_the_old_layout(self, tmp_path: Path):
        old_layout(tmp_path, "cls", pooling_mode_median_tokens=True)
        with pytest.raises(ModelError, match="pooling_mode_median_tokens"):
            read_spec(tmp_path)

    def test_a_pooling_module_whose_file_is_missing(self, tmp_path: Path):
        (old_layout(tmp_path, "cls") / "1_Pooling" / "config.json").unlink()
        with pytest.raises(ModelError, match=r"There is no .*1_Pooling.config\.json"):
            read_spec(tmp_path)

    @pytest.mark.parametrize("content", ["{", "{}", "[1]", '"text"', "\xff"])
    def test_a_malformed_modules_json(self, tmp_path: Path, content: str):
        (old_layout(tmp_path, "cls") / "modules.json").write_bytes(content.encode("latin-1"))
        with pytest.raises(ModelError, match=r"modules\.json"):
            read_spec(tmp_path)


class TestSimilarity:
    @pytest.mark.parametrize(
        ("stated", "read"),
        [(None, "cosine"), ("cosine", "cosine"), ("dot", "dot"), ("dot_product", "dot"), ("Euclidean", "euclidean")],
    )
    def test_of_embeddings_is_what_the_files_say(self, tmp_path: Path, stated: str | None, read: str):
        edit_json(old_layout(tmp_path, "cls") / "config_sentence_transformers.json", similarity_fn_name=stated)
        spec = read_spec(tmp_path)
        assert spec.similarity == read
        assert spec.origins.get("similarity") == (stated and "config_sentence_transformers.json")

    def test_that_is_unknown_is_refused(self, tmp_path: Path):
        edit_json(old_layout(tmp_path, "cls") / "config_sentence_transformers.json", similarity_fn_name="maxsim")
        with pytest.raises(
            ModelError, match=r"is 'maxsim'\. Supported: cosine, dot, dot_product, euclidean, manhattan"
        ):
            read_spec(tmp_path)
