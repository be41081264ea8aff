"""Model directories to read: sentence-transformers' old layout by hand, its new one as it saves it, random heads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

from poolhook.config import PoolingType
from tiny import edit_json, save_tiny_config, save_tokenizer, tiny_config

MODES = {
    "cls": ("pooling_mode_cls_token", PoolingType.CLS),
    "max": ("pooling_mode_max_tokens", PoolingType.MAX),
    "mean": ("pooling_mode_mean_tokens", PoolingType.MEAN),
    "mean_sqrt_len_tokens": ("pooling_mode_mean_sqrt_len_tokens", PoolingType.MEAN_SQRT_LEN),
    "weightedmean": ("pooling_mode_weightedmean_tokens", PoolingType.WEIGHTED_MEAN),
    "lasttoken": ("pooling_mode_lasttoken", PoolingType.LAST),
}
"""Mode of the new layout -> flag of the old one, and poolhook's name."""


def old_layout(directory: Path, *modes: str, normalize: bool = True, transformer: str = "", **pooling: Any) -> Path:
    """A directory without weights as releases before 5.4 wrote it."""
    (directory / transformer).mkdir(exist_ok=True)
    save_tiny_config(directory / transformer, "bert")
    chain = {transformer: "Transformer", "1_Pooling": "Pooling"} | ({"2_Normalize": "Normalize"} if normalize else {})
    write_modules(directory, chain)
    flags = {flag: mode in modes for mode, (flag, _) in MODES.items()}
    edit_json(directory / "1_Pooling" / "config.json", word_embedding_dimension=32, **flags, **pooling)
    edit_json(directory / transformer / "sentence_bert_config.json", max_seq_length=64, do_lower_case=False)
    return directory


def write_modules(directory: Path, chain: dict[str, str], package: str = "sentence_transformers.models") -> None:
    """Write `modules.json`; `chain` maps each module's folder to its class."""
    modules = [
        {"idx": index, "name": str(index), "path": folder, "type": f"{package}.{name}"}
        for index, (folder, name) in enumerate(chain.items())
    ]
    (directory / "modules.json").write_text(json.dumps(modules))


def new_layout(
    directory: Path,
    transformer: Path,
    *modes: str,
    behind: Sequence[Any] = (),
    normalize: bool = True,
    include_prompt: bool = True,
    **options: Any,
) -> Path:
    """A directory as the installed release saves it, with the modules `behind` the pooling."""
    pooling = Pooling(32, pooling_mode=list(modes), include_prompt=include_prompt)
    modules = [
        Transformer(str(transformer), max_seq_length=48),
        pooling,
        *behind,
        *([Normalize()] if normalize else []),
    ]
    SentenceTransformer(modules=modules, device="cpu", **options).save(str(directory), create_model_card=False)
    return directory


def save_random_model(directory: Path, architecture: str, family: str = "bert", **config: Any) -> Any:
    """Save a random model of any class of a tiny `family` with its tokenizer; its logits are far from zero."""
    torch.manual_seed(0)
    model = getattr(transformers, architecture)(tiny_config(family, architectures=[architecture], **config)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0, 0.3)
    model.save_pretrained(directory)
    save_tokenizer(directory)
    return model
