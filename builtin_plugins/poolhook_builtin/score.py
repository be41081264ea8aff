"""Route `score`: how well texts go together, in whichever way the model can tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from poolhook.errors import InvalidRequest, shorten
from poolhook.outputs import PoolingOutput, PoolingRequestOutput, ScoringOutput
from poolhook.params import PoolingParams
from poolhook.plugins import IOProcessor, ModelInfo, PairPrompt, Prompt, RequestContext, Settings
from poolhook_builtin.instructions import as_role, with_prompt
from poolhook_builtin.prompts import check_task
from poolhook_builtin.similarity import compare


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Texts = Annotated[list[str], BeforeValidator(_as_list)]


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid")

    queries: Texts
    documents: Texts


@dataclass(frozen=True)
class Pairs:
    """What is to be scored: each query with the document at its place, or the only query with every document."""

    queries: list[str]
    documents: list[str]


class ScoreIOProcessor(IOProcessor[Pairs, Any]):
    """Two lists of texts in, a score for each pair out.

    A cross-encoder reads both texts of a pair at once. A bi-encoder and a late-interaction model read each text alone,
    with the model's prompt for queries or for documents, and their vectors are compared.
    """

    def startup(self, settings: Settings, model_info: ModelInfo) -> None:
        """Remember what the model is."""
        self.model_info = model_info

    def parse_data(self, ctx: RequestContext, data: Any) -> Pairs:
        """Read `{"queries": texts, "documents": texts}`: one with many, or as many of each.

        Raises:
            InvalidRequest: the numbers do not fit, an online request has none, or the model has several labels.
        """
        self.check_labels()
        parsed = _Data.model_validate(data)
        queries, documents = len(parsed.queries), len(parsed.documents)
        if queries != documents and queries != 1:
            raise InvalidRequest(
                f"{queries} queries and {documents} documents can't be paired. Give one query, or one for each "
                "document.",
                param="queries",
            )
        if not documents and ctx.mode == "online":
            raise InvalidRequest("documents is an empty list. Give at least one text.", param="documents")
        return Pairs(parsed.queries, parsed.documents)

    def pre_process(self, ctx: RequestContext, request: Pairs) -> Sequence[Prompt]:
        """A prompt for each pair, or for each text."""
        ctx.state = request
        if not request.documents:
            return []
        if self.model_info.score_type == "cross-encoder":
            queries = request.queries * (len(request.documents) if len(request.queries) == 1 else 1)
            pairs = [PairPrompt(*pair) for pair in zip(queries, request.documents, strict=True)]
            return with_prompt(pairs, None, self.model_info)
        return [
            *(as_role(text, "query", self.model_info) for text in request.queries),
            *(as_role(text, "document", self.model_info) for text in request.documents),
        ]

    def merge_pooling_params(
        self, ctx: RequestContext, prompts: Sequence[Prompt], params: PoolingParams | Sequence[PoolingParams]
    ) -> Sequence[PoolingParams]:
        """The same for every text: vectors that were made in different ways can't be compared.

        Raises:
            InvalidRequest: there are several, or they are for another task.
        """
        if not isinstance(params, PoolingParams):
            raise InvalidRequest(
                f"pooling_params is a list of {len(params)}, but texts that are compared are pooled in one way. Give "
                "one PoolingParams.",
                param="pooling_params",
            )
        check_task(ctx, [params], self.model_info)
        return super().merge_pooling_params(ctx, prompts, params)

    def post_process(self, ctx: RequestContext, outputs: Sequence[PoolingOutput]) -> Any:
        """A score for each pair, in their order."""
        # A pair's ids are known only where it was read as one; of two texts, the document's stand for it.
        inputs = ctx.inputs[len(ctx.inputs) - len(ctx.state.documents) :]
        return [
            PoolingRequestOutput(f"{ctx.request_id}-{index}", ScoringOutput(score), item.token_ids)
            for index, (score, item) in enumerate(zip(self.scores(ctx, outputs), inputs, strict=True))
        ]

    def scores(self, ctx: RequestContext, outputs: Sequence[PoolingOutput]) -> list[float]:
        """The score of each pair."""
        if not outputs:
            return []
        if self.model_info.score_type == "cross-encoder":
            return [output.data.item() for output in outputs]
        count = len(ctx.state.queries)
        vectors = [output.data for output in outputs]
        queries, documents = vectors[:count], vectors[count:]
        return compare(queries, documents, self.model_info.similarity)

    def check_labels(self) -> None:
        """Raise `InvalidRequest` unless the model's classification of a pair is a single number."""
        labels = self.model_info.labels
        if self.model_info.score_type == "cross-encoder" and len(labels) != 1:
            raise InvalidRequest(
                f"This model has {len(labels)} labels ({shorten(', '.join(labels))}), and a score is one number: "
                "scoring needs a cross-encoder with one label. Ask for task 'classify' instead.",
                param="model",
            )
