"""Task `embed`: a vector for each prompt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from poolhook.plugins import Prompt, RequestContext
from poolhook_builtin.instructions import with_prompt
from poolhook_builtin.prompts import PromptsInput, PromptsIOProcessor, parse_prompts


class EmbedIOProcessor(PromptsIOProcessor):
    """Prompts in, embeddings out."""

    def parse_data(self, ctx: RequestContext, data: Any) -> PromptsInput:
        """Read `{"input": prompts, "prompt_name": name}`."""
        return parse_prompts(ctx, data)

    def pre_process(self, ctx: RequestContext, request: PromptsInput) -> Sequence[Prompt]:
        """Put the model's own prompt before each text."""
        return with_prompt(request.prompts, request.prompt_name, self.model_info)
