"""`/v1/embeddings`: OpenAI's embeddings over task `embed`."""

from __future__ import annotations

from typing import Any

from poolhook.plugins import PoolingRequest, PromptsRequest
from poolhook.runtime import Answer
from poolhook.serving.base import PoolingServingBase
from poolhook.serving.json import encode_tensor
from poolhook.serving.protocol import EmbeddingRequest


class ServingEmbedding(PoolingServingBase[EmbeddingRequest]):
    """Answers OpenAI's clients."""

    body_type = EmbeddingRequest

    def as_request(self, body: EmbeddingRequest) -> PoolingRequest:
        """A request for task `embed`."""
        return PromptsRequest(
            task="embed",
            prompts=body.input,
            prompt_name=body.prompt_name,
            params=body.pooling_params(),
            tokenization=body.tokenization(),
            priority=body.priority,
        )

    def as_content(self, body: EmbeddingRequest, answer: Answer) -> Any:
        """OpenAI's list of embeddings, each with its index."""
        return {
            "object": "list",
            "data": [
                {
                    "object": "embedding",
                    "index": index,
                    "embedding": encode_tensor(pooled.outputs.data, body.encoding_format),
                }
                for index, pooled in enumerate(answer.value)
            ],
            "model": self.model_name,
            "usage": self.usage(answer),
        }
