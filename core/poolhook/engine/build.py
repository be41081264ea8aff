"""From a `ModelSpec` to a running engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import nn

from poolhook.config import EngineConfig
from poolhook.engine.client import EngineInput
from poolhook.engine.core import EngineCore
from poolhook.engine.device import resolve_device, resolve_dtype
from poolhook.engine.forward import Forward
from poolhook.engine.head_proof import own_logits, own_logits_of_padded, prove_head
from poolhook.engine.poolers import build_pooler
from poolhook.engine.proof import choose_forward
from poolhook.engine.runner import ModelRunner
from poolhook.models import ModelSpec, load_model, padding_id
from poolhook.models.heads import Difference, keep_answer_tokens, load_reward_head, split_head
from poolhook.params import PoolingParams

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class BuiltEngine:
    """An engine, and how it came out.

    Args:
        core: running; close it when done.
        spec: of the model, with what the proof found out about its hidden states and its head.
        device: where it computes.
        dtype: in what precision.
        forward: `packed`, `padded` or `by length`.
    """

    core: EngineCore
    spec: ModelSpec
    device: torch.device
    dtype: torch.dtype
    forward: str


def build_engine(spec: ModelSpec, config: EngineConfig | None = None) -> BuiltEngine:
    """Load the model of `spec`, prove its packed path and start the worker.

    Raises:
        ConfigError: the device is not there.
        ModelError: the weights can't be loaded, or the model can't be served right in any way.
    """
    config = config or EngineConfig()
    device = resolve_device(config.device)
    dtype = resolve_dtype(config.dtype, device, spec.model_type, spec.checkpoint_dtype)
    model = load_model(spec, device, dtype, config.load_format)
    forward, head, spec = _prove(model, spec)
    if spec.head == "reward":
        head = load_reward_head(spec, device, config.load_format)
    pooler = build_pooler(spec, head, device, config.load_format)
    runner = ModelRunner(
        forward, pooler, vocab_size=spec.vocab_size, max_length=spec.max_length, unread_end=spec.unread_end
    )
    return BuiltEngine(EngineCore(runner, config, device), spec, device, dtype, forward.name)


def _prove(model: PreTrainedModel, spec: ModelSpec) -> tuple[Forward, nn.Module | None, ModelSpec]:
    """The way to run the transformer, its head, and `spec` with the pooling that the head was seen to read."""
    if spec.head in ("none", "reward"):
        forward = choose_forward(model, spec)
        return forward, None, replace(spec, hidden_size=_width(forward))
    dtype, padding = model.dtype, padding_id(model.config)
    if spec.head == "causal_lm" and spec.classifier is not None:
        keep_answer_tokens(model, spec, spec.classifier)
    own, own_of_padded = own_logits(model, spec), own_logits_of_padded(model, spec)
    transformer, head = split_head(model)
    forward = choose_forward(transformer, spec)
    proved = prove_head(forward, head, own, own_of_padded, spec, padding, dtype)
    if spec.origins.get("pooling") != "pooler config":
        spec = replace(spec, pooling=proved.pooling, unread_end=proved.unread_end)
    is_difference = spec.classifier is not None and spec.classifier.is_difference
    return proved.forward, Difference(proved.head) if is_difference else proved.head, spec


@torch.inference_mode()
def _width(forward: Forward) -> int:
    """Dimensions of a hidden state as it comes out, which some configurations do not tell: OPT projects its last ones
    down, Reformer lays two side by side."""
    hidden, _ = forward([EngineInput([0], PoolingParams(task="embed"))])
    return hidden.shape[-1]
