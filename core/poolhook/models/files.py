"""Reading the JSON files of a model directory, with errors that name the file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from poolhook.errors import ModelError, shorten

T = TypeVar("T")

_NOUNS: dict[type, str] = {bool: "true or false", int: "an integer", str: "a text", list: "a list", dict: "an object"}


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


def typed(config: Mapping[str, Any], key: str, kind: type[T], file: Path) -> T | None:
    """What `config`, the object in `file`, says of `key`; None where it says nothing.

    Raises:
        ModelError: it is of another kind.
    """
    value = config.get(key)
    if value is None or type(value) is kind:
        return value
    raise ModelError(f"{key} in {file} must be {_NOUNS[kind]}, not {shorten(repr(value))}.")


def length(config: Mapping[str, Any], key: str, file: Path) -> int | None:
    """As `typed`, for a positive integer."""
    value = typed(config, key, int, file)
    if value is not None and value < 1:
        raise ModelError(f"{key} in {file} must be positive, not {shorten(value)}.")
    return value


def words(config: Mapping[str, Any], key: str, file: Path) -> tuple[str, ...] | None:
    """As `typed`, for a list of texts."""
    value = typed(config, key, list, file)
    if value is not None and not all(isinstance(word, str) for word in value):
        raise ModelError(f"{key} in {file} must be a list of texts, not {shorten(value)}.")
    return None if value is None else tuple(value)


def _load(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{file} can't be read: {error}") from error


def _as_object(file: Path, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ModelError(f"{file} must hold JSON objects, not {type(value).__name__}.")
    return value
