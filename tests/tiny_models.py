"""Trained tiny models: a cross-encoder, a classifier, a tagger and a late-interaction model, with what they answer.

`tests/data/models` holds copies with a small vocabulary. POOLHOOK_TINY_MODELS may name a directory with the full ones.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

TINY_TRAINED = ("tiny-reranker", "tiny-injection-classifier", "tiny-ner", "tiny-colbert")


def tiny_trained(name: str) -> Path:
    """The directory of one of `TINY_TRAINED`."""
    root = os.environ.get("POOLHOOK_TINY_MODELS")
    return (Path(root) if root else Path(__file__).parent / "data" / "models") / name


def expected(name: str) -> dict[str, Any]:
    """What plain transformers computes from the model's sanity inputs: fp16 weights in fp32, one input at a time."""
    content: dict[str, Any] = json.loads((tiny_trained(name) / "expected.json").read_text(encoding="utf-8"))
    return content
