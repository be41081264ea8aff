"""`poolhook embed`: texts to vectors, from the command line or from a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from poolhook.cli.options import Model, ModelOptions, Options
from poolhook.errors import InvalidRequest, shorten

if TYPE_CHECKING:
    from poolhook.outputs import EmbeddingRequestOutput

STDIN = Path("-")

_KEYS = {"text", "prompt", "prompt_token_ids"}


def embed(
    model: Model,
    /,
    *texts: Annotated[str, Parameter(help="Texts to embed.")],
    input: Annotated[
        Path | None,
        Parameter(help="Read inputs from this file instead; `-` is standard input.", allow_leading_hyphen=True),
    ] = None,
    input_format: Annotated[
        Literal["lines", "jsonl"] | None,
        Parameter(
            help="A text a line, or JSON a line: a text, token ids, or an object with `text`. "
            "Unset goes by the file's name; standard input is lines."
        ),
    ] = None,
    output: Annotated[
        Path | None, Parameter(help="Write to this file: `.npy` for an array, anything else for JSON lines.")
    ] = None,
    truncate_prompt_tokens: Annotated[
        int | None, Parameter(help="Cut each input to this many tokens; -1 is the model's maximum.")
    ] = None,
    prompt_name: Annotated[str | None, Parameter(help="One of the model's own prompts, such as `query`.")] = None,
    progress: Annotated[bool, Parameter(help="Show a progress bar.")] = True,
    options: Options = ModelOptions(),
) -> None:
    """Embed texts: JSON lines on standard output, or a file."""
    inputs = _inputs(texts, input, input_format)
    if output is not None and not output.parent.is_dir():
        raise InvalidRequest(f"--output can't be written: there is no directory {output.parent}.")
    from poolhook.offline import LLM

    with LLM(model, pooler_config=options.pooler_config, **options.engine.model_dump()) as llm:
        outputs = llm.embed(
            inputs,
            prompt_name=prompt_name,
            tokenization_kwargs={"truncate_prompt_tokens": truncate_prompt_tokens},
            use_tqdm=progress,
        )
    if output is None:
        sys.stdout.writelines(_json_lines(inputs, outputs))
    elif output.suffix == ".npy":
        import numpy as np

        np.save(output, np.stack([item.outputs.numpy() for item in outputs]))
    else:
        with output.open("w", encoding="utf-8") as file:
            file.writelines(_json_lines(inputs, outputs))


def _inputs(texts: Sequence[str], file: Path | None, input_format: str | None) -> list[Any]:
    if bool(texts) == (file is not None):
        raise InvalidRequest("Give either texts or --input FILE (`-` for standard input).")
    if file is None:
        return list(texts)
    try:
        content = sys.stdin.buffer.read() if file == STDIN else file.read_bytes()
        lines = content.decode("utf-8").splitlines() if b"\r" in content else content.decode("utf-8").split("\n")
    except OSError as error:
        raise InvalidRequest(f"--input can't be read: {error}") from error
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"--input is not UTF-8: {error}") from error
    if lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise InvalidRequest("--input is empty.")
    is_json = input_format == "jsonl" or (input_format is None and file.suffix in (".jsonl", ".ndjson"))
    return [_from_json(n, line) for n, line in enumerate(lines, 1) if line.strip()] if is_json else lines


def _from_json(number: int, line: str) -> Any:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise InvalidRequest(f"Line {number} of --input is not JSON: {shorten(line)}") from error
    if isinstance(value, dict) and not _KEYS & value.keys():
        raise InvalidRequest(f"Line {number} of --input is an object without `text`: {shorten(line)}")
    return value["text"] if isinstance(value, dict) and "text" in value else value


def _json_lines(inputs: Sequence[Any], outputs: Sequence[EmbeddingRequestOutput]) -> Iterable[str]:
    for index, (given, output) in enumerate(zip(inputs, outputs, strict=True)):
        line = {"index": index, "input": given, "embedding": output.outputs.embedding}
        yield json.dumps(line, ensure_ascii=False) + "\n"
