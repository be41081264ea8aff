"""What a caller may ask of pooling and of tokenizing, per request or per prompt."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from poolhook.tasks import PoolingTask


class PoolingParams(BaseModel):
    """How one prompt is pooled. Every field left at None follows the model."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    task: PoolingTask | None = None
    """What the pooler computes; None is the route's own task."""

    dimensions: int | None = Field(default=None, ge=1)
    """Cut the embedding to its first `dimensions` values (Matryoshka models), then normalise it again."""

    use_activation: bool | None = None
    """Apply the model's last step: L2 normalisation for `embed`."""


class TokenizationParams(BaseModel):
    """How a text becomes token ids."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    truncate_prompt_tokens: int | None = Field(default=None, ge=-1)
    """Cut a prompt to this many tokens, special tokens included; -1 is the model's maximum length. None refuses a
    prompt that is longer than the model takes."""

    truncation_side: Literal["left", "right"] | None = None
    """Which end of an over-long prompt is cut away; None is what the model's tokenizer says, mostly the right."""

    add_special_tokens: bool = True
    """Add the tokens that the model expects around a text, such as `[CLS]` and `[SEP]`."""
