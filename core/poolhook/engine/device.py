"""Where the model runs, in what precision, and how much of it at once."""

from __future__ import annotations

import torch

from poolhook.errors import ConfigError

# Their activations leave float16's range: https://github.com/vllm-project/vllm/issues/18751
_OVERFLOW_IN_FLOAT16 = frozenset({"gemma2", "gemma3", "gemma3_text", "glm4"})

_STEP_TOKENS = {"cuda": 16384, "mps": 4096, "cpu": 1024}  # on a CPU a step should stay in its caches


def resolve_device(wanted: str) -> torch.device:
    """The device that `wanted` means; `auto` is the best one present.

    Raises:
        ConfigError: it is not there.
    """
    if wanted == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    device = torch.device(wanted)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"Device {wanted!r} is not there: torch sees {torch.cuda.device_count()} CUDA devices.")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise ConfigError("Device 'mps' is not there: this torch sees no Apple GPU.")
    return device


def resolve_dtype(wanted: str, device: torch.device, model_type: str, checkpoint_dtype: str | None) -> torch.dtype:
    """The dtype that `wanted` means.

    `auto` is float32 off CUDA, where half precision is slow or unsupported. On CUDA it is bfloat16 for models that
    were trained in it or overflow in float16, where the GPU computes in it, and else float16, which is more precise.
    """
    if wanted != "auto":
        dtype: torch.dtype = getattr(torch, wanted)
        return dtype
    if device.type != "cuda":
        return torch.float32
    overflows = model_type in _OVERFLOW_IN_FLOAT16
    if overflows or checkpoint_dtype == "bfloat16":
        if torch.cuda.is_bf16_supported():
            return torch.bfloat16
        return torch.float32 if overflows else torch.float16
    return torch.float16


def step_tokens(device: torch.device) -> int:
    """The token budget of a step where the operator set none."""
    return _STEP_TOKENS.get(device.type, _STEP_TOKENS["cpu"])


def is_out_of_memory(error: BaseException) -> bool:
    """Whether a step failed for want of memory, on any device."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    # The CPU's and MPS's allocators raise a plain RuntimeError.
    text = str(error)
    return isinstance(error, RuntimeError) and ("can't allocate memory" in text or "out of memory" in text)


def is_device_lost(error: BaseException) -> bool:
    """Whether the device itself failed, as after a CUDA assertion: every later step would fail too."""
    return isinstance(error, torch.AcceleratorError) and not is_out_of_memory(error)


def free_cached_memory(device: torch.device) -> None:
    """Give cached blocks back, so that a smaller step finds room."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
    elif device.type == "mps":
        torch.mps.empty_cache()
