"""DeBERTa-v2 and v3: scores of a query with the key's relative position, and of a key with the query's.

The bias is that of He et al., "DeBERTa" (arXiv 2006.03654), section 3.1, with transformers' log buckets:

    bias[i, j] = (query[i] · pos_key[row(i - j)] + key[j] · pos_query[row(i - j)]) * scaling

A sequence of length L knows only the 2L - 1 distances from -(L - 1) to L - 1, so only those rows are multiplied, in the
order of the distances; `[i, j]` then lies where a view with skewed strides finds it, and nothing is gathered.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers.models.deberta_v2.modeling_deberta_v2 import (
    DebertaV2Encoder,
    DebertaV2Model,
    DisentangledSelfAttention,
    build_relative_position,
)

from poolhook.models.adapters.interface import chosen_attention

if TYPE_CHECKING:
    from transformers import PreTrainedModel

RelativePositions = Callable[[int], Tensor]
"""Length L -> shape `[2L - 1]`: the relative position (a bucket's, where there are buckets) of each distance between
two of its tokens, from `-(L - 1)` up."""


def adapt_deberta_v2(model: PreTrainedModel) -> bool:
    """See `adapt`. The xlarge sizes of v2 have none: a convolution mixes tokens before attention sees them."""
    if not isinstance(model, DebertaV2Model) or model.encoder.conv is not None:
        return False
    model.__class__ = _Model
    model.encoder.__class__ = _Encoder
    model.encoder.config = model.config
    for layer in model.encoder.layer:
        layer.attention.self.__class__ = _SelfAttention
        layer.attention.self.config = model.config
        layer.attention.self.tables = {}
    return True


class _Model(DebertaV2Model):  # type: ignore[misc]
    @classmethod
    def _can_set_attn_implementation(cls) -> bool:
        return True


class _Encoder(DebertaV2Encoder):  # type: ignore[misc]
    def get_attention_mask(self, attention_mask: Tensor) -> Any:
        """None for a registered attention function, which knows its sequences."""
        return super().get_attention_mask(attention_mask) if chosen_attention(self.config) is None else None

    def get_rel_pos(self, hidden_states: Tensor, *args: Any, **kwargs: Any) -> Any:
        """For a registered attention function `RelativePositions`, which the layers hand down as they would the tensor.

        Made for each length once a step.
        """
        if chosen_attention(self.config) is None or not self.relative_attention:
            return super().get_rel_pos(hidden_states, *args, **kwargs)

        @cache
        def of_length(length: int) -> Tensor:
            matrix = build_relative_position(
                hidden_states[0, :length],
                hidden_states[0, :length],
                bucket_size=self.position_buckets,
                max_position=self.max_relative_positions,
            )[0]
            # Its last row ends all distances from 0 up, its first row those below.
            return torch.cat([matrix[0, 1:].flip(0), matrix[-1].flip(0)])

        return of_length


class _SelfAttention(DisentangledSelfAttention):  # type: ignore[misc]
    tables: dict[str, Tensor]

    def forward(
        self,
        hidden_states: Tensor,
        attention_mask: Any,
        output_attentions: bool = False,
        query_states: Tensor | None = None,
        relative_pos: Any = None,
        rel_embeddings: Tensor | None = None,
    ) -> Any:
        ...
