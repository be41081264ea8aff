"""`init_pooling_io_processors`: the one place where routes are built, for both faces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from poolhook.errors import ConfigError, shorten
from poolhook.plugins import (
    Dispatcher,
    ModelInfo,
    PluginInstance,
    PluginWithIOProcessorPlugins,
    PluginWithoutIOProcessorPlugins,
    Route,
    TaskDispatcher,
    instantiate,
)
from poolhook.registry import IO_PROCESSORS, WRAPPERS, PluginRef, select
from poolhook.runtime.processors import BUILT_IN, PoolingIOProcessors, choosable_processors, shut_down
from poolhook.tasks import SCORE_TYPES, PoolingTask


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

    def make_built_in(name: str) -> PluginInstance:
        return make(select(f"{BUILT_IN}:{name}", IO_PROCESSORS))

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
        dispatchers["plugin"] = PluginWithoutIOProcessorPlugins(route, choosable_processors())
    built_on_tasks = {
        name: Route(name, built_on, make_built_in(name), around) for name, built_on in _built_on(model_info).items()
    }
    options.check_all_taken()
    processors = PoolingIOProcessors(dispatchers, task, built_on_tasks)
    _startup(processors.plugins, model_info)
    return processors


def _built_on(model_info: ModelInfo) -> dict[str, PoolingTask]:
    """The routes that are built on a task, and the task of each."""
    routes: dict[str, PoolingTask] = {}
    for scoring, score_type in SCORE_TYPES.items():
        if score_type == model_info.score_type:
            routes |= {"score": scoring, "rerank": scoring}
    # Rewards of steps or tokens where the model gives some, else one for the whole text.
    if "token_classify" in model_info.supported_tasks:
        routes["reward"] = "token_classify"
    elif "classify" in model_info.supported_tasks and len(model_info.labels) == 1:
        routes["reward"] = "classify"
    return routes


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
        shut_down(started)
        raise
