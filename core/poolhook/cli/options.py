"""Options that several commands share."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from poolhook.config import EngineConfig, PoolerConfig
from poolhook.errors import ConfigError, shorten

if TYPE_CHECKING:
    from poolhook.offline import LLM

Model = Annotated[str, Parameter(help="A model directory, a hub id, or `demo`.")]
Truncate = Annotated[int | None, Parameter(help="Cut each input to this many tokens; -1 is the model's maximum.")]
Progress = Annotated[bool, Parameter(help="Show a progress bar.")]


@Parameter(name="*")
@dataclass(frozen=True)
class ModelOptions:
    """How a model is loaded.

    Args:
        pooler_config: overrides of what the model says about pooling.
        engine: resources and limits.
        hf_overrides: a JSON object that is put over the model's config.json, such as '{"is_matryoshka": true}'.
        chat_template: a file with a template for chats or pairs; the model's own if unset.
    """

    pooler_config: PoolerConfig = PoolerConfig()
    engine: Annotated[EngineConfig, Parameter(name="*")] = EngineConfig()
    hf_overrides: str | None = None
    chat_template: str | None = None

    @property
    def overrides(self) -> dict[str, Any]:
        """What `hf_overrides` says.

        Raises:
            ConfigError: it is no JSON object.
        """
        try:
            value = json.loads(self.hf_overrides or "{}")
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise ConfigError(f"--hf-overrides must be a JSON object, not {shorten(self.hf_overrides)}.")
        return value

    def load(self, model: str) -> LLM:
        """The model, for a command that runs it."""
        from poolhook.offline import LLM

        return LLM(
            model,
            pooler_config=self.pooler_config,
            hf_overrides=self.overrides,
            chat_template=self.chat_template,
            **self.engine.model_dump(),
        )


Options = Annotated[ModelOptions, Parameter(name="*")]
