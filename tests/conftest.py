"""Fixtures that several rooms share."""

from __future__ import annotations

import os

# Before anything reads it: tests ask nothing of the network.
os.environ["HF_HUB_OFFLINE"] = "1"

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from plugins_fixture import best_sentence_installed  # noqa: F401 (a fixture is found by its name)
from poolhook import LLM
from tiny import save_tiny_model


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`tiny_model(family, **config)`: the directory of a tiny random model, written once."""
    written: dict[tuple[object, ...], Path] = {}

    def write(family: str, **overrides: object) -> Path:
        key = (family, *sorted(overrides.items()))
        if key not in written:
            written[key] = save_tiny_model(tmp_path_factory.mktemp(family), family, **overrides)
        return written[key]

    return write


@pytest.fixture(scope="session")
def demo_llm() -> Iterator[LLM]:
    """The real all-MiniLM-L6-v2."""
    with LLM("demo", device="cpu") as llm:
        yield llm
