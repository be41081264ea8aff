"""Specifies `load_model`: whole safetensors weights or a clear refusal, never random numbers, never pickles."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers.utils import logging as hf_logging

from poolhook.errors import ModelError
from poolhook.models import load_model, quiet_transformers, read_spec
from tiny import FAMILIES, TinyModel, edit_json

CPU = torch.device("cpu")


@pytest.fixture
def directory(tiny_model: TinyModel, tmp_path: Path) -> Path:
    """A tiny BERT to spoil."""
    return Path(shutil.copytree(tiny_model("bert"), tmp_path / "model"))


def rewrite_weights(directory: Path, change: Callable[[dict[str, torch.Tensor]], Any]) -> None:
    file = directory / "model.safetensors"
    weights = load_file(file)
    change(weights)
    save_file(weights, file, metadata={"format": "pt"})


def load(directory: Path, dtype: torch.dtype = torch.float32) -> Any:
    return load_model(read_spec(directory), CPU, dtype)


class TestWholeWeights:
    @pytest.mark.parametrize("family", FAMILIES)
    def test_make_a_model_ready_to_run(self, tiny_model: TinyModel, family: str):
        model = load(tiny_model(family))
        assert not model.training
        assert not any(weight.requires_grad for weight in model.parameters())
        assert {weight.dtype for weight in model.parameters()} == {torch.float32}

    def test_come_in_the_dtype_that_is_asked_for(self, directory: Path):
        assert {weight.dtype for weight in load(directory, torch.bfloat16).parameters()} == {torch.bfloat16}

    def test_may_lack_the_layer_for_next_sentence_prediction(self, directory: Path):
        rewrite_weights(directory, lambda weights: [weights.pop(n) for n in list(weights) if n.startswith("pooler.")])
        assert load(directory).pooler is None

    def test_may_have_a_head_for_pretraining(self, directory: Path):
        rewrite_weights(directory, lambda weights: weights.update({"cls.predictions.bias": torch.zeros(200)}))
        assert load(directory) is not None


class TestWhatIsRefused:
    def test_no_weights_at_all(self, directory: Path):
        (directory / "model.safetensors").unlink()
        with pytest.raises(ModelError, match="no safetensors weights"):
            load(directory)

    def test_pickled_weights_which_are_never_opened(self, directory: Path):
        (directory / "model.safetensors").rename(directory / "pytorch_model.bin")
        with pytest.raises(ModelError, match=r"no safetensors weights.*save_pretrained"):
            load(directory)

    @pytest.mark.parametrize("size", [0, 7, 100, 3000])
    def test_weights_that_are_cut_short(self, directory: Path, size: int):
        file = directory / "model.safetensors"
        file.write_bytes(file.read_bytes()[:size])
        with pytest.raises(ModelError, match="can't be loaded"):
            load(directory)

    def test_missing_tensors_by_name(self, directory: Path):
        name = "encoder.layer.1.attention.self.query.weight"
        rewrite_weights(directory, lambda weights: weights.pop(name))
        with pytest.raises(ModelError, match=f"lack 1 of the tensors.*{name}.*random numbers"):
            load(directory)

    def test_many_missing_tensors_in_a_message_of_bounded_length(self, directory: Path):
        rewrite_weights(directory, lambda weights: [weights.pop(n) for n in list(weights) if n.startswith("encoder")])
        with pytest.raises(ModelError, match="lack 32 of the tensors") as caught:
            load(directory)
        assert len(str(caught.value)) < 600

    def test_tensors_of_another_shape(self, directory: Path):
        edit_json(directory / "config.json", intermediate_size=48)
        with pytest.raises(ModelError, match="weights"):
            load(directory)


class TestPickledWeights:
    @pytest.fixture
    def pickled(self, directory: Path) -> Path:
        """The tiny BERT as older releases of transformers saved it."""
        torch.save(load_file(directory / "model.safetensors"), directory / "pytorch_model.bin")
        (directory / "model.safetensors").unlink()
        return directory

    def test_are_refused_with_the_option_that_allows_them(self, pickled: Path):
        with pytest.raises(ModelError) as caught:
            load(pickled)
        assert str(caught.value) == (
            f"{pickled} holds no safetensors weights, and poolhook reads pickled ones only when told to, since that "
            "can run code. Convert them (load the model with transformers, call save_pretrained), or set load_format "
            "to 'pt', which reads them with torch's restricted unpickler."
        )

    def test_are_the_same_weights_where_they_are_allowed(self, pickled: Path, tiny_model: TinyModel):
        ours = load_model(read_spec(pickled), CPU, torch.float32, "pt").state_dict()
        torch.testing.assert_close(ours, load(tiny_model("bert")).state_dict())

    def test_are_passed_over_where_there_are_others(self, directory: Path):
        (directory / "pytorch_model.bin").write_bytes(b"no pickle")
        assert load_model(read_spec(directory), CPU, torch.float32, "pt") is not None

    def test_that_would_run_code_do_not(self, pickled: Path, tmp_path: Path):
        with (pickled / "pytorch_model.bin").open("wb") as file:
            pickle.dump(_Touches(tmp_path / "ran"), file)
        with pytest.raises(ModelError, match="can't be loaded"):
            load_model(read_spec(pickled), CPU, torch.float32, "pt")
        assert not (tmp_path / "ran").exists()


class _Touches:
    """Unpickling it makes a file."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __reduce__(self) -> Any:
        return Path.touch, (self._file,)


class TestTransformersTalk:
    @pytest.mark.parametrize("bars", [True, False])
    def test_is_as_before_after_loading_even_if_that_fails(self, directory: Path, bars: bool):
        before = hf_logging.get_verbosity(), hf_logging.is_progress_bar_enabled()
        try:
            hf_logging.set_verbosity_info()
            (hf_logging.enable_progress_bar if bars else hf_logging.disable_progress_bar)()
            load(directory)
            assert (hf_logging.get_verbosity(), hf_logging.is_progress_bar_enabled()) == (hf_logging.INFO, bars)
            (directory / "model.safetensors").write_bytes(b"")
            with pytest.raises(ModelError):
                load(directory)
            assert (hf_logging.get_verbosity(), hf_logging.is_progress_bar_enabled()) == (hf_logging.INFO, bars)
        finally:
            hf_logging.set_verbosity(before[0])
            (hf_logging.enable_progress_bar if before[1] else hf_logging.disable_progress_bar)()

    def test_is_silent_while_loading(self, directory: Path, capfd: pytest.CaptureFixture[str]):
        rewrite_weights(directory, lambda weights: weights.update({"cls.predictions.bias": torch.zeros(200)}))
        load(directory)
        assert capfd.readouterr() == ("", "")

    def test_lets_errors_through(self):
        with quiet_transformers():
            assert hf_logging.get_verbosity() == hf_logging.ERROR
