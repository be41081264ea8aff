"""What sentence-transformers' and PyLate's own files say, in the layouts before and since release 5.4.

Formats: https://sbert.net/docs/sentence_transformer/usage/custom_models.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from poolhook.errors import ModelError
from poolhook.models.files import read_optional_json, read_optional_json_list
from poolhook.models.late_interaction import LateInteraction, read_roles
from poolhook.models.modules import (
    DenseLayer,
    Module,
    PoolingModule,
    Splade,
    read_chain,
    read_dense,
    read_logit_score,
    read_pooling,
    read_splade,
)

_TRANSFORMER_CONFIGS = (
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
)
_PYLATE = "ColBERT"
_MULTI_VECTOR = (_PYLATE, "MultiVectorEncoder")


@dataclass(frozen=True)
class SentenceTransformerFiles:
    """What sentence-transformers' files say.

    Args:
        transformer_path: the transformer's folder, relative to the model directory; mostly empty.
        transformer_config_file: the file that may state `max_seq_length` and `do_lower_case`.
        pooling_file: the file that decided `pooling`.
        pooling: the Pooling module; None where there is none.
        dense: linear layers behind the pooling, or on each token of a late-interaction model.
        normalize: there is a Normalize module, or one is implied.
        splade: the SpladePooling module.
        late_interaction: what makes queries and documents of a model that answers with a vector for each token.
        score_tokens: the ids of LogitScore: a score is the last logit of its one token, or the second's minus the
            first's.
        activation: the dotted name of a cross-encoder's activation, if the files name one.
        is_cross_encoder: they are a CrossEncoder's.
        is_pylate: they are PyLate's.
    """

    transformer_path: str
    transformer_config_file: str
    pooling_file: str = ""
    pooling: PoolingModule | None = None
    dense: tuple[DenseLayer, ...] = ()
    normalize: bool = False
    splade: Splade | None = None
    late_interaction: LateInteraction | None = None
    score_tokens: tuple[int, ...] = ()
    activation: str | None = None
    is_cross_encoder: bool = False
    is_pylate: bool = False
    max_seq_length: int | None = None
    do_lower_case: bool = False
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt_name: str | None = None


def read_sentence_transformer(path: Path) -> SentenceTransformerFiles | None:
    """Read `modules.json` and what it points at; None where there is none.

    Raises:
        ModelError: a module, a mode or a combination that poolhook does not support, named.
    """
    entries = read_optional_json_list(path / "modules.json")
    if entries is None:
        return None
    chain = read_chain(path, entries)
    modules = {module.name: module for module in chain}
    transformer = modules["Transformer"]
    config_file, config = _transformer_config(path / transformer.folder)
    overall_file = path / "config_sentence_transformers.json"
    overall = read_optional_json(overall_file)
    prompts, default_prompt_name = _prompts(overall_file, overall)
    model_type = overall.get("model_type")
    is_multi_vector = "MultiVectorMask" in modules or model_type in _MULTI_VECTOR
    if is_multi_vector and "Pooling" in modules:
        raise ModelError(f"{path / 'modules.json'} pools a {model_type or 'multi-vector model'} to one vector.")
    return SentenceTransformerFiles(
        transformer_path=transformer.folder,
        transformer_config_file=config_file,
        pooling_file=f"{modules['Pooling'].folder}/config.json".lstrip("/") if "Pooling" in modules else "",
        pooling=_read(read_pooling, modules.get("Pooling"), path),
        dense=tuple(read_dense(module, path) for module in chain if module.name == "Dense"),
        # PyLate normalises in code.
        normalize="Normalize" in modules or model_type == _PYLATE,
        is_pylate=model_type == _PYLATE,
        splade=_read(read_splade, modules.get("SpladePooling"), path),
        late_interaction=read_roles(path, overall, config, modules.get("MultiVectorMask")) if is_multi_vector else None,
        score_tokens=_read(read_logit_score, modules.get("LogitScore"), path) or (),
        activation=overall.get("activation_fn"),
        is_cross_encoder="LogitScore" in modules or model_type == "CrossEncoder",
        max_seq_length=config.get("max_seq_length"),
        do_lower_case=bool(config.get("do_lower_case", False)),
        prompts=prompts,
        default_prompt_name=default_prompt_name,
    )


def _read(reader: Any, module: Module | None, path: Path) -> Any:
    return None if module is None else reader(module.config_file(path))


def _transformer_config(path: Path) -> tuple[str, dict[str, Any]]:
    for name in _TRANSFORMER_CONFIGS:
        config = read_optional_json(path / name)
        if config:
            return name, config
    return _TRANSFORMER_CONFIGS[0], {}


def _prompts(file: Path, config: Mapping[str, Any]) -> tuple[dict[str, str], str | None]:
    # A prompt of null stands for an empty one.
    given = config.get("prompts") or {}
    if not isinstance(given, dict) or not all(isinstance(text, str | None) for text in given.values()):
        raise ModelError(f"prompts in {file} must be an object of texts by name.")
    prompts = {name: text or "" for name, text in given.items()}
    default = config.get("default_prompt_name")
    if default is not None and default not in prompts:
        raise ModelError(f"{file} names the default prompt {default!r}, but has {', '.join(prompts) or 'none'}.")
    return prompts, default
