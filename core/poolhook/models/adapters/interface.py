"""Which attention function a model is to call."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

if TYPE_CHECKING:
    from transformers import PretrainedConfig

AttentionFunction = Callable[..., Any]


def chosen_attention(config: PretrainedConfig) -> AttentionFunction | None:
    """The registered function that `config` names; None if the model's own code (`eager`) is to run."""
    function: AttentionFunction | None = ALL_ATTENTION_FUNCTIONS.get(config._attn_implementation)
    return function
