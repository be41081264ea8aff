"""`/pooling`: any task's raw pooled data, and IO processors' own requests."""

from __future__ import annotations

from typing import Any

from poolhook.outputs import PoolingOutput
from poolhook.plugins import DataRequest, PoolingRequest, PromptsRequest
from poolhook.runtime import Answer
from poolhook.serving.base import PoolingServingBase
from poolhook.serving.json import encode_tensor
from poolhook.serving.protocol import EncodingFormat, PoolingBody


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
            **self.envelope("pool", answer),
            "data": [
                {"index": index, "object": "pooling", **_written(pooled.outputs, body.encoding_format)}
                for index, pooled in enumerate(answer.value)
            ],
            "usage": self.usage(answer),
        }


def _written(output: PoolingOutput, encoding_format: EncodingFormat) -> dict[str, Any]:
    """Pooled data, with its shape where base64 hides it, and the parts of a model that answers in several ways."""
    written: dict[str, Any] = {"data": encode_tensor(output.data, encoding_format)}
    if encoding_format == "base64" and output.data.dim() > 1:
        written["shape"] = list(output.data.shape)
    if output.parts:
        parts = output.parts.items()
        written["parts"] = {name: _written(PoolingOutput(part), encoding_format) for name, part in parts}
    return written
