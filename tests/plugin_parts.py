"""Small plugins and what they are run with, for tests of the framework."""

from __future__ import annotations

from typing import Any

import torch

from poolhook.engine import EngineInput
from poolhook.outputs import PoolingOutput
from poolhook.params import PoolingParams
from poolhook.plugins import IOProcessor, ModelInfo, Plugin, PluginInstance, RequestContext, Route, Wrapper
from poolhook.registry import IO_PROCESSORS, WRAPPERS, PluginRef

MODEL_INFO = ModelInfo(
    name="tiny",
    architecture="BertModel",
    hidden_size=4,
    embedding_size=4,
    vocab_size=200,
    max_length=32,
    prompts={"query": "query: ", "passage": "passage: "},
    default_prompt_name=None,
    supported_tasks=("embed",),
)


class Echo(IOProcessor[Any, Any]):
    """Takes prompts as its data and answers with the lists of what was pooled."""

    def parse_data(self, ctx: RequestContext, data: Any) -> Any:
        return data

    def pre_process(self, ctx: RequestContext, request: Any) -> Any:
        return request

    def post_process(self, ctx: RequestContext, outputs: Any) -> Any:
        return [output.data.tolist() for output in outputs]


def ref_of(plugin_class: object, name: str | None = None) -> PluginRef:
    group = WRAPPERS if isinstance(plugin_class, type) and issubclass(plugin_class, Wrapper) else IO_PROCESSORS
    label = getattr(plugin_class, "__name__", "it")
    return PluginRef(name or label.lower(), group, f"acme:{label}", "acme", "1.2")


def instance_of(plugin: Plugin, name: str | None = None) -> PluginInstance:
    return PluginInstance(ref_of(type(plugin), name), plugin, plugin.Settings())


def route_of(processor: Plugin, *wrappers: Plugin, name: str = "embed") -> Route:
    return Route(name, "embed", instance_of(processor), [instance_of(wrapper) for wrapper in wrappers])


def context(mode: str = "offline", **fields: Any) -> RequestContext:
    return RequestContext(mode, "embed", "embed", **fields)  # type: ignore[arg-type]


def inputs_of(*token_ids: list[int]) -> list[EngineInput]:
    return [EngineInput(ids, PoolingParams(task="embed")) for ids in token_ids]


def output_of(*values: float) -> PoolingOutput:
    return PoolingOutput(torch.tensor(values))
