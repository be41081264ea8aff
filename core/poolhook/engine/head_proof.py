"""The load-time proof of a head: what it makes of packed hidden states is what the whole model says of each text alone.

Which hidden state a family's head reads (the first token's, the last one's, their mean) is seen here, not listed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from poolhook.config import PoolingType
from poolhook.engine.forward import Forward
from poolhook.engine.proof import TOLERANCE, samples
from poolhook.errors import ModelError, describe_error
from poolhook.models import ModelSpec, quiet_transformers
from poolhook.pooler import HiddenBatch, pool

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_CANDIDATES = (PoolingType.CLS, PoolingType.LAST, PoolingType.MEAN, PoolingType.MAX)


@torch.inference_mode()
def own_logits(model: PreTrainedModel, spec: ModelSpec) -> list[Tensor]:
    """What the whole model says of each sample alone: shape `[labels]`, or `[tokens, labels]` for heads of tokens.

    Raises:
        ModelError: it can't be run on token ids.
    """
    padding_id = model.config.get_text_config().pad_token_id
    try:
        with quiet_transformers():
            logits = [
                model(torch.tensor([item.token_ids], device=model.device)).logits[0].float()
                for item in samples(spec, padding_id)
            ]
    except Exception as error:
        # A model that wants more than token ids fails in its own way.
        raise ModelError(
            f"{spec.name} ({spec.architecture}) can't be run on token ids: {describe_error(error)}"
        ) from error
    # A causal language model answers with what it says after the last token.
    return [one[-1] for one in logits] if spec.head == "causal_lm" else logits


@torch.inference_mode()
def prove_head(
    forward: Forward,
    head: Callable[[Tensor], Tensor],
    own: list[Tensor],
    spec: ModelSpec,
    padding_id: int | None,
    dtype: torch.dtype,
) -> tuple[PoolingType, ...]:
    """The pooling whose rows the head reads; for heads of tokens that of `spec`, which does not matter.

    Args:
        forward: runs the transformer.
        head: hidden states to logits.
        own: what `own_logits` said.
        spec: of the model.
        padding_id: its padding token's id.
        dtype: in which the transformer computes.

    Raises:
        ModelError: the head makes something else of every pooling.
    """
    hidden, cu_seqlens = forward(samples(spec, padding_id))
    batch = HiddenBatch(hidden, cu_seqlens)
    if spec.head in ("token", "masked_lm"):
        difference = _difference(head(hidden), torch.cat(own))
        if difference <= TOLERANCE[dtype]:
            return spec.pooling
        raise _not_proved(spec, difference)
    differences = {}
    for method in dict.fromkeys((*spec.pooling, *_CANDIDATES)):
        differences[method] = _difference(head(pool(batch, [method])), torch.stack(own))
        if differences[method] <= TOLERANCE[dtype]:
            return (method,)
    raise _not_proved(spec, min(differences.values()))


def _difference(ours: Tensor, own: Tensor) -> float:
    """The largest difference of two logits, relative to the largest logit; infinite if any is not finite."""
    distance = (ours - own).abs().max() / own.abs().max().clamp_min(1e-12)
    return float(torch.nan_to_num(distance, nan=torch.inf, posinf=torch.inf))


def _not_proved(spec: ModelSpec, difference: float) -> ModelError:
    return ModelError(
        f"{spec.name} ({spec.architecture}) can't be served: its head, run behind the transformer on the first, the "
        f"last, the mean or the maximum of a text's hidden states, differs from the whole model by {difference:.1e}."
    )
