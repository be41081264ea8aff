"""The trained tiny models: plain transformers computes from them what their `expected.json` says."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.testing import assert_close
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
)

from tiny_models import TINY_TRAINED, expected, tiny_trained


def outputs(name: str, auto_class: Any) -> list[tuple[dict[str, Any], Any]]:
    """Each expected item with what the model returns for its ids, computed in fp32, one at a time."""
    model = auto_class.from_pretrained(tiny_trained(name), dtype=torch.float32).eval()
    pairs = []
    for item in expected(name)["items"]:
        token_type_ids = item.get("token_type_ids", [0] * len(item["input_ids"]))
        with torch.inference_mode():
            output = model(torch.tensor([item["input_ids"]]), token_type_ids=torch.tensor([token_type_ids]))
        pairs.append((item, output))
    return pairs


def close(actual: Tensor, wanted: Any) -> None:
    assert_close(actual, torch.tensor(wanted), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", TINY_TRAINED)
def test_the_tokenizer_gives_the_expected_ids(name: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_trained(name))
    for item in expected(name)["items"]:
        texts = [item["query"], item["document"]] if "query" in item else [item["text"]]
        ids = tokenizer(*texts)["input_ids"]
        if "kind" in item:
            prefix = {"query": "[Q] ", "document": "[D] "}[item["kind"]]
            ids.insert(1, tokenizer.convert_tokens_to_ids(prefix))
        assert ids == item["input_ids"]
        assert tokenizer.unk_token_id not in ids
        if "tokens" in item:
            # "[Q] " is stored as the normalizer leaves it.
            assert [token.lower() for token in tokenizer.convert_ids_to_tokens(ids)] == [
                token.lower() for token in item["tokens"]
            ]


def test_the_reranker_gives_the_expected_logits_and_scores() -> None:
    for item, output in outputs("tiny-reranker", AutoModelForSequenceClassification):
        close(output.logits, [[item["logit"]]])
        close(output.logits.sigmoid(), [[item["score"]]])


def test_the_classifier_gives_the_expected_logits_and_probabilities() -> None:
    for item, output in outputs("tiny-injection-classifier", AutoModelForSequenceClassification):
        close(output.logits, [item["logits"]])
        close(output.logits.softmax(-1), [item["probabilities"]])


def test_the_tagger_gives_the_expected_labels_and_scores() -> None:
    labels = expected("tiny-ner")["labels"]
    for item, output in outputs("tiny-ner", AutoModelForTokenClassification):
        close(output.logits[0, :, :8], item["logits_first_8"])
        scores, best = output.logits[0].softmax(-1).max(-1)
        close(scores, item["scores"])
        assert [labels[index] for index in best] == item["labels"]


def test_the_late_interaction_model_gives_the_expected_vectors_and_maxsim() -> None:
    dense = load_file(tiny_trained("tiny-colbert") / "1_Dense" / "model.safetensors")["linear.weight"].float()
    vectors = {}
    for item, output in outputs("tiny-colbert", AutoModel):
        vectors[item["text"]] = torch.nn.functional.normalize(output.last_hidden_state[0] @ dense.T, dim=-1)
        close(vectors[item["text"]][:, :8], item["first_8"])

    maxsim = expected("tiny-colbert")["maxsim"]
    scores = [
        [(vectors[query] @ vectors[document].T).amax(-1).sum() for document in maxsim["documents"]]
        for query in maxsim["queries"]
    ]
    close(torch.tensor(scores), maxsim["scores"])
