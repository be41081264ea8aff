"""MPNet: BERT with a bias on the scores for each bucket of distances, one table for all layers."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from torch import Tensor
from transformers.models.mpnet.modeling_mpnet import MPNetEncoder, MPNetModel, MPNetSelfAttention

from poolhook.models.adapters.interface import chosen_attention

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def adapt_mpnet(model: PreTrainedModel) -> bool:
    """See `adapt`."""
    if not isinstance(model, MPNetModel):
        return False
    model.__class__ = AdaptedMPNetModel
    model.encoder.__class__ = AdaptedMPNetEncoder
    for layer in model.encoder.layer:
        layer.attention.attn.__class__ = AdaptedMPNetSelfAttention
        layer.attention.attn.config = model.config
    return True


class AdaptedMPNetModel(MPNetModel):  # type: ignore[misc]
    """One that `set_attn_implementation` works on."""

    @classmethod
    def _can_set_attn_implementation(cls) -> bool:
        return True


class AdaptedMPNetEncoder(MPNetEncoder):  # type: ignore[misc]
    """Makes no bias across the sequences of a packed batch."""

    def compute_position_bias(self, x: Tensor, *args: Any, **kwargs: Any) -> Any:
        """For a registered attention function its `score_bias`, which the layers hand down as they would the tensor.

        Made for each length once a step.
        """
        compute = super().compute_position_bias
        if chosen_attention(self.config) is None:
            return compute(x, *args, **kwargs)

        @cache
        def of_length(length: int) -> Any:
            return compute(x[:, :length])

        return lambda query, key: of_length(query.shape[-2])


class AdaptedMPNetSelfAttention(MPNetSelfAttention):  # type: ignore[misc]
    """Calls the attention function that the model's configuration names."""

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, position_bias: Any = None, **kwargs: Any
    ) -> Any:
        """As in transformers; `position_bias` is what the adapted encoder made."""
        attend = chosen_attention(self.config)
        if attend is None:
            return super().forward(hidden_states, attention_mask, position_bias, **kwargs)
        by_head = (*hidden_states.shape[:-1], -1, self.attention_head_size)
        query, key, value = (
            project(hidden_states).view(by_head).transpose(1, 2) for project in (self.q, self.k, self.v)
        )
        attended, _ = attend(self, query, key, value, attention_mask, is_causal=False, score_bias=position_bias)
        return (self.o(attended.flatten(2)),)
