"""Decoders' classifiers read the last token that is no padding, and some models' padding ends their texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from poolhook import LLM, PoolingParams
from tiny import VOCAB_SIZE, save_tokenizer

END = 3
PROMPTS = [[5, 6, 7, END], [5, 6, 7], [END, END], [END, 5, END, 6, END, END], [END], [8, 9, END, END, END]]
CONFIGS: dict[str, dict[str, Any]] = {
    "Llama": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64},
    "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "Bert": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64},
}


@pytest.mark.parametrize("family", CONFIGS)
def test_logits_are_transformers_own_whatever_a_text_ends_in(tmp_path: Path, family: str) -> None:
    common = {"vocab_size": VOCAB_SIZE, "pad_token_id": END, "eos_token_id": END, "bos_token_id": 2, "num_labels": 2}
    if family != "GPT2":
        common["max_position_embeddings"] = 64
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**common, **CONFIGS[family])
    model = getattr(transformers, f"{family}ForSequenceClassification")(config).eval()
    for weight in model.parameters():
        weight.data.normal_(0, 0.3)
    model.save_pretrained(tmp_path)
    save_tokenizer(tmp_path)
    with torch.inference_mode():
        wanted = torch.cat([model(torch.tensor([ids])).logits for ids in PROMPTS])
    with LLM(str(tmp_path), device="cpu") as llm:
        params = PoolingParams(use_activation=False)
        together = llm.classify(PROMPTS, pooling_params=params, use_tqdm=False)
        alone = [llm.classify([ids], pooling_params=params, use_tqdm=False)[0] for ids in PROMPTS]
    for outputs in (together, alone):
        ours = torch.tensor([output.outputs.probs for output in outputs])
        torch.testing.assert_close(ours, wanted, rtol=1e-4, atol=1e-5)
