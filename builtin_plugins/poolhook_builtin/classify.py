"""Task `classify`: the probabilities of a prompt's labels."""

from __future__ import annotations

from poolhook_builtin.prompts import PromptsIOProcessor


class ClassifyIOProcessor(PromptsIOProcessor):
    """Prompts in, probabilities out. A prompt may be a pair of texts."""
