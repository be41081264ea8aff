"""`PoolingIOProcessors`: the routes of one model, and which of them serves a request."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from poolhook.errors import InvalidRequest, PluginError
from poolhook.plugins import DataRequest, Dispatcher, PluginInstance, PoolingRequest, Route, RouteRequest
from poolhook.registry import IO_PROCESSORS, installed_plugins
from poolhook.tasks import SCORE_TYPES, PoolingTask, in_order, why_unsupported

logger = logging.getLogger(__name__)

BUILT_IN = "poolhook"
"""The distribution that brings the built-in tasks."""

REMOVAL = "0.20"
"""The release in which a model answers only the task that was chosen for it."""


class PoolingIOProcessors:
    """The routes of a model, started.

    Args:
        dispatchers: for each task that can be asked for, what picks its route.
        task: the task that is served to those who name none.
        built_on_tasks: the routes `score`, `rerank` and `reward`, as far as the model can serve them.
    """

    def __init__(
        self,
        dispatchers: Mapping[PoolingTask, Dispatcher],
        task: PoolingTask,
        built_on_tasks: Mapping[str, Route] | None = None,
    ) -> None:
        self.dispatchers = dict(dispatchers)
        self.task = task
        self.built_on_tasks = dict(built_on_tasks or {})
        self._warned: set[str] = set()

    @property
    def supported_tasks(self) -> tuple[PoolingTask, ...]:
        """The tasks that can be asked for, in the stable order."""
        return in_order(self.dispatchers)

    @property
    def plugins(self) -> list[PluginInstance]:
        """Every plugin on any route, each once."""
        of_tasks = (route for dispatcher in self.dispatchers.values() for route in dispatcher.routes)
        routes = (*of_tasks, *self.built_on_tasks.values())
        return list(dict.fromkeys(plugin for route in routes for plugin in route.plugins))

    def dispatch(self, request: PoolingRequest) -> tuple[Route, Any]:
        """The route for `request`, and the data that its `parse_data` gets. `data` without a task means `plugin`.

        A supported task that is not the one that is served still works, and warns once.

        Raises:
            InvalidRequest: the task is not supported, or no route of it serves such a request.
        """
        if isinstance(request, RouteRequest):
            route = self.built_on_tasks.get(request.route)
            if route is None:
                raise InvalidRequest(_why_no_route(request.route, self.supported_tasks), param="model")
            return route, request.data
        is_data = isinstance(request, DataRequest)
        unnamed: PoolingTask = "plugin" if is_data else self.task
        task = unnamed if request.task is None else request.task
        # Compared, not looked up: a Python caller may have passed something that can't be hashed.
        supported = next((known for known in self.supported_tasks if known == task), None)
        if supported is not None:
            found = self.dispatchers[supported].dispatch(request)
            # Whoever chose an IO processor has chosen to serve its task.
            if supported != self.task and not is_data:
                self._warn_once(supported)
            return found
        if task == "plugin" and is_data:
            installed = ", ".join(choosable_processors()) or "none"
            raise InvalidRequest(
                "No IO processor was chosen, so `data` has nobody to read it. Choose one when starting, with "
                f"io_processor_plugin (installed: {installed}), or send prompts as `input`.",
                param="data",
            )
        raise InvalidRequest(why_unsupported(task, self.supported_tasks), param="task")

    def close(self) -> None:
        """Shut every plugin down. One that fails is logged, and the others are still shut down."""
        shut_down(self.plugins)

    def _warn_once(self, task: PoolingTask) -> None:
        if task not in self._warned:
            self._warned.add(task)
            logger.warning(
                "Task %r is supported, but %r is the one that is served. Several tasks of one model are deprecated and "
                "will be removed in %s: choose when starting, with PoolerConfig(task=%r) or --pooler-config.task %s.",
                task,
                self.task,
                REMOVAL,
                task,
                task,
            )


def _why_no_route(name: str, supported: Iterable[PoolingTask]) -> str:
    tasks = f"this model supports {', '.join(in_order(supported))}"
    if name == "reward":
        return f"This model gives no rewards: that needs task 'token_classify', or 'classify' with one label; {tasks}."
    return f"This model can't score texts: that needs task {', '.join(map(repr, SCORE_TYPES))}; {tasks}."


def choosable_processors() -> list[str]:
    """The installed IO processors that can be chosen for task `plugin`, by name."""
    return sorted(
        ref.name for ref in installed_plugins() if ref.group == IO_PROCESSORS and ref.distribution != BUILT_IN
    )


def shut_down(plugins: Iterable[PluginInstance]) -> None:
    """Shut every plugin down. One that fails is logged, and the others are still shut down."""
    for plugin in plugins:
        try:
            plugin.shutdown()
        except PluginError as error:
            logger.error("%s", error, exc_info=error.__cause__ or error)
