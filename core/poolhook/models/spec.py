"""`ModelSpec`: everything that a model directory says about serving it, read without loading weights."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from poolhook.config import PoolerConfig, PoolingType
from poolhook.errors import ModelError, shorten
from poolhook.models import architectures
from poolhook.models.files import read_json, read_optional_json
from poolhook.models.sentence_transformers import SentenceTransformerFiles, read_sentence_transformer

if TYPE_CHECKING:
    from transformers import PretrainedConfig

_UNLIMITED = 10**9  # tokenizers write a number beyond this for "no limit"


@dataclass(frozen=True)
class ModelSpec:
    """What a model directory says.

    Args:
        name: what the user called the model.
        path: the model's directory.
        transformer_path: where in it the transformer's weights and tokenizer lie; mostly `path` itself.
        architecture: the class name in `config.json`, such as `BertModel`.
        model_type: the family in `config.json`, such as `bert`.
        hidden_size: dimensions of a hidden state.
        vocab_size: token ids run from 0 to this, exclusive.
        max_length: the longest prompt, in tokens, special tokens included.
        pooling: the pooling methods; the vectors of several are concatenated.
        normalize: whether embeddings are L2-normalised.
        checkpoint_dtype: the dtype in which the weights were saved, such as `float32`; None if unsaid.
        position_offset: the position id of a sequence's first token.
        sliding_window: positions that a token attends to in the layers that have a window.
        prompts: texts to put before an input, by name, such as `query`.
        default_prompt_name: the prompt that is applied when none is named.
        truncation_side: the end of an over-long text that its tokenizer cuts away.
        do_lower_case: texts are lower-cased before tokenizing.
        matryoshka_dimensions: the lengths to which an embedding may be cut; None if the model was not trained for it,
            empty if it was for any length.
        io_processor_plugins: names in `config.json` of the IO processors that this model wants.
        origins: for each value that can come from several places, the one that decided it.
    """

    name: str
    path: Path
    transformer_path: Path
    architecture: str
    model_type: str
    hidden_size: int
    vocab_size: int
    max_length: int
    pooling: tuple[PoolingType, ...]
    normalize: bool
    checkpoint_dtype: str | None = None
    position_offset: int = 0
    sliding_window: int | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt_name: str | None = None
    do_lower_case: bool = False
    truncation_side: Literal["left", "right"] = "right"
    matryoshka_dimensions: tuple[int, ...] | None = None
    io_processor_plugins: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def embedding_size(self) -> int:
        """Dimensions of an embedding that was not cut."""
        return self.hidden_size * len(self.pooling)

    def overridden_by(self, config: PoolerConfig) -> ModelSpec:
        """This spec with the operator's overrides applied and noted in `origins`."""
        changes: dict[str, Any] = {}
        if config.pooling_type is not None:
            changes["pooling"] = (config.pooling_type,)
        if config.use_activation is not None:
            changes["normalize"] = config.use_activation
        origins = {**self.origins, **dict.fromkeys(changes, "pooler config")}
        return replace(self, **changes, origins=origins)


def read_spec(path: Path, name: str | None = None) -> ModelSpec:
    """Read the model directory `path`.

    Raises:
        ModelError: a file is missing or malformed, or the directory asks for something that poolhook does not do.
    """
    files = read_sentence_transformer(path)
    transformer_path = path / files.transformer_path if files else path
    raw = read_json(transformer_path / "config.json", missing="A model directory has a config.json; is this one?")
    config = _hf_config(transformer_path, raw)
    text = config.get_text_config()
    architecture = (config.architectures or [type(config).__name__.replace("Config", "Model")])[0]
    architectures.refuse_unsupported(architecture, config)

    origins: dict[str, str] = {}
    pooling, normalize = _pooling(files, architecture, text, origins)
    offset = architectures.position_offset(text)
    return ModelSpec(
        name=name or str(path),
        path=path,
        transformer_path=transformer_path,
        architecture=architecture,
        model_type=text.model_type,
        hidden_size=text.hidden_size,
        vocab_size=text.vocab_size,
        max_length=_max_length(files, transformer_path, text, offset, origins),
        pooling=pooling,
        normalize=normalize,
        checkpoint_dtype=_dtype_name(raw),
        position_offset=offset,
        sliding_window=architectures.sliding_window(text),
        prompts=dict(files.prompts) if files else {},
        default_prompt_name=files.default_prompt_name if files else None,
        do_lower_case=files.do_lower_case if files else False,
        truncation_side=_truncation_side(transformer_path),
        matryoshka_dimensions=_matryoshka(raw),
        io_processor_plugins=_io_processors(raw),
        origins=origins,
    )


