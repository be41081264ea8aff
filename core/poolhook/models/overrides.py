"""The operator's `PoolerConfig` on top of what a model directory says, refused where it does not fit the model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from poolhook.config import PoolerConfig, PoolingType
from poolhook.errors import ConfigError
from poolhook.models.classification import Classifier
from poolhook.models.spec import ModelSpec
from poolhook.params import why_no_dimensions

_OF_EMBEDDINGS = ("dimensions", "enable_chunked_processing")
_OF_CLASSIFIERS = ("logit_mean", "logit_sigma")


def override(spec: ModelSpec, config: PoolerConfig) -> ModelSpec:
    """`spec` with `config` applied and noted in `origins`.

    Raises:
        ConfigError: an option is not for this model.
    """
    changes: dict[str, Any] = {}
    origins: dict[str, str] = {}
    if config.returned_token_ids is not None:
        _apply_returned_tokens(spec, config.returned_token_ids, changes, origins)
    has_labels = spec.classifier is not None or "classifier" in changes
    _check_kind(spec, config, has_labels)
    if config.pooling_type is not None:
        _apply_pooling_type(spec, config, changes)
    if config.use_activation is not None:
        changes["use_activation" if has_labels else "normalize"] = config.use_activation
    for name in ("dimensions", "logit_mean", "logit_sigma", "step_tag_id", "max_embed_len"):
        if getattr(config, name) is not None:
            changes[name] = getattr(config, name)
    if config.enable_chunked_processing:
        changes["is_chunked"] = True
    origins |= dict.fromkeys(changes, "pooler config")
    if config.use_activation is not None and has_labels:
        origins["activation"] = "pooler config"
    return replace(spec, **changes, origins={**spec.origins, **origins})


def _check_kind(spec: ModelSpec, config: PoolerConfig, has_labels: bool) -> None:
    for name in _OF_CLASSIFIERS:
        if getattr(config, name) is not None and not has_labels:
            raise _misfit(spec, name, "it is for models that classify")
    for name in _OF_EMBEDDINGS:
        if getattr(config, name) and (has_labels or spec.splade is not None):
            raise _misfit(spec, name, "it is for models that embed")
    if config.enable_chunked_processing and ("embed" not in spec.tasks or config.task not in (None, "embed")):
        raise _misfit(spec, "enable_chunked_processing", "it is for task 'embed'")
    if config.use_activation is not None and spec.splade is not None:
        raise _misfit(spec, "use_activation", "its embeddings are sparse and never normalised")
    if config.dimensions is not None and not has_labels:
        _check_dimensions(spec, config.dimensions, of_tokens=config.task == "token_embed")


def _check_dimensions(spec: ModelSpec, wanted: int, *, of_tokens: bool) -> None:
    if of_tokens and spec.dense and spec.late_interaction is None:
        raise _misfit(spec, "dimensions", "its Dense layers, whose output can be cut, are not for tokens")
    problem = why_no_dimensions(wanted, spec.embedding_size, spec.matryoshka_dimensions)
    if problem is not None:
        raise ConfigError(f"PoolerConfig: {problem}")


def _apply_pooling_type(spec: ModelSpec, config: PoolerConfig, changes: dict[str, Any]) -> None:
    wanted = config.pooling_type
    if wanted is None:
        return
    is_of_words = spec.head == "causal_lm" or config.returned_token_ids is not None
    if is_of_words and not (wanted.is_of_tokens or wanted is PoolingType.LAST):
        raise _misfit(spec, f"pooling_type {wanted}", "a causal language model has read a text at its last token")
    if config.task in ("token_embed", "token_classify") and not wanted.is_of_tokens:
        raise _misfit(spec, f"pooling_type {wanted}", f"task {config.task!r} answers with a row for each token")
    fixed = spec.splade is not None or spec.late_interaction is not None or spec.head in ("token", "reward")
    if fixed and not (wanted.is_of_tokens and spec.splade is None):
        raise _misfit(spec, f"pooling_type {wanted}", "its files decide how it pools")
    if wanted.is_of_tokens:
        changes["tokens_only"] = True
        _check_ids(spec, "step_tag_id", [config.step_tag_id or 0])
        if config.enable_chunked_processing:
            raise _misfit(spec, f"pooling_type {wanted}", "chunks are averaged, which is for one vector for a text")
    else:
        changes["pooling"] = (wanted,)


def _apply_returned_tokens(spec: ModelSpec, ids: list[int], changes: dict[str, Any], origins: dict[str, str]) -> None:
    if not spec.architecture.endswith("ForCausalLM"):
        raise _misfit(spec, "returned_token_ids", "it is for causal language models")
    _check_ids(spec, "returned_token_ids", ids)
    labels = tuple(map(str, ids))
    changes["head"] = "causal_lm"
    changes["classifier"] = Classifier(labels, "sigmoid" if len(ids) == 1 else "softmax", tuple(ids))
    origins["activation"] = "returned_token_ids"


def _check_ids(spec: ModelSpec, option: str, ids: list[int]) -> None:
    beyond = [token for token in ids if token >= spec.vocab_size]
    if beyond:
        raise _misfit(spec, option, f"{beyond[0]} is beyond its {spec.vocab_size} token ids")


def _misfit(spec: ModelSpec, option: str, why: str) -> ConfigError:
    return ConfigError(f"{option} in the pooler config does not fit {spec.name} ({spec.architecture}): {why}.")
