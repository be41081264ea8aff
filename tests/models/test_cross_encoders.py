"""Specifies that scores equal `CrossEncoder.predict`, and which of a directory's files decides their activation."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import CrossEncoder
from sentence_transformers.cross_encoder.modules import LogitScore, Transformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling
from torch import nn

from model_directories import save_random_model, write_modules
from poolhook import LLM
from poolhook.errors import ModelError
from poolhook.models import read_spec
from tiny import edit_json, save_tiny_config

QUERY = "w1 w2 w3"
DOCUMENTS = ["w4", "w5 w6 w7 w8", " ".join(f"w{i}" for i in range(60)), "w2 w2"]
TEMPLATE = (
    "{% for role in ('system', 'query', 'document') %}"
    "{{ messages | selectattr('role', 'eq', role) | map(attribute='content') | first or 'w5' }} w6 "
    "{% endfor %}{% if add_generation_prompt %}w7{% endif %}"
)
PAIRS = [(QUERY, document) for document in DOCUMENTS]


@pytest.fixture
def save_cross_encoder(tmp_path: Path) -> Callable[..., Path]:
    """Save a CrossEncoder as the installed release does."""

    def save(labels: int, activation: nn.Module | None = None) -> Path:
        save_random_model(tmp_path / "plain", "BertForSequenceClassification", num_labels=labels)
        CrossEncoder(str(tmp_path / "plain"), device="cpu", activation_fn=activation).save(str(tmp_path / "saved"))
        return tmp_path / "saved"

    return save


class TestScores:
    @pytest.mark.parametrize("activation", [None, nn.Identity(), nn.Sigmoid()])
    def test_equal_those_of_a_cross_encoder_with_one_label(
        self, save_cross_encoder: Callable[..., Path], activation: nn.Module | None
    ):
        directory = save_cross_encoder(1, activation)
        theirs = CrossEncoder(str(directory), device="cpu").predict(PAIRS)
        with LLM(str(directory), device="cpu", dtype="float32") as llm:
            ours = [one.outputs.score for one in llm.score(QUERY, DOCUMENTS, use_tqdm=False)]
        assert ours == pytest.approx(theirs.tolist(), rel=1e-5, abs=1e-5)

    @pytest.mark.filterwarnings("ignore:Implicit dimension choice")
    @pytest.mark.parametrize("activation", [nn.Identity(), nn.Softmax(dim=-1), nn.Sigmoid()])
    def test_of_several_labels_equal_its_predictions_as_classes(
        self, save_cross_encoder: Callable[..., Path], activation: nn.Module
    ):
        directory = save_cross_encoder(3, activation)
        theirs = CrossEncoder(str(directory), device="cpu").predict(PAIRS)
        pairs = [{"text": query, "text_pair": document} for query, document in PAIRS]
        with LLM(str(directory), device="cpu", dtype="float32") as llm:
            ours = [one.outputs.probs for one in llm.classify(pairs, use_tqdm=False)]
        torch.testing.assert_close(torch.tensor(ours), torch.tensor(theirs), rtol=1e-5, atol=1e-5)

    @pytest.mark.parametrize("false_token", [5, None])
    @pytest.mark.parametrize("activation", [None, nn.Identity()])
    def test_equal_those_of_a_language_model_with_a_logit_score(
        self, tmp_path: Path, activation: nn.Module | None, false_token: int | None
    ):
        save_random_model(tmp_path / "plain", "Qwen3ForCausalLM", "qwen3")
        transformer = Transformer(str(tmp_path / "plain"), transformer_task="text-generation")
        modules = [transformer, LogitScore(true_token_id=7, false_token_id=false_token)]
        reference = CrossEncoder(modules=modules, device="cpu", activation_fn=activation)
        reference.save(str(tmp_path / "saved"))
        with LLM(str(tmp_path / "saved"), device="cpu", dtype="float32") as llm:
            ours = [one.outputs.score for one in llm.score(QUERY, DOCUMENTS, use_tqdm=False)]
        assert ours == pytest.approx(reference.predict(PAIRS).tolist(), rel=1e-5, abs=1e-5)

    @pytest.mark.parametrize("head", ["sequence", "logit score"])
    @pytest.mark.parametrize("options", [{}, {"chat_template": {"add_generation_prompt": True}}], ids=["plain", "open"])
    def test_equal_those_with_its_prompt_and_its_template(self, tmp_path: Path, head: str, options: dict[str, Any]):
        if head == "sequence":
            save_random_model(tmp_path / "plain", "BertForSequenceClassification", num_labels=1)
            modules = None
        else:
            save_random_model(tmp_path / "plain", "Qwen3ForCausalLM", "qwen3")
            (tmp_path / "plain" / "chat_template.jinja").write_text(TEMPLATE)
            causal = {"transformer_task": "text-generation", "processing_kwargs": options}
            modules = [Transformer(str(tmp_path / "plain"), **causal), LogitScore(true_token_id=7, false_token_id=5)]
        reference = CrossEncoder(
            None if modules else str(tmp_path / "plain"),
            modules=modules,
            device="cpu",
            prompts={"rank": "w9 w8 "},
            default_prompt_name="rank",
        )
        reference.save(str(tmp_path / "saved"))
        with LLM(str(tmp_path / "saved"), device="cpu", dtype="float32") as llm:
            ours = [one.outputs.score for one in llm.score(QUERY, DOCUMENTS, use_tqdm=False)]
        assert ours == pytest.approx(reference.predict(PAIRS).tolist(), rel=1e-5, abs=1e-5)


class TestActivation:
    @pytest.mark.parametrize(("module", "activation"), [("Identity", "identity"), ("Sigmoid", "sigmoid")])
    @pytest.mark.parametrize(
        "config",
        [
            lambda dotted: {"sentence_transformers": {"activation_fn": dotted, "version": "4.0.1"}},
            lambda dotted: {"sbert_ce_default_activation_function": dotted},
        ],
    )
    def test_is_the_one_that_config_json_names(
        self, tmp_path: Path, config: Callable[[str], dict[str, Any]], module: str, activation: str
    ):
        save_tiny_config(tmp_path, "bert", architectures=["BertForSequenceClassification"], num_labels=1)
        edit_json(tmp_path / "config.json", **config(f"torch.nn.modules.linear.{module}"))
        spec = read_spec(tmp_path)
        assert spec.classifier is not None
        assert spec.classifier.activation == activation
        assert spec.origins["activation"] == "sentence_transformers in config.json"

    def test_of_the_cross_encoders_own_file_goes_before_it(self, save_cross_encoder: Callable[..., Path]):
        directory = save_cross_encoder(1, nn.Identity())
        sigmoid = "torch.nn.modules.activation.Sigmoid"
        edit_json(directory / "config.json", sentence_transformers={"activation_fn": sigmoid})
        spec = read_spec(directory)
        assert spec.classifier is not None
        assert spec.classifier.activation == "identity"
        assert spec.origins["activation"] == "config_sentence_transformers.json"

    @pytest.mark.parametrize("dotted", ["torch.nn.Tanh", "my.own.Sigmoid", "Sigmoid", "torch.nn.", 5, ["Sigmoid"]])
    def test_that_is_not_known_is_refused(self, tmp_path: Path, dotted: Any):
        save_tiny_config(tmp_path, "bert", architectures=["BertForSequenceClassification"], num_labels=1)
        edit_json(tmp_path / "config.json", sbert_ce_default_activation_function=dotted)
        with pytest.raises(ModelError) as caught:
            read_spec(tmp_path)
        assert str(caught.value) == (
            f"The cross-encoder's activation is {str(dotted)!r}. Supported are Sigmoid, Softmax, Identity of torch."
        )


class TestWhatIsRefused:
    @pytest.mark.parametrize(
        "config", [{}, {"false_token_id": 5}, {"true_token_id": "yes"}, {"true_token_id": 7.5}, {"true_token_id": None}]
    )
    def test_a_logit_score_without_its_token(self, tmp_path: Path, config: dict[str, Any]):
        save_tiny_config(tmp_path, "qwen3", architectures=["Qwen3ForCausalLM"])
        write_modules(tmp_path, {"": "Transformer", "1_LogitScore": "LogitScore"})
        file = tmp_path / "1_LogitScore" / "config.json"
        edit_json(file)
        file.write_text(json.dumps(config))
        with pytest.raises(ModelError) as caught:
            read_spec(tmp_path)
        assert str(caught.value) == (f"{file} must state true_token_id, a token id, and may state false_token_id.")

    def test_a_cross_encoder_that_scores_with_a_dense_layer(self, tmp_path: Path):
        save_random_model(tmp_path / "plain", "BertModel")
        score = Dense(32, 1, activation_function=nn.Identity(), module_output_name="scores")
        modules = [Transformer(str(tmp_path / "plain")), Pooling(32), score]
        CrossEncoder(modules=modules, device="cpu").save(str(tmp_path / "saved"))
        with pytest.raises(ModelError) as caught:
            read_spec(tmp_path / "saved")
        assert str(caught.value) == (
            f"{tmp_path / 'saved' / 'modules.json'} makes a cross-encoder of Pooling and Dense; poolhook serves those "
            "that end in the model's own head for classification, or in LogitScore."
        )
