"""A real SPLADE model: its weights of the vocabulary's tokens are sentence-transformers' and the paper's formula's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SparseEncoder
from transformers import AutoModelForMaskedLM, AutoTokenizer

from parity.faces import CommandLine, Offline, Served
from parity.ways import backwards, from_many_callers, together
from real_models import real_model
from texts import varied_texts

TEXTS = varied_texts(100)


@pytest.fixture(scope="module")
def model() -> Path:
    return real_model("splade-tiny")


def test_it_agrees_with_sentence_transformers(offline: Offline, model: Path) -> None:
    reference = SparseEncoder(str(model), device="cpu", model_kwargs={"dtype": torch.float32})
    wanted = reference.encode(TEXTS).to_dense().numpy()
    for way in (together, backwards):
        np.testing.assert_allclose(way(offline.encode, TEXTS), wanted, rtol=0, atol=1e-5)


def test_a_weight_is_the_largest_log_of_one_plus_a_tokens_positive_logit(
    offline: Offline, served: Served, model: Path
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(model)
    reference = AutoModelForMaskedLM.from_pretrained(model, dtype=torch.float32).eval()
    texts = TEXTS[:40]
    wanted = []
    for text in texts:
        with torch.inference_mode():
            logits = reference(**tokenizer(text, truncation=True, max_length=512, return_tensors="pt")).logits[0]
        wanted.append(torch.log1p(torch.relu(logits)).amax(dim=0).numpy())
    np.testing.assert_allclose(offline.encode(texts), wanted, rtol=0, atol=1e-5)
    np.testing.assert_allclose(from_many_callers(served.embed, texts), wanted, rtol=0, atol=1e-5)


def test_documents_rank_as_sentence_transformers_compares_them(offline: Offline, model: Path) -> None:
    reference = SparseEncoder(str(model), device="cpu", model_kwargs={"dtype": torch.float32})
    query = "how do I bake bread"
    documents = ["Bread.", "Mix flour and yeast, let the dough rise, then bake the bread in a hot oven.", "The moon."]
    wanted = reference.similarity(reference.encode([query]), reference.encode(documents))[0].tolist()
    assert offline.score(query, documents) == pytest.approx(wanted, abs=1e-3)


def test_info_tells_the_truth(command_line: CommandLine) -> None:
    facts = command_line.info()
    wanted = {"architecture": "BertForMaskedLM", "tasks": ["embed"], "pooling": ["SPLADE max"], "max_length": 512}
    wanted |= {"embedding_size": 30522, "vocab_size": 30522, "batches": "packed", "dtype": "float32"}
    assert {fact: facts[fact] for fact in wanted} == wanted
