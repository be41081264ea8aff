"""Running a model over the sequences of a step: packed where the architecture allows it, padded where not.

Both ways answer the same: hidden states end to end, so nothing above knows which one ran.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from poolhook.engine.attention import ATTENTION_NAME, UnsupportedAttention, attending
from poolhook.engine.client import EngineInput
from poolhook.engine.packing import pack
from poolhook.models import adapt, padding_id

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Forward(Protocol):
    """Runs the transformer."""

    name: str
    """`packed`, `padded` or `by length`, for logs."""

    def __call__(self, inputs: Sequence[EngineInput]) -> tuple[Tensor, Tensor]:
        """The last hidden states, shape `[T, hidden]`, end to end, and `cu_seqlens`, shape `[n + 1]`."""

    def cost(self, count: int, total: int, longest: int) -> int:
        """Tokens that a step of `count` sequences with `total` tokens computes."""


class PackedForward:
    """Without padding. Making one switches the model to the registered attention.

    Args:
        model: a transformer whose attention goes through transformers' `AttentionInterface`.
        position_offset: the position id of a sequence's first token.

    Raises:
        UnsupportedAttention: the model takes no `position_ids`, or does not know registered attention functions.
    """

    name = "packed"

    def __init__(self, model: PreTrainedModel, position_offset: int = 0) -> None:
        parameters = inspect.signature(model.forward).parameters
        if "position_ids" not in parameters:
            raise UnsupportedAttention("its forward takes no position_ids")
        self._model = model
        self._position_offset = position_offset
        self._padding_id = position_offset - 1 if position_offset else None
        self._constants = _constants(parameters)
        self._token_types = _TokenTypes(model)
        adapt(model)
        try:
            model.set_attn_implementation(ATTENTION_NAME)
        except (ValueError, AttributeError, NotImplementedError) as error:
            raise UnsupportedAttention("it does not use transformers' attention interface") from error

    def __call__(self, inputs: Sequence[EngineInput]) -> tuple[Tensor, Tensor]:
        """Run `inputs`, best sorted by length; see `Forward`."""
        batch = pack(inputs, self._model.device, self._position_offset, self._padding_id)
        kwargs: dict[str, Any] = {"input_ids": batch.input_ids, "position_ids": batch.position_ids}
        if self._token_types.wanted(inputs):
            kwargs["token_type_ids"] = batch.token_type_ids
        with attending(batch):
            hidden = self._model(**kwargs, **self._constants)[0]
        if batch.attention_calls == 0:
            # transformers only warns where a model ignores the registered function.
            raise UnsupportedAttention("its code calls no registered attention function")
        return hidden[0], batch.cu_seqlens

    def cost(self, count: int, total: int, longest: int) -> int:
        """Every token counts once."""
        return total


class PaddedForward:
    """Each sequence padded to the longest of its step. Making one switches the model to its own attention.

    Args:
        model: any transformer that takes `input_ids` and `attention_mask`.
    """

    name = "padded"

    def __init__(self, model: PreTrainedModel) -> None:
        parameters = inspect.signature(model.forward).parameters
        self._model = model
        self._padding_id = padding_id(model.config) or 0
        self._constants = _constants(parameters)
        self._token_types = _TokenTypes(model)
        try:
            model.set_attn_implementation("sdpa")
        except (ValueError, AttributeError, NotImplementedError, ImportError):
            model.set_attn_implementation("eager")

    def __call__(self, inputs: Sequence[EngineInput]) -> tuple[Tensor, Tensor]:
        """Run `inputs`, best sorted by length; see `Forward`."""
        device = self._model.device
        lengths = torch.tensor([item.cost for item in inputs])
        attended = torch.tensor([item.attended or item.cost for item in inputs])
        places = torch.arange(int(lengths.max()))[None]
        real = places < lengths[:, None]
        kwargs: dict[str, Any] = {
            "input_ids": self._pad([item.token_ids for item in inputs], self._padding_id).to(device),
            "attention_mask": (places < attended[:, None]).to(device, torch.long),
        }
        if self._token_types.wanted(inputs):
            types = [item.token_type_ids or [0] * len(item.token_ids) for item in inputs]
            kwargs["token_type_ids"] = self._pad(types, 0).to(device)
        hidden = self._model(**kwargs, **self._constants)[0]
        cu_seqlens = torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)])
        return hidden[real.to(device)], cu_seqlens.to(device, torch.int32)

    def cost(self, count: int, total: int, longest: int) -> int:
        """Padding counts too."""
        return count * longest

    @staticmethod
    def _pad(rows: Sequence[Sequence[int]], filler: int) -> Tensor:
        return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=filler)


class _TokenTypes:
    """Whether a step's segments are given to the model: always to one that has a table of them, and to others (XLNet)
    where a tokenizer gave some. GPT-2 and its kin would read zeros as words."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._taken = "token_type_ids" in inspect.signature(model.forward).parameters
        self._has_table = bool(getattr(model.config.get_text_config(), "type_vocab_size", 0))

    def wanted(self, inputs: Sequence[EngineInput]) -> bool:
        return self._taken and (self._has_table or any(item.token_type_ids is not None for item in inputs))


def _constants(parameters: Any) -> dict[str, Any]:
    """Arguments that are the same for every step: decoders must not keep keys and values for a next token."""
    return {"use_cache": False} if "use_cache" in parameters else {}
