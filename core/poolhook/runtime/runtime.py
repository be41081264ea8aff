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
from poolhook.models import ModelSpec, override, read_spec, resolve_model
from poolhook.plugins import ModelInfo
from poolhook.render import Renderer
from poolhook.runtime.chunking import Chunking
from poolhook.runtime.factory import init_pooling_io_processors
from poolhook.runtime.processors import PoolingIOProcessors
from poolhook.runtime.renderer import build_renderer
from poolhook.tasks import SCORE_TYPES, PoolingTask, in_order

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
        hf_overrides: put over the model's `config.json`.
        chat_template: a file with a template, or the template itself; None is the model's own.
    """

    model: str
    pooler_config: PoolerConfig = field(default_factory=PoolerConfig)
    engine_config: EngineConfig = field(default_factory=EngineConfig)
    io_processor_plugins: Sequence[str] | None = None
    wrappers: Sequence[str] = ()
    plugin_config: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    hf_overrides: Mapping[str, Any] = field(default_factory=dict)
    chat_template: str | None = None


@dataclass(frozen=True)
class Runtime:
    """A model that is being served.

    Args:
        spec: what its directory says, with the operator's overrides.
        engine: the way to it.
        renderer: texts to engine inputs.
        processors: its routes.
        chunking: for texts longer than the model takes; None refuses them.
    """

    spec: ModelSpec
    engine: EngineClient
    renderer: Renderer
    processors: PoolingIOProcessors
    chunking: Chunking | None = None
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
    path = resolve_model(config.model, config.engine_config.load_format)
    spec = override(read_spec(path, config.model, config.hf_overrides), config.pooler_config)
    renderer = build_renderer(spec, config.chat_template)
    # Known before the weights are loaded, so a task that is not supported is refused at once.
    chosen = spec.io_processor_plugins if config.io_processor_plugins is None else config.io_processor_plugins
    _, task = served_tasks(spec, config.pooler_config, chosen)
    built = build_engine(spec, config.engine_config)
    try:
        processors = init_pooling_io_processors(
            model_info=_model_info(built.spec, task),
            task=task,
            io_processor_plugins=chosen,
            wrappers=config.wrappers,
            plugin_config=config.plugin_config,
        )
    except BaseException:
        built.core.close()
        raise
    _log_what_was_loaded(built, processors)
    chunking = Chunking(spec, renderer, built.core) if spec.is_chunked else None
    return Runtime(built.spec, built.core, renderer, processors, chunking)


def served_tasks(
    spec: ModelSpec, pooler_config: PoolerConfig, io_processor_plugins: Sequence[str]
) -> tuple[tuple[PoolingTask, ...], PoolingTask]:
    """The tasks that a model supports with these IO processors, and the one that is served.

    Raises:
        ConfigError: the configured task is not supported.
    """
    supported = in_order([*spec.tasks, "plugin"]) if io_processor_plugins else spec.tasks
    return supported, ModelConfig(spec.architecture, pooler_config).get_pooling_task(supported)


def _model_info(spec: ModelSpec, task: PoolingTask) -> ModelInfo:
    # The served task scores if it can, else the first that can.
    score_type = next((SCORE_TYPES[known] for known in (task, *spec.tasks) if known in SCORE_TYPES), None)
    return ModelInfo(
        name=spec.name,
        architecture=spec.architecture,
        hidden_size=spec.hidden_size,
        embedding_size=spec.embedding_size,
        vocab_size=spec.vocab_size,
        max_length=spec.max_length,
        prompts=dict(spec.prompts),
        default_prompt_name=spec.default_prompt_name,
        supported_tasks=spec.tasks,
        score_type=score_type,
        # Of an embedder that is served for its tokens' vectors, the files speak of the vectors of texts.
        similarity="maxsim" if score_type == "late-interaction" and spec.late_interaction is None else spec.similarity,
        labels=spec.classifier.labels if spec.classifier else (),
        has_roles=spec.late_interaction is not None,
    )


def _log_what_was_loaded(built: BuiltEngine, processors: PoolingIOProcessors) -> None:
    spec = built.spec
    logger.info(
        "Loaded %s (%s): task %s, %s, %s, device %s, dtype %s, up to %d tokens, plugins: %s",
        spec.name,
        spec.architecture,
        processors.task,
        spec.answer,
        built.forward,
        built.device,
        str(built.dtype).removeprefix("torch."),
        spec.max_length,
        ", ".join(f"{p.ref.name} ({p.ref.distribution} {p.ref.version})" for p in processors.plugins),
    )
