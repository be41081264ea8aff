"""What happens to every HTTP request before and after its endpoint: a bound on its body, and a count."""

from __future__ import annotations

import time
from http import HTTPStatus

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from poolhook.errors import RequestTooLarge
from poolhook.serving.errors import respond_to
from poolhook.serving.metrics import Metrics


class BoundedBody:
    """Answers 413 to a body of more than `limit` bytes, whether or not its length was announced.

    Args:
        app: gets the request with its body already read.
        limit: in bytes.
    """

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        chunks, size, more = [], int(announced) if announced.isdigit() else 0, True
        if size <= self._limit:
            size = 0
            while more and size <= self._limit:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return
                chunks.append(message.get("body", b""))
                size += len(chunks[-1])
                more = message.get("more_body", False)
        if size > self._limit:
            response = respond_to(
                RequestTooLarge(
                    f"The body has more than {self._limit} bytes, which is this server's limit. Send fewer inputs."
                )
            )
            # What is left of the body is not read, so the connection can't be used again.
            response.headers["Connection"] = "close"
            await response(scope, receive, send)
            return
        body: list[Message] = [{"type": "http.request", "body": b"".join(chunks), "more_body": False}]

        async def replay() -> Message:
            return body.pop() if body else await receive()

        await self._app(scope, replay, send)


class Counted:
    """Counts requests and their time by endpoint and status.

    Args:
        app: answers.
        metrics: where to count.
        endpoints: the paths that are counted by name; every other is `other`.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, endpoints: frozenset[str]) -> None:
        self._app = app
        self._metrics = metrics
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = time.perf_counter()
        status = int(HTTPStatus.INTERNAL_SERVER_ERROR)

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            endpoint = scope["path"] if scope["path"] in self._endpoints else "other"
            self._metrics.count(endpoint, status, time.perf_counter() - start)
