"""The version, from the installed metadata, without the cost of importing a metadata library at start."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("poolhook")
except PackageNotFoundError:  # running from a source tree that was never installed
    __version__ = "0.0.0"
