"""Specifies language models that answer with words, and reward models, against transformers and formulas by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

from model_directories import save_random_model
from poolhook import LLM
from poolhook.errors import ConfigError, ModelError
from poolhook.models import read_spec
from tiny import edit_json, save_tiny_config

TEXTS = ["w1", "w5 w6 w7 w8", " ".join(f"w{i}" for i in range(40)), "w7 w7 w7"]
NO, YES = 5 + 4, 7 + 4  # the ids of w5 and w7


@pytest.fixture(scope="module")
def causal_lm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Qwen3ForCausalLM."""
    directory = tmp_path_factory.mktemp("causal_lm")
    save_random_model(directory, "Qwen3ForCausalLM", "qwen3")
    return directory


def hidden_states(directory: Path) -> list[Tensor]:
    """transformers' hidden states of each text, shape `[tokens, hidden]`."""
    model = transformers.AutoModel.from_pretrained(directory).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    with torch.inference_mode():
        return [model(tokenizer(t, return_tensors="pt").input_ids).last_hidden_state[0] for t in TEXTS]


def last_logits(directory: Path) -> Tensor:
    """transformers' logits behind the last token of each text, shape `[texts, vocabulary]`."""
    model = transformers.AutoModelForCausalLM.from_pretrained(directory).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    with torch.inference_mode():
        return torch.stack([model(tokenizer(t, return_tensors="pt").input_ids).logits[0, -1] for t in TEXTS])


def classified(directory: Path, **options: Any) -> Tensor:
    """poolhook's probabilities, shape `[texts, labels]`."""
    with LLM(str(directory), device="cpu", dtype="float32", **options) as llm:
        return torch.tensor([one.outputs.probs for one in llm.classify(TEXTS, use_tqdm=False)])


class TestAnswersInWords:
    @pytest.mark.parametrize(
        ("overrides", "expected"),
        [
            ({"classifier_from_token": ["w5", "w7"]}, lambda logits: logits[:, [NO, YES]].softmax(-1)),
            ({"classifier_from_token": ["w7"]}, lambda logits: logits[:, [YES]].sigmoid()),
            (
                {"classifier_from_token": ["w5", "w7", "w9"], "method": "no_post_processing"},
                lambda logits: logits[:, [NO, YES, 13]].softmax(-1),
            ),
            (
                {"classifier_from_token": ["w5", "w7"], "method": "from_2_way_softmax"},
                lambda logits: (logits[:, [YES]] - logits[:, [NO]]).sigmoid(),
            ),
            (
                {"classifier_from_token": ["w5", "w7"], "is_original_qwen3_reranker": True},
                lambda logits: logits[:, [NO, YES]].log_softmax(-1)[:, 1:].exp(),
            ),
        ],
    )
    def test_are_the_logits_of_these_words_behind_the_last_token(
        self, causal_lm: Path, overrides: dict[str, Any], expected: Callable[[Tensor], Tensor]
    ):
        ours = classified(causal_lm, hf_overrides=overrides)
        torch.testing.assert_close(ours, expected(last_logits(causal_lm)), rtol=1e-5, atol=1e-5)

    def test_may_be_named_by_the_pooler_config(self, causal_lm: Path):
        ours = classified(causal_lm, pooler_config={"returned_token_ids": [YES, NO]})
        torch.testing.assert_close(ours, last_logits(causal_lm)[:, [YES, NO]].softmax(-1), rtol=1e-5, atol=1e-5)

    def test_are_calibrated_as_the_pooler_config_says(self, causal_lm: Path):
        ours = classified(
            causal_lm,
            hf_overrides={"classifier_from_token": ["w7"]},
            pooler_config={"logit_mean": 0.5, "logit_sigma": 2.0},
        )
        expected = ((last_logits(causal_lm)[:, [YES]] - 0.5) / 2).sigmoid()
        torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)

    @pytest.mark.parametrize(
        ("overrides", "message"),
        [
            (
                {"classifier_from_token": "w5"},
                "classifier_from_token in config.json must be a list of tokens, not w5.",
            ),
            (
                {"classifier_from_token": [5]},
                "classifier_from_token in config.json must be a list of tokens, not [5].",
            ),
            (
                {"classifier_from_token": ["w5"], "method": "from_2_way_softmax"},
                "from_2_way_softmax in config.json needs classifier_from_token with two tokens, the false one and the "
                "true one; it has 1.",
            ),
            (
                {"is_original_qwen3_reranker": True},
                "from_2_way_softmax in config.json needs classifier_from_token with two tokens, the false one and the "
                "true one; it has 0.",
            ),
            (
                {"classifier_from_token": ["w5"], "method": "majority"},
                "method in config.json is 'majority'. Supported are from_2_way_softmax, no_post_processing.",
            ),
        ],
    )
    def test_that_make_no_sense_are_refused(self, causal_lm: Path, overrides: dict[str, Any], message: str):
        with pytest.raises(ModelError) as caught:
            read_spec(causal_lm, hf_overrides=overrides)
        assert str(caught.value) == message

    def test_that_are_no_token_are_refused_at_load(self, causal_lm: Path):
        with pytest.raises(ModelError) as caught:
            classified(causal_lm, hf_overrides={"classifier_from_token": ["w5", "maybe"]})
        assert str(caught.value) == f"'maybe' is no token of {causal_lm}, whose classifier answers with it."

    def test_without_them_a_language_model_embeds(self, causal_lm: Path):
        spec = read_spec(causal_lm)
        assert (spec.head, spec.classifier, spec.tasks) == ("none", None, ("embed", "token_embed"))


