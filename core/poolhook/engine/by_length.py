"""Running only sequences of equal length together, for models that let padding into their answers.

A convolution over neighbouring tokens or a Fourier transform over all of them (ConvBERT, MobileBERT, FNet) sees the
padding whatever the attention mask says.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

from poolhook.engine.client import EngineInput
from poolhook.engine.forward import PaddedForward


class ByLengthForward:
    """A forward pass for each length of a step, so that there is nothing to pad.

    Args:
        padded: runs the sequences of one length.
    """

    name = "by length"

    def __init__(self, padded: PaddedForward) -> None:
        self._padded = padded

    def __call__(self, inputs: Sequence[EngineInput]) -> tuple[Tensor, Tensor]:
        """Run `inputs`, in any order; see `Forward`."""
        rows: dict[int, Tensor] = {}
        for length in {item.cost for item in inputs}:
            places = [place for place, item in enumerate(inputs) if item.cost == length]
            hidden, _ = self._padded([inputs[place] for place in places])
            rows |= zip(places, hidden.view(-1, length, hidden.shape[-1]), strict=True)
        hidden = torch.cat([rows[place] for place in range(len(inputs))])
        borders = [0, *accumulate(item.cost for item in inputs)]
        return hidden, torch.tensor(borders, dtype=torch.int32, device=hidden.device)

    def cost(self, count: int, total: int, longest: int) -> int:
        """Every token counts once."""
        return total
