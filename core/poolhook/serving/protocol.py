"""What clients send. Unknown fields are refused: a misspelt option that does nothing costs somebody a day."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

from poolhook.params import PoolingParams, TokenizationParams, refuse_removed
from poolhook.tasks import POOLING_TASKS

_TEXT: dict[str, Any] = {"type": "string"}
_IDS: dict[str, Any] = {"type": "array", "items": {"type": "integer", "minimum": 0}}

# Read by the route, whose errors say which item is wrong; the schema is for the API's documentation.
Prompts = Annotated[
    Any,
    WithJsonSchema(
        {
            "anyOf": [_TEXT, _IDS, {"type": "array", "items": {"anyOf": [_TEXT, _IDS]}}],
            "description": "A text, a list of token ids, or a list of those.",
        }
    ),
]


def _empty_is_unset(value: Any) -> Any:
    return value or "float"


EncodingFormat = Annotated[Literal["float", "base64"], BeforeValidator(_empty_is_unset)]
"""How vectors are written; `base64` is little-endian float32."""


class CommonFields(BaseModel):
    """What every pooling request may say."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str | None = Field(default=None, description="The served model; may be left out.")
    truncate_prompt_tokens: int | None = Field(
        default=None, ge=-1, description="Cut each prompt to this many tokens; -1 is the model's maximum."
    )
    truncation_side: Literal["left", "right"] | None = Field(
        default=None, description="The end that is cut away; null is what the model's tokenizer says."
    )
    use_activation: bool | None = Field(
        default=None, description="Normalise embeddings, or make probabilities of logits; null follows the model."
    )
    priority: int = Field(default=0, description="Lower runs earlier.")
    user: str | None = Field(default=None, description="Accepted for clients that send it, and not used.")

    @model_validator(mode="before")
    @classmethod
    def _refuse_removed(cls, values: Any) -> Any:
        return refuse_removed(values)

    def tokenization(self) -> TokenizationParams:
        """The fields that are for the tokenizer."""
        return TokenizationParams(
            truncate_prompt_tokens=self.truncate_prompt_tokens, truncation_side=self.truncation_side
        )

    def pooling_params(self) -> PoolingParams:
        """The fields that are for the pooler."""
        return PoolingParams(use_activation=self.use_activation)


class PromptsFields(CommonFields):
    """What a request in plain prompts may say besides."""

    add_special_tokens: bool = True
    prompt_name: str | None = Field(default=None, description="One of the model's own prompts, such as `query`.")
    dimensions: int | None = Field(
        default=None, ge=1, description="Cut a Matryoshka model's embeddings to this length."
    )
    encoding_format: EncodingFormat = "float"

    def tokenization(self) -> TokenizationParams:
        """The fields that are for the tokenizer."""
        return super().tokenization().model_copy(update={"add_special_tokens": self.add_special_tokens})

    def pooling_params(self) -> PoolingParams:
        """The fields that are for the pooler."""
        return PoolingParams(dimensions=self.dimensions, use_activation=self.use_activation)


class EmbeddingRequest(PromptsFields):
    """The body of `/v1/embeddings`, as OpenAI has it, with poolhook's common fields."""

    input: Prompts


class ClassifyRequest(CommonFields):
    """The body of `/classify`."""

    input: Prompts
    add_special_tokens: bool = True

    def tokenization(self) -> TokenizationParams:
        """The fields that are for the tokenizer."""
        return super().tokenization().model_copy(update={"add_special_tokens": self.add_special_tokens})


class ScoreRequest(CommonFields):
    """The body of `/score`; `text_1` and `text_2` are other names of its two lists."""

    queries: Any = Field(
        validation_alias=AliasChoices("queries", "text_1"), description="One text, or as many as documents."
    )
    documents: Any = Field(
        validation_alias=AliasChoices("documents", "text_2"), description="One text or a list of texts."
    )


class RerankRequest(CommonFields):
    """The body of `/rerank`."""

    query: Any = Field(description="A text.")
    documents: Any = Field(description="A list of texts.")
    top_n: Any = Field(default=None, description="How many of the best to return; null for all.")
    return_documents: bool = Field(default=True, description="Send the documents' texts back.")


class PoolingBody(PromptsFields):
    """The body of `/pooling`: prompts as `input`, or an IO processor's `data`."""

    input: Prompts = None
    data: Any = Field(default=None, description="What an IO processor understands; goes to task `plugin`.")
    plugin: str | None = Field(default=None, description="Which IO processor, where several are served.")
    task: str | None = Field(
        default=None, description=f"One of {', '.join(POOLING_TASKS)}; null is the one that is served."
    )

    @model_validator(mode="after")
    def _either_input_or_data(self) -> PoolingBody:
        if ("input" in self.model_fields_set) == ("data" in self.model_fields_set):
            raise ValueError("give either `input` (prompts) or `data` (for an IO processor)")
        if self.plugin is not None and not self.is_data:
            raise ValueError("`plugin` goes with `data`; `input` is for no IO processor")
        if self.prompt_name is not None and self.is_data:
            raise ValueError("`prompt_name` goes with `input`; an IO processor's data has none")
        return self

    @property
    def is_data(self) -> bool:
        """Whether it is for an IO processor."""
        return "data" in self.model_fields_set
