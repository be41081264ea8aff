"""`poolhook classify`: the labels of texts and their probabilities."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from poolhook.cli.inputs import InputFile, InputFormat, read_inputs
from poolhook.cli.options import Model, ModelOptions, Options, Progress, Truncate
from poolhook.cli.results import OutputFile, check_output, write_lines


def classify(
    model: Model,
    /,
    *texts: Annotated[str, Parameter(help="Texts to classify.")],
    input: InputFile = None,
    input_format: InputFormat = None,
    output: OutputFile = None,
    truncate_prompt_tokens: Truncate = None,
    progress: Progress = True,
    options: Options = ModelOptions(),
) -> None:
    """Classify texts: JSON lines with the best label and the probability of each."""
    inputs = read_inputs(texts, input, input_format)
    check_output(output)
    with options.load(model) as llm:
        outputs = llm.classify(
            inputs, tokenization_kwargs={"truncate_prompt_tokens": truncate_prompt_tokens}, use_tqdm=progress
        )
    write_lines(
        output,
        (
            {
                "index": index,
                "input": given,
                "label": item.outputs.label,
                "probs": dict(zip(item.outputs.labels, item.outputs.probs, strict=True)),
            }
            for index, (given, item) in enumerate(zip(inputs, outputs, strict=True))
        ),
    )
