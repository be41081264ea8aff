"""`PoolingServingBase`: what every pooling endpoint does, so that each says only what is its own."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

from fastapi import Request
from starlette.responses import Response

from poolhook.errors import PluginContractError, UnknownModel, shorten
from poolhook.plugins import PoolingRequest, Route
from poolhook.runtime import Answer, OnlineRunner
from poolhook.serving.json import MEDIA_TYPE, dumps
from poolhook.serving.protocol import CommonFields

Body = TypeVar("Body", bound=CommonFields)

CLIENT_LEFT = 499
"""nginx's status for a client that closed its connection; nobody is there to read it, but the metrics are."""


class PoolingServingBase(ABC, Generic[Body]):
    """Checks the model's name, runs the request, writes the answer, and notices when the client leaves.

    Args:
        runner: runs requests.
        model_name: the name under which the model is served.
    """

    def __init__(self, runner: OnlineRunner, model_name: str) -> None:
        self._runner = runner
        self.model_name = model_name

    @abstractmethod
    def as_request(self, body: Body) -> PoolingRequest:
        """What `body` asks for."""

    @abstractmethod
    def as_content(self, body: Body, answer: Answer) -> Any:
        """The response's JSON, as anything that `dumps` understands."""

    async def __call__(self, body: Body, http: Request) -> Response:
        """Answer `body`.

        Raises:
            PoolhookError: whatever the request ran into; the app turns it into a response.
        """
        if body.model is not None and body.model != self.model_name:
            raise UnknownModel(
                f"Model {shorten(body.model)!r} is not served here, but {self.model_name!r} is.",
                param="model",
            )

        def write(route: Route, answer: Answer) -> bytes:
            try:
                return dumps(self.as_content(body, answer))
            except TypeError as error:
                raise PluginContractError(str(route.processor.ref), f"its answer can't be sent: {error}.") from error

        content = await _unless_client_leaves(http, self._runner.run(self.as_request(body), write))
        if content is None:
            return Response(status_code=CLIENT_LEFT)
        return Response(content, media_type=MEDIA_TYPE)

    @staticmethod
    def created() -> int:
        """Now, in seconds since the epoch, as OpenAI stamps its answers."""
        return int(time.time())

    @staticmethod
    def usage(answer: Answer) -> dict[str, int]:
        """What the request cost, as OpenAI states it."""
        return {"prompt_tokens": answer.prompt_tokens, "total_tokens": answer.prompt_tokens}


async def _unless_client_leaves(http: Request, work: Coroutine[Any, Any, bytes]) -> bytes | None:
    """The result of `work`; None, and `work` cancelled, if the client closes the connection first."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnected(http))
    try:
        await asyncio.wait([working, leaving], return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        working.cancel()
        await asyncio.wait([working])
        return None
    finally:
        leaving.cancel()
        working.cancel()


async def _disconnected(http: Request) -> None:
    while (await http.receive())["type"] != "http.disconnect":
        pass
