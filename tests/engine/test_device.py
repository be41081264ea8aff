"""Specifies where a model runs and in what precision, when nobody says so and when somebody does."""

from __future__ import annotations

import pytest
import torch

from poolhook.engine.device import is_out_of_memory, resolve_device, resolve_dtype, step_tokens
from poolhook.errors import ConfigError

CPU, MPS, CUDA = torch.device("cpu"), torch.device("mps"), torch.device("cuda")


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Pretend that torch sees `(CUDA devices, MPS)`."""
    count, mps = request.param
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.usefixtures("devices")
class TestDevice:
    @pytest.mark.parametrize(
        ("devices", "chosen"),
        [((2, True), "cuda"), ((1, False), "cuda"), ((0, True), "mps"), ((0, False), "cpu")],
        indirect=["devices"],
    )
    def test_auto_is_the_best_one_present(self, chosen: str):
        assert resolve_device("auto") == torch.device(chosen)

    @pytest.mark.parametrize("devices", [(2, True)], indirect=True)
    @pytest.mark.parametrize("wanted", ["cpu", "mps", "cuda", "cuda:0", "cuda:1"])
    def test_a_named_one_that_is_present_is_taken(self, wanted: str):
        assert resolve_device(wanted) == torch.device(wanted)

    @pytest.mark.parametrize(
        ("devices", "wanted"),
        [((0, False), "cuda"), ((0, False), "mps"), ((1, False), "cuda:1")],
        indirect=["devices"],
    )
    def test_a_named_one_that_is_not_present_is_refused(self, wanted: str):
        with pytest.raises(ConfigError, match=f"Device '{wanted}' is not there"):
            resolve_device(wanted)


class TestDtype:
    @pytest.mark.parametrize("device", [CPU, MPS])
    @pytest.mark.parametrize("saved", [None, "float32", "float16", "bfloat16"])
    @pytest.mark.parametrize("family", ["bert", "gemma3_text"])
    def test_auto_is_float32_off_cuda(self, device: torch.device, saved: str | None, family: str):
        assert resolve_dtype("auto", device, family, saved) == torch.float32

    @pytest.mark.parametrize(
        ("family", "saved", "computes_bfloat16", "chosen"),
        [
            ("bert", None, True, torch.float16),
            ("bert", "float32", True, torch.float16),
            ("bert", "float16", False, torch.float16),
            ("qwen3", "bfloat16", True, torch.bfloat16),
            ("qwen3", "bfloat16", False, torch.float16),
            ("gemma2", "float32", True, torch.bfloat16),
            ("gemma3", "float16", True, torch.bfloat16),
            ("gemma3_text", "float32", True, torch.bfloat16),
            ("glm4", None, True, torch.bfloat16),
            ("gemma3_text", "bfloat16", False, torch.float32),
        ],
    )
    def test_auto_on_cuda_is_half_precision_where_the_model_stays_in_range(
        self,
        monkeypatch: pytest.MonkeyPatch,
        family: str,
        saved: str | None,
        computes_bfloat16: bool,
        chosen: torch.dtype,
    ):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda: computes_bfloat16)
        assert resolve_dtype("auto", CUDA, family, saved) == chosen

    @pytest.mark.parametrize("device", [CPU, CUDA])
    @pytest.mark.parametrize("wanted", ["float32", "float16", "bfloat16"])
    def test_the_operators_choice_stands(self, device: torch.device, wanted: str):
        assert resolve_dtype(wanted, device, "gemma3_text", "float32") == getattr(torch, wanted)


class TestStepTokens:
    def test_are_more_on_an_accelerator_than_on_a_cpu(self):
        assert step_tokens(CPU) < step_tokens(MPS) < step_tokens(CUDA)

    def test_have_a_value_for_any_device(self):
        assert step_tokens(torch.device("meta")) == step_tokens(CPU)


class TestOutOfMemory:
    @pytest.mark.parametrize(
        "error",
        [
            MemoryError(),
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
            RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried"),
            RuntimeError("MPS backend out of memory (MPS allocated: 9 GB)"),
        ],
    )
    def test_is_told_in_many_ways(self, error: Exception):
        assert is_out_of_memory(error)

    @pytest.mark.parametrize("error", [RuntimeError("shape mismatch"), ValueError("out of memory"), KeyError("x")])
    def test_is_not_every_error(self, error: Exception):
        assert not is_out_of_memory(error)
