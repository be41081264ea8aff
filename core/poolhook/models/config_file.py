"""A model's `config.json`, as it stands and as transformers reads it, with the operator's overrides on top."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poolhook.errors import ModelError, shorten
from poolhook.models.files import read_json

if TYPE_CHECKING:
    from transformers import PretrainedConfig


def read_raw_config(path: Path, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The object in `config.json`, overridden.

    Raises:
        ModelError: there is none, or it holds no JSON object.
    """
    raw = read_json(path / "config.json", missing="A model directory has a config.json; is this one?")
    return _merged(raw, overrides)


def read_hf_config(path: Path, overrides: Mapping[str, Any]) -> PretrainedConfig:
    """What transformers makes of `config.json`, overridden. No code from the directory is run.

    Raises:
        ModelError: transformers can't read it.
    """
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(path, trust_remote_code=False, local_files_only=True)
        _override(config, overrides)
    except Exception as error:
        # transformers raises ValueError, KeyError, OSError, TypeError and its validators' own for a bad config.
        raw = read_raw_config(path, {})
        if "auto_map" in raw:
            raise ModelError(
                f"{path} brings Python code of its own (`auto_map` in config.json), which poolhook does not run, "
                f"and its model_type {raw.get('model_type')!r} is none that transformers knows."
            ) from error
        raise ModelError(f"transformers can't read {path / 'config.json'}: {shorten(str(error), 500)}") from error
    return config


def _merged(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in overrides.items():
        inner = merged.get(key)
        both = isinstance(value, Mapping) and isinstance(inner, Mapping)
        merged[key] = _merged(inner, value) if both else value  # type: ignore[arg-type]
    return merged


def _override(config: PretrainedConfig, overrides: Mapping[str, Any]) -> None:
    for key, value in overrides.items():
        inner = getattr(config, key, None)
        if isinstance(value, Mapping) and hasattr(inner, "to_dict"):
            _override(inner, value)
        else:
            setattr(config, key, value)
