"""The way of a request that a Python caller waits for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from poolhook.outputs import PoolingOutput
from poolhook.plugins import PoolingRequest
from poolhook.runtime.flow import Answer, conclude, new_context, prepare, withdraw
from poolhook.runtime.runtime import Runtime

Watch = Callable[[Sequence["Future[PoolingOutput]"]], Any]
"""Told of the engine's futures as soon as they exist, for a progress bar."""


def run_offline(runtime: Runtime, request: PoolingRequest, watch: Watch | None = None) -> Answer:
    """Serve `request` in the calling thread and return the route's answer.

    Raises:
        InvalidRequest: the request can't be served as it stands.
        EngineError: the engine could not compute it.
        PluginError: a plugin failed.
    """
    route, data = runtime.processors.dispatch(request)
    ctx = new_context(route, request, "offline")
    futures: list[Future[PoolingOutput]] = []
    try:
        prepared = prepare(runtime, route, ctx, route.parse_data(ctx, data))
        ctx.stage = "engine"
        futures = runtime.engine.submit(prepared.to_run)
        if watch is not None:
            watch(futures)
        return conclude(runtime, route, ctx, prepared, list(map(Future.result, futures)))
    except BaseException as error:
        # Also when the user presses Ctrl-C: what still waits must not keep the engine busy.
        withdraw(futures)
        route.fail(ctx, error)
        raise
    finally:
        # A failed future holds the error, whose traceback holds this frame: without this a circle would keep both.
        del futures
        route.finish(ctx)
