"""Fixtures of this room."""

from served import models  # noqa: F401 (a fixture is found by its name)
