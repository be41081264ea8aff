"""Task `plugin` where the model's own pooler computes it: prompts go in as they are, raw pooled data comes out."""

from __future__ import annotations

from poolhook_builtin.prompts import PromptsIOProcessor


class PassthroughIOProcessor(PromptsIOProcessor):
    """Prompts in, pooled data out."""
