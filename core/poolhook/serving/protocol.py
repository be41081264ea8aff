"""What clients send. Unknown fields are refused: a misspelt option that does nothing costs somebody a day."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from poolhook.params import PoolingParams, TokenizationParams
from poolhook.tasks import PoolingTask

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

    model_config = ConfigDict(extra="forbid")

    model: str | None = Field(default=None, description="The served model; may be left out.")
    truncate_prompt_tokens: int | None = Field(
        default=None, ge=-1, description="Cut each prompt to this many tokens; -1 is the model's maximum."
    )
    truncation_side: Literal["left", "right"] | None = Field(
        default=None, description="The end that is cut away; null is what the model's tokenizer says."
    )
    add_special_tokens: bool = True
    prompt_name: str | None = Field(default=None, description="One of the model's own prompts, such as `query`.")
    use_activation: bool | None = Field(default=None, description="L2-normalise embeddings; null follows the model.")
    dimensions: int | None = Field(
        default=None, ge=1, description="Cut a Matryoshka model's embeddings to this length."
    )
    priority: int = Field(default=0, description="Lower runs earlier.")
    encoding_format: EncodingFormat = "float"

    def tokenization(self) -> TokenizationParams:
        """The fields that are for the tokenizer."""
        return TokenizationParams(
            truncate_prompt_tokens=self.truncate_prompt_tokens,
            truncation_side=self.truncation_side,
            add_special_tokens=self.add_special_tokens,
        )

    def pooling_params(self) -> PoolingParams:
        """The fields that are for the pooler."""
        return PoolingParams(dimensions=self.dimensions, use_activation=self.use_activation)


class EmbeddingRequest(CommonFields):
    """The body of `/v1/embeddings`, as OpenAI has it, with poolhook's common fields."""

    input: Prompts
    user: str | None = Field(default=None, description="Accepted for OpenAI's clients, and not used.")


class PoolingBody(CommonFields):
    """The body of `/pooling`: prompts as `input`, or an IO processor's `data`."""

    input: Prompts = None
    data: Any = Field(default=None, description="What an IO processor understands; goes to task `plugin`.")
    plugin: str | None = Field(default=None, description="Which IO processor, where several are served.")
    task: PoolingTask | None = None

    @model_validator(mode="after")
    def _either_input_or_data(self) -> PoolingBody:
        if ("input" in self.model_fields_set) == ("data" in self.model_fields_set):
            raise ValueError("give either `input` (prompts) or `data` (for an IO processor)")
        if self.plugin is not None and not self.is_data:
            raise ValueError("`plugin` goes with `data`; `input` is for no IO processor")
        return self

    @property
    def is_data(self) -> bool:
        """Whether it is for an IO processor."""
        return "data" in self.model_fields_set
