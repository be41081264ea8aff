"""Entry points -> `PluginRef`, without importing a single plugin.

`pluggy`'s own `load_setuptools_entrypoints` imports everything it finds, dies on the first broken plugin and drops
repeated names silently; a server must do none of these.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from importlib_metadata import Distribution
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

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
        name = _name(distribution)
        # The first on sys.path is the one that imports would find; later copies are shadowed.
        if name is None or canonicalize_name(name) in seen:
            continue
        seen.add(canonicalize_name(name))
        found.update(dict.fromkeys(_plugins_of(distribution, name)))
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
            target=point.value,
            distribution=name,
            version=distribution.version,
            requires=requires,
            editable=editable,
        )


def _name(distribution: Distribution) -> str | None:
    # A half-removed package leaves a directory without metadata behind, and then has no name.
    metadata = distribution.metadata
    return None if metadata is None else metadata["Name"]


def _requirement_on_poolhook(distribution: Distribution) -> str | None:
    for text in distribution.requires or ():
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        applies = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if canonicalize_name(requirement.name) == "poolhook" and applies:
            return f"poolhook{requirement.specifier}"
    return None


def _is_editable(distribution: Distribution) -> bool:
    # PEP 610: the installer writes down where a package came from.
    origin = distribution.read_text("direct_url.json")
    if origin is None:
        return False
    try:
        return bool(json.loads(origin).get("dir_info", {}).get("editable", False))
    except (ValueError, AttributeError):
        return False
