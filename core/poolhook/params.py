"""What a caller may ask of pooling and of tokenizing, per request or per prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from poolhook.tasks import POOLING_TASKS, PoolingTask, why_unsupported

REMOVED_FIELDS = ("normalize", "softmax", "activation")
"""Names that `use_activation` had before: each was the last step of one task."""


class RemovedField(ValueError):
    """A field goes by a name that it had before."""

    def __init__(self, field: str) -> None:
        super().__init__(f"`{field}` was removed: use `use_activation`, which is the same for every task")
        self.field = field


def _known(task: Any) -> Any:
    if task is not None and task not in POOLING_TASKS:
        raise ValueError(why_unsupported(task, POOLING_TASKS))
    return task


Task = Annotated[PoolingTask, BeforeValidator(_known)]
"""A task as a field: a name that is none, or that was removed, is answered with what there is instead."""


class PoolingParams(BaseModel):
    """How one prompt is pooled. Every field left at None follows the model."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    task: Task | None = None
    """What the pooler computes; None is the route's own task."""

    dimensions: int | None = Field(default=None, ge=1)
    """Cut embeddings to their first `dimensions` values (Matryoshka models), then normalise them again."""

    use_activation: bool | None = None
    """Apply the model's last step: L2 normalisation of embeddings, softmax or sigmoid over labels."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_removed(cls, values: Any) -> Any:
        return refuse_removed(values)


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


_HOW_TO_ALLOW = (
    "If it was trained for it and its config.json does not say so, whoever starts it can: "
    'hf_overrides={"is_matryoshka": true} allows any length, {"matryoshka_dimensions": [...]} those listed.'
)


def why_no_dimensions(wanted: int | None, size: int, matryoshka: Sequence[int] | None) -> str | None:
    """Why embeddings can't have `wanted` dimensions, and what to do; None if they can.

    Args:
        wanted: None for all of them.
        size: dimensions of an embedding that was not cut.
        matryoshka: the lengths to which the model lets its embeddings be cut; empty for any, None for none.
    """
    if wanted is None or wanted == size:
        return None
    advice = "Leave dimensions out."
    if wanted > size:
        problem = f"this model's embeddings have only {size}"
    elif matryoshka is None:
        problem = f"this model's embeddings have {size} and were not trained to be cut (no Matryoshka model)"
        advice = f"{advice} {_HOW_TO_ALLOW}"
    elif matryoshka and wanted not in matryoshka:
        problem = f"this model's can be cut to {', '.join(map(str, matryoshka))}"
    else:
        return None
    return f"dimensions is {wanted}, but {problem}. {advice}"


def refuse_removed(values: Any) -> Any:
    """`values` as they are, unless a field goes by a name that was removed; for pydantic's `before` validators."""
    for name in REMOVED_FIELDS if isinstance(values, dict) else ():
        if name in values:
            raise RemovedField(name)
    return values
