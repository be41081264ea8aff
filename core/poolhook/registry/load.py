"""Selecting an installed plugin by name and importing it, or saying in one message why that fails."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable
from functools import reduce

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from poolhook._version import __version__
from poolhook.errors import ConfigError, PluginLoadError, shorten
from poolhook.registry.discovery import GROUPS, PluginRef, installed_plugins

logger = logging.getLogger(__name__)


def select(name: str, group: str, installed: Iterable[PluginRef] | None = None) -> PluginRef:
    """The plugin that `name`, or `distribution:name`, means.

    Raises:
        ConfigError: no such plugin is installed in `group`, or two distributions bring one of that name.
    """
    everything = installed_plugins() if installed is None else tuple(installed)
    candidates = [ref for ref in everything if ref.group == group]
    distribution, _, bare_name = name.rpartition(":")
    matches = [ref for ref in candidates if ref.name == bare_name and _is_from(distribution, ref)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        choices = " or ".join(repr(f"{ref.distribution}:{ref.name}") for ref in matches)
        raise ConfigError(f"Plugin name {name!r} is brought by several packages. Say which one you mean: {choices}.")
    raise ConfigError(_not_installed(name, bare_name, group, candidates, everything))


def load(ref: PluginRef) -> object:
    """Import the object that `ref` points at, after checking that it was made for this version of poolhook.

    Raises:
        PluginLoadError: it asks for another version of poolhook, or its import fails; `__cause__` keeps the reason.
    """
    _check_version(ref)
    module_name, _, attribute = ref.target.partition(":")
    try:
        module = importlib.import_module(module_name)
        # SystemExit too: a plugin whose module ends the process must not end ours without a word.
        return reduce(getattr, attribute.split("."), module)
    except (Exception, SystemExit) as error:
        raise PluginLoadError(
            str(ref),
            f"its import failed with {type(error).__name__}: {error}. "
            f"Try `python -c 'import {module_name}'` to see the whole trace, or do not select {ref.name!r}.",
        ) from error


def _is_from(distribution: str, ref: PluginRef) -> bool:
    return not distribution or canonicalize_name(distribution) == canonicalize_name(ref.distribution)


def _check_version(ref: PluginRef) -> None:
    if ref.distribution == "poolhook":
        return
    if ref.requires is None:
        logger.warning("Plugin %s declares no requirement on poolhook, so it may not fit this version.", ref)
        return
    # Compared by base version, so that 0.2.0.dev1 counts as 0.2.0.
    base = Version(__version__).base_version
    if not Requirement(ref.requires).specifier.contains(base, prereleases=True):
        raise PluginLoadError(
            str(ref),
            f"it requires {ref.requires}, and this is poolhook {__version__}. "
            f"Install a version of {ref.distribution} made for it.",
        )


def _not_installed(
    name: str, bare_name: str, group: str, candidates: list[PluginRef], everything: tuple[PluginRef, ...]
) -> str:
    kind = group.removeprefix("poolhook.")
    distribution = name.rpartition(":")[0]
    elsewhere = next(
        (ref for ref in everything if ref.name == bare_name and ref.group != group and _is_from(distribution, ref)),
        None,
    )
    if elsewhere is not None and elsewhere.group in GROUPS:
        return f"Plugin {name!r} is installed, but as one of {elsewhere.group.removeprefix('poolhook.')}, not {kind}."
    names = ", ".join(sorted({ref.name for ref in candidates})) or "none"
    return f"No plugin named {shorten(name)!r} is installed in {kind}. Installed: {names}. See `poolhook plugins list`."
