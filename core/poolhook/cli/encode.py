"""`poolhook encode`: whatever a task's pooler computes, such as vectors and labels of tokens."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from poolhook.cli.inputs import InputFile, InputFormat, read_inputs
from poolhook.cli.options import Model, ModelOptions, Options, Progress, Truncate
from poolhook.cli.results import OutputFile, check_output, write_lines


def encode(
    model: Model,
    /,
    *texts: Annotated[str, Parameter(help="Texts to run the task on.")],
    task: Annotated[str | None, Parameter(help="The task; unset is the one that the model is served for.")] = None,
    input: InputFile = None,
    input_format: InputFormat = None,
    output: OutputFile = None,
    truncate_prompt_tokens: Truncate = None,
    prompt_name: Annotated[
        str | None, Parameter(help="One of the model's own prompts; `query` or `document` for late interaction.")
    ] = None,
    progress: Progress = True,
    options: Options = ModelOptions(),
) -> None:
    """Run a task on texts: JSON lines with the token ids and the pooled data of each."""
    inputs = read_inputs(texts, input, input_format)
    check_output(output)
    with options.load(model) as llm:
        outputs = llm.encode(
            inputs,
            pooling_task=task,
            prompt_name=prompt_name,
            tokenization_kwargs={"truncate_prompt_tokens": truncate_prompt_tokens},
            use_tqdm=progress,
        )
    write_lines(
        output,
        (
            {
                "index": index,
                "input": given,
                "prompt_token_ids": list(item.prompt_token_ids),
                "data": item.outputs.data.tolist(),
                **{name: part.tolist() for name, part in item.outputs.parts.items()},
            }
            for index, (given, item) in enumerate(zip(inputs, outputs, strict=True))
        ),
    )
