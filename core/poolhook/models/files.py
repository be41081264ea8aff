"""Reading the JSON files of a model directory, with errors that name the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from poolhook.errors import ModelError


def read_json(file: Path, missing: str) -> dict[str, Any]:
    """The object in `file`.

    Raises:
        ModelError: there is no such file (`missing` says what to do), or it holds no JSON object.
    """
    value = _load(file)
    if value is None:
        raise ModelError(f"There is no {file}. {missing}")
    return _as_object(file, value)


def read_optional_json(file: Path) -> dict[str, Any]:
    """The object in `file`, or an empty one where there is no such file."""
    value = _load(file)
    return {} if value is None else _as_object(file, value)


def read_optional_json_list(file: Path) -> list[dict[str, Any]] | None:
    """The list of objects in `file`, or None where there is no such file."""
    value = _load(file)
    if value is None:
        return None
    if not isinstance(value, list):
        raise ModelError(f"{file} must hold a JSON list, not {type(value).__name__}.")
    return [_as_object(file, item) for item in value]


def _load(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ModelError(f"{file} can't be read: {error}") from error


def _as_object(file: Path, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ModelError(f"{file} must hold JSON objects, not {type(value).__name__}.")
    return value
