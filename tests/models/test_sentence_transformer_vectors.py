"""Specifies that vectors equal those of `SentenceTransformer.encode`, whatever modules its directory chains."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer
from torch import nn

from model_directories import MODES, new_layout
from poolhook import LLM
from poolhook.errors import ModelError
from tiny import TinyModel, edit_json

TEXTS = ["w1", "w5 w6 w7 w8", "w9 w10", " ".join(f"w{i}" for i in range(40)), "w7 w7 w7"]


def assert_equal_vectors(directory: Path, texts: Sequence[str] = TEXTS, prompt_name: str | None = None) -> None:
    """poolhook's vectors of `texts` are sentence-transformers'."""
    theirs = SentenceTransformer(str(directory), device="cpu").encode(
        list(texts), prompt_name=prompt_name, convert_to_tensor=True
    )
    with LLM(str(directory), device="cpu", dtype="float32") as llm:
        ours = [one.outputs.data for one in llm.embed(list(texts), prompt_name=prompt_name, use_tqdm=False)]
    torch.testing.assert_close(torch.stack(ours), theirs, rtol=1e-5, atol=1e-5)


class TestPooling:
    @pytest.mark.parametrize("mode", MODES)
    def test_of_each_mode(self, tiny_model: TinyModel, tmp_path: Path, mode: str):
        assert_equal_vectors(new_layout(tmp_path, tiny_model("bert"), mode, normalize=False))

    @pytest.mark.parametrize("modes", [["mean", "cls"], ["max", "lasttoken", "weightedmean"], list(MODES)])
    def test_of_several_modes_concatenates_in_their_order(
        self, tiny_model: TinyModel, tmp_path: Path, modes: list[str]
    ):
        assert_equal_vectors(new_layout(tmp_path, tiny_model("bert"), *modes))

    @pytest.mark.parametrize("family", ["roberta", "modernbert", "qwen3"])
    def test_of_other_families(self, tiny_model: TinyModel, tmp_path: Path, family: str):
        assert_equal_vectors(new_layout(tmp_path, tiny_model(family), "mean", "lasttoken"))


class TestDense:
    @pytest.mark.parametrize(
        ("bias", "activation"),
        [(True, nn.Tanh()), (False, nn.Tanh()), (False, nn.Identity()), (True, nn.GELU()), (True, nn.SiLU())],
    )
    def test_with_and_without_bias_by_activation(
        self, tiny_model: TinyModel, tmp_path: Path, bias: bool, activation: nn.Module
    ):
        layer = Dense(32, 12, bias=bias, activation_function=activation)
        assert_equal_vectors(new_layout(tmp_path, tiny_model("bert"), "mean", behind=[layer], normalize=False))

    @pytest.mark.parametrize("size", [32, 12])
    def test_adds_its_input_or_a_projection_of_it(self, tiny_model: TinyModel, tmp_path: Path, size: int):
        layer = Dense(32, size, use_residual=True)
        assert_equal_vectors(new_layout(tmp_path, tiny_model("bert"), "cls", behind=[layer], normalize=False))

    def test_layers_run_one_after_the_other_on_concatenated_modes(self, tiny_model: TinyModel, tmp_path: Path):
        layers = [Dense(64, 48), Dense(48, 48, bias=False, use_residual=True), Dense(48, 16)]
        assert_equal_vectors(new_layout(tmp_path, tiny_model("bert"), "mean", "max", behind=layers))


class TestPrompts:
    PROMPTS = {"query": "w11 w12 w13 ", "document": "w14 ", "empty": ""}  # noqa: RUF012

    def test_are_pooled_with_the_text(self, tiny_model: TinyModel, tmp_path: Path):
        directory = new_layout(tmp_path, tiny_model("bert"), *MODES, prompts=self.PROMPTS)
        assert_equal_vectors(directory, prompt_name="query")

    @pytest.mark.parametrize("mode", [*MODES, "mean+cls"])
    def test_are_left_out_where_the_files_say_so(self, tiny_model: TinyModel, tmp_path: Path, mode: str):
        options: dict[str, Any] = {"include_prompt": False, "prompts": self.PROMPTS}
        directory = new_layout(tmp_path, tiny_model("bert"), *mode.split("+"), **options)
        assert_equal_vectors(directory, prompt_name="query")

    @pytest.mark.parametrize("prompt_name", [None, "query", "document", "empty"])
    def test_by_name_or_by_default(self, tiny_model: TinyModel, tmp_path: Path, prompt_name: str | None):
        options: dict[str, Any] = {"prompts": self.PROMPTS, "default_prompt_name": "document"}
        directory = new_layout(tmp_path, tiny_model("bert"), "mean", include_prompt=False, **options)
        assert_equal_vectors(directory, prompt_name=prompt_name)

    def test_of_a_decoder_are_left_out_too(self, tiny_model: TinyModel, tmp_path: Path):
        options: dict[str, Any] = {"include_prompt": False, "prompts": self.PROMPTS}
        assert_equal_vectors(new_layout(tmp_path, tiny_model("qwen3"), "mean", **options), prompt_name="query")


class TestMessages:
    TEMPLATE = (
        "{% for m in messages %}{{ 'w20' if m.role == 'system' else 'w21' }} "
        "{{ m.content if m.content is string else m.content[0].text }} {% endfor %}"
        "{% if add_generation_prompt %}w22{% endif %}"
    )

    @pytest.mark.parametrize("template", [TEMPLATE, TEMPLATE.replace("m.content if m.content is string else ", "")])
    @pytest.mark.parametrize("prompt_name", [None, "query"])
    def test_are_made_of_texts_where_the_model_has_a_chat_template(
        self, tiny_model: TinyModel, tmp_path: Path, template: str, prompt_name: str | None
    ):
        plain = shutil.copytree(tiny_model("qwen3"), tmp_path / "plain")
        (plain / "chat_template.jinja").write_text(template)
        options = {"chat_template": {"add_generation_prompt": True}}
        modules = [Transformer(str(plain), processing_kwargs=options), Pooling(32, "lasttoken")]
        SentenceTransformer(modules=modules, prompts={"query": "w9 w8"}).save(str(tmp_path / "saved"))
        assert_equal_vectors(tmp_path / "saved", prompt_name=prompt_name)

    def test_without_a_template_are_refused(self, tiny_model: TinyModel, tmp_path: Path):
        directory = new_layout(tmp_path, tiny_model("qwen3"), "lasttoken")
        edit_json(directory / "sentence_bert_config.json", modality_config={"message": {"format": "flat"}})
        with pytest.raises(ModelError, match=r"makes a chat of each text .* but has no chat template"):
            LLM(str(directory), device="cpu")

    @pytest.mark.parametrize("kind", ["text", "chat_template"])
    def test_with_options_that_are_not_honoured_are_refused(self, tiny_model: TinyModel, tmp_path: Path, kind: str):
        directory = new_layout(tmp_path, tiny_model("bert"), "mean")
        edit_json(directory / "sentence_bert_config.json", processing_kwargs={kind: {"add_special_tokens": False}})
        with pytest.raises(ModelError, match=rf"processing_kwargs in .* has {kind}.add_special_tokens"):
            LLM(str(directory), device="cpu")
