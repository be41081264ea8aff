"""`poolhook info`: what a model directory says, and what poolhook makes of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from poolhook.cli.options import Model, ModelOptions, Options
from poolhook.tasks import PoolingTask

if TYPE_CHECKING:
    from poolhook.models import ModelSpec


def info(
    model: Model,
    /,
    *,
    load: Annotated[
        bool, Parameter(help="Load the weights too, and say how batches are run: packed, padded or by length.")
    ] = False,
    as_json: Annotated[bool, Parameter(name="--json", help="Print JSON.")] = False,
    options: Options = ModelOptions(),
) -> None:
    """Show what a model directory says, what poolhook makes of it, and which file decided each value."""
    from poolhook.models import override, read_spec, resolve_model
    from poolhook.runtime import build_renderer, served_tasks

    path = resolve_model(model, options.engine.load_format)
    spec = override(read_spec(path, model, options.overrides), options.pooler_config)
    supported, task = served_tasks(spec, options.pooler_config, spec.io_processor_plugins)
    build_renderer(spec, options.chat_template)  # which fails, or warns, as serving would
    spec, of_loading = _load(spec, options) if load else (spec, {})
    facts = {**_facts(spec, supported, task), **of_loading}
    if as_json:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        origin = spec.origins.get(name)
        print(f"{name.ljust(width)}  {_shown(value)}" + (f"  (from {origin})" if origin else ""))


def _facts(spec: ModelSpec, supported: tuple[PoolingTask, ...], task: PoolingTask) -> dict[str, Any]:
    return {
        "model": spec.name,
        "path": str(spec.path),
        "architecture": spec.architecture,
        "model_type": spec.model_type,
        "tasks": list(supported),
        "task": task,
        **(_facts_of_labels(spec) if spec.classifier is not None else _facts_of_embeddings(spec)),
        "max_length": spec.max_length,
        "vocab_size": spec.vocab_size,
        "checkpoint_dtype": spec.checkpoint_dtype,
        "sliding_window": spec.sliding_window,
        "do_lower_case": spec.do_lower_case,
        "truncation_side": spec.truncation_side,
        "io_processor_plugins": list(spec.io_processor_plugins),
    }


def _facts_of_labels(spec: ModelSpec) -> dict[str, Any]:
    classifier = spec.classifier
    if classifier is None:
        return {}
    of_tokens = {"step_tag_id": spec.step_tag_id} if "token_classify" in spec.tasks else {}
    return {
        **(of_tokens or {"pooling": list(map(str, spec.pooling))}),
        "labels": list(classifier.labels),
        "activation": classifier.activation if spec.use_activation else "none",
        **({"answer_tokens": list(classifier.tokens)} if classifier.tokens else {}),
        "logit_mean": spec.logit_mean,
        "logit_sigma": spec.logit_sigma,
    }


def _facts_of_embeddings(spec: ModelSpec) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if spec.splade is not None:
        facts["pooling"] = [f"SPLADE {spec.splade.strategy}"]
    elif "embed" in spec.tasks:
        facts["pooling"] = list(map(str, spec.pooling))
    if spec.late_interaction is not None:
        roles = {"query": spec.late_interaction.query, "document": spec.late_interaction.document}
        facts["roles"] = {
            name: f"prefix {role.prefix!r}, up to {role.max_length or spec.max_length} tokens"
            + (f", filled up to {role.expand_to}" if role.expand_to else "")
            + (f", without the vectors of {len(role.skip_words)} words" if role.skip_words else "")
            for name, role in roles.items()
        }
    if spec.splade is None:
        facts["normalize"] = spec.normalize
    if spec.dense:
        facts["dense"] = [layer.size for layer in spec.dense]
    return facts | {
        "embedding_size": spec.embedding_size,
        "dimensions": spec.dimensions,
        "matryoshka_dimensions": spec.matryoshka_dimensions,
        "prompts": dict(spec.prompts),
        "default_prompt_name": spec.default_prompt_name,
        "include_prompt": spec.include_prompt,
        "similarity": spec.similarity,
        "chunked_processing": spec.is_chunked,
        "max_embed_len": spec.max_embed_len,
    }


def _load(spec: ModelSpec, options: ModelOptions) -> tuple[ModelSpec, dict[str, Any]]:
    """The spec as loading found it to be, and how batches are run."""
    from poolhook.engine.build import build_engine

    built = build_engine(spec, options.engine)
    built.core.close()
    return built.spec, {
        "batches": built.forward,
        "device": str(built.device),
        "dtype": str(built.dtype).removeprefix("torch."),
    }


def _shown(value: Any) -> str:
    if value is None or value in ([], {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "any length"
    if isinstance(value, dict):
        return ", ".join(f"{name}={text!r}" for name, text in value.items())
    return str(value)
