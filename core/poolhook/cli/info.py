"""`poolhook info`: what a model directory says, and what poolhook makes of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from poolhook.cli.options import Model, ModelOptions, Options

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
    from poolhook.models import read_spec, resolve_model

    spec = read_spec(resolve_model(model), model).overridden_by(options.pooler_config)
    facts = {**_facts(spec), **(_facts_of_loading(spec, options) if load else {})}
    if as_json:
        print(json.dumps(facts, indent=2, ensure_ascii=False))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        origin = spec.origins.get(name)
        print(f"{name.ljust(width)}  {_shown(value)}" + (f"  (from {origin})" if origin else ""))


def _facts(spec: ModelSpec) -> dict[str, Any]:
    return {
        "model": spec.name,
        "path": str(spec.path),
        "architecture": spec.architecture,
        "model_type": spec.model_type,
        "tasks": ["embed", *(["plugin"] if spec.io_processor_plugins else [])],
        "pooling": [str(method) for method in spec.pooling],
        "normalize": spec.normalize,
        "embedding_size": spec.embedding_size,
        "max_length": spec.max_length,
        "vocab_size": spec.vocab_size,
        "checkpoint_dtype": spec.checkpoint_dtype,
        "sliding_window": spec.sliding_window,
        "prompts": dict(spec.prompts),
        "default_prompt_name": spec.default_prompt_name,
        "do_lower_case": spec.do_lower_case,
        "truncation_side": spec.truncation_side,
        "matryoshka_dimensions": spec.matryoshka_dimensions,
        "io_processor_plugins": list(spec.io_processor_plugins),
    }


def _facts_of_loading(spec: ModelSpec, options: ModelOptions) -> dict[str, Any]:
    from poolhook.engine.build import build_engine

    built = build_engine(spec, options.engine)
    built.core.close()
    return {
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
