"""What travels with a request, and what a plugin is told of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from poolhook.engine import EngineInput
from poolhook.params import PoolingParams, TokenizationParams
from poolhook.tasks import PoolingTask, ScoreType, Similarity

Mode = Literal["offline", "online"]


@dataclass(eq=False)
class RequestContext:
    """One request's own things. Whatever a plugin must remember between hooks goes on `state`, never on `self`: other
    requests run at the same time, on the same plugin object.

    Args:
        mode: through which face it came.
        route: the route's name: a task, or an IO processor.
        task: what the pooler computes for prompts whose params name no task.
        params: what the caller asked of pooling, once or for each prompt.
        tokenization: what the caller asked of tokenizing.
        priority: lower runs earlier.
        deadline: on `time.monotonic()`'s clock; None waits for as long as it takes.
        request_id: the server's own, unique; never the client's.
        state: the processor's, from hook to hook.
        stage: the hook that runs, or `render` or `engine`.
        fetched: what the awaitables of `prefetch_online` returned, in their order.
        inputs: the rendered prompts, once there are any.
    """

    mode: Mode
    route: str
    task: PoolingTask
    params: PoolingParams | Sequence[PoolingParams] = field(default_factory=PoolingParams)
    tokenization: TokenizationParams = field(default_factory=TokenizationParams)
    priority: int = 0
    deadline: float | None = None
    request_id: str = field(default_factory=lambda: uuid4().hex)
    state: Any = None
    stage: str = "parse_data"
    fetched: Sequence[Any] = ()
    inputs: Sequence[EngineInput] = ()


@dataclass(frozen=True)
class ModelInfo:
    """What a plugin is told of the model when it starts.

    Args:
        name: what the user called the model.
        architecture: the class name in its `config.json`.
        hidden_size: dimensions of a hidden state.
        embedding_size: dimensions of an embedding that was not cut.
        vocab_size: token ids run from 0 to this, exclusive.
        max_length: the longest prompt, in tokens, special tokens included.
        prompts: texts that the model wants before an input, by name.
        default_prompt_name: the prompt to apply when none is named.
        supported_tasks: what its pooler computes.
        score_type: how it scores two texts; None if it can't.
        similarity: how it compares two embeddings.
        labels: the names of a classifier's labels, in the order of its answer.
        has_roles: whether texts are queries or documents to it, each tokenized in its own way (late interaction).
    """

    name: str
    architecture: str
    hidden_size: int
    embedding_size: int
    vocab_size: int
    max_length: int
    prompts: Mapping[str, str]
    default_prompt_name: str | None
    supported_tasks: tuple[PoolingTask, ...]
    score_type: ScoreType | None = None
    similarity: Similarity = "cosine"
    labels: tuple[str, ...] = ()
    has_roles: bool = False
