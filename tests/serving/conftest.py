"""One real server with the real model for this folder, and tiny models of every kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from served import models  # noqa: F401 (a fixture is found by its name)
from servers import Server, running_server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with running_server("demo", "--device", "cpu") as running:
        yield running
