"""What an operator decides about a model and its engine, and the task that follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from poolhook.errors import ConfigError
from poolhook.tasks import PoolingTask, in_order

Device = Annotated[str, Field(pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$")]
DType = Literal["auto", "float32", "float16", "bfloat16"]


class PoolingType(StrEnum):
    """How the hidden states of a sequence become one vector."""

    CLS = "CLS"
    LAST = "LAST"
    MEAN = "MEAN"
    MAX = "MAX"
    MEAN_SQRT_LEN = "MEAN_SQRT_LEN"
    WEIGHTED_MEAN = "WEIGHTED_MEAN"

    @classmethod
    def _missing_(cls, value: object) -> PoolingType | None:
        """Names are read in any case, and with hyphens, as a command line has them."""
        return cls.__members__.get(str(value).upper().replace("-", "_"))


class PoolerConfig(BaseModel):
    """Overrides of what the model directory says about pooling; None leaves the model's own value."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: PoolingTask | None = None
    """The task to serve."""

    pooling_type: PoolingType | None = None
    """How token vectors become one vector."""

    use_activation: bool | None = None
    """Whether embeddings are L2-normalised."""


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
                raise ConfigError(
                    f"Task {wanted!r} is not supported by {self.architecture}. Supported tasks: {', '.join(supported)}."
                )
            return wanted
        if self.architecture.endswith("ForTokenClassification") and "token_classify" in supported:
            return "token_classify"
        return supported[0]
