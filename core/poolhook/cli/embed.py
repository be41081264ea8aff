"""`poolhook embed`: texts to vectors, from the command line or from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from poolhook.cli.inputs import InputFile, InputFormat, read_inputs
from poolhook.cli.options import Model, ModelOptions, Options, Progress, Truncate
from poolhook.cli.results import check_output, write_lines


def embed(
    model: Model,
    /,
    *texts: Annotated[str, Parameter(help="Texts to embed.")],
    input: InputFile = None,
    input_format: InputFormat = None,
    output: Annotated[
        Path | None, Parameter(help="Write to this file: `.npy` for an array, anything else for JSON lines.")
    ] = None,
    truncate_prompt_tokens: Truncate = None,
    prompt_name: Annotated[str | None, Parameter(help="One of the model's own prompts, such as `query`.")] = None,
    progress: Progress = True,
    options: Options = ModelOptions(),
) -> None:
    """Embed texts: JSON lines on standard output, or a file."""
    inputs = read_inputs(texts, input, input_format)
    check_output(output)
    with options.load(model) as llm:
        outputs = llm.embed(
            inputs,
            prompt_name=prompt_name,
            tokenization_kwargs={"truncate_prompt_tokens": truncate_prompt_tokens},
            use_tqdm=progress,
        )
    if output is not None and output.suffix == ".npy":
        import numpy as np

        np.save(output, np.stack([item.outputs.numpy() for item in outputs]))
        return
    write_lines(
        output,
        (
            {"index": index, "input": given, "embedding": item.outputs.embedding}
            for index, (given, item) in enumerate(zip(inputs, outputs, strict=True))
        ),
    )
