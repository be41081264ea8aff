"""`poolhook serve`: a model over HTTP."""

from __future__ import annotations

import logging
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from poolhook.cli.options import Model, ModelOptions, Options
from poolhook.errors import ConfigError

DEFAULT_QUEUE = 262_144
"""Tokens that may wait before requests are refused, unless the operator says otherwise."""


def serve(
    model: Model,
    /,
    *,
    host: Annotated[str, Parameter(help="The address to bind.")] = "127.0.0.1",
    port: Annotated[
        int,
        Parameter(help="The port; 0 takes a free one.", validator=Number(gte=0, lte=65535)),
    ] = 8000,
    served_model_name: Annotated[str | None, Parameter(help="The name that clients use for the model.")] = None,
    io_processor_plugin: Annotated[
        str | None,
        Parameter(help="IO processors that serve task `plugin`, by name, with commas between several."),
    ] = None,
    wrapper: Annotated[
        tuple[str, ...],
        Parameter(
            help="A wrapper to put around every route; may be repeated, and the first is the outermost.",
            negative=(),
            show_default=False,
        ),
    ] = (),
    options: Options = ModelOptions(),
) -> None:
    """Serve a model over HTTP: OpenAI's /v1/embeddings, /classify, /score, /rerank, /pooling, and /health, /v1/models
    and /metrics."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        from poolhook import serving
    except ModuleNotFoundError as error:
        raise ConfigError(f"Serving needs the server extra ({error}): pip install 'poolhook[server]'") from error
    from poolhook.runtime import RuntimeConfig, build_runtime

    bound = serving.bind(host, port)
    engine = options.engine
    if engine.max_queued_tokens is None:
        engine = engine.model_copy(update={"max_queued_tokens": DEFAULT_QUEUE})
    runtime = build_runtime(
        RuntimeConfig(
            model=model,
            pooler_config=options.pooler_config,
            engine_config=engine,
            io_processor_plugins=io_processor_plugin.split(",") if io_processor_plugin is not None else None,
            wrappers=wrapper,
            hf_overrides=options.overrides,
            chat_template=options.chat_template,
        )
    )
    serving.serve(serving.build_app(runtime, model_name=served_model_name), bound)
