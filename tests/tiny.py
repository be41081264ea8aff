"""Tiny random models of real architectures: two layers, 32 dimensions, weights large enough that a leak shows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from torch import Tensor

VOCAB_SIZE = 200

TinyModel = Callable[..., Path]
"""The fixture `tiny_model`: `tiny_model(family, **config)` is the directory of a tiny model."""

_COMMON: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 160,
    "pad_token_id": 1,
    "bos_token_id": 2,
    "eos_token_id": 3,
}
_DECODER = {**_COMMON, "num_key_value_heads": 2, "head_dim": 8}

FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("BertConfig", "BertModel", _COMMON),
    "bert_for_texts": ("BertConfig", "BertForSequenceClassification", _COMMON),
    "bert_for_tokens": ("BertConfig", "BertForTokenClassification", _COMMON),
    "roberta": ("RobertaConfig", "RobertaModel", _COMMON),
    "distilbert": (
        "DistilBertConfig",
        "DistilBertModel",
        {**_COMMON, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    ),
    "modernbert": (
        "ModernBertConfig",
        "ModernBertModel",
        {
            **_COMMON,
            "local_attention": 16,
            "global_attn_every_n_layers": 2,
            "cls_token_id": 2,
            "sep_token_id": 3,
        },
    ),
    "qwen3": ("Qwen3Config", "Qwen3Model", _DECODER),
    "gemma3": (
        "Gemma3TextConfig",
        "Gemma3TextModel",
        {**_DECODER, "sliding_window": 12, "layer_types": ["sliding_attention", "full_attention"]},
    ),
    "mpnet": ("MPNetConfig", "MPNetModel", _COMMON),
    "deberta_v2": (
        "DebertaV2Config",
        "DebertaV2Model",
        {
            **_COMMON,
            "relative_attention": True,
            "position_buckets": 16,
            "max_relative_positions": -1,
            "pos_att_type": ["p2c", "c2p"],
            "share_att_key": True,
            "norm_rel_ebd": "layer_norm",
            "position_biased_input": False,
            "type_vocab_size": 0,
        },
    ),
    "roformer": ("RoFormerConfig", "RoFormerModel", _COMMON),
    "fnet": ("FNetConfig", "FNetModel", _COMMON),
}
"""Family -> config class, model class, config values; class names are those of transformers."""


def tiny_config(family: str, **overrides: Any) -> Any:
    """The transformers configuration of a tiny `family`."""
    import transformers

    config_class, model_class, values = FAMILIES[family]
    return getattr(transformers, config_class)(**{"architectures": [model_class], **values, **overrides})


def save_tiny_config(directory: Path, family: str, **overrides: Any) -> Path:
    """Write only the `config.json` of a tiny `family`."""
    tiny_config(family, **overrides).save_pretrained(directory)
    return directory


def edit_json(file: Path, **changes: Any) -> None:
    """Change keys of the JSON object in `file`, which may not be there yet; None takes a key out."""
    value = json.loads(file.read_text()) if file.exists() else {}
    value |= changes
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({key: entry for key, entry in value.items() if entry is not None}))


def save_tiny_model(directory: Path, family: str, seed: int = 0, **overrides: Any) -> Path:
    """Write a random model of `family` with a word-level tokenizer (`w0` .. `w195`) to `directory`."""
    import transformers

    torch.manual_seed(seed)
    model = getattr(transformers, FAMILIES[family][1])(tiny_config(family, **overrides)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            # Norm scales and biases stay near their start; matrices grow until attention is far from uniform.
            if weight.dim() > 1:
                weight.normal_(0, 0.3)
            elif "norm" not in name.lower():
                weight.normal_(0, 0.1)
    model.save_pretrained(directory)
    save_tokenizer(directory)
    return directory


def save_tokenizer(directory: Path) -> None:
    """Write the word-level tokenizer alone."""
    vocab = {"[UNK]": 0, "[PAD]": 1, "[CLS]": 2, "[SEP]": 3} | {f"w{i}": i + 4 for i in range(VOCAB_SIZE - 4)}
    tokenizer = Tokenizer(WordLevel(vocab, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    tokenizer.save(str(directory / "tokenizer.json"))
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **names}
    (directory / "tokenizer_config.json").write_text(json.dumps(config))


def packed(lengths: Sequence[int], size: int = 8, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Random hidden states, shape `[sum(lengths), size]`, and their `cu_seqlens`."""
    generator = torch.Generator().manual_seed(len(lengths))
    hidden = torch.randn(sum(lengths), size, generator=generator).to(dtype)
    return hidden, torch.tensor([0, *accumulate(lengths)], dtype=torch.int32)
