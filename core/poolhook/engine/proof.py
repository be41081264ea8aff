"""The load-time proof: run a few sequences alone and packed, and serve packed only if the hidden states agree.

A registered attention name on an architecture that does not use it only makes transformers warn, and then sequences
attend to each other. A wrong vector is worse than a slow one, so packing is believed only once it has been seen.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from poolhook.engine.attention import UnsupportedAttention
from poolhook.engine.client import EngineInput
from poolhook.engine.forward import Forward, PackedForward, PaddedForward
from poolhook.models import ModelSpec, quiet_transformers
from poolhook.params import PoolingParams

if TYPE_CHECKING:
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)

_PARAMS = PoolingParams(task="embed")

# Largest difference of a token's hidden state, relative to its norm, that rounding explains.
_TOLERANCE = {torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 1e-1}


def choose_forward(model: PreTrainedModel, spec: ModelSpec) -> Forward:
    """The packed way if it agrees with the model's own, else the padded way, with a warning that says why."""
    with quiet_transformers():
        reason = _objection_to_packing(model, spec)
        forward = PackedForward(model, spec.position_offset) if reason is None else PaddedForward(model)
    if reason is None:
        return forward
    logger.warning(
        "%s (%s) can't be run without padding: %s. It is served through padded batches, which is right but slower.",
        spec.name,
        spec.architecture,
        reason,
    )
    return forward


@torch.inference_mode()
def _objection_to_packing(model: PreTrainedModel, spec: ModelSpec) -> str | None:
    inputs = _samples(spec)
    padded = PaddedForward(model)
    alone = torch.cat([padded([item])[0] for item in inputs])
    try:
        packed, _ = PackedForward(model, spec.position_offset)(inputs)
    except UnsupportedAttention as error:
        return str(error)
    except Exception as error:
        # Whatever a model does with inputs that it was not made for, its padded path still stands.
        return f"its packed run failed with {type(error).__name__}: {error}"
    difference = _difference(packed, alone)
    tolerance = _TOLERANCE[alone.dtype]
    if difference <= tolerance:
        return None
    return (
        f"its packed hidden states differ from those of single sequences by {difference:.1e} (allowed: {tolerance:.0e})"
    )


def _difference(packed: Tensor, alone: Tensor) -> float:
    """The largest distance of a token's two hidden states, relative to their norm; infinite if any is not finite."""
    packed, alone = packed.float(), alone.float()
    distance = (packed - alone).norm(dim=-1) / alone.norm(dim=-1).clamp_min(1e-12)
    return float(torch.nan_to_num(distance, nan=torch.inf).max())


def _samples(spec: ModelSpec) -> list[EngineInput]:
    """Sequences whose lengths straddle every branch: one token, equal pairs, short and long ones, and
    one more than a sliding window."""
    lengths = [1, 2, 7, 7, 30, 30, 129, 200]
    if spec.sliding_window is not None:
        lengths += [spec.sliding_window, spec.sliding_window + 1, spec.sliding_window + 2]
    generator = torch.Generator().manual_seed(0)
    return [
        EngineInput(torch.randint(spec.vocab_size, (length,), generator=generator).tolist(), _PARAMS)
        for length in sorted(min(length, spec.max_length) for length in lengths)
    ]
