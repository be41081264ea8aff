"""Specifies what a directory says of labels: their names, and the activation that makes probabilities of logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from model_directories import save_random_model
from poolhook import LLM
from poolhook.errors import ModelError
from poolhook.models import read_spec
from tiny import edit_json, save_tiny_config

TEXTS = ["w1", "w5 w6 w7 w8", " ".join(f"w{i}" for i in range(40))]
SEQUENCE = "BertForSequenceClassification"


class TestActivation:
    @pytest.mark.parametrize(
        ("problem_type", "labels", "activation", "origin"),
        [
            ("regression", 1, "identity", "problem_type in config.json"),
            ("regression", 3, "identity", "problem_type in config.json"),
            ("single_label_classification", 1, "sigmoid", "one label"),
            ("single_label_classification", 3, "softmax", "problem_type in config.json"),
            ("multi_label_classification", 1, "sigmoid", "problem_type in config.json"),
            ("multi_label_classification", 3, "sigmoid", "problem_type in config.json"),
            (None, 1, "sigmoid", "one label"),
            (None, 3, "softmax", "several labels"),
        ],
    )
    @pytest.mark.parametrize("head", ["SequenceClassification", "TokenClassification"])
    def test_follows_the_problem_type_and_the_number_of_labels(
        self, tmp_path: Path, head: str, problem_type: str | None, labels: int, activation: str, origin: str
    ):
        save_tiny_config(tmp_path, "bert", architectures=[f"BertFor{head}"], num_labels=labels)
        edit_json(tmp_path / "config.json", problem_type=problem_type)
        spec = read_spec(tmp_path)
        assert spec.classifier is not None
        assert (spec.classifier.activation, spec.origins["activation"]) == (activation, origin)

    @pytest.mark.parametrize(
        ("problem_type", "labels", "activate"),
        [
            ("regression", 2, lambda logits: logits),
            ("single_label_classification", 3, lambda logits: logits.softmax(-1)),
            ("multi_label_classification", 3, torch.sigmoid),
            (None, 1, torch.sigmoid),
        ],
    )
    def test_is_applied_to_the_models_own_logits(
        self, tmp_path: Path, problem_type: str | None, labels: int, activate: Any
    ):
        model = save_random_model(tmp_path, SEQUENCE, num_labels=labels, problem_type=problem_type)
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
        with torch.inference_mode():
            expected = [activate(model(**tokenizer(text, return_tensors="pt")).logits[0]) for text in TEXTS]
        with LLM(str(tmp_path), device="cpu", dtype="float32") as llm:
            ours = [one.outputs.probs for one in llm.classify(TEXTS, use_tqdm=False)]
        torch.testing.assert_close(torch.tensor(ours), torch.stack(expected), rtol=1e-5, atol=1e-5)

    def test_of_each_token_is_applied_to_the_models_own_logits(self, tmp_path: Path):
        model = save_random_model(tmp_path, "BertForTokenClassification", num_labels=4)
        tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
        with LLM(str(tmp_path), device="cpu", dtype="float32") as llm:
            ours = llm.encode(TEXTS, pooling_task="token_classify", use_tqdm=False)
        for text, one in zip(TEXTS, ours, strict=True):
            with torch.inference_mode():
                expected = model(**tokenizer(text, return_tensors="pt")).logits[0].softmax(-1)
            torch.testing.assert_close(one.outputs.data, expected, rtol=1e-5, atol=1e-5)

    @pytest.mark.parametrize("problem_type", ["ranking", "", 5, ["regression"]])
    def test_of_an_unknown_problem_is_refused(self, tmp_path: Path, problem_type: Any):
        save_tiny_config(tmp_path, "bert", architectures=[SEQUENCE])
        with pytest.raises(ModelError, match="problem_type"):
            read_spec(tmp_path, hf_overrides={"problem_type": problem_type})


class TestLabels:
    def test_are_named_in_the_order_of_their_ids(self, tmp_path: Path):
        save_tiny_config(tmp_path, "bert", architectures=[SEQUENCE], id2label={2: "c", 0: "a", 1: "b"})
        spec = read_spec(tmp_path)
        assert spec.classifier is not None
        assert spec.classifier.labels == ("a", "b", "c")

    def test_have_names_of_their_own_where_only_their_number_is_given(self, tmp_path: Path):
        save_tiny_config(tmp_path, "bert", architectures=[SEQUENCE])
        edit_json(tmp_path / "config.json", id2label=None, label2id=None, num_labels=2)
        spec = read_spec(tmp_path)
        assert spec.classifier is not None
        assert spec.classifier.labels == ("LABEL_0", "LABEL_1")

    @pytest.mark.parametrize("id2label", [{"0": "a", "2": "c"}, {"1": "a"}, {"-1": "x", "0": "y"}])
    def test_with_a_hole_between_them_are_refused(self, tmp_path: Path, id2label: dict[str, str]):
        save_tiny_config(tmp_path, "bert", architectures=[SEQUENCE])
        edit_json(tmp_path / "config.json", id2label=id2label, label2id=None)
        with pytest.raises(ModelError) as caught:
            read_spec(tmp_path)
        assert str(caught.value) == f"id2label in config.json must name the labels 0 to n - 1, not {id2label}."

    @pytest.mark.parametrize("id2label", [["a", "b"], "a", 5, {"one": "a"}, {"0": "a", "zero": "b"}, {}])
    def test_that_are_no_names_by_number_are_refused(self, tmp_path: Path, id2label: Any):
        save_tiny_config(tmp_path, "bert", architectures=[SEQUENCE])
        with pytest.raises(ModelError):
            read_spec(tmp_path, hf_overrides={"id2label": id2label})
        edit_json(tmp_path / "config.json", id2label=id2label, label2id=None)
        if id2label:  # transformers takes an empty one for none
            with pytest.raises(ModelError, match=r"config\.json"):
                read_spec(tmp_path)


class TestTasks:
    @pytest.mark.parametrize(
        ("architecture", "task"),
        [(SEQUENCE, "classify"), ("BertForTokenClassification", "token_classify")],
    )
    def test_follow_the_head(self, tmp_path: Path, architecture: str, task: str):
        spec = read_spec(save_tiny_config(tmp_path, "bert", architectures=[architecture]))
        assert spec.tasks == (task,)
        assert spec.origins["pooling"] == f"head of {architecture}"
        assert "normalize" not in spec.origins
