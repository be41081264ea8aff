"""Route `reward`: what a reward model thinks of a prompt, as a whole, for each token or for each step."""

from __future__ import annotations

from poolhook_builtin.prompts import PromptsIOProcessor


class RewardIOProcessor(PromptsIOProcessor):
    """Prompts in (mostly chats), rewards out."""
