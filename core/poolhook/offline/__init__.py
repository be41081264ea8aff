"""The offline face: `LLM`, for Python programs."""

from poolhook.offline.llm import LLM

__all__ = ["LLM"]
