"""Specifies BGE-M3's directories: all three answers, against transformers and FlagEmbedding's formulas by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.functional import normalize

from model_directories import write_modules
from poolhook import LLM
from poolhook.errors import ModelError
from poolhook.models import read_spec
from tiny import edit_json, save_tokenizer

TEXTS = ["w1", "w5 w6 w7 w8", " ".join(f"w{i}" for i in range(40)), "w7 w7 w7"]
SIZES = {"sparse_linear": 1, "colbert_linear": 32}
CONFIG = {
    "vocab_size": 200,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 80,
    "pad_token_id": 1,
}


def save_bge_m3(directory: Path, *, pickled: bool) -> dict[str, nn.Linear]:
    """A tiny random model in BGE-M3's layout; its two heads."""
    torch.manual_seed(0)
    config = transformers.XLMRobertaConfig(architectures=["XLMRobertaModel"], **CONFIG)
    model = transformers.XLMRobertaModel(config)
    heads = {name: nn.Linear(32, size) for name, size in SIZES.items()}
    with torch.no_grad():
        for weight in [*model.parameters(), *heads["sparse_linear"].parameters()]:
            weight.normal_(0, 0.3)
    model.save_pretrained(directory)
    save_tokenizer(directory)
    for name, head in heads.items():
        if pickled:
            torch.save(head.state_dict(), directory / f"{name}.pt")
        else:
            save_file(head.state_dict(), directory / f"{name}.safetensors")
    if pickled:
        torch.save(model.state_dict(), directory / "pytorch_model.bin")
        (directory / "model.safetensors").unlink()
    write_modules(directory, {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"})
    edit_json(directory / "1_Pooling" / "config.json", word_embedding_dimension=32, pooling_mode_cls_token=True)
    edit_json(directory / "sentence_bert_config.json", max_seq_length=64)
    return heads


@pytest.fixture(params=[False, True], ids=["safetensors", "pt"])
def bge_m3(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[LLM, Any]:
    """The model, and transformers' hidden states with what FlagEmbedding makes of them."""
    heads = save_bge_m3(tmp_path, pickled=request.param)
    trunk = transformers.AutoModel.from_pretrained(tmp_path, use_safetensors=not request.param).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    options = {"load_format": "pt"} if request.param else {}
    expected = []
    with torch.inference_mode():
        for text in TEXTS:
            hidden = trunk(tokenizer(text, return_tensors="pt").input_ids).last_hidden_state[0]
            expected.append(
                {
                    "dense": normalize(hidden[0], dim=-1),
                    "sparse": heads["sparse_linear"](hidden).relu(),
                    "colbert": normalize(heads["colbert_linear"](hidden[1:]), dim=-1),
                }
            )
    return LLM(str(tmp_path), device="cpu", dtype="float32", **options), expected


def assert_all_close(ours: list[Tensor], expected: list[Tensor]) -> None:
    for one, other in zip(ours, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


class TestBgeM3:
    def test_answers_dense_sparse_and_multi_vector_as_tasks_and_from_one_pass(self, bge_m3: tuple[LLM, Any]):
        llm, expected = bge_m3
        dense, sparse, colbert = ([one[name] for one in expected] for name in ("dense", "sparse", "colbert"))
        with llm:
            assert llm.supported_tasks == ("embed", "token_embed", "token_classify", "plugin")
            assert_all_close([one.outputs.data for one in llm.embed(TEXTS, use_tqdm=False)], dense)

            weights = llm.encode(TEXTS, pooling_task="token_classify", use_tqdm=False)
            assert_all_close([one.outputs.data for one in weights], sparse)

            vectors = llm.encode(TEXTS, pooling_task="token_embed", use_tqdm=False)
            assert_all_close([one.outputs.data for one in vectors], colbert)

            every = llm.encode(TEXTS, pooling_task="plugin", use_tqdm=False)
            assert_all_close([one.outputs.data for one in every], dense)
            assert_all_close([one.outputs.parts["sparse"] for one in every], [one[:, 0] for one in sparse])
            assert_all_close([one.outputs.parts["colbert"] for one in every], colbert)

    def test_is_known_by_both_of_its_heads(self, tmp_path: Path):
        save_bge_m3(tmp_path, pickled=False)
        assert read_spec(tmp_path).is_bge_m3
        (tmp_path / "sparse_linear.safetensors").unlink()
        assert not read_spec(tmp_path).is_bge_m3

    def test_has_heads_that_are_pickled_only_where_that_is_allowed(self, tmp_path: Path):
        heads = save_bge_m3(tmp_path, pickled=False)
        (tmp_path / "sparse_linear.safetensors").unlink()
        torch.save(heads["sparse_linear"].state_dict(), tmp_path / "sparse_linear.pt")
        with pytest.raises(ModelError) as caught:
            LLM(str(tmp_path), device="cpu")
        assert str(caught.value) == (
            f"{tmp_path} has sparse_linear only as pickled weights, which poolhook reads only when told to: set "
            "load_format to 'pt', or convert it to safetensors."
        )
        with LLM(str(tmp_path), device="cpu", load_format="pt") as llm:
            assert "plugin" in llm.supported_tasks
