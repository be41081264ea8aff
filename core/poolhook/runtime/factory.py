"""`init_pooling_io_processors`: the one place where routes are built, for both faces."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from poolhook.errors import ConfigError, InvalidRequest, PluginError, shorten
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
from poolhook.registry import IO_PROCESSORS, WRAPPERS, PluginRef, installed_plugins, select
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
        plugin_config: options for each plugin, by its name or its `distribution:name`.

    Raises:
        ConfigError: a name is not installed or is ambiguous, or an option is wrong.
        PluginError: a selected plugin can't be imported, breaks the contract or fails to start.
    """
    options = _Options(plugin_config or {})

    def make(ref: PluginRef) -> PluginInstance:
        return instantiate(ref, options.of(ref))

    def make_built_in(task: PoolingTask) -> PluginInstance:
        return make(select(f"{_BUILT_IN}:{task}", IO_PROCESSORS))

    around = [make(ref) for ref in _select_all(wrappers, WRAPPERS, "A wrapper")]
    chosen = _by_name(make(ref) for ref in _select_all(io_processor_plugins, IO_PROCESSORS, "An IO processor"))
    # What the pooler computes for IO processors whose params name no task.
    computed = model_info.supported_tasks
    default_task = next(wanted for wanted in ("plugin", task, *computed) if wanted in computed)

    dispatchers: dict[PoolingTask, Dispatcher] = {}
    for supported in model_info.supported_tasks:
        if supported != "plugin":
            route = Route(supported, supported, make_built_in(supported), around)
            dispatchers[supported] = TaskDispatcher(route, tuple(chosen))
    if chosen:
        dispatchers["plugin"] = PluginWithIOProcessorPlugins(
            {name: Route(name, default_task, instance, around) for name, instance in chosen.items()}
        )
    elif "plugin" in model_info.supported_tasks:
        route = Route("plugin", "plugin", make_built_in("plugin"), around)
        dispatchers["plugin"] = PluginWithoutIOProcessorPlugins(route, _choosable())
    options.check_all_taken()
    processors = PoolingIOProcessors(dispatchers, task)
    _startup(processors.plugins, model_info)
    return processors


def _choosable() -> list[str]:
    return sorted(
        ref.name for ref in installed_plugins() if ref.group == IO_PROCESSORS and ref.distribution != _BUILT_IN
    )


class _Options:
    """The options of each plugin, and which of them some plugin took."""

    def __init__(self, by_name: Mapping[str, Mapping[str, Any]]) -> None:
        self._by_name = by_name
        self._taken: set[str] = set()
        self._selected: list[str] = []

    def of(self, ref: PluginRef) -> Mapping[str, Any]:
        self._selected.append(ref.name)
        for name in (f"{ref.distribution}:{ref.name}", ref.name):
            if name in self._by_name:
                self._taken.add(name)
                return self._by_name[name]
        return {}

    def check_all_taken(self) -> None:
        left = [name for name in self._by_name if name not in self._taken]
        if left:
            raise ConfigError(
                f"plugin_config has options for {shorten(', '.join(left))}, which no selected plugin is called. "
                f"Selected: {', '.join(dict.fromkeys(self._selected))}."
            )


def _select_all(names: Sequence[str], group: str, kind: str) -> list[PluginRef]:
    names = [names] if isinstance(names, str) else names
    refs = [select(name, group) for name in names]
    # Compared as plugins: one may be named with its distribution and without.
    if len(set(refs)) != len(refs):
        raise ConfigError(f"{kind} was selected twice: {', '.join(names)}.")
    return refs


def _by_name(instances: Iterable[PluginInstance]) -> dict[str, PluginInstance]:
    """By plain name, or by `distribution:name` where two were chosen that share theirs."""
    made = list(instances)
    count = Counter(instance.ref.name for instance in made)
    return {
        ref.name if count[ref.name] == 1 else f"{ref.distribution}:{ref.name}": instance
        for instance in made
        for ref in (instance.ref,)
    }


def _startup(plugins: Sequence[PluginInstance], model_info: ModelInfo) -> None:
    started: list[PluginInstance] = []
    try:
        for plugin in plugins:
            plugin.startup(model_info)
            started.append(plugin)
    except BaseException:
        _shutdown(started)
        raise


def _shutdown(plugins: Iterable[PluginInstance]) -> None:
    for plugin in plugins:
        try:
            plugin.shutdown()
        except PluginError as error:
            logger.error("%s", error, exc_info=error.__cause__ or error)
