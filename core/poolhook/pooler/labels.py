"""What tasks `classify` and `token_classify` share: a head's logits are calibrated, then activated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Literal

import torch
from torch import Tensor

from poolhook.errors import InvalidRequest
from poolhook.params import PoolingParams
from poolhook.pooler.pooler import Head
from poolhook.pooler.tokens import finite_rows
from poolhook.tasks import PoolingTask

Activation = Literal["softmax", "sigmoid", "identity", "relu"]
"""From logits to what is answered: probabilities that sum to one, one for each label alone, or the logits."""

_ACTIVATIONS: Mapping[Activation, Callable[[Tensor], Tensor]] = {
    "softmax": partial(torch.softmax, dim=-1),
    "sigmoid": torch.sigmoid,
    "identity": torch.positive,
    "relu": torch.relu,
}


class LabelPooler:
    """The base of poolers whose rows are labels' values, or hold them for each token.

    Args:
        head: from hidden states to logits.
        activation: from logits to what is answered.
        logit_mean, logit_sigma: Platt scaling: the activation sees `(logits - mean) / sigma`.
        use_activation: activate unless the caller says otherwise.
    """

    task: ClassVar[PoolingTask]

    def __init__(
        self,
        head: Head,
        *,
        activation: Activation,
        logit_mean: float | None = None,
        logit_sigma: float | None = None,
        use_activation: bool = True,
    ) -> None:
        self._head = head
        self._activate = _ACTIVATIONS[activation]
        self._mean = 0.0 if logit_mean is None else logit_mean
        self._sigma = 1.0 if logit_sigma is None else logit_sigma
        self._use_activation = use_activation

    def verify(self, params: PoolingParams) -> None:
        """Raise `InvalidRequest` if `params` ask for dimensions."""
        if params.dimensions is not None:
            raise InvalidRequest(f"dimensions is for tasks embed and token_embed, not {self.task}.", param="dimensions")

    def _logits(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Calibrated logits, shape `[m, labels]`, and which of them are finite, from float32 `[m, hidden]`."""
        logits = (self._head(states) - self._mean) / self._sigma
        # Before the activation: sigmoid makes a one of infinity, and so does a head's own tanh.
        return logits, finite_rows(states) & finite_rows(logits)

    def _wishes(self, params: Sequence[PoolingParams]) -> list[bool]:
        return [self._use_activation if each.use_activation is None else each.use_activation for each in params]

    def _finish(self, logits: Tensor, wants_activation: bool) -> Tensor:
        return self._activate(logits) if wants_activation else logits
