"""The tasks: what a pooler computes. Routes are named after them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

PoolingTask = Literal["embed", "classify", "token_embed", "token_classify", "plugin"]

POOLING_TASKS: tuple[PoolingTask, ...] = get_args(PoolingTask)
"""Every task, in the order in which one is picked when nobody chose; messages list tasks in this order too."""


def in_order(tasks: Iterable[PoolingTask]) -> tuple[PoolingTask, ...]:
    """The given tasks without repeats, in the order of `POOLING_TASKS`."""
    known = set(tasks)
    return tuple(task for task in POOLING_TASKS if task in known)
