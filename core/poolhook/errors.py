"""Everything that poolhook raises on purpose.

The tree answers one question first: whose mistake was it? `ClientError` and its kin are the caller's (HTTP 4xx);
everything else is the server's. A message states what was given, what is allowed and what to do, and stays short
whatever was sent (`shorten`).

Errors cross process borders, so each one pickles: constructor arguments are the instance's `args`.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

_MAX_QUOTED = 200
_MAX_MESSAGE = 2000
_MAX_PROBLEMS = 5

_BOUNDED = reprlib.Repr()
_BOUNDED.maxlevel = 4
_BOUNDED.maxlist = _BOUNDED.maxtuple = _BOUNDED.maxdict = _BOUNDED.maxset = _BOUNDED.maxfrozenset = 20
_BOUNDED.maxstring = _BOUNDED.maxother = _BOUNDED.maxlong = _MAX_MESSAGE


def shorten(value: object, limit: int = _MAX_QUOTED) -> str:
    """Quote `value` for a message in at most `limit` characters, cutting out the middle of what is longer.

    Never fails and never reads more of a large or deep `value` than it shows. Lone surrogates are escaped: they would
    break the encoding of a response, a log or a terminal.
    """
    text = value if isinstance(value, str) else _repr(value)
    text = f"{text[:limit]}{text[-limit:]}" if len(text) > 2 * limit else text
    text = text.encode(errors="backslashreplace").decode()
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head - 5
    return f"{text[:head]} ... {text[-tail:]}"


def _repr(value: object) -> str:
    try:
        return _BOUNDED.repr(value)
    except Exception:
        # An object's own __repr__ may raise anything, and so does that of an integer of too many digits.
        return f"<{type(value).__name__}>"


def describe_error(error: BaseException, limit: int = 500) -> str:
    """An exception of somebody else's code as `Type: message`, bounded, even if its own message can't be had."""
    try:
        message = str(error)
    except Exception:
        message = "(its message can't be shown)"
    return f"{type(error).__name__}: {shorten(message, limit)}"


def describe_problems(problems: Sequence[Mapping[str, Any]]) -> tuple[str, str | None]:
    """Pydantic's list of problems as one line, and the first field at fault. A validator of a whole model says which
    field it means by the attribute `field` of what it raises.

    Args:
        problems: as `ValidationError.errors()` gives them.
    """
    described = [(".".join(map(str, problem["loc"])), _described(problem)) for problem in problems]
    lines = [f"{field}: {message}" if field else message for field, message in described[:_MAX_PROBLEMS]]
    if len(described) > _MAX_PROBLEMS:
        lines.append(f"and {len(described) - _MAX_PROBLEMS} more")
    first = problems[0] if problems else {}
    field = ".".join(map(str, first.get("loc", ()))) or getattr(first.get("ctx", {}).get("error"), "field", None)
    return "; ".join(lines), field


def _described(problem: Mapping[str, Any]) -> str:
    if problem["type"] == "extra_forbidden":
        return "there is no such field"
    return str(problem["msg"]).removeprefix("Value error, ")


class PoolhookError(Exception):
    """The root: catch it to catch whatever poolhook raises on purpose."""

    status: HTTPStatus = HTTPStatus.INTERNAL_SERVER_ERROR

    def __str__(self) -> str:
        return shorten(super().__str__(), _MAX_MESSAGE)


class ClientError(PoolhookError):
    """The caller's mistake. `status` is 4xx, and `param` names the field at fault where there is one."""

    status = HTTPStatus.BAD_REQUEST

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message, param)
        self.message = message
        self.param = param

    def __str__(self) -> str:
        return shorten(self.message, _MAX_MESSAGE)


class InvalidRequest(ClientError, ValueError):
    """The request can't be served as it stands: a wrong type, a value out of range, an unsupported task."""


class UnknownModel(ClientError):
    """The request names a model that is not served here."""

    status = HTTPStatus.NOT_FOUND


class RequestTooLarge(ClientError):
    """The body, or what it asks for, exceeds a limit of this server."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class Overloaded(ClientError):
    """The queue is full. Ask again after `retry_after` seconds."""

    status = HTTPStatus.TOO_MANY_REQUESTS

    def __init__(self, message: str, retry_after: int = 1) -> None:
        super().__init__(message)
        self.args = (message, retry_after)
        self.retry_after = retry_after


class DeadlineExceeded(PoolhookError, TimeoutError):
    """The request's deadline passed before its turn came; it was dropped before it cost a step."""

    status = HTTPStatus.GATEWAY_TIMEOUT


class ConfigError(PoolhookError, ValueError):
    """What the operator asked for at start can't be done: an unknown option, value or task."""


class ModelError(ConfigError):
    """The model can't be found, read or served as it is."""


class EngineError(PoolhookError, RuntimeError):
    """The engine could not compute an answer for this request."""


class NonFiniteOutput(EngineError):
    """The model produced NaN or infinity for this request; a wrong vector is never returned."""


class EngineDead(EngineError):
    """The engine's worker has stopped; nothing more can be computed."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class PluginError(PoolhookError):
    """A plugin is at fault. `plugin` says which: name, distribution and version."""

    def __init__(self, plugin: str, problem: str) -> None:
        super().__init__(plugin, problem)
        self.plugin = plugin
        self.problem = problem

    def __str__(self) -> str:
        return shorten(f"Plugin {self.plugin}: {self.problem}", _MAX_MESSAGE)


class PluginLoadError(PluginError):
    """A selected plugin can't be found or imported."""


class PluginContractError(PluginError):
    """A plugin breaks the hook contract: a misspelt hook, a wrong argument, a wrong number of params."""


class PluginStageError(PluginError):
    """A plugin raised something of its own while serving a request. `__cause__` keeps the original."""

    def __init__(self, plugin: str, stage: str, problem: str) -> None:
        super().__init__(plugin, problem)
        self.args = (plugin, stage, problem)
        self.stage = stage

    def __str__(self) -> str:
        return shorten(f"Plugin {self.plugin} failed in {self.stage}: {self.problem}", _MAX_MESSAGE)
