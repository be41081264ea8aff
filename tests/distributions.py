"""Throw-away distributions: a package's files and its metadata, written where Python looks for installed packages."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from poolhook.registry import IO_PROCESSORS, WRAPPERS, installed_plugins


class Site:
    """A directory of installed packages."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(
        self,
        name: str,
        *,
        io_processors: Mapping[str, str] | None = None,
        wrappers: Mapping[str, str] | None = None,
        modules: Mapping[str, str] | None = None,
        version: str = "1.2",
        requires: Sequence[str] = ("poolhook>=0.0",),
        editable: bool = False,
    ) -> None:
        """Install a distribution that has these entry points (name -> target) and modules (name -> source)."""
        for module, source in (modules or {}).items():
            (self.path / f"{module}.py").write_text(source)
        info = self.add_metadata(
            name,
            "\n".join(
                ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
                + [f"Requires-Dist: {requirement}" for requirement in requires]
            ),
            version=version,
        )
        groups = {IO_PROCESSORS: io_processors or {}, WRAPPERS: wrappers or {}}
        lines = [
            line
            for group, points in groups.items()
            for line in (f"[{group}]", *(f"{point} = {target}" for point, target in points.items()))
        ]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
        if editable:
            origin = {"url": "file:///somewhere", "dir_info": {"editable": True}}
            (info / "direct_url.json").write_text(json.dumps(origin))

    def add_metadata(self, name: str, metadata: str | bytes | None, *, version: str = "1.2") -> Path:
        """Write a `.dist-info` with this `METADATA` and return its directory."""
        info = self.path / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "RECORD").write_text("")
        if metadata is not None:
            (info / "METADATA").write_bytes(metadata if isinstance(metadata, bytes) else metadata.encode())
        installed_plugins.cache_clear()
        importlib.invalidate_caches()
        return info


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A place on `sys.path` to install into; what it brought is forgotten afterwards."""
    path = tmp_path / "site-packages"
    path.mkdir()
    monkeypatch.syspath_prepend(path)
    installed_plugins.cache_clear()
    yield Site(path)
    for name in [n for n, module in sys.modules.items() if str(path) in (getattr(module, "__file__", None) or "")]:
        del sys.modules[name]
    installed_plugins.cache_clear()
