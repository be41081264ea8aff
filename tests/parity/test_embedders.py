"""Real embedding models: poolhook reproduces sentence-transformers on a hundred varied texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from parity.faces import CommandLine, Offline
from parity.ways import backwards, together
from poolhook.models import resolve_model
from real_models import real_model
from texts import varied_texts

TEXTS = varied_texts(100)

_MINILM = {"architecture": "BertModel", "embedding_size": 384, "vocab_size": 30522}
_MPNET = {"architecture": "MPNetForMaskedLM", "embedding_size": 768, "vocab_size": 30527}
FACTS: dict[str, dict[str, Any]] = {
    "demo": {**_MINILM, "max_length": 256, "normalize": True},
    "paraphrase-MiniLM-L3-v2": {**_MINILM, "max_length": 128, "normalize": False},
    "all-mpnet-base-v2": {**_MPNET, "max_length": 384, "normalize": True},
}
LARGE = ("all-mpnet-base-v2",)


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.large) if name in LARGE else name for name in FACTS],
)
def name(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture(scope="module")
def model(name: str) -> Path:
    return resolve_model("demo") if name == "demo" else real_model(name)


def test_it_reproduces_sentence_transformers(offline: Offline, model: Path) -> None:
    reference = SentenceTransformer(str(model), device="cpu", model_kwargs={"dtype": torch.float32})
    wanted = reference.encode(TEXTS)
    for way in (together, backwards):
        np.testing.assert_allclose(way(offline.encode, TEXTS), wanted, rtol=0, atol=1e-5)


def test_info_tells_the_truth(command_line: CommandLine, name: str) -> None:
    facts = command_line.info()
    wanted = {"pooling": ["MEAN"], "batches": "packed", "dtype": "float32", **FACTS[name]}
    assert {fact: facts[fact] for fact in wanted} == wanted
    assert "embed" in facts["tasks"]
