"""Options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from poolhook.config import EngineConfig, PoolerConfig

Model = Annotated[str, Parameter(help="A model directory, a hub id, or `demo`.")]


@Parameter(name="*")
@dataclass(frozen=True)
class ModelOptions:
    """How a model is loaded.

    Args:
        pooler_config: overrides of what the model says about pooling.
        engine: resources and limits.
    """

    pooler_config: PoolerConfig = PoolerConfig()
    engine: Annotated[EngineConfig, Parameter(name="*")] = EngineConfig()


Options = Annotated[ModelOptions, Parameter(name="*")]
