"""Task `plugin` where the model's own pooler computes it: prompts go in as they are, raw pooled data comes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from poolhook.outputs import PoolingOutput, PoolingRequestOutput
from poolhook.plugins import IOProcessor, Prompt, RequestContext
from poolhook_builtin.prompts import PromptsInput, one_for_each, parse_prompts


class PassthroughIOProcessor(IOProcessor[PromptsInput, list[PoolingRequestOutput[PoolingOutput]]]):
    """Prompts in, pooled data out."""

    def parse_data(self, ctx: RequestContext, data: Any) -> PromptsInput:
        """Read `{"input": prompts}`."""
        return parse_prompts(ctx, data)

    def pre_process(self, ctx: RequestContext, request: PromptsInput) -> Sequence[Prompt]:
        """The prompts as they came."""
        return request.prompts

    def post_process(
        self, ctx: RequestContext, outputs: Sequence[PoolingOutput]
    ) -> list[PoolingRequestOutput[PoolingOutput]]:
        """The pooled data of each prompt."""
        return one_for_each(ctx, outputs)
