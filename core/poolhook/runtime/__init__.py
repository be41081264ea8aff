"""From a config to a running whole: model, renderer, engine, routes, and the way of a request through them."""

from poolhook.runtime.factory import init_pooling_io_processors
from poolhook.runtime.flow import Answer
from poolhook.runtime.offline import run_offline
from poolhook.runtime.online import OnlineRunner
from poolhook.runtime.processors import PoolingIOProcessors
from poolhook.runtime.renderer import build_renderer
from poolhook.runtime.runtime import Runtime, RuntimeConfig, build_runtime, served_tasks

__all__ = [
    "Answer",
    "OnlineRunner",
    "PoolingIOProcessors",
    "Runtime",
    "RuntimeConfig",
    "build_renderer",
    "build_runtime",
    "init_pooling_io_processors",
    "run_offline",
    "served_tasks",
]
