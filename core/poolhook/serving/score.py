"""`/score` and `/rerank`: how well texts go together, in vLLM's and in Cohere's shapes."""

from __future__ import annotations

from typing import Any

from poolhook.plugins import PoolingRequest, RouteRequest
from poolhook.runtime import Answer
from poolhook.serving.base import PoolingServingBase
from poolhook.serving.protocol import CommonFields, RerankRequest, ScoreRequest


class ServingScore(PoolingServingBase[ScoreRequest]):
    """Answers with a score for each pair."""

    body_type = ScoreRequest

    def as_request(self, body: ScoreRequest) -> PoolingRequest:
        """A request to route `score`."""
        return _request("score", body, {"queries": body.queries, "documents": body.documents})

    def as_content(self, body: ScoreRequest, answer: Answer) -> Any:
        """The scores, each with its index."""
        return {
            **self.envelope("score", answer),
            "data": [
                {"index": index, "object": "score", "score": scored.outputs.score}
                for index, scored in enumerate(answer.value)
            ],
            "usage": self.usage(answer),
        }


class ServingRerank(PoolingServingBase[RerankRequest]):
    """Answers with documents, best first."""

    body_type = RerankRequest

    def as_request(self, body: RerankRequest) -> PoolingRequest:
        """A request to route `rerank`."""
        return _request("rerank", body, {"query": body.query, "documents": body.documents, "top_n": body.top_n})

    def as_content(self, body: RerankRequest, answer: Answer) -> Any:
        """The results, each with the index that its document had."""
        return {
            "id": f"rerank-{answer.request_id}",
            "model": self.model_name,
            "results": [
                {
                    "index": result.index,
                    "relevance_score": result.score,
                    **({"document": {"text": result.document}} if body.return_documents else {}),
                }
                for result in answer.value
            ],
            "usage": self.usage(answer),
        }


def _request(route: str, body: CommonFields, data: Any) -> RouteRequest:
    return RouteRequest(
        route=route,
        data=data,
        params=body.pooling_params(),
        tokenization=body.tokenization(),
        priority=body.priority,
    )
