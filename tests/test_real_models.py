"""Real models: each quick one is what it claims to be, and a model is made once, whole, or the test is skipped."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer, SparseEncoder
from torch.testing import assert_close
from transformers import AutoModelForMaskedLM, AutoModelForTokenClassification, AutoTokenizer

from real_models import real_model
from real_models_builders import BUILDERS, Unavailable

TEXTS = ["A man is playing a guitar.", "Someone plays guitar.", "The stock market fell on Monday."]


def test_the_embedding_model_finds_the_paraphrase() -> None:
    model = SentenceTransformer(str(real_model("paraphrase-MiniLM-L3-v2")), device="cpu")
    similarities = model.similarity(*[model.encode(TEXTS, convert_to_tensor=True)] * 2)
    assert similarities[0, 1] > 0.6
    assert similarities[:2, 2].max() < 0.2
    assert model.max_seq_length == 128


def test_the_sparse_model_gives_the_largest_log_weight_of_each_token() -> None:
    directory = real_model("splade-tiny")
    model = AutoModelForMaskedLM.from_pretrained(directory).eval()
    tokenizer = AutoTokenizer.from_pretrained(directory)
    vectors = SparseEncoder(str(directory), device="cpu").encode(TEXTS).to_dense()
    for text, vector in zip(TEXTS, vectors, strict=True):
        with torch.inference_mode():
            logits = model(**tokenizer(text, return_tensors="pt")).logits[0]
        assert_close(vector, logits.relu().log1p().amax(0), rtol=0, atol=1e-5)
    assert tokenizer.convert_ids_to_tokens(vectors[0].argmax().item()) == "guitar"


def test_the_tagger_says_what_to_replace() -> None:
    directory = real_model("distilbert-gec-tagger")
    model = AutoModelForTokenClassification.from_pretrained(directory).eval()
    inputs = AutoTokenizer.from_pretrained(directory)("Their is a cat .", return_tensors="pt")
    with torch.inference_mode():
        labels = model(**inputs).logits[0].argmax(-1)
    assert [model.config.id2label[label] for label in labels.tolist()] == ["$KEEP", "$REPLACE_There", *["$KEEP"] * 5]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("POOLHOOK_MODEL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_callers_at_once_get_one_model_built_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = []

    def build(model: Path, downloads: Path) -> None:
        built.append(model)
        (downloads / "wheel").write_text("")
        (model / "config.json").write_text("{}")

    monkeypatch.setitem(BUILDERS, "made", build)
    with ThreadPoolExecutor(4) as pool:
        directories = set(pool.map(real_model, ["made"] * 8))
    assert directories == {cache / "made"}
    assert len(built) == 1
    assert [file.name for file in (cache / "made").iterdir()] == ["config.json"]
    assert [entry.name for entry in cache.iterdir() if entry.is_dir()] == ["made"]


def test_a_build_that_fails_leaves_nothing_behind(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(model: Path, downloads: Path) -> None:
        (model / "config.json").write_text("{}")
        raise ValueError("half done")

    monkeypatch.setitem(BUILDERS, "broken", build)
    with pytest.raises(ValueError, match="half done"):
        real_model("broken")
    assert not [entry for entry in cache.iterdir() if entry.is_dir()]


def test_a_model_whose_package_cannot_be_had_skips_the_test_and_is_not_tried_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []

    def build(model: Path, downloads: Path) -> None:
        tries.append(model)
        raise Unavailable("cannot download far-away: no route")

    monkeypatch.setitem(BUILDERS, "absent", build)
    for _ in range(2):
        with pytest.raises(pytest.skip.Exception, match="absent: cannot download far-away: no route"):
            real_model("absent")
    assert len(tries) == 1
