"""The trained classifier: its probabilities and labels are those of `expected.json` and of plain transformers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from parity.faces import CommandLine, Face, Offline
from poolhook import LLM
from texts import varied_texts
from tiny_models import expected, tiny_trained

ITEMS = expected("tiny-injection-classifier")["items"]
TEXTS = [item["text"] for item in ITEMS]


@pytest.fixture(scope="module")
def model() -> Path:
    return tiny_trained("tiny-injection-classifier")


def test_texts_have_the_expected_labels_and_probabilities(
    arrival: tuple[Face, Callable[..., list[tuple[str, list[float]]]]],
) -> None:
    face, way = arrival
    labels, probabilities = zip(*way(face.classify, TEXTS), strict=True)
    assert list(labels) == [item["label"] for item in ITEMS]
    np.testing.assert_allclose(probabilities, [item["probabilities"] for item in ITEMS], rtol=0, atol=1e-4)


def test_without_activation_they_have_the_expected_logits(raw: Face) -> None:
    labels, logits = zip(*raw.classify(TEXTS), strict=True)
    assert list(labels) == [item["label"] for item in ITEMS]
    np.testing.assert_allclose(logits, [item["logits"] for item in ITEMS], rtol=0, atol=1e-4)


def test_encoding_gives_the_same_probabilities(face: Face) -> None:
    wanted = [item["probabilities"] for item in ITEMS]
    np.testing.assert_allclose(face.encode(TEXTS), wanted, rtol=0, atol=1e-4)


def test_the_model_saw_the_expected_ids(llm: LLM) -> None:
    outputs = llm.classify(TEXTS, use_tqdm=False)
    assert [list(output.prompt_token_ids) for output in outputs] == [item["input_ids"] for item in ITEMS]
    assert {output.outputs.num_classes for output in outputs} == {2}


def test_varied_texts_have_the_logits_that_transformers_gives(offline: Offline, model: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(model)
    reference = AutoModelForSequenceClassification.from_pretrained(model, dtype=torch.float32).eval()
    texts = varied_texts(60)
    with torch.inference_mode():
        wanted = [
            reference(**tokenizer(text, truncation=True, max_length=512, return_tensors="pt")).logits[0].numpy()
            for text in texts
        ]
    _, logits = zip(*offline.without_activation().classify(texts), strict=True)
    np.testing.assert_allclose(logits, wanted, rtol=0, atol=1e-5)


def test_info_tells_the_truth(command_line: CommandLine, config: dict[str, Any]) -> None:
    facts = command_line.info()
    assert {name: facts[name] for name in ("architecture", "tasks", "labels", "activation", "batches", "dtype")} == {
        "architecture": "BertForSequenceClassification",
        "tasks": ["classify"],
        "labels": ["SAFE", "INJECTION"],
        "activation": "softmax",
        "batches": "packed",
        "dtype": "float32",
    }
    assert (facts["pooling"], facts["max_length"], facts["vocab_size"]) == (["CLS"], 512, config["vocab_size"])
