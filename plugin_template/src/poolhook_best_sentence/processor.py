"""`BestSentence`: data in, one prompt for the question and one for each sentence, the best sentence out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from poolhook.errors import InvalidRequest
from poolhook.outputs import PoolingOutput
from poolhook.plugins import IOProcessor, ModelInfo, Prompt, RequestContext, Settings, TextPrompt

_BORDER = re.compile(r"(?<=[.!?])\s+|\n+")


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("the text is empty")
    return text.strip()


Text = Annotated[str, AfterValidator(_not_blank)]


class Inquiry(BaseModel):
    """What a caller sends. A misspelt field is refused rather than ignored."""

    model_config = ConfigDict(extra="forbid", strict=True)

    question: Text
    document: Text


class Answer(BaseModel):
    """What a caller gets back."""

    sentence: str
    """The sentence that is most like the question, as it stands in the document."""

    index: int
    """Its place among the document's sentences, from 0."""

    score: float
    """The cosine of its embedding and the question's, from -1 to 1."""


class BestSentenceSettings(Settings):
    """What an operator may decide."""

    max_sentences: int = Field(default=256, ge=1)
    """Documents with more sentences are refused: each sentence is a sequence for the model to run."""


class BestSentence(IOProcessor[Inquiry, Answer]):
    """Finds the sentence of a document that is most like a question.

    One object serves many requests at once. So `self` holds what `startup` put there and never changes, and what
    belongs to one request lies on `ctx.state`.
    """

    Settings = BestSentenceSettings

    def startup(self, settings: BestSentenceSettings, model_info: ModelInfo) -> None:
        """Remember the limit, and what this model wants before a question and before a document."""
        self._max_sentences = settings.max_sentences
        prompts = model_info.prompts
        self._before_question = prompts.get("query", "")
        self._before_sentence = prompts.get("document", prompts.get("passage", ""))

    def parse_data(self, ctx: RequestContext, data: Any) -> Inquiry:
        """Validate; a `pydantic.ValidationError` is understood as the caller's mistake."""
        return Inquiry.model_validate(data)

    def pre_process(self, ctx: RequestContext, request: Inquiry) -> list[Prompt]:
        """The question's prompt, then one for each sentence. The sentences wait on `ctx.state` for the second half."""
        sentences = split_sentences(request.document)
        if len(sentences) > self._max_sentences:
            raise InvalidRequest(
                f"document has {len(sentences)} sentences; this server takes at most {self._max_sentences}. "
                "Send a shorter one, or several.",
                param="document",
            )
        ctx.state = sentences
        return [
            TextPrompt(self._before_question + request.question),
            *(TextPrompt(self._before_sentence + sentence) for sentence in sentences),
        ]

    def post_process(self, ctx: RequestContext, outputs: Sequence[PoolingOutput]) -> Answer:
        """One output for each prompt, in their order: compare the first with the rest."""
        import torch  # here, so that listing and checking plugins stays quick

        question, *sentences = (output.data for output in outputs)
        scores: list[float] = torch.cosine_similarity(question, torch.stack(sentences), dim=-1).tolist()
        index = scores.index(max(scores))
        return Answer(sentence=ctx.state[index], index=index, score=scores[index])


def split_sentences(document: str) -> list[str]:
    """The sentences of `document`, in order: cut after `.`, `!`, `?` and at line breaks."""
    return [sentence for part in _BORDER.split(document) if (sentence := part.strip())]
