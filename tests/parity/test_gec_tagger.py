"""A real tagger, DistilBERT with 213 labels: every logit agrees with plain transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer

from parity.faces import CommandLine, Offline
from parity.ways import backwards, together
from real_models import real_model
from texts import varied_texts

MENDED = "Their is a cat ."
TEXTS = [MENDED, *varied_texts(37)[17:], "word " * 520]
"""Few that are long: the model has 66 million parameters."""


@pytest.fixture(scope="module")
def model() -> Path:
    return real_model("distilbert-gec-tagger")


@pytest.fixture(scope="module")
def wanted(model: Path) -> list[np.ndarray]:
    """The logits that transformers gives each text alone."""
    tokenizer = AutoTokenizer.from_pretrained(model)
    reference = AutoModelForTokenClassification.from_pretrained(model, dtype=torch.float32).eval()
    with torch.inference_mode():
        return [
            reference(**tokenizer(text, truncation=True, max_length=512, return_tensors="pt")).logits[0].numpy()
            for text in TEXTS
        ]


def test_every_logit_agrees_with_transformers(offline: Offline, wanted: list[np.ndarray]) -> None:
    for way in (together, backwards):
        answers = way(offline.without_activation().encode, TEXTS)
        for logits, reference in zip(answers, wanted, strict=True):
            # Logits of this model reach 20.
            np.testing.assert_allclose(logits, reference, rtol=1e-5, atol=1e-4)


def test_it_says_what_to_replace(command_line: CommandLine, config: dict[str, Any]) -> None:
    (probabilities,) = command_line.encode([MENDED])
    best = [config["id2label"][str(place)] for place in probabilities.argmax(axis=1)]
    assert best == ["$KEEP", "$REPLACE_There", *["$KEEP"] * 5]


def test_info_tells_the_truth(command_line: CommandLine, config: dict[str, Any]) -> None:
    facts = command_line.info()
    wanted = {"architecture": "DistilBertForTokenClassification", "tasks": ["token_classify"], "activation": "softmax"}
    wanted |= {"max_length": 512, "vocab_size": 28996, "batches": "packed", "dtype": "float32"}
    assert {fact: facts[fact] for fact in wanted} == wanted
    assert facts["labels"] == [config["id2label"][str(place)] for place in range(213)]
