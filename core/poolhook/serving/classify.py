"""`/classify`: the labels of prompts and their probabilities, in vLLM's shape."""

from __future__ import annotations

from typing import Any

from poolhook.outputs import ClassificationRequestOutput
from poolhook.plugins import PoolingRequest, PromptsRequest
from poolhook.runtime import Answer, OnlineRunner
from poolhook.serving.base import PoolingServingBase
from poolhook.serving.protocol import ClassifyRequest


class ServingClassification(PoolingServingBase[ClassifyRequest]):
    """Answers with labels.

    Args:
        runner: runs requests.
        model_name: the name under which the model is served.
        labels: the model's.
    """

    body_type = ClassifyRequest

    def __init__(self, runner: OnlineRunner, model_name: str, labels: tuple[str, ...]) -> None:
        super().__init__(runner, model_name)
        self._labels = labels

    def as_request(self, body: ClassifyRequest) -> PoolingRequest:
        """A request for task `classify`."""
        return PromptsRequest(
            task="classify",
            prompts=body.input,
            params=body.pooling_params(),
            tokenization=body.tokenization(),
            priority=body.priority,
        )

    def as_content(self, body: ClassifyRequest, answer: Answer) -> Any:
        """A label and all probabilities for each prompt."""
        outputs = [ClassificationRequestOutput.of(pooled, self._labels).outputs for pooled in answer.value]
        return {
            **self.envelope("classify", answer),
            "data": [
                {
                    "index": index,
                    "label": output.label,
                    "probs": output.probs,
                    "num_classes": output.num_classes,
                }
                for index, output in enumerate(outputs)
            ],
            "usage": self.usage(answer),
        }
