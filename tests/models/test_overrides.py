"""Specifies `override`: the operator's `PoolerConfig` on top of the model's files, refused where it does not fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from model_directories import new_layout, old_layout, write_modules
from poolhook import LLM, PoolingParams
from poolhook.config import PoolerConfig, PoolingType
from poolhook.errors import ConfigError
from poolhook.models import ModelSpec, override, read_spec
from tiny import TinyModel, edit_json, save_tiny_config

KINDS = ["embedder", "classifier", "tagger", "reward", "splade", "late interaction", "decoder"]


def spec_of(kind: str, directory: Path) -> ModelSpec:
    """The spec of a model of this kind, called `it`."""
    heads = {"classifier": "ForSequenceClassification", "tagger": "ForTokenClassification"}
    if kind in heads:
        save_tiny_config(directory, "bert", architectures=[f"Bert{heads[kind]}"], num_labels=3)
    elif kind == "reward":
        save_tiny_config(directory, "qwen3", architectures=["Qwen2ForProcessRewardModel"])
    elif kind == "decoder":
        save_tiny_config(directory, "qwen3", architectures=["Qwen3ForCausalLM"])
    elif kind == "embedder":
        old_layout(directory, "mean")
    else:
        save_tiny_config(directory, "bert", architectures=["BertForMaskedLM"])
        last = {"splade": "SpladePooling", "late interaction": "MultiVectorMask"}[kind]
        write_modules(directory, {"": "Transformer", "1_Last": last})
    return read_spec(directory, "it")


class TestWhatIsOverridden:
    @pytest.mark.parametrize(
        ("kind", "config", "changed"),
        [
            ("embedder", {"pooling_type": "MAX"}, {"pooling": (PoolingType.MAX,)}),
            ("embedder", {"use_activation": False}, {"normalize": False}),
            ("embedder", {"dimensions": 16}, {"dimensions": 16}),
            ("embedder", {"pooling_type": "ALL"}, {"tokens_only": True}),
            ("embedder", {"pooling_type": "STEP", "step_tag_id": 7}, {"tokens_only": True, "step_tag_id": 7}),
            (
                "embedder",
                {"enable_chunked_processing": True, "max_embed_len": 999},
                {"is_chunked": True, "max_embed_len": 999},
            ),
            ("classifier", {"use_activation": False}, {"use_activation": False}),
            ("classifier", {"logit_mean": 0.0, "logit_sigma": 2.0}, {"logit_mean": 0.0, "logit_sigma": 2.0}),
            ("classifier", {"pooling_type": "LAST"}, {"pooling": (PoolingType.LAST,)}),
            ("classifier", {"pooling_type": "ALL"}, {"tokens_only": True}),
            ("reward", {"pooling_type": "STEP", "step_tag_id": 9}, {"tokens_only": True, "step_tag_id": 9}),
            ("late interaction", {"use_activation": False, "dimensions": 8}, {"normalize": False, "dimensions": 8}),
        ],
    )
    def test_is_said_to_come_from_the_pooler_config(
        self, tmp_path: Path, kind: str, config: dict[str, Any], changed: dict[str, Any]
    ):
        spec = replace(spec_of(kind, tmp_path), matryoshka_dimensions=())
        result = override(spec, PoolerConfig(**config))
        assert {name: getattr(result, name) for name in changed} == changed
        assert {result.origins[name] for name in changed} == {"pooler config"}
        kept = {name: origin for name, origin in spec.origins.items() if name not in changed and name != "activation"}
        assert kept.items() <= result.origins.items()

    @pytest.mark.parametrize("kind", KINDS)
    def test_is_nothing_where_nothing_is_said(self, tmp_path: Path, kind: str):
        spec = spec_of(kind, tmp_path)
        assert override(spec, PoolerConfig()) == spec
        assert override(spec, PoolerConfig(task=spec.tasks[0])) == spec

    @pytest.mark.parametrize(
        ("kind", "tasks"),
        [("embedder", ("token_embed",)), ("classifier", ("token_classify",)), ("tagger", ("token_classify",))],
    )
    def test_makes_a_row_for_each_token_with_all(self, tmp_path: Path, kind: str, tasks: tuple[str, ...]):
        assert override(spec_of(kind, tmp_path), PoolerConfig(pooling_type=PoolingType.ALL)).tasks == tasks

    @pytest.mark.parametrize(("ids", "activation"), [([5], "sigmoid"), ([7, 5], "softmax")])
    def test_makes_labels_of_returned_token_ids(self, tmp_path: Path, ids: list[int], activation: str):
        spec = override(spec_of("decoder", tmp_path), PoolerConfig(returned_token_ids=ids, logit_mean=1.0))
        assert (spec.head, spec.tasks, spec.logit_mean) == ("causal_lm", ("classify",), 1.0)
        assert spec.classifier is not None
        assert (spec.classifier.tokens, spec.classifier.labels) == (tuple(ids), tuple(map(str, ids)))
        assert (spec.classifier.activation, spec.origins["activation"]) == (activation, "returned_token_ids")


ITS_FILES = "its files decide how it pools"
CLASSIFIES = "it is for models that classify"
EMBEDS = "it is for models that embed"


class TestWhatDoesNotFit:
    @pytest.mark.parametrize(
        ("kind", "architecture", "config", "option", "why"),
        [
            ("embedder", "BertModel", {"logit_mean": 1.0}, "logit_mean", CLASSIFIES),
            ("embedder", "BertModel", {"logit_sigma": 1.0}, "logit_sigma", CLASSIFIES),
            ("splade", "BertForMaskedLM", {"logit_mean": 0.0}, "logit_mean", CLASSIFIES),
            ("late interaction", "BertForMaskedLM", {"logit_sigma": 1.0}, "logit_sigma", CLASSIFIES),
            ("classifier", "BertForSequenceClassification", {"dimensions": 2}, "dimensions", EMBEDS),
            ("tagger", "BertForTokenClassification", {"dimensions": 2}, "dimensions", EMBEDS),
            ("splade", "BertForMaskedLM", {"dimensions": 8}, "dimensions", EMBEDS),
            (
                "classifier",
                "BertForSequenceClassification",
                {"enable_chunked_processing": True},
                "enable_chunked_processing",
                EMBEDS,
            ),
            (
                "late interaction",
                "BertForMaskedLM",
                {"enable_chunked_processing": True},
                "enable_chunked_processing",
                "it is for task 'embed'",
            ),
            (
                "embedder",
                "BertModel",
                {"enable_chunked_processing": True, "pooling_type": "ALL"},
                "pooling_type ALL",
                "chunks are averaged, which is for one vector for a text",
            ),
            ("splade", "BertForMaskedLM", {"pooling_type": "MAX"}, "pooling_type MAX", ITS_FILES),
            ("splade", "BertForMaskedLM", {"pooling_type": "ALL"}, "pooling_type ALL", ITS_FILES),
            ("late interaction", "BertForMaskedLM", {"pooling_type": "CLS"}, "pooling_type CLS", ITS_FILES),
            ("tagger", "BertForTokenClassification", {"pooling_type": "CLS"}, "pooling_type CLS", ITS_FILES),
            ("reward", "Qwen2ForProcessRewardModel", {"pooling_type": "LAST"}, "pooling_type LAST", ITS_FILES),
            (
                "embedder",
                "BertModel",
                {"returned_token_ids": [3]},
                "returned_token_ids",
                "it is for causal language models",
            ),
            (
                "decoder",
                "Qwen3ForCausalLM",
                {"returned_token_ids": [3, 200]},
                "returned_token_ids",
                "200 is beyond its 200 token ids",
            ),
            (
                "embedder",
                "BertModel",
                {"pooling_type": "STEP", "step_tag_id": 200},
                "step_tag_id",
                "200 is beyond its 200 token ids",
            ),
            ("decoder", "Qwen3ForCausalLM", {"returned_token_ids": [3], "dimensions": 4}, "dimensions", EMBEDS),
            (
                "decoder",
                "Qwen3ForCausalLM",
                {"returned_token_ids": [3], "pooling_type": "CLS"},
                "pooling_type CLS",
                "a causal language model has read a text at its last token",
            ),
            (
                "embedder",
                "BertModel",
                {"task": "token_embed", "pooling_type": "MEAN"},
                "pooling_type MEAN",
                "task 'token_embed' answers with a row for each token",
            ),
            (
                "embedder",
                "BertModel",
                {"task": "token_embed", "enable_chunked_processing": True},
                "enable_chunked_processing",
                "it is for task 'embed'",
            ),
            (
                "splade",
                "BertForMaskedLM",
                {"use_activation": False},
                "use_activation",
                "its embeddings are sparse and never normalised",
            ),
        ],
    )
    def test_is_refused_by_name(
        self, tmp_path: Path, kind: str, architecture: str, config: dict[str, Any], option: str, why: str
    ):
        spec = spec_of(kind, tmp_path)
        with pytest.raises(ConfigError) as caught:
            override(spec, PoolerConfig(**config))
        assert str(caught.value) == f"{option} in the pooler config does not fit it ({architecture}): {why}."


class TestDimensions:
    @pytest.mark.parametrize(
        ("config", "message"),
        [
            (
                {},
                "PoolerConfig: dimensions is 16, but this model's embeddings have 32 and were not trained to be cut "
                "(no Matryoshka model). Leave dimensions out. If it was trained for it and its config.json does not "
                'say so, whoever starts it can: hf_overrides={"is_matryoshka": true} allows any length, '
                '{"matryoshka_dimensions": [...]} those listed.',
            ),
            (
                {"matryoshka_dimensions": [8, 24]},
                "PoolerConfig: dimensions is 16, but this model's can be cut to 8, 24. Leave dimensions out.",
            ),
        ],
    )
    def test_that_the_model_was_not_trained_for_are_refused_at_load(
        self, tiny_model: TinyModel, tmp_path: Path, config: dict[str, Any], message: str
    ):
        edit_json(new_layout(tmp_path, tiny_model("bert"), "mean") / "config.json", **config)
        with pytest.raises(ConfigError) as caught:
            LLM(str(tmp_path), device="cpu", pooler_config={"dimensions": 16})
        assert str(caught.value) == message

    def test_of_a_request_go_before_those_of_the_config(self, tiny_model: TinyModel, tmp_path: Path):
        edit_json(new_layout(tmp_path, tiny_model("bert"), "mean") / "config.json", is_matryoshka=True)
        with LLM(str(tmp_path), device="cpu", pooler_config={"dimensions": 16}) as llm:
            (configured,) = llm.embed("w1 w2", use_tqdm=False)
            (requested,) = llm.embed("w1 w2", pooling_params=PoolingParams(dimensions=8), use_tqdm=False)
        assert (configured.outputs.hidden_size, requested.outputs.hidden_size) == (16, 8)
