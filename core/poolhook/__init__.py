"""poolhook serves pooling models: embeddings, labels, scores, and whatever a plugin makes of them.

Importing this package is cheap: torch and transformers are imported when a model is loaded.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from poolhook._version import __version__
    from poolhook.config import EngineConfig, PoolerConfig, PoolingType
    from poolhook.offline import LLM
    from poolhook.outputs import (
        ClassificationOutput,
        ClassificationRequestOutput,
        EmbeddingOutput,
        EmbeddingRequestOutput,
        PoolingOutput,
        PoolingRequestOutput,
        RerankResult,
        ScoringOutput,
        ScoringRequestOutput,
    )
    from poolhook.params import PoolingParams, TokenizationParams

__all__ = [
    "LLM",
    "ClassificationOutput",
    "ClassificationRequestOutput",
    "EmbeddingOutput",
    "EmbeddingRequestOutput",
    "EngineConfig",
    "PoolerConfig",
    "PoolingOutput",
    "PoolingParams",
    "PoolingRequestOutput",
    "PoolingType",
    "RerankResult",
    "ScoringOutput",
    "ScoringRequestOutput",
    "TokenizationParams",
    "__version__",
]

_HOMES = {
    "LLM": "poolhook.offline",
    "ClassificationOutput": "poolhook.outputs",
    "ClassificationRequestOutput": "poolhook.outputs",
    "EmbeddingOutput": "poolhook.outputs",
    "EmbeddingRequestOutput": "poolhook.outputs",
    "EngineConfig": "poolhook.config",
    "PoolerConfig": "poolhook.config",
    "PoolingOutput": "poolhook.outputs",
    "PoolingParams": "poolhook.params",
    "PoolingRequestOutput": "poolhook.outputs",
    "PoolingType": "poolhook.config",
    "RerankResult": "poolhook.outputs",
    "ScoringOutput": "poolhook.outputs",
    "ScoringRequestOutput": "poolhook.outputs",
    "TokenizationParams": "poolhook.params",
    "__version__": "poolhook._version",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
