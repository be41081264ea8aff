"""`read_spec`: a model directory to a `ModelSpec`, without loading weights."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from poolhook.config import PoolingType
from poolhook.errors import ModelError, shorten
from poolhook.models import architectures
from poolhook.models.classification import Classifier, read_activation, read_labels
from poolhook.models.config_file import read_hf_config, read_raw_config
from poolhook.models.files import read_optional_json, words
from poolhook.models.late_interaction import STANFORD_ARCHITECTURE, LateInteraction, read_stanford
from poolhook.models.modules import DenseLayer
from poolhook.models.sentence_transformers import SentenceTransformerFiles, read_sentence_transformer
from poolhook.models.spec import Head, ModelSpec
from poolhook.tasks import Similarity

if TYPE_CHECKING:
    from transformers import PretrainedConfig

_UNLIMITED = 10**9  # tokenizers write a number beyond this for "no limit"
_METHODS = ("from_2_way_softmax", "no_post_processing")
_BGE_M3_HEADS = ("sparse_linear", "colbert_linear")


def read_spec(path: Path, name: str | None = None, hf_overrides: Mapping[str, Any] | None = None) -> ModelSpec:
    """Read the model directory `path`.

    Args:
        path: the directory.
        name: what the user called it.
        hf_overrides: put over the `config.json`, as if it said so itself.

    Raises:
        ModelError: a file is missing or malformed, or the directory asks for something that poolhook does not do.
    """
    overrides = hf_overrides or {}
    files = read_sentence_transformer(path)
    transformer_path = path / files.transformer_path if files else path
    raw = read_raw_config(transformer_path, overrides)
    config = read_hf_config(transformer_path, overrides)
    text = config.get_text_config()
    stated = words(raw, "architectures", transformer_path / "config.json")
    architecture = stated[0] if stated else type(config).__name__.replace("Config", "Model")
    if "architectures" in overrides:
        architectures.refuse_unknown(architecture)
    architectures.refuse_unsupported(architecture, config, is_embedder=files is not None)

    origins: dict[str, str] = {}
    head, classifier = _head(files, architecture, raw, config, origins)
    pooling, normalize = _pooling(files, architecture, text, head, origins)
    roles, dense = _late_interaction(files, path, architecture)
    offset = architectures.position_offset(text)
    matryoshka = _matryoshka(raw)
    if matryoshka is not None:
        overridden = overrides.keys() & {"is_matryoshka", "matryoshka_dimensions"}
        origins["matryoshka_dimensions"] = "hf_overrides" if overridden else "config.json"
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
        head=head,
        dense=dense,
        classifier=classifier,
        splade=files.splade if files else None,
        late_interaction=roles,
        is_bge_m3=all(any(path.glob(f"{stem}.*")) for stem in _BGE_M3_HEADS),
        include_prompt=files.pooling.include_prompt if files and files.pooling else True,
        messages=files.messages if files else None,
        add_generation_prompt=files.add_generation_prompt if files else False,
        checkpoint_dtype=_dtype_name(raw),
        position_offset=offset,
        sliding_window=architectures.sliding_window(text),
        prompts=dict(files.prompts) if files else {},
        default_prompt_name=files.default_prompt_name if files else None,
        similarity=_similarity(files, roles, origins),
        do_lower_case=files.do_lower_case if files else False,
        truncation_side=_truncation_side(transformer_path),
        matryoshka_dimensions=matryoshka,
        io_processor_plugins=_io_processors(raw),
        hf_overrides=dict(overrides),
        origins=origins,
    )


def _head(
    files: SentenceTransformerFiles | None,
    architecture: str,
    raw: Mapping[str, Any],
    config: PretrainedConfig,
    origins: dict[str, str],
) -> tuple[Head, Classifier | None]:
    tokens, is_difference = _answer_tokens(files, raw)
    if files is not None and files.splade is not None:
        return "masked_lm", None
    if tokens:
        labels = (str(tokens[-1]),) if is_difference else tuple(map(str, tokens))
        head: Head = "causal_lm"
    else:
        found = architectures.head_of(architecture)
        if found is None or (files is not None and not files.is_cross_encoder and files.pooling is not None):
            return "none", None
        head = found
        labels = architectures.reward_labels(architecture) or read_labels(raw, config.id2label)
    if head == "reward":
        origins["activation"] = f"default of {architecture}"
        return head, Classifier(labels, "softmax" if len(labels) > 1 else "identity")
    activation, origin = read_activation(raw, len(labels), files.activation if files else None)
    origins["activation"] = origin
    return head, Classifier(labels, activation, tokens, is_difference)


def _answer_tokens(
    files: SentenceTransformerFiles | None, raw: Mapping[str, Any]
) -> tuple[tuple[int | str, ...], bool]:
    """The words with which a language model answers, and whether the answer is their difference."""
    if files is not None and files.score_tokens:
        return files.score_tokens, len(files.score_tokens) == 2
    tokens = raw.get("classifier_from_token") or ()
    if not isinstance(tokens, list | tuple) or not all(isinstance(token, str) for token in tokens):
        raise ModelError(f"classifier_from_token in config.json must be a list of tokens, not {shorten(tokens)}.")
    method = raw.get("method", "from_2_way_softmax" if raw.get("is_original_qwen3_reranker") else None)
    if tokens and method not in (None, *_METHODS):
        raise ModelError(f"method in config.json is {shorten(method)!r}. Supported are {', '.join(_METHODS)}.")
    is_difference = method == "from_2_way_softmax"
    if is_difference and len(tokens) != 2:
        raise ModelError(
            "from_2_way_softmax in config.json needs classifier_from_token with two tokens, the false one and the true "
            f"one; it has {len(tokens)}."
        )
    return tuple(tokens), is_difference


def _pooling(
    files: SentenceTransformerFiles | None,
    architecture: str,
    config: PretrainedConfig,
    head: Head,
    origins: dict[str, str],
) -> tuple[tuple[PoolingType, ...], bool]:
    says_so = files is not None and (files.pooling is not None or files.late_interaction is not None)
    normalize = files.normalize if files is not None and says_so else True
    if files is not None and files.pooling is not None and head == "none":
        origins |= {"pooling": files.pooling_file, "normalize": "modules.json"}
        return files.pooling.methods, normalize
    if files is not None and files.late_interaction is not None:
        origins["normalize"] = "config_sentence_transformers.json" if files.is_pylate else "modules.json"
    elif head == "none":
        origins |= dict.fromkeys(("pooling", "normalize"), f"default of {architecture}")
    else:
        origins["pooling"] = f"head of {architecture}"
    return (architectures.default_pooling(config, has_head=head != "none"),), normalize


def _similarity(
    files: SentenceTransformerFiles | None, roles: LateInteraction | None, origins: dict[str, str]
) -> Similarity:
    """How embeddings are compared: as the files say, or as sentence-transformers does where they say nothing."""
    if files is not None and files.similarity is not None:
        origins["similarity"] = "config_sentence_transformers.json"
        return files.similarity
    if roles is not None:
        return "maxsim"
    return "dot" if files is not None and files.splade is not None else "cosine"


def _late_interaction(
    files: SentenceTransformerFiles | None, path: Path, architecture: str
) -> tuple[LateInteraction | None, tuple[DenseLayer, ...]]:
    if architecture == STANFORD_ARCHITECTURE and files is None:
        roles, projection = read_stanford(path)
        return roles, (projection,)
    return (files.late_interaction, files.dense) if files is not None else (None, ())


def _max_length(
    files: SentenceTransformerFiles | None,
    path: Path,
    config: PretrainedConfig,
    offset: int,
    origins: dict[str, str],
) -> int:
    tokenizer_limit = read_optional_json(path / "tokenizer_config.json").get("model_max_length")
    positions = architectures.position_count(config)
    # PyLate writes one less than a document's length, which counts the prefix too: there the roles decide.
    own_limit = files.max_seq_length if files and files.late_interaction is None else None
    candidates: list[tuple[str, Any]] = [
        (files.transformer_config_file if files else "", own_limit),
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
