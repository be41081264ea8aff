"""`/pooling`: any task's raw pooled data, and IO processors' own requests."""

from __future__ import annotations

from typing import Any

from poolhook.plugins import DataRequest, PoolingRequest, PromptsRequest
from poolhook.runtime import Answer
from poolhook.serving.base import PoolingServingBase
from poolhook.serving.json import encode_tensor
from poolhook.serving.protocol import PoolingBody


class ServingPooling(PoolingServingBase[PoolingBody]):
    """Answers in vLLM's shapes."""

    body_type = PoolingBody

    def as_request(self, body: PoolingBody) -> PoolingRequest:
        """A request for the named task, for task `plugin` if there is `data`, else for the task that is served."""
        common: dict[str, Any] = {
            "task": body.task,
            "params": body.pooling_params(),
            "tokenization": body.tokenization(),
            "priority": body.priority,
        }
        if body.is_data:
            return DataRequest(data=body.data, plugin=body.plugin, **common)
        return PromptsRequest(prompts=body.input, prompt_name=body.prompt_name, **common)

    def as_content(self, body: PoolingBody, answer: Answer) -> Any:
        """A processor's answer as it is, or pooled data, each with its index."""
        if body.is_data:
            return {"request_id": answer.request_id, "created_at": self.created(), "data": answer.value}
        return {
            "id": f"pool-{answer.request_id}",
            "object": "list",
            "created": self.created(),
            "model": self.model_name,
            "data": [
                {
                    "index": index,
                    "object": "pooling",
                    "data": encode_tensor(pooled.outputs.data, body.encoding_format),
                }
                for index, pooled in enumerate(answer.value)
            ],
            "usage": self.usage(answer),
        }
