"""The plugin framework: the hook contract, the base classes authors subclass, routes and dispatchers.

Plugin authors import from here: `IOProcessor`, `Wrapper`, `RequestContext`, `ModelInfo`, `Settings`, `Prompt`,
`TextPrompt`, `TokensPrompt`, `as_prompts`.
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
    TaskDispatcher,
)
from poolhook.plugins.instance import PluginInstance, instantiate
from poolhook.plugins.route import Route
from poolhook.render import Prompt, TextPrompt, TokensPrompt, as_prompts

__all__ = [
    "DataRequest",
    "Dispatcher",
    "IOProcessor",
    "ModelInfo",
    "Plugin",
    "PluginInstance",
    "PluginWithIOProcessorPlugins",
    "PluginWithoutIOProcessorPlugins",
    "PoolingRequest",
    "Prompt",
    "PromptsRequest",
    "RequestContext",
    "Route",
    "Settings",
    "TaskDispatcher",
    "TextPrompt",
    "TokensPrompt",
    "Wrapper",
    "as_prompts",
    "instantiate",
]
