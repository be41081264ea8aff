"""Families whose attention transformers writes out by hand, brought to call its attention interface instead.

An adapted model calls whatever function its `config._attn_implementation` names in transformers' `AttentionInterface`;
while that is `eager`, as it is when transformers loads it, it runs transformers' own code as before.

Besides what transformers passes, the function gets `score_bias`, or None for no bias:

    score_bias(query, key) -> what is added to the scores of sequences of equal length

`query` and `key` are shaped `[n, heads, L, d]`; the answer broadcasts to `[n, heads, L, L]` and has their dtype. The
bias counts places from each sequence's own start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def adapt(model: PreTrainedModel) -> bool:
    """Have the attention of `model` go through the interface, if its family has an adapter.

    Args:
        model: a transformer without its head; its modules are changed in place. Its weights, dtype and device must stay
            as they are from then on, or it must be adapted anew.

    Returns:
        Whether there is an adapter for it.
    """
    family = model.config.model_type
    if family == "mpnet":
        from poolhook.models.adapters.mpnet import adapt_mpnet

        return adapt_mpnet(model)
    if family == "deberta-v2":
        from poolhook.models.adapters.deberta_v2 import adapt_deberta_v2

        return adapt_deberta_v2(model)
    return False
