"""Task `embed`: a vector for each prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from poolhook.outputs import PoolingOutput, PoolingRequestOutput
from poolhook.plugins import IOProcessor, ModelInfo, Prompt, RequestContext, Settings
from poolhook_builtin.prompts import PromptsInput, one_for_each, parse_prompts, put_model_prompt


class EmbedIOProcessor(IOProcessor[PromptsInput, list[PoolingRequestOutput[PoolingOutput]]]):
    """Prompts in, embeddings out."""

    def startup(self, settings: Settings, model_info: ModelInfo) -> None:
        """Remember the model's prompts."""
        self._model_info = model_info

    def parse_data(self, ctx: RequestContext, data: Any) -> PromptsInput:
        """Read `{"input": prompts, "prompt_name": name}`."""
        return parse_prompts(ctx, data)

    def pre_process(self, ctx: RequestContext, request: PromptsInput) -> Sequence[Prompt]:
        """Put the model's own prompt before each text."""
        return put_model_prompt(request, self._model_info)

    def post_process(
        self, ctx: RequestContext, outputs: Sequence[PoolingOutput]
    ) -> list[PoolingRequestOutput[PoolingOutput]]:
        """One embedding for each prompt."""
        return one_for_each(ctx, outputs)
