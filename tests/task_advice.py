"""What those are told who ask for a task that is not served: the first sentence, by task."""

from __future__ import annotations

ADVICE = {
    "score": (
        "Task 'score' was removed; ask for scores with LLM.score or /score, or for task 'classify' if you want a "
        "cross-encoder's raw answer."
    ),
    "encode": (
        "Task 'encode' was removed; use task 'token_embed' for a vector for each token, or 'token_classify' for labels."
    ),
    "normalize": (
        "Task 'normalize' was removed; it is no task: set use_activation to have embeddings normalised or not."
    ),
    "nonsense": "Task 'nonsense' is not supported.",
}

EVERY_TASK = "Supported tasks: embed, classify, token_embed, token_classify, plugin."
