"""The tasks: what a pooler computes. Routes are named after them, and after what is built on them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

PoolingTask = Literal["embed", "classify", "token_embed", "token_classify", "plugin"]

POOLING_TASKS: tuple[PoolingTask, ...] = get_args(PoolingTask)
"""Every task, in the order in which one is picked when nobody chose; messages list tasks in this order too."""

ScoreType = Literal["bi-encoder", "cross-encoder", "late-interaction"]
"""How two texts are scored."""

SCORE_TYPES: dict[PoolingTask, ScoreType] = {
    "embed": "bi-encoder",
    "classify": "cross-encoder",
    "token_embed": "late-interaction",
}
"""The score type that each task makes possible."""

Similarity = Literal["cosine", "dot", "euclidean", "manhattan", "maxsim", "meanmaxsim"]
"""How the vectors of two texts are compared: the last two for a vector of each token. Distances are negative."""

_REMOVED_TASKS = {
    "score": "ask for scores with LLM.score or /score, or for task 'classify' if you want a cross-encoder's raw answer",
    "encode": "use task 'token_embed' for a vector for each token, or 'token_classify' for labels",
    "normalize": "it is no task: set use_activation to have embeddings normalised or not",
}


def in_order(tasks: Iterable[PoolingTask]) -> tuple[PoolingTask, ...]:
    """The given tasks without repeats, in the order of `POOLING_TASKS`."""
    known = set(tasks)
    return tuple(task for task in POOLING_TASKS if task in known)


def why_unsupported(task: object, supported: Iterable[PoolingTask]) -> str:
    """What to tell those who ask for a task that is not served: what to use instead, and all that is supported."""
    listed = f"Supported tasks: {', '.join(in_order(supported)) or 'none'}."
    if task is None:
        return f"No task was given. {listed}"
    advice = _REMOVED_TASKS.get(task) if isinstance(task, str) else None
    if advice is not None:
        return f"Task {task!r} was removed; {advice}. {listed}"
    return f"Task {_quoted(task)} is not supported. {listed}"


def _quoted(task: object) -> str:
    return repr(task) if isinstance(task, str) and len(task) <= 100 else f"of {type(task).__name__}"
