"""The plugin template, installed as a user would install it, beside what is there already."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from poolhook.registry import installed_plugins

REPOSITORY = Path(__file__).parents[1]
PLUGIN_TEMPLATE = REPOSITORY / "plugin_template"
PIP_OFFLINE = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet")


@pytest.fixture(scope="session")
def best_sentence_installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory, on `sys.path`, into which pip has installed `plugin_template`."""
    directory = tmp_path_factory.mktemp("best_sentence")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *PIP_OFFLINE, "--target", str(directory), str(PLUGIN_TEMPLATE)],
        check=True,
    )
    sys.path.insert(0, str(directory))
    installed_plugins.cache_clear()
    yield directory
    sys.path.remove(str(directory))
    installed_plugins.cache_clear()
