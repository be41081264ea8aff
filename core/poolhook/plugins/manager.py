"""pluggy's manager, taught that a plugin's methods are hooks by their names and that a fault has an owner."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from functools import wraps
from typing import Any

import pluggy
from pluggy import HookimplOpts
from pydantic import ValidationError

from poolhook.errors import InvalidRequest, PluginContractError, describe_problems
from poolhook.plugins.hookspecs import HOOKS, PROJECT, HookSpecs
from poolhook.plugins.instance import PLUGIN_FAULTS, PluginInstance, raise_named

_NOT_WRAPPER: HookimplOpts = {
    "wrapper": False,
    "hookwrapper": False,
    "optionalhook": False,
    "tryfirst": False,
    "trylast": False,
    "specname": None,
}


class HookManager(pluggy.PluginManager):
    """A `PluginManager` with poolhook's specifications."""

    def __init__(self) -> None:
        super().__init__(PROJECT)
        self.add_hookspecs(HookSpecs)

    def add(self, instance: PluginInstance) -> None:
        """Register a plugin; those registered later go around those registered before."""
        self.register(instance.plugin, name=str(instance.ref))
        for caller in self.get_hookcallers(instance.plugin) or ():
            for implementation in caller.get_hookimpls():
                if implementation.plugin is instance.plugin:
                    owned = _own_generator if implementation.wrapper else _own
                    # pluggy has no place to go around a single implementation.
                    implementation.function = owned(  # type: ignore[misc]
                        implementation.function, instance, caller.name
                    )

    def parse_hookimpl_opts(self, plugin: Any, name: str) -> HookimplOpts | None:
        """A method is a hook if a specification has its name, unless it is a base class's empty one."""
        if name not in HOOKS:
            return None
        method = getattr(plugin, name)
        if getattr(method, "does_nothing", False):
            return None
        return {**_NOT_WRAPPER, "wrapper": inspect.isgeneratorfunction(method)}


def _own(hook: Callable[..., Any], instance: PluginInstance, stage: str) -> Callable[..., Any]:
    @wraps(hook)
    def owned(*args: Any) -> Any:
        try:
            return hook(*args)
        except PLUGIN_FAULTS as error:
            _raise(instance, stage, error)

    return owned


def _own_generator(hook: Callable[..., Any], instance: PluginInstance, stage: str) -> Callable[..., Any]:
    @wraps(hook)
    def owned(*args: Any) -> Generator[Any, Any, Any]:
        try:
            return (yield from _around_once(hook(*args), instance, stage))
        except PLUGIN_FAULTS as error:
            # What came through from inside already names its owner and passes.
            _raise(instance, stage, error)

    return owned


def _around_once(wrapper: Generator[Any, Any, Any], instance: PluginInstance, stage: str) -> Generator[Any, Any, Any]:
    """Drive a wrapper's generator, and say whose it is if it does not yield exactly once and return an answer."""

    def broken(problem: str) -> PluginContractError:
        return PluginContractError(
            str(instance.ref), f"{stage} {problem}; write `result = yield`, then `return result`."
        )

    try:
        next(wrapper)
    except StopIteration:
        raise broken("returned without a yield") from None
    inside: Any = None
    try:
        try:
            inside = yield
        except BaseException as error:
            wrapper.throw(error)
        else:
            wrapper.send(inside)
    except StopIteration as end:
        if end.value is None and inside is not None:
            raise broken("returned nothing in place of the answer") from None
        return end.value
    wrapper.close()
    raise broken("yielded more than once")


def _raise(instance: PluginInstance, stage: str, error: BaseException) -> None:
    if stage == "parse_data" and isinstance(error, ValidationError):
        text, field = describe_problems(error.errors(include_url=False))
        raise InvalidRequest(f"The data is invalid: {text}", param=field or "data") from error
    raise_named(instance.ref, stage, error)
