"""Specifies late interaction against sentence-transformers: every token's vector equals `MultiVectorEncoder`'s."""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import MultiVectorEncoder
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from torch import nn

from poolhook import LLM
from poolhook.models import read_spec
from tiny import TinyModel, edit_json

TEXTS = ["w1 w2", "w3", "w9 w1 w11 w12 w2 w14", " ".join(f"w{i}" for i in range(50)), ""]
MASK_TOKEN = "w150"


@pytest.fixture
def base(tiny_model: TinyModel, tmp_path: Path) -> Path:
    """A tiny BERT whose tokenizer has a mask token, in a directory of its own."""
    target = tmp_path / "base"
    target.mkdir()
    for file in tiny_model("bert").iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    edit_json(target / "tokenizer_config.json", mask_token=MASK_TOKEN)
    return target


def save_encoder(
    base: Path, directory: Path, *, dense: bool = True, mask: dict[str, Any] | None = None, **transformer: Any
) -> Path:
    """A MultiVectorEncoder as the installed release saves it."""
    prompts = transformer.pop("prompts", {"query": "w21 ", "document": "w22 "})
    projection = Dense(32, 8, bias=False, activation_function=nn.Identity(), module_input_name="token_embeddings")
    modules = [
        Transformer(str(base), **transformer),
        *([projection] if dense else []),
        MultiVectorMask(**(mask or {})),
        Normalize(module_input_name="token_embeddings"),
    ]
    MultiVectorEncoder(modules=modules, prompts=prompts, device="cpu").save(str(directory), create_model_card=False)
    return directory


def assert_equal_vectors(directory: Path) -> None:
    """Vectors of queries and documents, and MaxSim, are sentence-transformers'."""
    reference = MultiVectorEncoder(str(directory), device="cpu")
    theirs = {
        "query": reference.encode_query(TEXTS),
        "document": reference.encode_document(TEXTS),
    }
    with LLM(str(directory), device="cpu", dtype="float32") as llm:
        for role, vectors in theirs.items():
            ours = llm.encode(
                TEXTS,
                pooling_task="token_embed",
                prompt_name=role,
                tokenization_kwargs={"truncate_prompt_tokens": -1},
                use_tqdm=False,
            )
            for one, other in zip(ours, vectors, strict=True):
                torch.testing.assert_close(one.outputs.data, other.detach().float(), rtol=1e-5, atol=1e-5)
        scores = llm.score(TEXTS[0], TEXTS, tokenization_kwargs={"truncate_prompt_tokens": -1}, use_tqdm=False)
        expected = [float((theirs["query"][0] @ document.T).amax(1).sum()) for document in theirs["document"]]
        assert [one.outputs.score for one in scores] == pytest.approx(expected, rel=1e-4)


class TestVectors:
    @pytest.mark.parametrize("attend", [True, False])
    def test_with_query_expansion_attended_or_not(self, base: Path, tmp_path: Path, attend: bool):
        expansion = {"strategy": "fixed", "attend": attend, "length": 12}
        assert_equal_vectors(save_encoder(base, tmp_path / "saved", query_expansion=expansion, document_length=20))

    def test_without_query_expansion(self, base: Path, tmp_path: Path):
        assert_equal_vectors(save_encoder(base, tmp_path / "saved", query_length=10, document_length=16))

    def test_without_a_projection(self, base: Path, tmp_path: Path):
        assert_equal_vectors(save_encoder(base, tmp_path / "saved", dense=False))

    @pytest.mark.parametrize("tasks", [["document"], ["query", "document"], ["query"]])
    def test_leave_out_the_skip_list(self, base: Path, tmp_path: Path, tasks: list[str]):
        mask = {"skiplist_words": ["w1", "w2"], "skiplist_tasks": tasks}
        assert_equal_vectors(save_encoder(base, tmp_path / "saved", mask=mask))

    def test_without_prefixes(self, base: Path, tmp_path: Path):
        expansion = {"strategy": "fixed", "attend": False, "length": 8}
        assert_equal_vectors(save_encoder(base, tmp_path / "saved", prompts={}, query_expansion=expansion))


