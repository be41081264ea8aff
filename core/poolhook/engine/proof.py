"""The load-time proof: run a few sequences alone and together, and believe only ways that give the same hidden states.

A registered attention name on an architecture that does not use it only makes transformers warn, and then sequences
attend to each other. A wrong vector is worse than a slow one, so packing is believed only once it has been seen.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from poolhook.engine.attention import UnsupportedAttention
from poolhook.engine.by_length import ByLengthForward
from poolhook.engine.client import EngineInput
from poolhook.engine.forward import Forward, PackedForward, PaddedForward
from poolhook.errors import ModelError, describe_error
from poolhook.models import ModelSpec, objection_to_mixing, objection_to_packing, padding_id, quiet_transformers
from poolhook.params import PoolingParams

if TYPE_CHECKING:
    from transformers import PreTrainedModel

logger = logging.getLogger(__name__)

_PARAMS = PoolingParams(task="embed")

TOLERANCE = {torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 1e-1}
"""The largest difference of a token's hidden state, relative to its norm, that rounding explains."""


def choose_forward(model: PreTrainedModel, spec: ModelSpec) -> Forward:
    """The fastest way that agrees with the model's own: packed, else padded, else one length at a time. Anything but
    packed comes with a warning that says why.

    Raises:
        ModelError: no way agrees.
    """
    config = model.config.get_text_config()
    inputs = samples(spec, padding_id(config))
    objections: list[str] = []
    with quiet_transformers():
        alone = _alone(model, spec, inputs)
        for make, known in (
            (lambda: PackedForward(model, spec.position_offset), objection_to_packing(config)),
            (lambda: PaddedForward(model), objection_to_mixing(config)),
            (lambda: ByLengthForward(PaddedForward(model)), None),
        ):
            forward, objection = (None, known) if known else _proved(make, inputs, alone)
            if forward is not None:
                break
            objections.append(objection)
    reasons = "; ".join(dict.fromkeys(objections))
    if forward is None:
        hint = "" if model.dtype == torch.float32 else " Try dtype float32."
        raise ModelError(f"{spec.name} ({spec.architecture}) can't be served in {model.dtype}: {reasons}.{hint}")
    if objections:
        logger.warning(
            "%s (%s) can't be run packed: %s. It runs %s instead, which is slower and just as right.",
            spec.name,
            spec.architecture,
            reasons,
            forward.name,
        )
    return forward


@torch.inference_mode()
def _alone(model: PreTrainedModel, spec: ModelSpec, inputs: Sequence[EngineInput]) -> Tensor:
    """What the model itself makes of each sequence, without anything of ours."""
    try:
        return torch.cat([model(torch.tensor([item.token_ids], device=model.device))[0][0] for item in inputs])
    except Exception as error:
        # A model that wants more than token ids fails in its own way.
        raise ModelError(
            f"{spec.name} ({spec.architecture}) can't be run on token ids: {describe_error(error)}"
        ) from error


@torch.inference_mode()
def _proved(
    make: Callable[[], Forward], inputs: Sequence[EngineInput], alone: Tensor
) -> tuple[Forward, str] | tuple[None, str]:
    """The forward pass if it agrees with `alone`; None, and why not, if it does not."""
    try:
        forward = make()
        together, _ = forward(inputs)
    except UnsupportedAttention as error:
        return None, str(error)
    except Exception as error:
        # Whatever a model does with inputs that it was not made for, there is another way to run it.
        return None, f"its run failed with {describe_error(error, 200)}"
    difference, tolerance = _difference(together, alone), TOLERANCE[alone.dtype]
    if difference <= tolerance:
        return forward, ""
    return None, (
        f"its hidden states differ from those of single sequences by {difference:.1e} (allowed: {tolerance:.0e})"
    )


def _difference(together: Tensor, alone: Tensor) -> float:
    """The largest distance of a token's two hidden states, relative to their norm; infinite if any is not finite."""
    together, alone = together.float(), alone.float()
    distance = (together - alone).norm(dim=-1) / alone.norm(dim=-1).clamp_min(1e-12)
    return float(torch.nan_to_num(distance, nan=torch.inf, posinf=torch.inf).max())


def samples(spec: ModelSpec, padding: int | None) -> list[EngineInput]:
    """Sequences whose lengths straddle every branch: one token, equal pairs, short and long ones, and
    one more than a sliding window. Together they are longer than the usual 512 positions, which some models take for
    the length of a packed batch. Padding is no text: some models silence it wherever it stands."""
    lengths = [1, 2, 7, 7, 30, 30, 107, 129, 200]
    if spec.sliding_window is not None:
        lengths += [spec.sliding_window, spec.sliding_window + 1, spec.sliding_window + 2]
    generator = torch.Generator().manual_seed(0)
    return [
        EngineInput([i if i != padding else (i + 1) % spec.vocab_size for i in ids], _PARAMS)
        for length in sorted(min(length, spec.max_length) for length in lengths)
        for ids in [torch.randint(spec.vocab_size, (length,), generator=generator).tolist()]
    ]
