"""Dispatchers: which route serves a request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from poolhook.errors import InvalidRequest, shorten
from poolhook.params import PoolingParams, TokenizationParams
from poolhook.plugins.route import Route


@dataclass(frozen=True, kw_only=True)
class PoolingRequest:
    """What both faces ask for, before a route is known.

    Args:
        task: the task asked for; None for the one that is served. A name that is none is answered with those that are.
        params: how to pool, once or for each prompt.
        tokenization: how to tokenize.
        priority: lower runs earlier.
        deadline: on `time.monotonic()`'s clock.
    """

    task: str | None = None
    params: PoolingParams | Sequence[PoolingParams] = field(default_factory=PoolingParams)
    tokenization: TokenizationParams = field(default_factory=TokenizationParams)
    priority: int = 0
    deadline: float | None = None


@dataclass(frozen=True, kw_only=True)
class PromptsRequest(PoolingRequest):
    """A request in plain prompts.

    Args:
        prompts: one prompt or many, in any form that `as_prompts` reads.
        prompt_name: which of the model's prompts to put before each text.
    """

    prompts: Any
    prompt_name: str | None = None


@dataclass(frozen=True, kw_only=True)
class DataRequest(PoolingRequest):
    """A request in an IO processor's own terms.

    Args:
        data: whatever the processor understands.
        plugin: which processor; may be left out where only one was chosen.
    """

    data: Any
    plugin: str | None = None


@dataclass(frozen=True, kw_only=True)
class RouteRequest(PoolingRequest):
    """A request to a route that is built on a task: `score`, `rerank` or `reward`.

    Args:
        route: its name.
        data: whatever its processor understands.
    """

    route: str
    data: Any


class Dispatcher(Protocol):
    """Picks the route for the requests of one task."""

    @property
    def routes(self) -> Sequence[Route]:
        """Every route it may pick."""

    def dispatch(self, request: PoolingRequest) -> tuple[Route, Any]:
        """The route, and the data that its `parse_data` gets.

        Raises:
            InvalidRequest: no route of this task serves such a request; the message says how to ask.
        """


@dataclass(frozen=True)
class _OneRoute(ABC):
    """Prompts go to the one route; `data` is refused."""

    route: Route

    @property
    def routes(self) -> Sequence[Route]:
        """The one route."""
        return (self.route,)

    def dispatch(self, request: PoolingRequest) -> tuple[Route, Any]:
        """The one route; see `Dispatcher.dispatch`."""
        if isinstance(request, PromptsRequest):
            return self.route, {"input": request.prompts, "prompt_name": request.prompt_name}
        raise InvalidRequest(self._why_no_data(), param="data")

    @abstractmethod
    def _why_no_data(self) -> str:
        """What to tell those who send `data`."""


@dataclass(frozen=True)
class TaskDispatcher(_OneRoute):
    """A built-in task: prompts in, the task's answer out.

    Args:
        route: the task's one route.
        processors: IO processors that were chosen, for the message to those who send `data`.
    """

    processors: Sequence[str] = ()

    def _why_no_data(self) -> str:
        served = f"served by {', '.join(self.processors)}" if self.processors else "not served here"
        return (
            f"Task {self.route.name!r} takes `input` (prompts), not `data`. "
            f"`data` goes to task 'plugin', which is {served}."
        )


@dataclass(frozen=True)
class PluginWithIOProcessorPlugins:
    """Task `plugin` where IO processors were chosen: `data` goes to the one that the request names.

    Args:
        by_name: the chosen processors' routes; at least one.
    """

    by_name: Mapping[str, Route]

    @property
    def routes(self) -> Sequence[Route]:
        """One route for each chosen processor."""
        return tuple(self.by_name.values())

    def dispatch(self, request: PoolingRequest) -> tuple[Route, Any]:
        """The named processor's route, or the only one; see `Dispatcher.dispatch`."""
        names = ", ".join(self.by_name)
        if not isinstance(request, DataRequest):
            raise InvalidRequest(
                "Task 'plugin' takes the IO processor's own `data`, not plain prompts. "
                f'Ask with {{"data": ...}} (processors: {names}), or choose another task for plain prompts.',
                param="input",
            )
        if request.plugin is None:
            if len(self.by_name) > 1:
                raise InvalidRequest(
                    f"Several IO processors are served: say which with `plugin`: {names}.", param="plugin"
                )
            return next(iter(self.by_name.values())), request.data
        # Compared, not looked up: a Python caller may have passed something that can't be hashed.
        route = next((route for name, route in self.by_name.items() if name == request.plugin), None)
        if route is None:
            raise InvalidRequest(
                f"IO processor {shorten(request.plugin)!r} is not served here. Served: {names}.",
                param="plugin",
            )
        return route, request.data


@dataclass(frozen=True)
class PluginWithoutIOProcessorPlugins(_OneRoute):
    """Task `plugin` computed by the model's own pooler: prompts pass through, raw pooled data comes back.

    Args:
        route: the route that passes prompts through.
        installed: IO processors that could be chosen, for the message to those who send `data`.
    """

    installed: Sequence[str] = ()

    def _why_no_data(self) -> str:
        return (
            "No IO processor was chosen, so `data` has nobody to read it; send prompts as `input`, or choose one with "
            f"io_processor_plugin (installed: {', '.join(self.installed) or 'none'})."
        )
