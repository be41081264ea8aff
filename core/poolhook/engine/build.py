"""From a `ModelSpec` to a running engine."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from poolhook.config import EngineConfig
from poolhook.engine.core import EngineCore
from poolhook.engine.device import resolve_device, resolve_dtype
from poolhook.engine.proof import choose_forward
from poolhook.engine.runner import ModelRunner
from poolhook.models import ModelSpec, load_model
from poolhook.pooler import EmbedPooler, Pooler


@dataclass(frozen=True)
class BuiltEngine:
    """An engine, and how it came out.

    Args:
        core: running; close it when done.
        device: where it computes.
        dtype: in what precision.
        forward: `packed`, `padded` or `by length`.
    """

    core: EngineCore
    device: torch.device
    dtype: torch.dtype
    forward: str


def build_engine(spec: ModelSpec, config: EngineConfig | None = None) -> BuiltEngine:
    """Load the model of `spec`, prove its packed path and start the worker.

    Raises:
        ConfigError: the device is not there.
        ModelError: the weights can't be loaded.
    """
    config = config or EngineConfig()
    device = resolve_device(config.device)
    dtype = resolve_dtype(config.dtype, device, spec.model_type, spec.checkpoint_dtype)
    forward = choose_forward(load_model(spec, device, dtype), spec)
    pooler = Pooler(
        {
            "embed": EmbedPooler(
                spec.pooling,
                normalize=spec.normalize,
                size=spec.embedding_size,
                matryoshka_dimensions=spec.matryoshka_dimensions,
            )
        }
    )
    runner = ModelRunner(forward, pooler, vocab_size=spec.vocab_size, max_length=spec.max_length)
    return BuiltEngine(EngineCore(runner, config, device), device, dtype, forward.name)
