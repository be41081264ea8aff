"""Specifies `read_spec` where transformers' own files decide: limits, defaults by architecture, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from poolhook.config import PoolerConfig, PoolingType
from poolhook.errors import ConfigError, ModelError
from poolhook.models import override, read_spec
from poolhook.registry import IO_PROCESSORS, select
from tiny import edit_json, save_tiny_config


class TestDefaultPooling:
    @pytest.mark.parametrize(
        ("family", "pooling"),
        [
            ("bert", PoolingType.CLS),
            ("roberta", PoolingType.CLS),
            ("distilbert", PoolingType.CLS),
            ("modernbert", PoolingType.CLS),
            ("mpnet", PoolingType.CLS),
            ("qwen3", PoolingType.LAST),
            ("gemma3", PoolingType.LAST),
        ],
    )
    def test_follows_the_architecture(self, tmp_path: Path, family: str, pooling: PoolingType):
        spec = read_spec(save_tiny_config(tmp_path, family))
        assert spec.pooling == (pooling,)
        assert spec.normalize
        assert spec.origins["pooling"] == spec.origins["normalize"] == f"default of {spec.architecture}"

    def test_of_a_decoder_that_looks_both_ways_is_the_mean(self, tmp_path: Path):
        spec = read_spec(save_tiny_config(tmp_path, "gemma3", use_bidirectional_attention=True))
        assert spec.pooling == (PoolingType.MEAN,)

    def test_gives_way_to_the_operator_who_is_named_as_its_origin(self, tmp_path: Path):
        spec = read_spec(save_tiny_config(tmp_path, "bert"))
        changed = override(spec, PoolerConfig(pooling_type=PoolingType.MAX, use_activation=False))
        assert changed.pooling == (PoolingType.MAX,)
        assert not changed.normalize
        assert changed.origins["pooling"] == changed.origins["normalize"] == "pooler config"
        assert changed.origins["max_length"] == spec.origins["max_length"]

    def test_stays_where_the_operator_says_nothing(self, tmp_path: Path):
        spec = read_spec(save_tiny_config(tmp_path, "bert"))
        assert override(spec, PoolerConfig(task="embed")) == spec


class TestMaxLength:
    def test_is_the_models_positions_where_nothing_else_is_said(self, tmp_path: Path):
        spec = read_spec(save_tiny_config(tmp_path, "bert"))
        assert (spec.max_length, spec.position_offset, spec.origins["max_length"]) == (160, 0, "config.json")

    @pytest.mark.parametrize("family", ["roberta", "mpnet"])
    def test_is_two_below_the_positions_of_roberta_and_its_kin(self, tmp_path: Path, family: str):
        spec = read_spec(save_tiny_config(tmp_path, family))
        assert (spec.max_length, spec.position_offset) == (158, 2)

    def test_is_what_the_tokenizer_says(self, tmp_path: Path):
        edit_json(save_tiny_config(tmp_path, "bert") / "tokenizer_config.json", model_max_length=100)
        spec = read_spec(tmp_path)
        assert (spec.max_length, spec.origins["max_length"]) == (100, "tokenizer_config.json")

    @pytest.mark.parametrize("unlimited", [int(1e30), 1e30, 0, -1, True, "512"])
    def test_ignores_a_tokenizers_limit_that_is_none(self, tmp_path: Path, unlimited: Any):
        edit_json(save_tiny_config(tmp_path, "bert") / "tokenizer_config.json", model_max_length=unlimited)
        assert read_spec(tmp_path).max_length == 160

    @pytest.mark.parametrize(("family", "limit"), [("bert", 160), ("roberta", 158)])
    def test_never_goes_beyond_the_positions(self, tmp_path: Path, family: str, limit: int):
        edit_json(save_tiny_config(tmp_path, family) / "tokenizer_config.json", model_max_length=512)
        spec = read_spec(tmp_path)
        assert (spec.max_length, spec.origins["max_length"]) == (limit, "config.json")

    def test_of_sentence_transformers_goes_before_the_tokenizers(self, tmp_path: Path):
        edit_json(save_tiny_config(tmp_path, "bert") / "tokenizer_config.json", model_max_length=100)
        transformer = {"path": "", "type": "sentence_transformers.models.Transformer"}
        (tmp_path / "modules.json").write_text(json.dumps([transformer]))
        edit_json(tmp_path / "sentence_bert_config.json", max_seq_length=120)
        assert read_spec(tmp_path).max_length == 120
        edit_json(tmp_path / "sentence_bert_config.json", max_seq_length=None)
        assert read_spec(tmp_path).max_length == 100
        edit_json(tmp_path / "sentence_bert_config.json", max_seq_length=9999)
        assert read_spec(tmp_path).max_length == 160

    def test_that_is_stated_nowhere_is_an_error_that_says_where_to_state_it(self, tmp_path: Path):
        edit_json(save_tiny_config(tmp_path, "bert") / "config.json", max_position_embeddings=-1)
        with pytest.raises(ModelError, match="states no maximum length") as caught:
            read_spec(tmp_path)
        for place in ("max_seq_length", "model_max_length", "max_position_embeddings"):
            assert place in str(caught.value)


class TestMatryoshkaDimensions:
    @pytest.mark.parametrize(
        ("config", "dimensions"),
        [
            ({}, None),
            ({"is_matryoshka": False}, None),
            ({"is_matryoshka": True}, ()),
            ({"matryoshka_dimensions": [16, 8, 16]}, (8, 16)),
            ({"is_matryoshka": True, "matryoshka_dimensions": [8]}, (8,)),
        ],
    )
    def test_are_what_the_config_says(self, tmp_path: Path, config: dict[str, Any], dimensions: tuple[int, ...] | None):
        edit_json(save_tiny_config(tmp_path, "bert") / "config.json", **config)
        assert read_spec(tmp_path).matryoshka_dimensions == dimensions

    @pytest.mark.parametrize("dimensions", [["8"], [0], [8.5], "8", {"a": 8}])
    def test_that_are_no_lengths_are_refused(self, tmp_path: Path, dimensions: Any):
        edit_json(save_tiny_config(tmp_path, "bert") / "config.json", matryoshka_dimensions=dimensions)
        with pytest.raises(ModelError, match="matryoshka_dimensions"):
            read_spec(tmp_path)


class TestIOProcessorPlugins:
    @pytest.mark.parametrize(
        ("given", "names"),
        [(None, ()), ("", ()), ("answers", ("answers",)), (["a", "some-package:b"], ("a", "some-package:b"))],
    )
    def test_are_chosen_by_name(self, tmp_path: Path, given: Any, names: tuple[str, ...]):
        edit_json(save_tiny_config(tmp_path, "bert") / "config.json", io_processor_plugin=given)
        assert read_spec(tmp_path).io_processor_plugins == names

    @pytest.mark.parametrize("given", [5, {"name": "a"}, ["a", 5], "../code.py", "os; import sys", "a b", "a/b"])
    def test_that_are_no_names_are_refused(self, tmp_path: Path, given: Any):
        edit_json(save_tiny_config(tmp_path, "bert") / "config.json", io_processor_plugin=given)
        with pytest.raises(ModelError, match="io_processor_plugin"):
            read_spec(tmp_path)

    def test_are_never_an_import_path(self, tmp_path: Path):
        edit_json(save_tiny_config(tmp_path, "bert") / "config.json", io_processor_plugin="os.path:join")
        (name,) = read_spec(tmp_path).io_processor_plugins
        with pytest.raises(ConfigError, match=r"No plugin named 'os.path:join' is installed"):
            select(name, IO_PROCESSORS)


class TestWhatIsRefused:
    def test_a_directory_without_a_config(self, tmp_path: Path):
        with pytest.raises(ModelError, match=r"There is no .*config\.json.*is this one\?"):
            read_spec(tmp_path)

    @pytest.mark.parametrize("content", ["", "{", "[]", "5", '{"model_type": "bert"', "\xff"])
    def test_a_config_that_is_no_json_object(self, tmp_path: Path, content: str):
        (tmp_path / "config.json").write_bytes(content.encode("latin-1"))
        with pytest.raises(ModelError, match=r"config\.json"):
            read_spec(tmp_path)

    @pytest.mark.parametrize(
        "config",
        [{}, {"model_type": "no-such-family"}, {"model_type": 5}, {"model_type": "bert", "hidden_size": "many"}],
    )
    def test_a_config_that_transformers_does_not_read(self, tmp_path: Path, config: dict[str, Any]):
        (tmp_path / "config.json").write_text(json.dumps(config))
        with pytest.raises(ModelError, match=r"config\.json"):
            read_spec(tmp_path)

    def test_code_that_the_directory_brings(self, tmp_path: Path):
        config = {"model_type": "of-my-own", "auto_map": {"AutoConfig": "code.Config", "AutoModel": "code.Model"}}
        (tmp_path / "config.json").write_text(json.dumps(config))
        (tmp_path / "code.py").write_text("raise SystemExit('this must not run')")
        with pytest.raises(ModelError, match=r"auto_map.*does not run.*'of-my-own'"):
            read_spec(tmp_path)

    @pytest.mark.parametrize("head", ["QuestionAnswering", "MultipleChoice", "NextSentencePrediction"])
    def test_a_head_for_another_task(self, tmp_path: Path, head: str):
        save_tiny_config(tmp_path, "bert", architectures=[f"BertFor{head}"])
        with pytest.raises(ModelError) as caught:
            read_spec(tmp_path)
        assert str(caught.value) == (
            f"BertFor{head} ends in a head for a task that poolhook does not have. Heads that it serves: "
            "ForSequenceClassification, ForTokenClassification, ForProcessRewardModel, ForRewardModel."
        )

    @pytest.mark.parametrize("architecture", ["BertForMaskedLM", "BertForPreTraining", "BertLMHeadModel"])
    def test_but_not_the_head_of_pretraining_which_is_left_out(self, tmp_path: Path, architecture: str):
        save_tiny_config(tmp_path, "bert", architectures=[architecture])
        assert read_spec(tmp_path).architecture == architecture

    @pytest.mark.parametrize(
        ("model_type", "architecture"),
        [("t5", "T5ForConditionalGeneration"), ("bart", "BartModel"), ("bart", "BartForSequenceClassification")],
    )
    def test_an_encoder_decoder(self, tmp_path: Path, model_type: str, architecture: str):
        edit_json(tmp_path / "config.json", model_type=model_type, architectures=[architecture], n_positions=64)
        with pytest.raises(ModelError) as caught:
            read_spec(tmp_path)
        assert str(caught.value) == (
            f"{architecture} is an encoder-decoder; poolhook serves encoders and decoders, and of T5 and its kin the "
            'encoder alone. Set "architectures": ["T5EncoderModel"] in hf_overrides if that is what you want.'
        )

    def test_but_not_the_encoder_of_t5_alone(self, tmp_path: Path):
        t5 = {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]}
        edit_json(tmp_path / "config.json", **t5)
        edit_json(tmp_path / "tokenizer_config.json", model_max_length=64)
        spec = read_spec(tmp_path, hf_overrides={"architectures": ["T5EncoderModel"]})
        assert (spec.architecture, spec.pooling, spec.tasks) == (
            "T5EncoderModel",
            (PoolingType.MEAN,),
            ("embed", "token_embed"),
        )

    def test_a_model_that_reads_no_text(self, tmp_path: Path):
        (tmp_path / "config.json").write_text(json.dumps({"model_type": "vit", "architectures": ["ViTModel"]}))
        with pytest.raises(ModelError, match="ViTModel reads no token ids"):
            read_spec(tmp_path)


class TestTheRest:
    def test_a_directory_without_architectures_is_named_after_its_family(self, tmp_path: Path):
        edit_json(save_tiny_config(tmp_path, "bert") / "config.json", architectures=None)
        assert read_spec(tmp_path).architecture == "BertModel"

    def test_is_called_what_the_user_called_it(self, tmp_path: Path):
        save_tiny_config(tmp_path, "bert")
        assert read_spec(tmp_path, "mine").name == "mine"
        assert read_spec(tmp_path).name == str(tmp_path)

    @pytest.mark.parametrize(("key", "value"), [("dtype", "bfloat16"), ("torch_dtype", "bfloat16")])
    def test_the_checkpoints_dtype_is_read_in_both_spellings(self, tmp_path: Path, key: str, value: str):
        edit_json(save_tiny_config(tmp_path, "bert") / "config.json", **{"dtype": None, key: value})
        assert read_spec(tmp_path).checkpoint_dtype == "bfloat16"

    def test_a_sliding_window_counts_only_where_it_is_used(self, tmp_path: Path):
        assert read_spec(save_tiny_config(tmp_path, "gemma3")).sliding_window == 12
        assert read_spec(save_tiny_config(tmp_path, "bert")).sliding_window is None
        used = save_tiny_config(tmp_path, "qwen3", sliding_window=16, use_sliding_window=True, max_window_layers=0)
        assert read_spec(used).sliding_window == 16
        edit_json(tmp_path / "config.json", use_sliding_window=False)
        assert read_spec(tmp_path).sliding_window is None
