"""`poolhook score` and `poolhook rerank`: how well documents go with a query."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from poolhook.cli.inputs import InputFile, InputFormat, read_inputs, read_objects
from poolhook.cli.options import Model, ModelOptions, Options, Progress, Truncate
from poolhook.cli.results import OutputFile, check_output, write_lines
from poolhook.errors import InvalidRequest

Query = Annotated[str, Parameter(help="The query.")]
Documents = Annotated[str, Parameter(help="Documents to compare with the query.")]


def score(
    model: Model,
    query: Annotated[str | None, Parameter(help="The query.")] = None,
    /,
    *documents: Documents,
    input: InputFile = None,
    input_format: InputFormat = None,
    pairs: Annotated[
        Path | None,
        Parameter(help="Read pairs instead: JSON lines with `query` and `document`.", allow_leading_hyphen=True),
    ] = None,
    output: OutputFile = None,
    truncate_prompt_tokens: Truncate = None,
    progress: Progress = True,
    options: Options = ModelOptions(),
) -> None:
    """Score a query with each document, or pairs of a file: JSON lines in their order."""
    check_output(output)
    queries, texts = _pairs(query, documents, input, input_format, pairs)
    with options.load(model) as llm:
        scores = llm.score(
            queries,
            texts,
            tokenization_kwargs={"truncate_prompt_tokens": truncate_prompt_tokens},
            use_tqdm=progress,
        )
    write_lines(
        output,
        (
            {
                "index": index,
                "query": queries if isinstance(queries, str) else queries[index],
                "document": texts[index],
                "score": item.outputs.score,
            }
            for index, item in enumerate(scores)
        ),
    )


def rerank(
    model: Model,
    query: Query,
    /,
    *documents: Documents,
    input: InputFile = None,
    input_format: InputFormat = None,
    output: OutputFile = None,
    top_n: Annotated[
        int | None, Parameter(help="How many of the best to show; all if unset.", validator=Number(gte=1))
    ] = None,
    truncate_prompt_tokens: Truncate = None,
    progress: Progress = True,
    options: Options = ModelOptions(),
) -> None:
    """Put documents in the order in which they answer a query: JSON lines, the best first."""
    check_output(output)
    texts = read_inputs(documents, input, input_format)
    with options.load(model) as llm:
        results = llm.rerank(
            query,
            texts,
            top_n=top_n,
            tokenization_kwargs={"truncate_prompt_tokens": truncate_prompt_tokens},
            use_tqdm=progress,
        )
    write_lines(
        output,
        ({"index": result.index, "score": result.score, "document": result.document} for result in results),
    )


def _pairs(
    query: str | None,
    documents: tuple[str, ...],
    file: Path | None,
    input_format: str | None,
    pairs: Path | None,
) -> tuple[str | list[str], list[str]]:
    if pairs is not None:
        if query is not None or file is not None:
            raise InvalidRequest("Give either a query with documents, or --pairs FILE.")
        objects = read_objects(pairs, "--pairs", ("query", "document"))
        return [entry["query"] for entry in objects], [entry["document"] for entry in objects]
    if query is None:
        raise InvalidRequest("Give a query and documents, or --pairs FILE.")
    return query, read_inputs(documents, file, input_format)
