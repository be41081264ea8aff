"""A selected plugin, made: its reference, its object and its settings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from pydantic import ValidationError

from poolhook.errors import (
    ClientError,
    ConfigError,
    DeadlineExceeded,
    PluginError,
    PluginLoadError,
    PluginStageError,
    describe_error,
)
from poolhook.plugins.base import Plugin, Settings
from poolhook.plugins.context import ModelInfo
from poolhook.plugins.contract import check_class
from poolhook.registry import PluginRef, load


@dataclass(frozen=True, eq=False)
class PluginInstance:
    """One plugin object. A wrapper on several routes is one instance, started and stopped once."""

    ref: PluginRef
    plugin: Plugin
    settings: Settings

    def startup(self, model_info: ModelInfo) -> None:
        """Run the plugin's `startup`.

        Raises:
            PluginStageError: it failed.
        """
        self._call("startup", settings=self.settings, model_info=model_info)

    def shutdown(self) -> None:
        """Run the plugin's `shutdown`.

        Raises:
            PluginStageError: it failed.
        """
        self._call("shutdown")

    def _call(self, stage: str, **arguments: Any) -> None:
        hook: Callable[..., Any] = getattr(self.plugin, stage)
        try:
            hook(*(arguments[name] for name in inspect.signature(hook).parameters))
        except PluginError:
            raise
        except PLUGIN_FAULTS as error:
            # No caller waits here, so whatever it raised is the plugin's own.
            raise PluginStageError(str(self.ref), stage, describe_error(error)) from error


def instantiate(ref: PluginRef, options: Mapping[str, Any]) -> PluginInstance:
    """Import `ref`, check its contract, validate `options` against its settings and make the object.

    Raises:
        PluginLoadError: its import or its constructor fails.
        PluginContractError: it breaks the hook contract.
        ConfigError: an option is unknown or wrong.
    """
    plugin_class = check_class(ref, load(ref))
    try:
        settings = plugin_class.Settings.model_validate(options)
    except ValidationError as error:
        allowed = ", ".join(plugin_class.Settings.model_fields) or "none"
        problems = (
            f"Plugin {ref.name!r} option {'.'.join(map(str, item['loc'])) or '(all)'!r}: {item['msg']}"
            for item in error.errors(include_url=False)
        )
        raise ConfigError(f"{'; '.join(problems)}. Its options: {allowed}.") from error
    try:
        plugin = plugin_class()
    except PLUGIN_FAULTS as error:
        raise PluginLoadError(str(ref), f"{plugin_class.__name__}() raised {describe_error(error)}") from error
    return PluginInstance(ref, plugin, settings)


PLUGIN_FAULTS = (Exception, SystemExit)
"""What a hook may raise and not take the process with it: a library that ends the program must not end ours."""


def raise_named(ref: PluginRef, stage: str, error: BaseException) -> NoReturn:
    """Raise `error` again as the fault of `ref`, unless it already says whose it is: the caller's, or a plugin's."""
    if isinstance(error, ClientError | PluginError | DeadlineExceeded):
        raise error
    raise PluginStageError(str(ref), stage, describe_error(error)) from error
