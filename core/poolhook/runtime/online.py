"""The way of a request that an event loop serves: blocking work in a bounded thread pool, the engine awaited."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, copy_context
from functools import partial
from typing import Any, TypeVar

from poolhook.outputs import PoolingOutput
from poolhook.plugins import PoolingRequest, RequestContext, Route
from poolhook.plugins.instance import raise_named
from poolhook.runtime.flow import Answer, Prepared, conclude, new_context, prepare, withdraw
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
        """Serve `request`. Cancelling it withdraws what still waits for a thread or the engine.

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
        hops = _Hops(self._pool)
        ending = _Ending(route, ctx)
        futures: list[Future[PoolingOutput]] = []
        try:
            prepared = await self._prepare(route, ctx, data, hops, futures)
            computed = await _results(futures)

            def conclude_and_deliver() -> T:
                return deliver(route, conclude(self._runtime, route, ctx, prepared, computed))

            return await hops.hop(partial(ending.after, conclude_and_deliver))
        except BaseException as error:
            withdraw(futures)
            await hops.last(partial(ending.fail, error))
            raise
        finally:
            # A failed future holds its error, whose traceback holds this frame: break the circle.
            futures.clear()

    def close(self) -> None:
        """Wait for running hops and end the threads."""
        self._pool.shutdown()

    async def _prepare(
        self,
        route: Route,
        ctx: RequestContext,
        data: Any,
        hops: _Hops,
        futures: list[Future[PoolingOutput]],
    ) -> Prepared:
        """Go as far as the engine's queue; the engine's futures are added to `futures`."""

        def submit(request: Any) -> Prepared:
            prepared = prepare(self._runtime, route, ctx, request)
            if hops.caller_left:
                return prepared
            ctx.stage = "engine"
            # In the hop too: looking at every token id of a large request takes a while.
            futures.extend(self._runtime.engine.submit(prepared.to_run))
            return prepared

        if not route.prefetches:
            return await hops.hop(lambda: submit(route.parse_data(ctx, data)))
        request = await hops.hop(lambda: route.parse_data(ctx, data))
        ctx.fetched = await _fetch(route, ctx, request, hops.context)
        return await hops.hop(lambda: submit(request))


class _Ending:
    """Tells a route's plugins once that a request is over."""

    def __init__(self, route: Route, ctx: RequestContext) -> None:
        self._route = route
        self._ctx = ctx
        self._over = False

    def after(self, work: Callable[[], T]) -> T:
        """The result of `work`, with which the request is over."""
        result = work()
        self._over = True
        self._route.finish(self._ctx)
        return result

    def fail(self, error: BaseException) -> None:
        """The request ended in `error`, unless it was over when its caller left."""
        if not self._over:
            self._over = True
            try:
                self._route.fail(self._ctx, error)
            finally:
                self._route.finish(self._ctx)


class _Hops:
    """Runs a request's blocking pieces in the pool, one at a time, inside the request's one context."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self.context = copy_context()
        self.caller_left = False

    async def hop(self, work: Callable[[], T]) -> T:
        """The result of `work`; if the caller leaves before a thread is free, `work` is dropped."""
        return await _outlast(self._pool.submit(self.context.run, _run, work), self._leave)

    def _leave(self, waiting: Future[Any]) -> None:
        self.caller_left = True
        waiting.cancel()

    async def last(self, work: Callable[[], T]) -> T:
        """The result of `work`, which runs whatever happens: while the caller leaves, and when the pool is closed."""
        try:
            future = self._pool.submit(self.context.run, _run, work)
        except RuntimeError:
            return self.context.run(_run, work)
        return await _outlast(future, lambda _: False)


def _run(work: Callable[[], T]) -> T:
    """The result of `work`. An asyncio future refuses StopIteration and then never resolves, so it is renamed."""
    try:
        return work()
    except StopIteration as error:
        raise RuntimeError("a StopIteration got out") from error


async def _results(futures: Sequence[Future[PoolingOutput]]) -> list[PoolingOutput]:
    """The results of all, or the error of the first to fail, with a single wake-up of the event loop."""
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    waiting = len(futures)
    lock = threading.Lock()

    def count(future: Future[PoolingOutput]) -> None:
        nonlocal waiting
        with lock:
            waiting -= 1
            last = waiting == 0
        if last or future.cancelled() or future.exception() is not None:
            with contextlib.suppress(RuntimeError):  # the loop may be gone, and then nobody waits
                loop.call_soon_threadsafe(over.set)

    try:
        _watch(futures, count)
        if futures:
            await over.wait()
        # If one has failed, it raises here, and the rest need not be over. No frame of ours holds it then.
        return list(map(Future.result, filter(Future.done, futures)))
    finally:
        # A failed future holds its error, whose traceback holds this frame: break the circle.
        del futures


def _watch(futures: Sequence[Future[PoolingOutput]], watch: Callable[[Future[PoolingOutput]], None]) -> None:
    for future in futures:
        future.add_done_callback(watch)


async def _outlast(future: Future[T], withdraw: Callable[[Future[T]], Any]) -> T:
    """The result of `future`. A thread can't be interrupted: however often we are cancelled, its work is awaited."""
    waiter = asyncio.wrap_future(future)
    left: asyncio.CancelledError | None = None
    try:
        while not waiter.done():
            try:
                await asyncio.wait([waiter])
            except asyncio.CancelledError as error:
                left = error
                withdraw(future)
        if left is None:
            return waiter.result()
        if not waiter.cancelled():
            waiter.exception()  # seen, so that asyncio does not log it as lost
        raise left
    finally:
        # A failed future holds its error, whose traceback holds this frame: break the circle.
        del future, waiter, left


async def _fetch(route: Route, ctx: RequestContext, request: Any, context: Context) -> Sequence[Any]:
    """What the awaitables of `prefetch_online` return; if one fails or the caller leaves, the rest are cancelled."""

    async def guarded(awaitable: Awaitable[Any]) -> Any:
        try:
            return await awaitable
        except SystemExit as error:
            # asyncio would let it end the program.
            raise_named(route.processor.ref, ctx.stage, error)

    def start() -> list[asyncio.Future[Any]]:
        # Started inside the request's context, which each of them then sees a copy of.
        return [asyncio.ensure_future(guarded(awaitable)) for awaitable in route.prefetch_online(ctx, request)]

    fetching = context.run(start)
    try:
        return await asyncio.gather(*fetching)
    except Exception as error:
        raise_named(route.processor.ref, ctx.stage, error)
    finally:
        for task in fetching:
            task.cancel()
        # A task is over only when its own clean-up is.
        await asyncio.gather(*fetching, return_exceptions=True)
        del fetching
