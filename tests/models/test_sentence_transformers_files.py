"""Specifies how sentence-transformers' own files are read, in their old and their new layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

from poolhook.config import PoolingType
from poolhook.errors import ModelError
from poolhook.models import read_spec, resolve_model
from tiny import TinyModel, edit_json, save_tiny_config

MODES = {
    "cls": ("pooling_mode_cls_token", PoolingType.CLS),
    "max": ("pooling_mode_max_tokens", PoolingType.MAX),
    "mean": ("pooling_mode_mean_tokens", PoolingType.MEAN),
    "mean_sqrt_len_tokens": ("pooling_mode_mean_sqrt_len_tokens", PoolingType.MEAN_SQRT_LEN),
    "weightedmean": ("pooling_mode_weightedmean_tokens", PoolingType.WEIGHTED_MEAN),
    "lasttoken": ("pooling_mode_lasttoken", PoolingType.LAST),
}


def old_layout(directory: Path, *modes: str, normalize: bool = True, transformer: str = "", **pooling: Any) -> Path:
    """A directory as releases before 5.4 wrote it."""
    (directory / transformer).mkdir(exist_ok=True)
    save_tiny_config(directory / transformer, "bert")
    names = ["Transformer", "Pooling", *(["Normalize"] if normalize else [])]
    paths = {"Transformer": transformer, "Pooling": "1_Pooling", "Normalize": "2_Normalize"}
    modules = [
        {"idx": i, "name": str(i), "path": paths[name], "type": f"sentence_transformers.models.{name}"}
        for i, name in enumerate(names)
    ]
    (directory / "modules.json").write_text(json.dumps(modules))
    flags = {flag: mode in modes for mode, (flag, _) in MODES.items()}
    edit_json(directory / "1_Pooling" / "config.json", word_embedding_dimension=32, **flags, **pooling)
    edit_json(directory / transformer / "sentence_bert_config.json", max_seq_length=64, do_lower_case=False)
    return directory


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
    @staticmethod
    def save(tiny: Path, directory: Path, *modes: str, **options: Any) -> Path:
        """A directory as the installed release writes it."""
        transformer = Transformer(str(tiny), processor_kwargs={"model_max_length": 48})
        modules = [transformer, Pooling(32, pooling_mode=list(modes)), Normalize()]
        SentenceTransformer(modules=modules, device="cpu", **options).save(str(directory))
        return directory

    @pytest.mark.parametrize("mode", MODES)
    def test_names_the_pooling_by_one_word(self, tiny_model: TinyModel, tmp_path: Path, mode: str):
        spec = read_spec(self.save(tiny_model("bert"), tmp_path, mode))
        assert spec.pooling == (MODES[mode][1],)
        assert spec.normalize
        assert (spec.max_length, spec.origins["max_length"]) == (48, "tokenizer_config.json")

    def test_concatenates_several_modes_in_their_own_order(self, tiny_model: TinyModel, tmp_path: Path):
        spec = read_spec(self.save(tiny_model("bert"), tmp_path, "mean", "cls", "max"))
        assert spec.pooling == (PoolingType.MEAN, PoolingType.CLS, PoolingType.MAX)

    def test_carries_prompts_and_which_is_the_default(self, tiny_model: TinyModel, tmp_path: Path):
        prompts = {"query": "w1 ", "document": ""}
        spec = read_spec(self.save(tiny_model("bert"), tmp_path, "cls", prompts=prompts, default_prompt_name="query"))
        assert spec.prompts == prompts
        assert spec.default_prompt_name == "query"


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
        with pytest.raises(ModelError, match=r"config_sentence_transformers\.json must be an object of texts"):
            read_spec(tmp_path)

    def test_left_out_of_pooling_are_refused_rather_than_pooled(self, tmp_path: Path):
        old_layout(tmp_path, "mean", include_prompt=False)
        edit_json(tmp_path / "config_sentence_transformers.json", prompts={"query": "q: "})
        with pytest.raises(ModelError, match="include_prompt: false"):
            read_spec(tmp_path)

    def test_left_out_of_pooling_do_not_matter_where_there_are_none(self, tmp_path: Path):
        old_layout(tmp_path, "mean", include_prompt=False)
        edit_json(tmp_path / "config_sentence_transformers.json", prompts={"query": ""})
        assert read_spec(tmp_path).pooling == (PoolingType.MEAN,)


class TestWhatIsRefusedByName:
    @pytest.mark.parametrize(
        "module",
        ["sentence_transformers.models.Dense", "custom_code.Transformer", "sentence_transformers.models.CNN"],
    )
    def test_a_module_that_poolhook_does_not_run(self, tmp_path: Path, module: str):
        old_layout(tmp_path, "cls")
        modules = json.loads((tmp_path / "modules.json").read_text())
        modules.append({"idx": 3, "name": "3", "path": "3_Last", "type": module})
        (tmp_path / "modules.json").write_text(json.dumps(modules))
        with pytest.raises(ModelError, match=f"module '{module.removeprefix('sentence_transformers.models.')}'"):
            read_spec(tmp_path)

    @pytest.mark.parametrize(
        "chain", [[], ["Pooling"], ["Pooling", "Transformer"], ["Transformer", "Pooling", "Pooling"]]
    )
    def test_a_chain_in_another_order(self, tmp_path: Path, chain: list[str]):
        old_layout(tmp_path, "cls")
        modules = [{"path": "", "type": f"sentence_transformers.models.{name}"} for name in chain]
        (tmp_path / "modules.json").write_text(json.dumps(modules))
        with pytest.raises(ModelError, match=r"modules\.json chains .*Transformer -> Pooling -> Normalize"):
            read_spec(tmp_path)

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
