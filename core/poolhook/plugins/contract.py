"""The contract, checked when a plugin is registered: what pluggy would drop or misread in silence is refused here."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from poolhook.errors import PluginContractError
from poolhook.plugins.base import IOProcessor, Plugin, Settings, Wrapper
from poolhook.plugins.hookspecs import ANSWER_STAGES, HOOKS
from poolhook.registry import IO_PROCESSORS, WRAPPERS, PluginRef

_BASES: dict[str, type[Plugin]] = {IO_PROCESSORS: IOProcessor, WRAPPERS: Wrapper}
_OF_PROCESSORS = ("pre_process", "post_process")  # what a processor's hooks of both faces default to
_SIMILAR = 0.84  # of difflib's ratio: `post_proces_online` is caught, `parse_sentences` is not


def check_class(ref: PluginRef, plugin_class: object) -> type[Plugin]:
    """The class that `ref` points at, once it is known to keep the contract.

    Raises:
        PluginContractError: with every problem found.
    """
    base = _BASES[ref.group]
    if not (isinstance(plugin_class, type) and issubclass(plugin_class, base)):
        what = plugin_class.__name__ if isinstance(plugin_class, type) else f"a {type(plugin_class).__name__}"
        raise PluginContractError(
            str(ref), f"{ref.target} is {what}, not a subclass of poolhook.plugins.{base.__name__}."
        )
    spoken_for = {name for name in HOOKS if hasattr(plugin_class, name)} | {"Settings"}
    names = sorted({*_public_methods(plugin_class), *spoken_for})
    problems = [problem for name in names for problem in _problems(plugin_class, base, name)]
    missing = sorted(getattr(plugin_class, "__abstractmethods__", ()))
    if missing:
        problems.insert(0, f"it does not define {', '.join(missing)}")
    if problems:
        raise PluginContractError(str(ref), "; ".join(problems) + ".")
    return plugin_class


def _public_methods(plugin_class: type) -> list[str]:
    return [name for name in dir(plugin_class) if not name.startswith("_") and callable(getattr(plugin_class, name))]


def _problems(plugin_class: type, base: type[Plugin], name: str) -> Iterator[str]:
    method = inspect.getattr_static(plugin_class, name)
    if name == "Settings":
        if not (isinstance(method, type) and issubclass(method, Settings)):
            yield "Settings must be a subclass of poolhook.plugins.Settings"
        return
    template = HOOKS.get(name) or getattr(base, name, None)
    if template is None:
        if base is Wrapper and name in _OF_PROCESSORS:
            yield f"{name} is no hook of wrappers; go around {name}_offline and {name}_online"
            return
        similar = get_close_matches(name, [*HOOKS, *_public_methods(base)], n=1, cutoff=_SIMILAR)
        if similar:
            yield f"{name} is no hook; did you mean {similar[0]}? (start the name with _ if it is a helper)"
        return
    if getattr(base, name, None) is getattr(plugin_class, name):
        return
    if not inspect.isfunction(method):
        yield f"{name} must be a plain method, not a {type(method).__name__}"
        return
    if inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method):
        yield (
            f"{name} is async, but nothing awaits it: hooks are plain functions, and prefetch_online returns what is "
            "to be awaited"
        )
    yield from _signature_problems(name, method, template)
    yield from _role_problems(base, name, method)


def _signature_problems(name: str, method: Any, template: Any) -> Iterator[str]:
    allowed = list(inspect.signature(template).parameters)[1:]
    all_given = list(inspect.signature(method).parameters.values())
    if not all_given or all_given[0].name in allowed:
        yield f"{name} does not take self first"
        return
    given = all_given[1:]
    for parameter in given:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            yield f"{name} takes {parameter}, which hooks are never given"
        elif parameter.kind is parameter.KEYWORD_ONLY:
            yield f"{name} takes {parameter.name!r} by keyword only, but hooks are given their arguments by position"
        elif parameter.name not in allowed:
            yield f"{name} has an argument {parameter.name!r}; its arguments are {', '.join(allowed) or 'none'}"
        elif parameter.default is not parameter.empty:
            yield f"{name} gives its argument {parameter.name!r} a default, and then it is never passed"
    # pre_process and post_process are called by position, so they take what the base class says they take.
    if name not in HOOKS and [parameter.name for parameter in given] != allowed:
        yield f"{name} must take exactly {', '.join(allowed)}"


def _role_problems(base: type[Plugin], name: str, method: Any) -> Iterator[str]:
    around = inspect.isgeneratorfunction(method)
    if base is IOProcessor:
        if around:
            yield f"{name} is a generator; only wrappers go around a stage, a processor returns its answer"
        if name in ("lookup", "store"):
            yield f"{name} is for wrappers"
    elif name in ANSWER_STAGES and not around:
        yield f"{name} must be a generator that yields once: a wrapper goes around the processor's answer"
    elif name not in ANSWER_STAGES and around:
        yield f"{name} is a generator, but it is called for its own sake and has no answer to go around"
