"""Entry points -> `PluginRef`, without importing a single plugin.

`pluggy`'s own `load_setuptools_entrypoints` imports everything it finds, dies on the first broken plugin and drops
repeated names silently; a server must do none of these.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import and_

from importlib_metadata import Distribution
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

logger = logging.getLogger(__name__)

IO_PROCESSORS = "poolhook.io_processors"
WRAPPERS = "poolhook.wrappers"
GROUPS = (IO_PROCESSORS, WRAPPERS)
"""The entry-point groups that plugins register in."""


@dataclass(frozen=True, order=True)
class PluginRef:
    """An installed plugin that may never have been imported.

    Args:
        name: the entry point's name, by which a user selects it.
        group: the entry-point group.
        target: `module:attribute`.
        distribution: the package that brings it.
        version: that package's version.
        requires: the package's requirement on poolhook, such as `poolhook>=0.1`; None when it declares none.
        editable: installed with `pip install -e`.
    """

    name: str
    group: str
    target: str
    distribution: str
    version: str
    requires: str | None = None
    editable: bool = False

    def __str__(self) -> str:
        return f"{self.name!r} ({self.distribution} {self.version}, {self.target})"


@lru_cache(maxsize=1)
def installed_plugins() -> tuple[PluginRef, ...]:
    """Every plugin installed beside poolhook, sorted by name, read from package metadata once per process."""
    found: dict[PluginRef, None] = {}
    seen: set[str] = set()
    for distribution in Distribution.discover():
        try:
            name = distribution.metadata["Name"]
            # The first on sys.path is the one that imports would find; later copies are shadowed.
            if canonicalize_name(name) in seen:
                continue
            seen.add(canonicalize_name(name))
            found.update(dict.fromkeys(_plugins_of(distribution, name)))
        except Exception as error:
            # Damage comes in many kinds, and one damaged package must not take every plugin with it.
            _report_damage(distribution, error)
    return tuple(sorted(found, key=lambda ref: (ref.group, ref.name, ref.distribution)))


def _plugins_of(distribution: Distribution, name: str) -> Iterator[PluginRef]:
    entry_points = [point for point in distribution.entry_points if point.group in GROUPS]
    if not entry_points:
        return
    requires = _requirement_on_poolhook(distribution)
    editable = _is_editable(distribution)
    for point in entry_points:
        yield PluginRef(
            name=point.name,
            group=point.group,
            target=_target(point.value),
            distribution=name,
            version=distribution.version,
            requires=requires,
            editable=editable,
        )


def _target(value: str) -> str:
    """`module:attribute`, without the spaces and the deprecated extras that an entry point may have."""
    return "".join(value.partition("[")[0].split())


def _report_damage(distribution: Distribution, error: Exception) -> None:
    # Half-removed packages are common and nobody's business; one that has plugins is what somebody will look for.
    try:
        ours = "poolhook." in (distribution.read_text("entry_points.txt") or "")
    except Exception:
        ours = True
    logger.log(
        logging.WARNING if ours else logging.DEBUG,
        "Skipped a package in %s whose metadata can't be read (%s: %s). Install it again, or remove its remains.",
        distribution.locate_file(""),
        type(error).__name__,
        error,
    )


def _requirement_on_poolhook(distribution: Distribution) -> str | None:
    """Everything that it requires of poolhook, as one requirement."""
    applying: list[SpecifierSet] = []
    for text in distribution.requires or ():
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if canonicalize_name(requirement.name) == "poolhook" and applies:
            applying.append(requirement.specifier)
    if not applying:
        return None
    return f"poolhook{reduce(and_, applying)}"


def _is_editable(distribution: Distribution) -> bool:
    # PEP 610: the installer writes down where a package came from.
    origin = distribution.read_text("direct_url.json")
    if origin is None:
        return False
    try:
        return bool(json.loads(origin).get("dir_info", {}).get("editable", False))
    except (ValueError, AttributeError):
        return False
