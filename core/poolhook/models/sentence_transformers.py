"""sentence-transformers' own files, in the layout before and since release 5.4.

`modules.json` lists the modules; each has a folder with a `config.json`. Since 5.4 modules live under other dotted
paths, pooling is one `pooling_mode` instead of a flag for each mode, and `max_seq_length` moved into the tokenizer's
configuration. Formats: https://sbert.net/docs/sentence_transformer/usage/custom_models.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from poolhook.config import PoolingType
from poolhook.errors import ModelError
from poolhook.models.files import read_json, read_optional_json, read_optional_json_list

_MODES = {
    "cls": PoolingType.CLS,
    "max": PoolingType.MAX,
    "mean": PoolingType.MEAN,
    "mean_sqrt_len_tokens": PoolingType.MEAN_SQRT_LEN,
    "weightedmean": PoolingType.WEIGHTED_MEAN,
    "lasttoken": PoolingType.LAST,
}
# In the order in which the vectors of several modes are concatenated.
_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_TRANSFORMER_CONFIGS = (
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
)


@dataclass(frozen=True)
class SentenceTransformerFiles:
    """What sentence-transformers' files say.

    Args:
        transformer_path: the transformer's folder, relative to the model directory; mostly empty.
        transformer_config_file: the file that may state `max_seq_length` and `do_lower_case`.
        pooling_file: the file that decided `pooling`.
        pooling: the pooling methods, concatenated in this order; empty when there is no Pooling module.
        normalize: there is a Normalize module.
    """

    transformer_path: str
    transformer_config_file: str
    pooling_file: str
    pooling: tuple[PoolingType, ...]
    normalize: bool
    max_seq_length: int | None = None
    do_lower_case: bool = False
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt_name: str | None = None


def read_sentence_transformer(path: Path) -> SentenceTransformerFiles | None:
    """Read `modules.json` and what it points at; None where there is none.

    Raises:
        ModelError: a module, a pooling mode or a combination that poolhook does not support, named.
    """
    modules = read_optional_json_list(path / "modules.json")
    if modules is None:
        return None
    paths = _module_paths(path, modules)
    transformer_path = paths["Transformer"]
    config_file, config = _transformer_config(path / transformer_path)
    prompts, default_prompt_name = _prompts(path)
    pooling_file = ""
    pooling: tuple[PoolingType, ...] = ()
    if "Pooling" in paths:
        pooling_file = f"{paths['Pooling']}/config.json".lstrip("/")
        pooling = _pooling(path / pooling_file, has_prompts=any(prompts.values()))
    return SentenceTransformerFiles(
        transformer_path=transformer_path,
        transformer_config_file=config_file,
        pooling_file=pooling_file,
        pooling=pooling,
        normalize="Normalize" in paths,
        max_seq_length=config.get("max_seq_length"),
        do_lower_case=bool(config.get("do_lower_case", False)),
        prompts=prompts,
        default_prompt_name=default_prompt_name,
    )


def _module_paths(path: Path, modules: list[dict[str, Any]]) -> dict[str, str]:
    """Module class name -> folder, after checking that the chain is one that poolhook runs."""
    # A class of the model's own may be called Transformer too and compute something else.
    chain = [(_class_name(str(module.get("type", ""))), str(module.get("path", ""))) for module in modules]
    allowed = ["Transformer", "Pooling", "Normalize"]
    for name, _ in chain:
        if name not in allowed:
            raise ModelError(
                f"{path / 'modules.json'} has a module {name!r}, which poolhook does not support. "
                f"Supported: {', '.join(allowed)}."
            )
    names = [name for name, _ in chain]
    if names != [name for name in allowed if name in names] or "Transformer" not in names:
        raise ModelError(
            f"{path / 'modules.json'} chains {' -> '.join(names) or 'nothing'}; "
            f"poolhook runs {' -> '.join(allowed)}, where the last two may be missing."
        )
    return dict(chain)


def _class_name(dotted: str) -> str:
    """`Pooling` for a class of sentence-transformers, wherever its releases kept it; others stay as they are."""
    package, _, rest = dotted.partition(".")
    return rest.rpartition(".")[2] if package == "sentence_transformers" else dotted


def _transformer_config(path: Path) -> tuple[str, dict[str, Any]]:
    for name in _TRANSFORMER_CONFIGS:
        config = read_optional_json(path / name)
        if config:
            return name, config
    return _TRANSFORMER_CONFIGS[0], {}


def _pooling(file: Path, has_prompts: bool) -> tuple[PoolingType, ...]:
    config = read_json(file, missing="modules.json names it as the configuration of the Pooling module.")
    if not config.get("include_prompt", True) and has_prompts:
        raise ModelError(
            f"{file} says include_prompt: false (prompt tokens are left out of pooling), "
            "which poolhook does not support yet."
        )
    unknown = [key for key in config if key.startswith("pooling_mode_") and key not in _FLAGS and config[key]]
    modes = config.get("pooling_mode", [mode for flag, mode in _FLAGS.items() if config.get(flag)] or "mean")
    modes = modes if isinstance(modes, list) else [modes]
    unknown += [str(mode) for mode in modes if not isinstance(mode, str) or mode not in _MODES]
    if not modes:
        unknown = ["nothing"]
    if unknown:
        raise ModelError(f"{file} asks for pooling {', '.join(unknown)}. Supported modes: {', '.join(_MODES)}.")
    return tuple(_MODES[mode] for mode in modes)


def _prompts(path: Path) -> tuple[dict[str, str], str | None]:
    file = path / "config_sentence_transformers.json"
    config = read_optional_json(file)
    # A prompt of null stands for an empty one.
    given = config.get("prompts") or {}
    if not isinstance(given, dict) or not all(isinstance(text, str | None) for text in given.values()):
        raise ModelError(f"prompts in {file} must be an object of texts by name.")
    prompts = {name: text or "" for name, text in given.items()}
    default = config.get("default_prompt_name")
    if default is not None and default not in prompts:
        raise ModelError(f"{file} names the default prompt {default!r}, but has {', '.join(prompts) or 'none'}.")
    return prompts, default
