"""Fixtures of this room."""

from distributions import site  # noqa: F401 (a fixture is found by its name)
from served import models  # noqa: F401 (a fixture is found by its name)