def write_projection(directory: Path, size: int = 8) -> None:
    """The folder of a Dense module."""
    edit_json(
        directory / "1_Dense" / "config.json",
        in_features=32,
        out_features=size,
        bias=False,
        activation_function="torch.nn.modules.linear.Identity",
    )
    weight = torch.randn(size, 32, generator=torch.Generator().manual_seed(1))
    save_file({"linear.weight": weight}, directory / "1_Dense" / "model.safetensors")


@pytest.fixture
def pylate(base: Path) -> Callable[..., Path]:
    """Write PyLate's files around the tiny BERT."""

    def write(**config: Any) -> Path:
        modules = [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"},
        ]
        edit_json(base / "sentence_bert_config.json", max_seq_length=19, do_lower_case=False)
        (base / "modules.json").write_text(json.dumps(modules))
        edit_json(base / "config_sentence_transformers.json", **config)
        write_projection(base)
        return base

    return write


class TestPyLate:
    CONFIG: dict[str, Any] = {  # noqa: RUF012
        "model_type": "ColBERT",
        "query_prefix": "w21 ",
        "document_prefix": "w22 ",
        "query_length": 12,
        "document_length": 20,
        "skiplist_words": ["w1"],
    }

    @pytest.mark.parametrize(
        "config",
        [
            {"attend_to_expansion_tokens": False},
            {"attend_to_expansion_tokens": True},
            {"do_query_expansion": False},
            {"prompts": {"query": "w21 w30 ", "document": "w31 "}},
        ],
    )
    def test_files_give_the_same_vectors(self, pylate: Callable[..., Path], config: dict[str, Any]):
        assert_equal_vectors(pylate(**self.CONFIG, **config))

    def test_files_that_state_no_kind_of_model_are_known_by_their_module(self, pylate: Callable[..., Path]):
        newer = read_spec(pylate(**self.CONFIG))
        older = read_spec(pylate(**self.CONFIG | {"model_type": None}))
        assert older.late_interaction == newer.late_interaction
        assert older.tasks == ("token_embed",)
        assert older.normalize

    def test_lengths_and_punctuation_have_pylates_defaults(self, pylate: Callable[..., Path]):
        roles = read_spec(pylate(model_type="ColBERT")).late_interaction
        assert roles is not None
        assert (roles.query.max_length, roles.query.expand_to, roles.query.attend_to_expansion) == (32, 32, False)
        assert (roles.document.max_length, roles.document.expand_to) == (180, None)
        assert roles.document.skip_words == tuple(string.punctuation)
        assert roles.query.skip_words == ()


class TestStanford:
    @staticmethod
    def write(base: Path, **metadata: Any) -> Path:
        """The Stanford code's files around the tiny BERT, whose markers of roles are two of its words."""
        edit_json(base / "config.json", architectures=["HF_ColBERT"])
        weights = {f"bert.{name}": tensor for name, tensor in load_file(base / "model.safetensors").items()}
        weights["linear.weight"] = torch.randn(8, 32, generator=torch.Generator().manual_seed(1))
        save_file(weights, base / "model.safetensors", metadata={"format": "pt"})
        markers = {"query_token_id": "w21", "doc_token_id": "w22"}
        edit_json(base / "artifact.metadata", **{"dim": 8, "query_maxlen": 12, "doc_maxlen": 20, **markers, **metadata})
        return base

    @pytest.mark.parametrize("attend", [True, False])
    def test_files_give_the_same_vectors(self, base: Path, attend: bool):
        assert_equal_vectors(self.write(base, attend_to_mask_tokens=attend))

    def test_files_leave_out_punctuation_unless_they_say_otherwise(self, base: Path):
        roles = read_spec(self.write(base)).late_interaction
        assert roles is not None
        assert roles.document.skip_words == tuple(string.punctuation)
        roles = read_spec(self.write(base, mask_punctuation=False)).late_interaction
        assert roles is not None
        assert roles.document.skip_words == ()
