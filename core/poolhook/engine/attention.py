"""Attention over a packed batch, registered with transformers so that its model code runs unchanged.

transformers hands `query`, `key` and `value` of shape `[1, heads, T, d]`, and no mask: an attention name that its
mask registry does not know makes it build none. Which token belongs to which sequence comes from the packed batch
of the running step, since not every model passes extra keyword arguments down to its attention.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

from poolhook.engine.packing import PackedBatch

ATTENTION_NAME = "poolhook_packed"

SDPA_FROM = 96
"""Tokens from which torch's fused attention beats plain matrix products on a CPU (measured)."""

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
    if query.is_cuda and query.dtype != torch.float32 and softcap is None:
        return _varlen(query, key, value, batch, scale, causal, sliding_window), None
    return _by_runs(query, key, value, batch, scale, causal, sliding_window, softcap), None


def _by_runs(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    batch: PackedBatch,
    scale: float,
    causal: bool,
    window: int | None,
    softcap: float | None,
) -> Tensor:
    """One dense call for each run of sequences of equal length."""
    group = query.shape[1] // key.shape[1]
    if group > 1:
        key, value = key.repeat_interleave(group, dim=1), value.repeat_interleave(group, dim=1)
    out = query.new_empty(query.shape[2], query.shape[1], value.shape[-1])
    for start, count, length in batch.runs:
        stop = start + count * length
        q, k, v = (
            x[0, :, start:stop].view(-1, count, length, x.shape[-1]).transpose(0, 1) for x in (query, key, value)
        )
        mask = _mask(length, causal, window, query.device) if causal or _reaches(window, length) else None
        # Causality needs no mask where the fused kernel knows it itself.
        if softcap is None and length >= SDPA_FROM:
            only_causal = causal and not _reaches(window, length)
            attended = scaled_dot_product_attention(
                q, k, v, attn_mask=None if only_causal else mask, is_causal=only_causal, scale=scale
            )
        else:
            attended = _plain(q, k, v, scale, mask, softcap)
        out[start:stop].view(count, length, *out.shape[1:]).copy_(attended.transpose(1, 2))
    return out[None]


def _plain(q: Tensor, k: Tensor, v: Tensor, scale: float, mask: Tensor | None, softcap: float | None) -> Tensor:
    scores = torch.matmul(q * scale, k.transpose(-1, -2))
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.matmul(scores.softmax(dim=-1, dtype=torch.float32).to(v.dtype), v)


def _reaches(window: int | None, length: int) -> bool:
    """Whether a window hides anything from a sequence of this length."""
    return window is not None and length > window


@lru_cache(maxsize=64)
def _mask(length: int, causal: bool, window: int | None, device: torch.device) -> Tensor:
    """Shape `[length, length]`, bool: which key each query may see."""
    position = torch.arange(length, device=device)
    distance = position[:, None] - position[None, :]
    mask = distance >= 0 if causal else torch.ones_like(distance, dtype=torch.bool)
    return mask & (distance.abs() < window) if window is not None else mask


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
