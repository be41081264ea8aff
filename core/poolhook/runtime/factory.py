"""`init_pooling_io_processors`: the one place where routes are built, for both faces."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from poolhook.errors import ConfigError, InvalidRequest, PluginStageError
from poolhook.plugins import (
    DataRequest,
    Dispatcher,
    ModelInfo,
    PluginInstance,
    PluginWithIOProcessorPlugins,
    PluginWithoutIOProcessorPlugins,
    PoolingRequest,
    Route,
    TaskDispatcher,
    instantiate,
)
from poolhook.registry import IO_PROCESSORS, WRAPPERS, installed_plugins, select
from poolhook.tasks import PoolingTask, in_order

logger = logging.getLogger(__name__)

_BUILT_IN = "poolhook"  # the distribution that brings the built-in tasks


@dataclass(frozen=True)
class PoolingIOProcessors:
    """The routes of a model, started.

    Args:
        dispatchers: for each task that can be asked for, what picks its route.
        task: the task that is served to those who name none.
    """

    dispatchers: Mapping[PoolingTask, Dispatcher]
    task: PoolingTask

    @property
    def supported_tasks(self) -> tuple[PoolingTask, ...]:
        """The tasks that can be asked for, in the stable order."""
        return in_order(self.dispatchers)

    @property
    def plugins(self) -> list[PluginInstance]:
        """Every plugin on any route, each once."""
        routes = (route for dispatcher in self.dispatchers.values() for route in dispatcher.routes)
        return list(dict.fromkeys(plugin for route in routes for plugin in route.plugins))

    def dispatch(self, request: PoolingRequest) -> tuple[Route, Any]:
        """The route for `request`, and the data that its `parse_data` gets. `data` without a task means `plugin`.

        Raises:
            InvalidRequest: the task is not supported, or no route of it serves such a request.
        """
        task = request.task or ("plugin" if isinstance(request, DataRequest) else self.task)
        dispatcher = self.dispatchers.get(task)
        if dispatcher is not None:
            return dispatcher.dispatch(request)
        if task == "plugin" and isinstance(request, DataRequest):
            installed = ", ".join(_choosable()) or "none"
            raise InvalidRequest(
                "No IO processor was chosen, so `data` has nobody to read it. Choose one when starting, with "
                f"io_processor_plugin (installed: {installed}), or send prompts as `input`.",
                param="data",
            )
        raise InvalidRequest(
            f"Task {task!r} is not supported. Supported tasks: {', '.join(self.supported_tasks)}.",
            param="task",
        )

    def close(self) -> None:
        """Shut every plugin down. One that fails is logged, and the others are still shut down."""
        _shutdown(self.plugins)


def init_pooling_io_processors(
    *,
    model_info: ModelInfo,
    task: PoolingTask,
    io_processor_plugins: Sequence[str] = (),
    wrappers: Sequence[str] = (),
    plugin_config: Mapping[str, Mapping[str, Any]] | None = None,
) -> PoolingIOProcessors:
    """Load the built-in processor of each task, the chosen IO processors and wrappers, build routes and start plugins.

    Args:
        model_info: what plugins are told of the model.
        task: the selected task.
        io_processor_plugins: names of installed processors, each a route of task `plugin`.
        wrappers: names of installed wrappers for every route, the first outermost.
        plugin_config: options for each plugin, by its name.

    Raises:
        ConfigError: a name is not installed or is ambiguous, or an option is wrong.
        PluginError: a selected plugin can't be imported, breaks the contract or fails to start.
    """
    options = dict(plugin_config or {})

    def make(name: str, group: str) -> PluginInstance:
        ref = select(name, group)
        return instantiate(ref, options.pop(ref.name, {}))

    around = [make(name, WRAPPERS) for name in _without_repeats(wrappers, "wrapper")]
    chosen = [make(name, IO_PROCESSORS) for name in _without_repeats(io_processor_plugins, "IO processor")]
    names = [instance.ref.name for instance in chosen]
    default_task = "plugin" if "plugin" in model_info.supported_tasks else next(iter(model_info.supported_tasks))

    dispatchers: dict[PoolingTask, Dispatcher] = {}
    for supported in model_info.supported_tasks:
        if supported != "plugin":
            built_in = make(f"{_BUILT_IN}:{supported}", IO_PROCESSORS)
            dispatchers[supported] = TaskDispatcher(Route(supported, supported, built_in, around), names)
    if chosen:
        dispatchers["plugin"] = PluginWithIOProcessorPlugins(
            {instance.ref.name: Route(instance.ref.name, default_task, instance, around) for instance in chosen}
        )
    elif "plugin" in model_info.supported_tasks:
        passthrough = make(f"{_BUILT_IN}:plugin", IO_PROCESSORS)
        dispatchers["plugin"] = PluginWithoutIOProcessorPlugins(
            Route("plugin", "plugin", passthrough, around), _choosable()
        )
    if options:
        raise ConfigError(f"plugin_config has options for {', '.join(options)}, which no selected plugin is called.")
    processors = PoolingIOProcessors(dispatchers, task)
    _startup(processors.plugins, model_info)
    return processors


def _choosable() -> list[str]:
    return sorted(
        ref.name for ref in installed_plugins() if ref.group == IO_PROCESSORS and ref.distribution != _BUILT_IN
    )


def _without_repeats(names: Sequence[str], kind: str) -> Sequence[str]:
    if len(set(names)) != len(names):
        raise ConfigError(f"A {kind} was selected twice: {', '.join(names)}.")
    return names


def _startup(plugins: Sequence[PluginInstance], model_info: ModelInfo) -> None:
    started: list[PluginInstance] = []
    try:
        for plugin in plugins:
            plugin.startup(model_info)
            started.append(plugin)
    except Exception:
        _shutdown(started)
        raise


def _shutdown(plugins: Iterable[PluginInstance]) -> None:
    for plugin in plugins:
        try:
            plugin.shutdown()
        except PluginStageError as error:
            logger.error("%s", error, exc_info=error.__cause__)
