"""Route `rerank`: documents in the order in which they answer a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from poolhook.errors import InvalidRequest
from poolhook.outputs import PoolingOutput, RerankResult
from poolhook.plugins import RequestContext
from poolhook_builtin.score import Pairs, ScoreIOProcessor


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: str
    documents: list[str]
    top_n: int | None = Field(default=None, ge=1, strict=True)


@dataclass(frozen=True)
class Ranking(Pairs):
    """One query, and how many of the documents are wanted; None for all."""

    top_n: int | None = None


class RerankIOProcessor(ScoreIOProcessor):
    """A query and documents in, the best documents first out."""

    def parse_data(self, ctx: RequestContext, data: Any) -> Ranking:
        """Read `{"query": text, "documents": texts, "top_n": number}`.

        Raises:
            InvalidRequest: `top_n` is below 1, an online request has no documents, or the model has several labels.
        """
        self.check_labels()
        parsed = _Data.model_validate(data)
        if not parsed.documents and ctx.mode == "online":
            raise InvalidRequest("documents is an empty list. Give at least one text.", param="documents")
        return Ranking([parsed.query], parsed.documents, parsed.top_n)

    def post_process(self, ctx: RequestContext, outputs: Sequence[PoolingOutput]) -> Any:
        """The documents, best first, ties in the order in which they came; at most `top_n`."""
        scores = self.scores(ctx, outputs)
        order = sorted(range(len(scores)), key=lambda index: -scores[index])
        return [RerankResult(index, scores[index], ctx.state.documents[index]) for index in order[: ctx.state.top_n]]
