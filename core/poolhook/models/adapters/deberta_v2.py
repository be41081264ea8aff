"""DeBERTa-v2 and v3: scores of a query with the key's relative position, and of a key with the query's.

The bias is that of He et al., "DeBERTa" (arXiv 2006.03654), section 3.1, with transformers' log buckets of distances:

    bias[i, j] = (query[i] · pos_key[row(i - j)] + key[j] · pos_query[row(i - j)]) * scaling

A sequence of length L knows only the 2L - 1 distances from -(L - 1) to L - 1, so only their rows are multiplied, in the
order of the distances; a view with skewed strides then finds `[i, j]` where it lies, and nothing is gathered.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers.models.deberta_v2.modeling_deberta_v2 import (
    DebertaV2Encoder,
    DebertaV2Model,
    DisentangledSelfAttention,
    make_log_bucket_position,
)

from poolhook.models.adapters.interface import chosen_attention

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def adapt_deberta_v2(model: PreTrainedModel) -> bool:
    """See `adapt`. The xlarge sizes of v2 have no adapter: their convolution mixes neighbours, even across borders."""
    if not isinstance(model, DebertaV2Model) or model.encoder.conv is not None:
        return False
    model.__class__ = AdaptedDebertaV2Model
    model.encoder.__class__ = AdaptedDebertaV2Encoder
    model.encoder.config = model.config
    for layer in model.encoder.layer:
        attention = layer.attention.self
        attention.__class__ = AdaptedDebertaV2SelfAttention
        attention.config = model.config
        attention.tables = {}
    return True


class AdaptedDebertaV2Model(DebertaV2Model):  # type: ignore[misc]
    """One that `set_attn_implementation` works on."""

    @classmethod
    def _can_set_attn_implementation(cls) -> bool:
        return True


class AdaptedDebertaV2Encoder(DebertaV2Encoder):  # type: ignore[misc]
    """Makes no mask or matrix across the sequences of a packed batch."""

    def get_attention_mask(self, attention_mask: Tensor) -> Any:
        """None for a registered attention function: it knows its sequences."""
        return super().get_attention_mask(attention_mask) if chosen_attention(self.config) is None else None

    def get_rel_pos(self, hidden_states: Tensor, *args: Any, **kwargs: Any) -> Any:
        """For a registered attention function no matrix, but shape `[2T - 1]`: the relative position (where there are
        buckets, the bucket) of each distance from `-(T - 1)` to `T - 1`."""
        if chosen_attention(self.config) is None or not self.relative_attention:
            return super().get_rel_pos(hidden_states, *args, **kwargs)
        total = hidden_states.shape[1]
        distances = torch.arange(1 - total, total, device=hidden_states.device)
        if self.position_buckets > 0:
            distances = make_log_bucket_position(distances, self.position_buckets, self.max_relative_positions)
        return distances.to(torch.long)


class AdaptedDebertaV2SelfAttention(DisentangledSelfAttention):  # type: ignore[misc]
    """Calls the attention function that the model's configuration names."""

    tables: dict[str, Tensor]
    """Projected rows of the relative positions, scaled: `pos_key`, `pos_query`, shape `[heads, rows, d]`."""

    def forward(self, hidden_states: Tensor, attention_mask: Any, *args: Any, **kwargs: Any) -> Any:
        """As in transformers; `relative_pos` is what the adapted encoder made."""
        attend = chosen_attention(self.config)
        if attend is None:
            return super().forward(hidden_states, attention_mask, *args, **kwargs)
        query, key, value = (
            self._by_head(project(hidden_states)) for project in (self.query_proj, self.key_proj, self.value_proj)
        )
        terms = 1 + ("c2p" in self.pos_att_type) + ("p2c" in self.pos_att_type)
        scaling = (self.attention_head_size * terms) ** -0.5
        score_bias = None
        if self.relative_attention and terms > 1:
            if not self.tables:
                self.tables = self._project(kwargs["rel_embeddings"], scaling)
            score_bias = partial(self._score_bias, relative_pos=kwargs["relative_pos"])
        attended, _ = attend(
            self, query, key, value, attention_mask, scaling=scaling, is_causal=False, score_bias=score_bias
        )
        return attended.flatten(2), None

    def _by_head(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.num_attention_heads, -1).transpose(1, 2)

    def _project(self, rel_embeddings: Tensor, scaling: float) -> dict[str, Tensor]:
        """Made once for all steps: for a short step it is more work than all the rest."""
        rows = rel_embeddings[None, : 2 * self.pos_ebd_size]
        tables = {}
        if "c2p" in self.pos_att_type:
            tables["pos_key"] = (self.key_proj if self.share_att_key else self.pos_key_proj)(rows)
        if "p2c" in self.pos_att_type:
            tables["pos_query"] = (self.query_proj if self.share_att_key else self.pos_query_proj)(rows)
        return {name: self._by_head(table * scaling)[0] for name, table in tables.items()}

    def _score_bias(self, query: Tensor, key: Tensor, relative_pos: Tensor) -> Tensor:
        length, middle = query.shape[2], len(relative_pos) // 2
        near = relative_pos[middle + 1 - length : middle + length]
        rows = (near + self.pos_ebd_size).clamp(0, 2 * self.pos_ebd_size - 1)
        terms = []
        if "pos_key" in self.tables:
            terms.append(_skewed(query, self.tables["pos_key"], rows.flip(0)))
        if "pos_query" in self.tables:
            terms.append(_skewed(key, self.tables["pos_query"], rows).transpose(-1, -2))
        return reduce(torch.add, terms)


def _skewed(x: Tensor, table: Tensor, rows: Tensor) -> Tensor:
    """Each token of `x` times the table's row for its distance to each token of its sequence.

    Args:
        x: shape `[n, heads, L, d]`.
        table: shape `[heads, rows, d]`.
        rows: shape `[2L - 1]`; entry `b - a + L - 1` is the row for tokens `a` of `x` and `b`.

    Returns:
        Shape `[n, heads, L, L]`.
    """
    n, heads, length, _ = x.shape
    products = x.transpose(0, 1).flatten(1, 2) @ table[:, rows].transpose(1, 2)
    of_head, of_sequence = n * length * (2 * length - 1), length * (2 * length - 1)
    return products.as_strided((n, heads, length, length), (of_sequence, of_head, 2 * length - 2, 1), length - 1)
