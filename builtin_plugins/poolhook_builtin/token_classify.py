"""Task `token_classify`: the probabilities of the labels of each token of a prompt."""

from __future__ import annotations

from poolhook_builtin.prompts import PromptsIOProcessor


class TokenClassifyIOProcessor(PromptsIOProcessor):
    """Prompts in, probabilities for each token out."""
