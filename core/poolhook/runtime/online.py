"""The way of a request that an event loop serves: blocking work in a bounded thread pool, the engine awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, TypeVar

from poolhook.outputs import PoolingOutput
from poolhook.plugins import PoolingRequest, RequestContext, Route
from poolhook.runtime.flow import Answer, Prepared, conclude, new_context, prepare
from poolhook.runtime.runtime import Runtime

T = TypeVar("T")


class OnlineRunner:
    """Serves requests on an event loop.

    A request takes two hops into the thread pool, one from `parse_data` through render and one for post-processing,
    both inside one `contextvars` context; `prefetch_online` alone runs on the loop, and parts the first hop in two.

    Args:
        runtime: what serves.
        threads: how many requests may be tokenized or post-processed at once.
    """

    def __init__(self, runtime: Runtime, threads: int = 4) -> None:
        self._runtime = runtime
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="poolhook-io")

    async def run(self, request: PoolingRequest, deliver: Callable[[Route, Answer], T]) -> T:
        """Serve `request`. Cancelling it withdraws what still waits for the engine.

        Args:
            request: what is asked for.
            deliver: makes the face's answer of the route's; runs in the last hop, since it may have much to write.

        Raises:
            InvalidRequest: the request can't be served as it stands.
            Overloaded: the queue is full.
            EngineError: the engine could not compute it.
            PluginError: a plugin failed.
        """
        route, data = self._runtime.processors.dispatch(request)
        ctx = new_context(route, request, "online")
        hop = _Hop(self._pool)
        try:
            prepared = await self._prepare(route, ctx, data, hop)
            ctx.stage = "engine"
            computed = await _gather(self._runtime.engine.submit(prepared.missing))
            delivered = await hop(lambda: deliver(route, conclude(route, ctx, prepared, computed)))
        except BaseException as error:
            failure = error
            await hop(lambda: _end(route, ctx, failure))
            raise
        await hop(lambda: route.finish(ctx))
        return delivered

    def close(self) -> None:
        """Wait for running hops and end the threads."""
        self._pool.shutdown()

    async def _prepare(self, route: Route, ctx: RequestContext, data: Any, hop: _Hop) -> Prepared:
        renderer = self._runtime.renderer
        if not route.prefetches:
            return await hop(lambda: prepare(route, renderer, ctx, route.parse_data(ctx, data)))
        request = await hop(lambda: route.parse_data(ctx, data))
        ctx.fetched = await asyncio.gather(*route.prefetch_online(ctx, request))
        return await hop(lambda: prepare(route, renderer, ctx, request))


class _Hop:
    """Runs a request's blocking pieces in the pool, inside the request's one context."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._context = copy_context()

    async def __call__(self, work: Callable[[], T]) -> T:
        task = asyncio.get_running_loop().run_in_executor(self._pool, self._context.run, work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # A thread can't be interrupted: the request is over only when its last hop has returned.
            await asyncio.wait([task])
            raise


async def _gather(futures: list[Future[PoolingOutput]]) -> list[PoolingOutput]:
    """Await all; if one fails or the caller leaves, withdraw the rest."""
    try:
        return await asyncio.gather(*map(asyncio.wrap_future, futures))
    except BaseException:
        for future in futures:
            future.cancel()
        raise


def _end(route: Route, ctx: RequestContext, error: BaseException) -> None:
    route.fail(ctx, error)
    route.finish(ctx)
