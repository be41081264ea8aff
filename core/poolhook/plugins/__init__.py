"""The plugin framework: the hook contract, the base classes authors subclass, routes and dispatchers.

Plugin authors import from here: `IOProcessor`, `Wrapper`, `RequestContext`, `ModelInfo`, `Settings`, `Prompt`,
`TextPrompt`, `TokensPrompt`, `PairPrompt`, `ChatPrompt`, `as_prompts`.
"""

from poolhook.plugins.base import IOProcessor, Plugin, Settings, Wrapper
from poolhook.plugins.context import ModelInfo, RequestContext
from poolhook.plugins.dispatch import (
    DataRequest,
    Dispatcher,
    PluginWithIOProcessorPlugins,
    PluginWithoutIOProcessorPlugins,
    PoolingRequest,
    PromptsRequest,
    RouteRequest,
    TaskDispatcher,
)
from poolhook.plugins.instance import PluginInstance, instantiate
from poolhook.plugins.route import Route
from poolhook.render import ChatPrompt, PairPrompt, Prompt, TextPrompt, TokensPrompt, as_prompts

__all__ = [
    "ChatPrompt",
    "DataRequest",
    "Dispatcher",
    "IOProcessor",
    "ModelInfo",
    "PairPrompt",
    "Plugin",
    "PluginInstance",
    "PluginWithIOProcessorPlugins",
    "PluginWithoutIOProcessorPlugins",
    "PoolingRequest",
    "Prompt",
    "PromptsRequest",
    "RequestContext",
    "Route",
    "RouteRequest",
    "Settings",
    "TaskDispatcher",
    "TextPrompt",
    "TokensPrompt",
    "Wrapper",
    "as_prompts",
    "instantiate",
]