def _hf_config(path: Path, raw: Mapping[str, Any]) -> PretrainedConfig:
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(path, trust_remote_code=False, local_files_only=True)
    except Exception as error:
        # transformers raises ValueError, KeyError, OSError, TypeError and its validators' own for a bad config.
        if "auto_map" in raw:
            raise ModelError(
                f"{path} brings Python code of its own (`auto_map` in config.json), which poolhook does not run, "
                f"and its model_type {raw.get('model_type')!r} is none that transformers knows."
            ) from error
        raise ModelError(f"transformers can't read {path / 'config.json'}: {shorten(str(error), 500)}") from error


def _pooling(
    files: SentenceTransformerFiles | None,
    architecture: str,
    config: PretrainedConfig,
    origins: dict[str, str],
) -> tuple[tuple[PoolingType, ...], bool]:
    if files is not None and files.pooling:
        origins |= {"pooling": files.pooling_file, "normalize": "modules.json"}
        return files.pooling, files.normalize
    origins |= dict.fromkeys(("pooling", "normalize"), f"default of {architecture}")
    return (architectures.default_pooling(config),), True


def _max_length(
    files: SentenceTransformerFiles | None,
    path: Path,
    config: PretrainedConfig,
    offset: int,
    origins: dict[str, str],
) -> int:
    tokenizer_limit = read_optional_json(path / "tokenizer_config.json").get("model_max_length")
    positions = architectures.position_count(config)
    candidates: list[tuple[str, Any]] = [
        (files.transformer_config_file if files else "", files.max_seq_length if files else None),
        ("tokenizer_config.json", tokenizer_limit),
        ("config.json", positions - offset if positions else None),
    ]
    known = [(where, int(limit)) for where, limit in candidates if _is_limit(limit)]
    if not known:
        raise ModelError(
            f"{path} states no maximum length: neither max_seq_length (sentence_bert_config.json), "
            "nor model_max_length (tokenizer_config.json), nor max_position_embeddings (config.json). Add one of them."
        )
    # The first that is stated decides, but no model reaches beyond its own positions.
    where, limit = known[0]
    if positions and limit > positions - offset:
        where, limit = "config.json", positions - offset
    origins["max_length"] = where
    return limit


def _truncation_side(path: Path) -> Literal["left", "right"]:
    side = read_optional_json(path / "tokenizer_config.json").get("truncation_side")
    return "left" if side == "left" else "right"


def _is_limit(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _UNLIMITED


def _dtype_name(raw: Mapping[str, Any]) -> str | None:
    name = raw.get("dtype", raw.get("torch_dtype"))
    return name if isinstance(name, str) else None


def _matryoshka(raw: Mapping[str, Any]) -> tuple[int, ...] | None:
    dimensions = raw.get("matryoshka_dimensions")
    if not dimensions:
        return () if raw.get("is_matryoshka") else None
    if not isinstance(dimensions, list) or not all(
        type(dimension) is int and dimension > 0 for dimension in dimensions
    ):
        raise ModelError(
            f"matryoshka_dimensions in config.json must be a list of positive integers, not {shorten(dimensions)}."
        )
    return tuple(sorted(set(dimensions)))


def _io_processors(raw: Mapping[str, Any]) -> tuple[str, ...]:
    names = raw.get("io_processor_plugin") or ()
    names = (names,) if isinstance(names, str) else names
    # A model file may choose among installed plugins; it must never smuggle in an import path.
    if not isinstance(names, list | tuple) or not all(
        isinstance(n, str) and re.fullmatch(r"[\w.:-]+", n) for n in names
    ):
        raise ModelError(
            f"io_processor_plugin in config.json must be a plugin name or a list of them: {json.dumps(names)}"
        )
    return tuple(names)
