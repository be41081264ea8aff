"""Writing results: JSON lines on standard output or in a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from poolhook.errors import InvalidRequest

OutputFile = Annotated[Path | None, Parameter(help="Write JSON lines to this file instead of standard output.")]


def check_output(output: Path | None) -> None:
    """Raise `InvalidRequest` if `output` can't be written, before anything slow is done."""
    if output is None:
        return
    if not output.parent.is_dir():
        raise InvalidRequest(f"--output can't be written: there is no directory {output.parent}.")
    if output.is_dir():
        raise InvalidRequest(f"--output can't be written: {output} is a directory.")


def write_lines(output: Path | None, objects: Iterable[Mapping[str, Any]]) -> None:
    """Write each object as a line of JSON."""
    lines = (json.dumps(value, ensure_ascii=False) + "\n" for value in objects)
    if output is None:
        sys.stdout.writelines(lines)
        return
    try:
        with output.open("w", encoding="utf-8") as file:
            file.writelines(lines)
    except OSError as error:
        raise InvalidRequest(f"--output can't be written: {error}") from error
