"""Task `classify`: the probabilities of a prompt's labels."""

from __future__ import annotations

from collections.abc import Sequence

from poolhook.plugins import Prompt, RequestContext
from poolhook_builtin.instructions import with_prompt
from poolhook_builtin.prompts import PromptsInput, PromptsIOProcessor


class ClassifyIOProcessor(PromptsIOProcessor):
    """Prompts in, probabilities out. A prompt may be a pair of texts."""

    def pre_process(self, ctx: RequestContext, request: PromptsInput) -> Sequence[Prompt]:
        """Put the model's default prompt before each text, if it has one."""
        return with_prompt(request.prompts, None, self.model_info)
