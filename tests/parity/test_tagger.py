"""The trained tagger: the labels, scores and logits of each token are those of `expected.json` and of transformers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer

from parity.faces import CommandLine, Face, Offline
from poolhook import LLM
from texts import varied_texts
from tiny_models import expected, tiny_trained

LABELS = expected("tiny-ner")["labels"]
ITEMS = expected("tiny-ner")["items"]
TEXTS = [item["text"] for item in ITEMS]


@pytest.fixture(scope="module")
def model() -> Path:
    return tiny_trained("tiny-ner")


def test_tokens_have_the_expected_labels_and_scores(arrival: tuple[Face, Callable[..., list[np.ndarray]]]) -> None:
    face, way = arrival
    for item, probabilities in zip(ITEMS, way(face.encode, TEXTS), strict=True):
        assert probabilities.shape == (len(item["input_ids"]), len(LABELS))
        assert [LABELS[best] for best in probabilities.argmax(axis=1)] == item["labels"]
        np.testing.assert_allclose(probabilities.max(axis=1), item["scores"], rtol=0, atol=1e-4)
        np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=0, atol=1e-5)


def test_without_activation_they_have_the_expected_logits(raw: Face) -> None:
    for item, logits in zip(ITEMS, raw.encode(TEXTS), strict=True):
        np.testing.assert_allclose(logits[:, :8], item["logits_first_8"], rtol=0, atol=1e-4)


def test_the_model_saw_the_expected_ids(llm: LLM) -> None:
    outputs = llm.encode(TEXTS, pooling_task="token_classify", use_tqdm=False)
    assert [list(output.prompt_token_ids) for output in outputs] == [item["input_ids"] for item in ITEMS]


def test_varied_texts_have_the_logits_that_transformers_gives(offline: Offline, model: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(model)
    reference = AutoModelForTokenClassification.from_pretrained(model, dtype=torch.float32).eval()
    texts = varied_texts(60)
    for text, logits in zip(texts, offline.without_activation().encode(texts), strict=True):
        with torch.inference_mode():
            wanted = reference(**tokenizer(text, truncation=True, max_length=512, return_tensors="pt")).logits[0]
        np.testing.assert_allclose(logits, wanted, rtol=0, atol=1e-5)


def test_info_tells_the_truth(command_line: CommandLine, config: dict[str, Any]) -> None:
    facts = command_line.info()
    assert {name: facts[name] for name in ("architecture", "tasks", "activation", "batches", "dtype")} == {
        "architecture": "BertForTokenClassification",
        "tasks": ["token_classify"],
        "activation": "softmax",
        "batches": "packed",
        "dtype": "float32",
    }
    assert facts["labels"] == LABELS
    assert (facts["max_length"], facts["vocab_size"]) == (512, config["vocab_size"])
