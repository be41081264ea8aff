"""Specifies that whatever stands in a model's files, reading it gives a spec or a `ModelError` that names the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from model_directories import old_layout, write_modules
from poolhook.errors import ModelError
from poolhook.models import ModelSpec, read_spec
from poolhook.models.late_interaction import STANFORD_ARCHITECTURE
from tiny import edit_json, save_tiny_config

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["fixed", "query", "torch.nn.Tanh", "Dense", "../x", "/x", "mean", "0", "w1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(
    [
        "sentence_transformers.models.Transformer",
        "sentence_transformers.models.Pooling",
        "sentence_transformers.models.Dense",
        "sentence_transformers.models.Normalize",
        "sentence_transformers.sparse_encoder.models.SpladePooling",
        "sentence_transformers.multi_vector_encoder.modules.MultiVectorMask",
        "sentence_transformers.cross_encoder.modules.LogitScore",
        "pylate.models.Dense.Dense",
    ]
)
ENTRIES = st.fixed_dictionaries({}, optional={"type": TYPES | VALUES, "path": st.just("") | VALUES, "idx": VALUES})

KEYS: dict[str, list[str]] = {
    "pooling": ["pooling_mode", "pooling_mode_cls_token", "include_prompt", "word_embedding_dimension"],
    "dense": ["out_features", "in_features", "bias", "activation_function", "use_residual", "module_input_name"],
    "splade": ["pooling_strategy", "activation_function", "chunk_size"],
    "mask": ["skiplist_words", "skiplist_tasks", "keep_only_token_ids"],
    "score": ["true_token_id", "false_token_id"],
    "overall": ["prompts", "default_prompt_name", "model_type", "activation_fn", "similarity_fn_name"],
    "pylate": [
        "prompts",
        "query_prefix",
        "document_prefix",
        "query_length",
        "document_length",
        "skiplist_words",
        "do_query_expansion",
        "attend_to_expansion_tokens",
        "attend_to_mask_tokens",
    ],
    "transformer": [
        "max_seq_length",
        "do_lower_case",
        "query_length",
        "document_length",
        "query_expansion",
        "modality_config",
    ],
    "stanford": [
        "dim",
        "query_maxlen",
        "doc_maxlen",
        "query_token_id",
        "doc_token_id",
        "mask_punctuation",
        "attend_to_mask_tokens",
    ],
    "tokenizer": ["model_max_length", "truncation_side"],
    "config": [
        "architectures",
        "problem_type",
        "id2label",
        "num_labels",
        "matryoshka_dimensions",
        "is_matryoshka",
        "io_processor_plugin",
        "classifier_from_token",
        "method",
        "is_original_qwen3_reranker",
        "sentence_transformers",
        "sbert_ce_default_activation_function",
        "hidden_size",
        "vocab_size",
        "max_position_embeddings",
        "pad_token_id",
        "dtype",
        "torch_dtype",
        "sliding_window",
        "use_sliding_window",
        "auto_map",
        "model_type",
        "is_encoder_decoder",
        "attention_type",
        "classifier_pooling",
        "is_causal",
        "text_config",
    ],
}


def changes(name: str) -> st.SearchStrategy[dict[str, Any]]:
    """One to three keys of a file with values of any kind."""
    return st.dictionaries(st.sampled_from(KEYS[name]), VALUES, min_size=1, max_size=3)


def directory(path: Path, kind: str) -> tuple[Path, Path]:
    """A whole directory, and the file in it that the kind is about."""
    lasts = {"dense": "Dense", "splade": "SpladePooling", "mask": "MultiVectorMask", "score": "LogitScore"}
    old_layout(path, "mean")
    if kind in lasts:
        pooling = {"1_Pooling": "Pooling"} if kind == "dense" else {}
        write_modules(path, {"": "Transformer", **pooling, "2_Last": lasts[kind]})
        file = path / "2_Last" / "config.json"
        edit_json(file, out_features=8)
        return path, file
    if kind == "stanford":
        (path / "modules.json").unlink()
        edit_json(path / "config.json", architectures=[STANFORD_ARCHITECTURE])
    if kind == "pylate":
        write_modules(path, {"": "Transformer"})
        edit_json(path / "config_sentence_transformers.json", model_type="ColBERT")
    if kind == "transformer":
        write_modules(path, {"": "Transformer", "2_Mask": "MultiVectorMask"})
    files = {
        "pooling": "1_Pooling/config.json",
        "overall": "config_sentence_transformers.json",
        "pylate": "config_sentence_transformers.json",
        "transformer": "sentence_bert_config.json",
        "stanford": "artifact.metadata",
        "tokenizer": "tokenizer_config.json",
        "config": "config.json",
    }
    return path, path / files[kind]


def read(path: Path) -> ModelSpec | None:
    """The spec, or None where it is refused with a message of bounded length; any other exception is a failure."""
    try:
        return read_spec(path)
    except ModelError as error:
        message = str(error)
    assert 0 < len(message) < 2100
    return None


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path]]:
    """A directory for each kind of file."""
    return {kind: directory(tmp_path_factory.mktemp(kind), kind) for kind in KEYS}


class TestAnyValueIsReadOrRefused:
    @pytest.mark.parametrize("kind", [kind for kind in KEYS if kind != "config"])
    @given(data=st.data())
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    def test_in_the_files_beside_the_config(self, places: dict[str, tuple[Path, Path]], kind: str, data: st.DataObject):
        path, file = places[kind]
        before = file.read_text() if file.exists() else "{}"
        try:
            file.write_text(json.dumps(json.loads(before) | data.draw(changes(kind))))
            spec = read(path)
        finally:
            file.write_text(before)
        if spec is not None:
            assert_sound(spec)

    @pytest.mark.parametrize("family", ["bert", "roberta", "qwen3"])
    @pytest.mark.parametrize("head", ["Model", "ForSequenceClassification"])
    @example(change={"architectures": True})
    @example(change={"pad_token_id": None})
    @example(change={"hidden_size": 0})
    @given(change=changes("config"))
    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    def test_in_the_config_or_over_it(self, tmp_path: Path, family: str, head: str, change: dict[str, Any]):
        name = {"bert": "Bert", "roberta": "Roberta", "qwen3": "Qwen3"}[family]
        file = save_tiny_config(tmp_path, family, architectures=[f"{name}{head}"]) / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | change))
        if (spec := read(tmp_path)) is not None:
            assert_sound(spec)

    @given(entries=st.lists(ENTRIES | VALUES, max_size=4))
    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    def test_in_modules_json(self, tmp_path: Path, entries: list[Any]):
        file = old_layout(tmp_path, "mean") / "modules.json"
        file.write_text(json.dumps(entries))
        if (spec := read(tmp_path)) is not None:
            assert spec.transformer_path.resolve().is_relative_to(tmp_path.resolve())
            assert all(layer.path.resolve().is_relative_to(tmp_path.resolve()) for layer in spec.dense)

    @given(text=st.text(max_size=30) | st.binary(max_size=30).map(lambda raw: raw.decode("latin-1")))
    @settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
    def test_in_a_file_that_is_no_json_at_all(self, tmp_path: Path, text: str):
        for name in ("modules.json", "config_sentence_transformers.json", "1_Pooling/config.json", "config.json"):
            for file in tmp_path.glob("**/*.json"):
                file.unlink()
            (old_layout(tmp_path, "mean") / name).write_bytes(text.encode("utf-8", "surrogatepass"))
            read(tmp_path)


def assert_sound(spec: ModelSpec) -> None:
    """What the rest of poolhook counts on."""
    assert type(spec.max_length) is int
    assert spec.max_length > 0
    assert type(spec.hidden_size) is type(spec.vocab_size) is int
    assert spec.embedding_size > 0
    assert all(isinstance(text, str) for text in [*spec.prompts, *spec.prompts.values()])
    assert spec.default_prompt_name is None or spec.default_prompt_name in spec.prompts
    roles = spec.late_interaction
    for role in (roles.query, roles.document) if roles is not None else ():
        assert isinstance(role.prefix, str)
        assert all(isinstance(word, str) for word in role.skip_words)
        assert all(value is None or (type(value) is int and value > 0) for value in (role.max_length, role.expand_to))