class TestRewards:
    @staticmethod
    def save(directory: Path, architecture: str, score: dict[str, Tensor]) -> Path:
        """A random transformer with the head `score`, as a class that transformers does not have saves it."""
        save_random_model(directory, "Qwen3Model", "qwen3")
        edit_json(directory / "config.json", architectures=[architecture])
        weights = {f"model.{name}": tensor for name, tensor in load_file(directory / "model.safetensors").items()}
        weights |= {f"score.{name}": tensor for name, tensor in score.items()}
        save_file(weights, directory / "model.safetensors", metadata={"format": "pt"})
        return directory

    @staticmethod
    def two_layers(labels: int) -> dict[str, Tensor]:
        generator = torch.Generator().manual_seed(3)
        shapes = {"0.weight": (32, 32), "0.bias": (32,), "2.weight": (labels, 32), "2.bias": (labels,)}
        return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}

    @pytest.mark.parametrize(
        ("architecture", "labels", "activate"),
        [
            ("Qwen2ForProcessRewardModel", ("bad", "good"), lambda logits: logits.softmax(-1)),
            ("Qwen2ForRewardModel", ("reward",), lambda logits: logits),
        ],
    )
    def test_are_the_heads_two_layers_on_each_token(
        self, tmp_path: Path, architecture: str, labels: tuple[str, ...], activate: Callable[[Tensor], Tensor]
    ):
        score = self.two_layers(len(labels))
        directory = self.save(tmp_path, architecture, score)
        spec = read_spec(directory)
        assert spec.classifier is not None
        assert (spec.head, spec.tasks, spec.classifier.labels) == ("reward", ("token_classify",), labels)
        with LLM(str(directory), device="cpu", dtype="float32") as llm:
            ours = [one.outputs.data for one in llm.reward(TEXTS, use_tqdm=False)]
        for one, hidden in zip(ours, hidden_states(directory), strict=True):
            inner = (hidden @ score["0.weight"].T + score["0.bias"]).relu()
            expected = activate(inner @ score["2.weight"].T + score["2.bias"])
            torch.testing.assert_close(one, expected, rtol=1e-4, atol=1e-4)

    def test_may_come_from_one_layer_without_bias(self, tmp_path: Path):
        weight = torch.randn(1, 32, generator=torch.Generator().manual_seed(3))
        directory = self.save(tmp_path, "InternLM2ForRewardModel", {"weight": weight})
        with LLM(str(directory), device="cpu", dtype="float32") as llm:
            ours = [one.outputs.data for one in llm.reward(TEXTS, use_tqdm=False)]
        for one, hidden in zip(ours, hidden_states(directory), strict=True):
            torch.testing.assert_close(one, hidden @ weight.T, rtol=1e-4, atol=1e-4)

    def test_of_steps_are_those_of_the_tokens_that_end_one(self, tmp_path: Path):
        score = self.two_layers(2)
        directory = self.save(tmp_path, "Qwen2ForProcessRewardModel", score)
        step = {"pooling_type": "STEP", "step_tag_id": YES}
        with LLM(str(directory), device="cpu", dtype="float32") as llm:
            (every,) = llm.reward("w1 w7 w3 w7", use_tqdm=False)
        with LLM(str(directory), device="cpu", dtype="float32", pooler_config=step) as llm:
            (steps,) = llm.reward("w1 w7 w3 w7", use_tqdm=False)
        places = [place for place, token in enumerate(every.prompt_token_ids) if token == YES]
        assert len(places) == 2
        torch.testing.assert_close(steps.outputs.data, every.outputs.data[places])

    @pytest.mark.parametrize(("labels", "count"), [(None, 0), (3, 3)])
    def test_of_a_head_of_another_size_are_refused(self, tmp_path: Path, labels: int | None, count: int):
        directory = self.save(tmp_path, "Qwen2ForProcessRewardModel", self.two_layers(labels) if labels else {})
        with pytest.raises(ConfigError) as caught:
            LLM(str(directory), device="cpu")
        assert str(caught.value) == f"The reward head of {directory} gives {count} logits, not 2."

    def test_have_an_origin(self, tmp_path: Path):
        spec = read_spec(save_tiny_config(tmp_path, "qwen3", architectures=["Qwen2ForRewardModel"]))
        assert spec.origins["activation"] == "default of Qwen2ForRewardModel"
