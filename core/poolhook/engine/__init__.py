"""Token ids in, pooled tensors out. Knows no text, no HTTP and no plugin, and can be used alone.

Importing this room imports its door only; `poolhook.engine.build`, which starts an engine, brings torch with it.
"""

from poolhook.engine.client import EngineClient, EngineInput, EngineStats

__all__ = ["EngineClient", "EngineInput", "EngineStats"]
