"""The load-time proof of a head: what it makes of packed hidden states is what the whole model says of each text alone.

Which hidden state a family's head reads (the first token's, the last one's, their mean) is seen here, not listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from poolhook.config import PoolingType
from poolhook.engine.client import EngineInput
from poolhook.engine.forward import Forward
from poolhook.engine.proof import TOLERANCE, samples
from poolhook.errors import ModelError, describe_error
from poolhook.models import ModelSpec, padding_id, quiet_transformers
from poolhook.pooler import HiddenBatch, pool

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_CANDIDATES = (PoolingType.CLS, PoolingType.LAST, PoolingType.MEAN, PoolingType.MAX)


@dataclass(frozen=True)
class ProvedHead:
    """A head, and where it reads.

    Args:
        forward: runs all that comes before the pooling.
        head: what comes after it, to logits.
        pooling: makes the rows that it reads; for heads of tokens that of the spec, which does not matter.
        unread_end: a token id that it does not read where a text ends in it; None if it reads every last token.
    """

    forward: Forward
    head: nn.Module
    pooling: tuple[PoolingType, ...]
    unread_end: int | None = None


class EachTokenForward:
    """A forward pass whose "hidden states" are a head's logits for each token, for heads whose logits are pooled
    (EuroBERT's "late" pooling).

    Args:
        forward: runs the transformer.
        head: hidden states to logits.
    """

    def __init__(self, forward: Forward, head: nn.Module) -> None:
        self.name = forward.name
        self._forward = forward
        self._head = head

    def __call__(self, inputs: Sequence[EngineInput]) -> tuple[Tensor, Tensor]:
        """See `Forward`."""
        hidden, cu_seqlens = self._forward(inputs)
        return self._head(hidden), cu_seqlens

    def cost(self, count: int, total: int, longest: int) -> int:
        """See `Forward`."""
        return self._forward.cost(count, total, longest)


@torch.inference_mode()
def own_logits(model: PreTrainedModel, spec: ModelSpec) -> list[Tensor]:
    """What the whole model says of each sample alone: shape `[labels]`, or `[tokens, labels]` for heads of tokens.

    Raises:
        ModelError: it can't be run on token ids.
    """
    try:
        with quiet_transformers():
            logits = [
                model(torch.tensor([item.token_ids], device=model.device)).logits[0].float()
                for item in samples(spec, padding_id(model.config))
            ]
    except Exception as error:
        # A model that wants more than token ids fails in its own way.
        raise ModelError(
            f"{spec.name} ({spec.architecture}) can't be run on token ids: {describe_error(error)}"
        ) from error
    # A causal language model answers with what it says after the last token.
    return [one[-1] for one in logits] if spec.head == "causal_lm" else logits


@torch.inference_mode()
def own_logits_of_padded(model: PreTrainedModel, spec: ModelSpec) -> Tensor | None:
    """What the whole model says of a text that ends in its padding token, which is another's end of sentence; None for
    heads of tokens and models without one."""
    padding = padding_id(model.config)
    if spec.head != "sequence" or padding is None:
        return None
    with quiet_transformers():
        ids = _padded(spec, padding).token_ids
        logits: Tensor = model(torch.tensor([ids], device=model.device)).logits[0].float()
        return logits


def _padded(spec: ModelSpec, padding: int) -> EngineInput:
    text = samples(spec, padding)[2]
    return EngineInput([*text.token_ids[: max(spec.max_length - 2, 1)], padding, padding], text.params)


@torch.inference_mode()
def prove_head(
    forward: Forward,
    head: nn.Module,
    own: list[Tensor],
    own_of_padded: Tensor | None,
    spec: ModelSpec,
    padding: int | None,
    dtype: torch.dtype,
) -> ProvedHead:
    """How the head is to be run, so that it says what `own` says.

    Args:
        forward: runs the transformer.
        head: hidden states to logits.
        own: what `own_logits` said.
        own_of_padded: what `own_logits_of_padded` said.
        spec: of the model.
        padding: its padding token's id.
        dtype: in which the transformer computes.

    Raises:
        ModelError: the head makes something else of every pooling, or needs more than hidden states.
    """
    hidden, cu_seqlens = forward(samples(spec, padding))
    try:
        if spec.head in ("token", "masked_lm"):
            differences = {ProvedHead(forward, head, spec.pooling): _difference(head(hidden), torch.cat(own))}
        else:
            differences = _of_rows(forward, head, HiddenBatch(hidden, cu_seqlens), torch.stack(own), spec)
    except Exception as error:
        # A head may want of its transformer what only that transformer has.
        raise ModelError(
            f"{spec.name} ({spec.architecture}) can't be served: its head can't be run apart from its transformer: "
            f"{describe_error(error)}"
        ) from error
    # The nearest, not the first that is near enough: in half precision several may be.
    nearest = min(differences, key=lambda way: differences[way])
    if differences[nearest] <= TOLERANCE[dtype]:
        if nearest.pooling == (PoolingType.LAST,) and own_of_padded is not None and padding is not None:
            hidden, _ = forward([_padded(spec, padding)])
            before, last = (_difference(head(hidden[[place]])[0], own_of_padded) for place in (-3, -1))
            return replace(nearest, unread_end=padding if before < last else None)
        return nearest
    raise ModelError(
        f"{spec.name} ({spec.architecture}) can't be served: its head, run behind the transformer on the first, the "
        "last, the mean or the maximum of a text's hidden states, differs from the whole model by "
        f"{differences[nearest]:.1e}."
    )


def _of_rows(
    forward: Forward, head: nn.Module, batch: HiddenBatch, own: Tensor, spec: ModelSpec
) -> dict[ProvedHead, float]:
    """The ways in which a head may make one row of a text, the likely one first, and how far each is from `own`."""
    differences = {
        ProvedHead(forward, head, (method,)): _difference(head(pool(batch, [method])), own)
        for method in dict.fromkeys((*spec.pooling, *_CANDIDATES))
    }
    of_each_token = HiddenBatch(head(batch.hidden), batch.cu_seqlens)
    late = ProvedHead(EachTokenForward(forward, head), nn.Identity(), (PoolingType.MEAN,))
    return differences | {late: _difference(pool(of_each_token, [PoolingType.MEAN]), own)}


def _difference(ours: Tensor, own: Tensor) -> float:
    """The largest difference of two logits, relative to the largest logit; infinite if any is not finite."""
    distance = (ours - own).abs().max() / own.abs().max().clamp_min(1e-12)
    return float(torch.nan_to_num(distance, nan=torch.inf, posinf=torch.inf))
