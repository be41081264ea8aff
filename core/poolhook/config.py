"""What an operator decides about a model and its engine, and the task that follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from poolhook.errors import ConfigError
from poolhook.params import Task
from poolhook.tasks import PoolingTask, in_order, why_unsupported

Device = Annotated[str, Field(pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$")]
DType = Literal["auto", "float32", "float16", "bfloat16"]
LoadFormat = Literal["safetensors", "pt"]


class PoolingType(StrEnum):
    """How the hidden states of a sequence become one vector, or (`ALL`, `STEP`) which of them are answered."""

    CLS = "CLS"
    LAST = "LAST"
    MEAN = "MEAN"
    MAX = "MAX"
    MEAN_SQRT_LEN = "MEAN_SQRT_LEN"
    WEIGHTED_MEAN = "WEIGHTED_MEAN"
    ALL = "ALL"
    STEP = "STEP"

    @property
    def is_of_tokens(self) -> bool:
        """Whether it answers with a row for each of several tokens."""
        return self in (PoolingType.ALL, PoolingType.STEP)

    @classmethod
    def _missing_(cls, value: object) -> PoolingType | None:
        """Names are read in any case, and with hyphens, as a command line has them."""
        return cls.__members__.get(str(value).upper().replace("-", "_"))


class PoolerConfig(BaseModel):
    """Overrides of what the model directory says about pooling; None leaves the model's own value."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: Task | None = None
    """The task to serve."""

    pooling_type: PoolingType | None = None
    """How token vectors become one vector; for token tasks ALL (every token) or STEP (those of `step_tag_id`)."""

    use_activation: bool | None = None
    """Whether embeddings are L2-normalised, and labels' logits go through the model's softmax or sigmoid."""

    dimensions: int | None = Field(default=None, ge=1)
    """The length to which a Matryoshka model's embeddings are cut where a request does not say."""

    enable_chunked_processing: bool = False
    """Embed texts longer than the model takes: in chunks, whose vectors are averaged, weighted by their tokens."""

    max_embed_len: int | None = Field(default=None, ge=1)
    """The longest prompt, in tokens, with chunked processing; None is no limit."""

    logit_mean: Annotated[float, Field(allow_inf_nan=False)] | None = None
    """Subtracted from a classifier's logits before its activation."""

    logit_sigma: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """A classifier's logits are divided by it, after `logit_mean` was subtracted, before its activation."""

    step_tag_id: int | None = Field(default=None, ge=0)
    """For STEP: the token id that ends a step; its positions alone are answered."""

    returned_token_ids: list[Annotated[int, Field(ge=0)]] | None = Field(default=None, min_length=1)
    """For a causal language model that labels tokens: the token ids whose logits are the labels."""

    @model_validator(mode="after")
    def _check(self) -> PoolerConfig:
        if (self.pooling_type is PoolingType.STEP) != (self.step_tag_id is not None):
            raise ValueError("pooling_type STEP and step_tag_id go together: give both or neither")
        if self.max_embed_len is not None and not self.enable_chunked_processing:
            raise ValueError("max_embed_len is for chunked processing: set enable_chunked_processing too")
        if self.returned_token_ids is not None and len(set(self.returned_token_ids)) != len(self.returned_token_ids):
            raise ValueError("returned_token_ids names a token twice")
        return self


class EngineConfig(BaseModel):
    """The engine's resources and limits."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: Device = "auto"
    """`auto` takes CUDA, then MPS, then the CPU."""

    dtype: DType = "auto"
    """`auto` is float32 on a CPU and half precision on CUDA where the model allows it."""

    max_num_batched_tokens: int | None = Field(default=None, ge=1)
    """Tokens of one step. Unset chooses by device. A single longer sequence still runs, alone in its step."""

    max_queued_tokens: int | None = Field(default=None, ge=1)
    """Tokens that may wait; past it a request is refused as overloaded. Unset is unbounded offline."""

    load_format: LoadFormat = "safetensors"
    """`pt` also reads pickled weights (`.bin`, `.pt`), with torch's restricted unpickler, where there are no others."""


@dataclass(frozen=True)
class ModelConfig:
    """What the choice of a task depends on.

    Args:
        architecture: the class name in the model's `config.json`, such as `BertForTokenClassification`.
        pooler_config: the operator's overrides.
    """

    architecture: str
    pooler_config: PoolerConfig = PoolerConfig()

    def get_pooling_task(self, supported_tasks: Iterable[PoolingTask]) -> PoolingTask:
        """Pick the task to serve: the configured one, else what the architecture is for, else the first supported.

        Raises:
            ConfigError: the configured task is not supported, or nothing is.
        """
        supported = in_order(supported_tasks)
        if not supported:
            raise ConfigError(f"{self.architecture} supports no pooling task.")
        wanted = self.pooler_config.task
        if wanted is not None:
            if wanted not in supported:
                raise ConfigError(f"{self.architecture}: {why_unsupported(wanted, supported)}")
            return wanted
        if self.architecture.endswith("ForTokenClassification") and "token_classify" in supported:
            return "token_classify"
        return supported[0]
