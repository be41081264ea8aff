"""Two real embedding models: poolhook reproduces sentence-transformers on a hundred varied texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from parity.faces import CommandLine, Offline, Served
from parity.ways import backwards, from_many_callers, together
from poolhook.models import resolve_model
from real_models import real_model
from texts import varied_texts

TEXTS = varied_texts(100)
FACTS = {
    "demo": {"max_length": 256, "normalize": True},
    "paraphrase-MiniLM-L3-v2": {"max_length": 128, "normalize": False},
}


@pytest.fixture(scope="module", params=FACTS)
def name(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@pytest.fixture(scope="module")
def model(name: str) -> Path:
    return resolve_model("demo") if name == "demo" else real_model(name)


@pytest.fixture(scope="module")
def wanted(model: Path) -> np.ndarray:
    """What sentence-transformers computes."""
    reference = SentenceTransformer(str(model), device="cpu", model_kwargs={"dtype": torch.float32})
    return reference.encode(TEXTS, convert_to_numpy=True)


def test_offline_it_reproduces_sentence_transformers(offline: Offline, wanted: np.ndarray) -> None:
    for way in (together, backwards):
        np.testing.assert_allclose(way(offline.encode, TEXTS), wanted, rtol=0, atol=1e-5)


def test_served_to_many_callers_it_reproduces_sentence_transformers(served: Served, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(from_many_callers(served.embed, TEXTS), wanted, rtol=0, atol=1e-5)


def test_info_tells_the_truth(command_line: CommandLine, name: str) -> None:
    facts = command_line.info()
    wanted = {"architecture": "BertModel", "pooling": ["MEAN"], "embedding_size": 384, "vocab_size": 30522}
    wanted |= {"batches": "packed", "dtype": "float32", **FACTS[name]}
    assert {fact: facts[fact] for fact in wanted} == wanted
    assert "embed" in facts["tasks"]
