"""One `LLM` and one server for each module of this folder, of the model that its fixture `model` names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from parity.faces import FP32, CommandLine, Face, Offline, Served
from parity.ways import WAYS, together
from poolhook import LLM
from servers import running_server


@pytest.fixture(scope="module")
def config(model: Path) -> dict[str, Any]:
    """The model's `config.json`."""
    content: dict[str, Any] = json.loads((model / "config.json").read_text(encoding="utf-8"))
    return content


@pytest.fixture(scope="module")
def llm(model: Path) -> Iterator[LLM]:
    with LLM(str(model), **FP32) as loaded:
        yield loaded


@pytest.fixture(scope="module")
def offline(llm: LLM) -> Offline:
    return Offline(llm)


@pytest.fixture(scope="module")
def served(model: Path) -> Iterator[Served]:
    with running_server(str(model), *(part for name, value in FP32.items() for part in (f"--{name}", value))) as server:
        yield Served(server.url)


@pytest.fixture(scope="module")
def command_line(model: Path) -> CommandLine:
    return CommandLine(model)


@pytest.fixture(params=["offline", "served", "command_line"])
def face(request: pytest.FixtureRequest) -> Face:
    """Each of the three faces."""
    chosen: Face = request.getfixturevalue(request.param)
    return chosen


@pytest.fixture(params=["offline", "served"])
def raw(request: pytest.FixtureRequest) -> Face:
    """The faces whose requests can ask for what stands before the activation, asking for it."""
    chosen: Offline | Served = request.getfixturevalue(request.param)
    return chosen.without_activation()


_ARRIVALS = [(face, way) for face in ("offline", "served") for way in WAYS] + [("command_line", together)]


@pytest.fixture(params=_ARRIVALS, ids=[f"{face}-{way.__name__}" for face, way in _ARRIVALS])
def arrival(request: pytest.FixtureRequest) -> tuple[Face, Callable[..., list]]:
    """A face and a way in which inputs come to it; every combination, but the command line is asked once."""
    face, way = request.param
    return request.getfixturevalue(face), way
