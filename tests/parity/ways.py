"""The ways in which the same inputs may arrive. None may change an answer."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

Input = TypeVar("Input")
Answer = TypeVar("Answer")
Ask = Callable[[list[Input]], list[Answer]]
"""Asks for the answers to some inputs in one call."""


def alone(ask: Ask[Input, Answer], inputs: Sequence[Input]) -> list[Answer]:
    """A call for each, one after the other."""
    return [ask([one])[0] for one in inputs]


def together(ask: Ask[Input, Answer], inputs: Sequence[Input]) -> list[Answer]:
    """One call for all."""
    return ask(list(inputs))


def backwards(ask: Ask[Input, Answer], inputs: Sequence[Input]) -> list[Answer]:
    """One call for all, the last first."""
    return ask(list(inputs)[::-1])[::-1]


def from_many_callers(ask: Ask[Input, Answer], inputs: Sequence[Input]) -> list[Answer]:
    """Sixteen callers at once, each with one to four neighbouring inputs, in no order, until all have been asked."""
    rng = random.Random(len(inputs))
    borders = [0]
    while borders[-1] < len(inputs):
        borders.append(min(borders[-1] + rng.randint(1, 4), len(inputs)))
    parts = list(pairwise(borders))
    order = rng.sample(parts, len(parts))
    with ThreadPoolExecutor(16) as callers:
        answers = dict(zip(order, callers.map(lambda part: ask(list(inputs[slice(*part)])), order), strict=True))
    return [answer for part in parts for answer in answers[part]]


WAYS = (alone, together, backwards, from_many_callers)
