"""Token ids in, pooled tensors out. Knows no text, no HTTP and no plugin, and can be used alone."""

from poolhook.engine.build import BuiltEngine, build_engine
from poolhook.engine.client import EngineClient, EngineInput, EngineStats
from poolhook.engine.core import EngineCore

__all__ = ["BuiltEngine", "EngineClient", "EngineCore", "EngineInput", "EngineStats", "build_engine"]
