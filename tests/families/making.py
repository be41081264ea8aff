"""Tiny random models of any family of transformers: two layers, 32 dimensions, 200 words, 160 positions."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from tiny import VOCAB_SIZE, edit_json, save_tokenizer

LONGEST = 160
"""Tokens that every tiny model takes, less the positions that RoBERTa and its kin keep for padding."""

_SIZES: dict[int, str] = {
    VOCAB_SIZE: "vocab_size",
    LONGEST: "max_position_embeddings n_positions",
    64: "intermediate_size d_ff ffn_dim d_inner hidden_dim n_inner moe_intermediate_size ffn_hidden_size "
    "shared_expert_intermediate_size",
    32: "hidden_size n_embd dim emb_dim d_model embedding_size word_embed_proj_dim hidden_dim_embedding",
    12: "sliding_window",
    16: "local_attention",
    8: "head_dim d_kv d_head",
    4: "num_attention_heads n_head n_heads num_heads num_experts num_local_experts n_routed_experts",
    2: "num_hidden_layers n_layer n_layers num_layers num_key_value_heads num_experts_per_tok",
}
_TOKENS = {
    "pad_token_id": 1,
    "bos_token_id": 2,
    "cls_token_id": 2,
    "eos_token_id": 3,
    "sep_token_id": 3,
    "mask_token_id": 4,
}
_TINY = {name: size for size, names in _SIZES.items() for name in names.split()} | _TOKENS

MAPPINGS: dict[str, Mapping[str, Any]] = {
    "classify": modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
    "token_classify": modeling_auto.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES,
    "masked_lm": modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    "causal_lm": modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
}
"""What a model ends in -> the class of each family that has it."""


def model_class(family: str, head: str) -> Any:
    """The class of transformers; `head` is "embed" or a key of `MAPPINGS`. None if the family has no such class."""
    if head == "embed":
        encoder = modeling_auto.MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES.get(family, "")
        name = encoder if encoder.endswith("EncoderModel") else modeling_auto.MODEL_MAPPING_NAMES[family]
        name = name if isinstance(name, str) else name[0]
    else:
        name = MAPPINGS[head].get(family)
    return None if name is None else getattr(transformers, name)


def tiny_config(family: str, values: Mapping[str, Any]) -> Any:
    """`values` on top of the size and token ids that all tiny models have in common."""
    config_class = CONFIG_MAPPING[family]
    known = {field.name for field in dataclasses.fields(config_class)}
    common = {name: value for name, value in _TINY.items() if name in known}
    return config_class(**{**common, **values})


def tiny_model(family: str, head: str, values: Mapping[str, Any]) -> Any:
    """A model with weights so large that attention is far from even, and a token seen by a neighbour shows."""
    cls = model_class(family, head)
    torch.manual_seed(0)
    model = cls(tiny_config(family, {**values, "architectures": [cls.__name__]})).float().eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            # Norm scales, biases and the time steps of state-space models stay near their start.
            if weight.dim() > 1 and "A_log" not in name:
                weight.normal_(0, 0.3)
            elif not any(part in name.lower() for part in ("norm", "a_log", "dt", "time")):
                weight.normal_(0, 0.1)
    return model


def save(model: Any, directory: Path) -> Path:
    """Write `model` as users have it, with a tokenizer of words `w0` .. `w195`."""
    model.save_pretrained(directory)
    save_tokenizer(directory)
    edit_json(directory / "tokenizer_config.json", model_max_length=LONGEST)
    return directory
