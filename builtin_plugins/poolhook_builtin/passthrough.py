"""Task `plugin` where the model's own pooler computes it: prompts go in as they are, raw pooled data comes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from poolhook.errors import InvalidRequest
from poolhook.outputs import PoolingOutput, PoolingRequestOutput
from poolhook.plugins import IOProcessor, Prompt, RequestContext
from poolhook_builtin.prompts import PromptsInput, one_for_each, parse_prompts


class PassthroughIOProcessor(IOProcessor[PromptsInput, list[PoolingRequestOutput[PoolingOutput]]]):
    """Prompts in, pooled data out."""

    def parse_data(self, ctx: RequestContext, data: Any) -> PromptsInput:
        """Read `{"input": prompts}`."""
        parsed = parse_prompts(ctx, data)
        if parsed.prompt_name is not None:
            raise InvalidRequest(
                "prompt_name is not for task 'plugin', which passes prompts through as they are. "
                "Put the model's prompt before each text yourself.",
                param="prompt_name",
            )
        return parsed

    def pre_process(self, ctx: RequestContext, request: PromptsInput) -> Sequence[Prompt]:
        """The prompts as they came."""
        return request.prompts

    def post_process(
        self, ctx: RequestContext, outputs: Sequence[PoolingOutput]
    ) -> list[PoolingRequestOutput[PoolingOutput]]:
        """The pooled data of each prompt."""
        return one_for_each(ctx, outputs)
