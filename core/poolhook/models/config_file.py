"""A model's `config.json`, as it stands and as transformers reads it, with the operator's overrides on top."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from poolhook.errors import ModelError, describe_error, shorten
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

    raw = _without_contradiction(read_raw_config(path, overrides))
    # A file, since transformers does more with one than with the object in it.
    with TemporaryDirectory() as folder:
        try:
            (Path(folder) / "config.json").write_text(json.dumps(raw), encoding="utf-8")
            config: PretrainedConfig = AutoConfig.from_pretrained(
                folder, trust_remote_code=False, local_files_only=True
            )
        except Exception as error:
            # transformers raises ValueError, KeyError, OSError, TypeError and its validators' own for a bad config.
            if "auto_map" in raw:
                raise ModelError(
                    f"{path} brings Python code of its own (`auto_map` in config.json), which poolhook does not run, "
                    f"and its model_type {shorten(raw.get('model_type'))!r} is none that transformers knows."
                ) from error
            problem = describe_error(error).replace(folder, str(path))
            raise ModelError(f"transformers can't read {path / 'config.json'}: {problem}") from error
    return config


def _without_contradiction(raw: dict[str, Any]) -> dict[str, Any]:
    """`raw` without a `problem_type` that transformers refuses: cross-encoders choose one of several, but have one."""
    labels = raw.get("id2label") or raw.get("num_labels")
    is_single = labels == 1 or (isinstance(labels, Mapping) and len(labels) == 1)
    contradicts = is_single and raw.get("problem_type") == "single_label_classification"
    return raw | {"problem_type": None} if contradicts else raw


def _merged(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in overrides.items():
        inner = merged.get(key)
        both = isinstance(value, Mapping) and isinstance(inner, Mapping)
        merged[key] = _merged(inner, value) if both else value  # type: ignore[arg-type]
    return merged
