"""A tokenizer's padding side is for those who pad: it changes no vector, whichever token is pooled."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from poolhook import LLM, PoolerConfig, PoolingType
from tiny import TinyModel, edit_json

TEXTS = ["w1 w2 w3", "w4", "w5 w6 w7 w8 w9 w10 w11"]


@pytest.mark.parametrize("pooling", [PoolingType.CLS, PoolingType.LAST])
@pytest.mark.parametrize("family", ["bert", "qwen3", "roformer"])
def test_left_and_right_give_the_same_vectors(
    tiny_model: TinyModel, tmp_path: Path, family: str, pooling: PoolingType
) -> None:
    vectors = []
    for side in ("left", "right"):
        directory = shutil.copytree(tiny_model(family), tmp_path / side)
        edit_json(directory / "tokenizer_config.json", padding_side=side)
        with LLM(str(directory), device="cpu", pooler_config=PoolerConfig(pooling_type=pooling)) as llm:
            together = llm.embed(TEXTS, use_tqdm=False)
            alone = [llm.embed(text, use_tqdm=False)[0] for text in TEXTS]
        vectors.append(torch.stack([output.outputs.data for output in together]))
        torch.testing.assert_close(vectors[-1], torch.stack([output.outputs.data for output in alone]))
    torch.testing.assert_close(*vectors)
