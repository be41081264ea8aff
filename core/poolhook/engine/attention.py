"""Attention over a packed batch, registered with transformers so that its model code runs unchanged.

transformers hands `query`, `key` and `value` of shape `[1, heads, T, d]`, and no mask: an attention name that its
mask registry does not know makes it build none. Which token belongs to which sequence comes from the packed batch
of the running step, since not every model passes extra keyword arguments down to its attention.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from poolhook.engine.packing import PackedBatch

ATTENTION_NAME = "poolhook_packed"

ScoreBias = Callable[[Tensor, Tensor], Tensor]
"""Query and key of sequences of equal length, shape `[n, heads, L, d]` -> what is added to their scores, in a shape
that broadcasts to `[n, heads, L, L]`; see `poolhook.models.adapters`."""

_current: ContextVar[PackedBatch] = ContextVar("packed batch of the running step")


class UnsupportedAttention(NotImplementedError):
    """A model asks for something that packed attention does not compute; the padded path then serves it."""


@contextmanager
def attending(batch: PackedBatch) -> Iterator[None]:
    """While inside, packed attention keeps to the sequences of `batch`."""
    token = _current.set(batch)
    try:
        yield
    finally:
        _current.reset(token)


def packed_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    is_causal: bool | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    score_bias: ScoreBias | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attend within each sequence of the running step's batch.

    Args:
        module: the attention layer; its `is_causal` counts where the argument is None.
        query: shape `[1, heads, T, d]`.
        key: shape `[1, kv_heads, T, d]`; `kv_heads` divides `heads`.
        value: as `key`.
        attention_mask: None; a mask made for padded batches can't be right here.
        scaling: factor on the scores; None is `d ** -0.5`.
        sliding_window: `w` lets position `i` see `j` where `|i - j| < w`.
        softcap: `c` turns a score `s` into `c * tanh(s / c)`.
        score_bias: what is added to the scaled scores, for sequences of any one length.

    Returns:
        Shape `[1, T, heads, d]`, and None for the weights.
    """
    batch = _current.get()
    batch.attention_calls += 1
    if attention_mask is not None:
        raise UnsupportedAttention("the model built an attention mask of its own")
    for name in ("position_bias", "s_aux"):
        if kwargs.get(name) is not None:
            raise UnsupportedAttention(f"attention with {name}")
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if score_bias is not None and (causal or sliding_window is not None or softcap is not None):
        raise UnsupportedAttention("a bias on scores that are causal, windowed or capped")
    plain = softcap is None and score_bias is None and all(run.attended == run.length for run in batch.runs)
    if query.is_cuda and query.dtype != torch.float32 and plain:
        return _varlen(query, key, value, batch, scale, causal, sliding_window), None
    return _by_runs(query, key, value, batch, scale, causal, sliding_window, softcap, score_bias), None


def _by_runs(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    batch: PackedBatch,
    scale: float,
    causal: bool,
    window: int | None,
    softcap: float | None,
    score_bias: ScoreBias | None,
) -> Tensor:
    """One dense call for each run of sequences of equal length: the kernel reads them where they lie."""
    group = query.shape[1] // key.shape[1]
    if group > 1:
        key, value = key.repeat_interleave(group, dim=1), value.repeat_interleave(group, dim=1)
    out = query.new_empty(query.shape[2], query.shape[1], value.shape[-1])
    for run in batch.runs:
        start, stop, length, seen = run.start, run.start + run.count * run.length, run.length, run.attended
        q, k, v = (
            x[0, :, start:stop].view(-1, run.count, length, x.shape[-1]).transpose(0, 1) for x in (query, key, value)
        )
        bias = None if score_bias is None else score_bias(q, k)[..., :seen]
        k, v = k[:, :, :seen], v[:, :, :seen]
        windowed = window is not None and length > window
        # torch's own causal mask is for as many keys as queries.
        needs_mask = windowed or (causal and (softcap is not None or seen < length))
        mask = _mask(batch, length, causal, window)[:, :seen] if needs_mask else None
        if softcap is not None:
            attended = _softcapped(q, k, v, scale, mask, softcap)
        else:
            attended = scaled_dot_product_attention(
                q, k, v, attn_mask=mask if bias is None else bias, is_causal=causal and mask is None, scale=scale
            )
        out[start:stop].view(run.count, length, *out.shape[1:]).copy_(attended.transpose(1, 2))
    return out[None]


def _softcapped(q: Tensor, k: Tensor, v: Tensor, scale: float, mask: Tensor | None, softcap: float) -> Tensor:
    """What torch's fused attention has no argument for."""
    scores = torch.tanh(torch.matmul(q * scale, k.transpose(-1, -2)) / softcap) * softcap
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.matmul(scores.softmax(dim=-1, dtype=torch.float32).to(v.dtype), v)


def _mask(batch: PackedBatch, length: int, causal: bool, window: int | None) -> Tensor:
    """Shape `[length, length]`, bool: which key each query may see. Made once for all layers of a step."""
    kind = (length, causal, window)
    if kind not in batch.masks:
        position = torch.arange(length, device=batch.input_ids.device)
        distance = position[:, None] - position[None, :]
        mask = distance >= 0 if causal else torch.ones_like(distance, dtype=torch.bool)
        batch.masks[kind] = mask & (distance.abs() < window) if window is not None else mask
    return batch.masks[kind]


def _varlen(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    batch: PackedBatch,
    scale: float,
    causal: bool,
    window: int | None,
) -> Tensor:
    """The GPU's kernel for packed batches."""
    from torch.nn.attention.varlen import varlen_attn

    reach = -1 if window is None else window - 1
    attended = varlen_attn(
        query[0].transpose(0, 1),
        key[0].transpose(0, 1),
        value[0].transpose(0, 1),
        batch.cu_seqlens,
        batch.cu_seqlens,
        batch.max_seqlen,
        batch.max_seqlen,
        scale=scale,
        window_size=(reach, 0 if causal else reach),
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return cast(Tensor, attended)[None]


AttentionInterface.register(ATTENTION_NAME, packed_attention)
