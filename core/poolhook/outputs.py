"""What comes back: pooled data, and the answers that `LLM` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PoolingOutput:
    """What the pooler made of one prompt.

    Args:
        data: float32, on the CPU. Its shape is the task's: `[dimensions]` for `embed`, `[labels]` for `classify`,
            `[tokens, dimensions]` for `token_embed`, `[tokens, labels]` for `token_classify`.
        parts: what else a model's own pooler computed in the same pass, by name.
    """

    data: Tensor
    parts: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EmbeddingOutput:
    """One embedding.

    Args:
        data: shape `[dimensions]`, float32, on the CPU.
    """

    data: Tensor

    @property
    def embedding(self) -> list[float]:
        """The vector as a list of Python floats."""
        values: list[float] = self.data.tolist()
        return values

    @property
    def hidden_size(self) -> int:
        """The number of dimensions."""
        return self.data.shape[-1]

    def numpy(self) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
        """The vector as a NumPy array that shares the tensor's memory."""
        return self.data.numpy()


@dataclass(frozen=True, slots=True)
class ClassificationOutput:
    """One classification.

    Args:
        probs: one for each label, in the order of `labels`; logits where the activation was left out.
        labels: the labels' names.
    """

    probs: list[float]
    labels: Sequence[str]

    @property
    def num_classes(self) -> int:
        """The number of labels."""
        return len(self.probs)

    @property
    def label(self) -> str:
        """The name of the label that scores highest; the first of several."""
        return self.labels[self.probs.index(max(self.probs))]


@dataclass(frozen=True, slots=True)
class ScoringOutput:
    """How well two texts go together.

    Args:
        score: what the activation makes of the logit for cross-encoders, for others the model's similarity: mostly a
            cosine, and MaxSim for late interaction.
    """

    score: float


@dataclass(frozen=True, slots=True)
class RerankResult:
    """A document and how well it answers the query.

    Args:
        index: its place among the documents that were given.
        score: as in `ScoringOutput`.
        document: its text.
    """

    index: int
    score: float
    document: str


@dataclass(frozen=True, slots=True)
class PoolingRequestOutput(Generic[T]):
    """The answer to one prompt, or, from an IO processor, to one request.

    Args:
        request_id: unique in this process.
        outputs: pooled data, or the processor's answer.
        prompt_token_ids: the ids that the model saw; empty when one answer covers several prompts.
        finished: always True; pooling answers come whole.
    """

    request_id: str
    outputs: T
    prompt_token_ids: Sequence[int]
    finished: bool = True


class EmbeddingRequestOutput(PoolingRequestOutput[EmbeddingOutput]):
    """The embedding of one prompt."""

    __slots__ = ()

    @classmethod
    def of(cls, pooled: PoolingRequestOutput[PoolingOutput]) -> EmbeddingRequestOutput:
        """A pooled output of task `embed`, read as an embedding."""
        return cls(pooled.request_id, EmbeddingOutput(pooled.outputs.data), pooled.prompt_token_ids)


class ClassificationRequestOutput(PoolingRequestOutput[ClassificationOutput]):
    """The classification of one prompt."""

    __slots__ = ()

    @classmethod
    def of(cls, pooled: PoolingRequestOutput[PoolingOutput], labels: Sequence[str]) -> ClassificationRequestOutput:
        """A pooled output of task `classify`, read as probabilities of `labels`."""
        output = ClassificationOutput(pooled.outputs.data.tolist(), labels)
        return cls(pooled.request_id, output, pooled.prompt_token_ids)


class ScoringRequestOutput(PoolingRequestOutput[ScoringOutput]):
    """The score of one pair."""

    __slots__ = ()
