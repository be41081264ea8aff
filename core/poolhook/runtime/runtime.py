"""`Runtime`: everything that serves one model, built from one config and closed as one."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from poolhook.config import EngineConfig, ModelConfig, PoolerConfig
from poolhook.engine import EngineClient
from poolhook.engine.build import BuiltEngine, build_engine
from poolhook.models import ModelSpec, read_spec, resolve_model
from poolhook.plugins import ModelInfo
from poolhook.render import Renderer, TextTokenizer
from poolhook.runtime.factory import PoolingIOProcessors, init_pooling_io_processors
from poolhook.tasks import PoolingTask, in_order

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RuntimeConfig:
    """What to serve, and how.

    Args:
        model: a model directory, a hub id, or `demo`.
        pooler_config: overrides of what the model says about pooling.
        engine_config: resources and limits.
        io_processor_plugins: IO processors for task `plugin`, by name; None takes those of the model's `config.json`.
        wrappers: wrappers for every route, by name, the first outermost.
        plugin_config: options for each plugin, by its name.
    """

    model: str
    pooler_config: PoolerConfig = field(default_factory=PoolerConfig)
    engine_config: EngineConfig = field(default_factory=EngineConfig)
    io_processor_plugins: Sequence[str] | None = None
    wrappers: Sequence[str] = ()
    plugin_config: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Runtime:
    """A model that is being served.

    Args:
        spec: what its directory says, with the operator's overrides.
        engine: the way to it.
        renderer: texts to engine inputs.
        processors: its routes.
    """

    spec: ModelSpec
    engine: EngineClient
    renderer: Renderer
    processors: PoolingIOProcessors
    _closing: ExitStack = field(default_factory=ExitStack, init=False, repr=False)

    def __post_init__(self) -> None:
        # Last in, first out; each runs once, also when the other fails.
        self._closing.callback(self.processors.close)
        self._closing.callback(self.engine.close)

    def close(self) -> None:
        """Stop the engine, then the plugins, each once. Closing twice is harmless."""
        self._closing.close()


def build_runtime(config: RuntimeConfig) -> Runtime:
    """Read the model, start its engine, build its routes.

    Raises:
        ModelError: the model can't be found, read or loaded.
        ConfigError: an option is wrong or the task is not supported.
        PluginError: a selected plugin is broken.
    """
    spec = read_spec(resolve_model(config.model), config.model).overridden_by(config.pooler_config)
    tokenizer = TextTokenizer.from_directory(spec.transformer_path, lower_case=spec.do_lower_case)
    built = build_engine(spec, config.engine_config)
    try:
        processors = _processors(config, spec, built.core.supported_tasks)
    except BaseException:
        built.core.close()
        raise
    _log_what_was_loaded(spec, built, processors)
    return Runtime(spec, built.core, Renderer(tokenizer, spec.max_length, spec.truncation_side), processors)


def _processors(config: RuntimeConfig, spec: ModelSpec, computed: tuple[PoolingTask, ...]) -> PoolingIOProcessors:
    chosen = spec.io_processor_plugins if config.io_processor_plugins is None else config.io_processor_plugins
    supported = in_order([*computed, "plugin"]) if chosen else computed
    task = ModelConfig(spec.architecture, config.pooler_config).get_pooling_task(supported)
    model_info = ModelInfo(
        name=spec.name,
        architecture=spec.architecture,
        hidden_size=spec.hidden_size,
        embedding_size=spec.embedding_size,
        vocab_size=spec.vocab_size,
        max_length=spec.max_length,
        prompts=dict(spec.prompts),
        default_prompt_name=spec.default_prompt_name,
        supported_tasks=computed,
    )
    return init_pooling_io_processors(
        model_info=model_info,
        task=task,
        io_processor_plugins=chosen,
        wrappers=config.wrappers,
        plugin_config=config.plugin_config,
    )


def _log_what_was_loaded(spec: ModelSpec, built: BuiltEngine, processors: PoolingIOProcessors) -> None:
    logger.info(
        "Loaded %s (%s): task %s, pooling %s%s, %s, device %s, dtype %s, up to %d tokens, plugins: %s",
        spec.name,
        spec.architecture,
        processors.task,
        "+".join(spec.pooling),
        ", normalized" if spec.normalize else "",
        built.forward,
        built.device,
        str(built.dtype).removeprefix("torch."),
        spec.max_length,
        ", ".join(f"{p.ref.name} ({p.ref.distribution} {p.ref.version})" for p in processors.plugins),
    )
