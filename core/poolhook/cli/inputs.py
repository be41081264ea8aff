"""Reading inputs: from the command line's arguments, from a file or from standard input; as lines or as JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from poolhook.errors import InvalidRequest, shorten

STDIN = Path("-")

InputFile = Annotated[
    Path | None,
    Parameter(help="Read inputs from this file instead; `-` is standard input.", allow_leading_hyphen=True),
]
InputFormat = Annotated[
    Literal["lines", "jsonl"] | None,
    Parameter(
        help="A text a line, or JSON a line: a text, token ids, or an object with `text`. "
        "Unset goes by the file's name; standard input is lines."
    ),
]

_KEYS = {"text", "prompt", "prompt_token_ids", "messages"}
_MORE_KEYS = {"text_pair", "add_generation_prompt"}


def read_inputs(texts: Sequence[str], file: Path | None, input_format: str | None) -> list[Any]:
    """The texts, or what is in `file`.

    Raises:
        InvalidRequest: there are both or neither, the file can't be read, or a line of it is no input.
    """
    if bool(texts) == (file is not None):
        raise InvalidRequest("Give either texts or --input FILE (`-` for standard input).")
    if file is None:
        return list(texts)
    lines = _lines(file, "--input")
    inputs = lines
    if _is_json(file, input_format):
        inputs = [_from_json(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not inputs:
        raise InvalidRequest("--input is empty.")
    return inputs


def read_objects(file: Path, option: str, keys: Sequence[str]) -> list[dict[str, Any]]:
    """The objects in a file of JSON lines, each with the given keys.

    Args:
        file: what to read.
        option: by which it was given, for messages.
        keys: what each object has.

    Raises:
        InvalidRequest: the file can't be read or is empty, or a line is no such object.
    """
    lines = enumerate(_lines(file, option), 1)
    objects = [(number, _parsed(number, line, option)) for number, line in lines if line.strip()]
    for number, value in objects:
        if not isinstance(value, dict) or any(key not in value for key in keys):
            raise InvalidRequest(f"Line {number} of {option} is no object with {', '.join(keys)}: {shorten(value)}")
    if not objects:
        raise InvalidRequest(f"{option} is empty.")
    return [value for _, value in objects]


def _is_json(file: Path, input_format: str | None) -> bool:
    return input_format == "jsonl" or (input_format is None and file.suffix in (".jsonl", ".ndjson"))


def _lines(file: Path, option: str) -> list[str]:
    try:
        content = sys.stdin.buffer.read() if file == STDIN else file.read_bytes()
        # Not splitlines(), which also breaks at characters that may stand in a text, such as U+2028.
        lines = content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    except OSError as error:
        raise InvalidRequest(f"{option} can't be read: {error}") from error
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"{option} is not UTF-8: {error}") from error
    if lines and not lines[-1]:
        lines.pop()
    return lines


def _from_json(number: int, line: str) -> Any:
    value = _parsed(number, line, "--input")
    if isinstance(value, dict) and not _KEYS & value.keys():
        raise InvalidRequest(f"Line {number} of --input is an object without `text`: {shorten(line)}")
    if not isinstance(value, dict):
        return value
    # An object may hold more than the prompt, such as an id; a pair has a text too.
    prompt = {key: entry for key, entry in value.items() if key in _KEYS | _MORE_KEYS}
    return prompt["text"] if set(prompt) == {"text"} else prompt


def _parsed(number: int, line: str, option: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"Line {number} of {option} is not JSON: {shorten(line)}") from error
