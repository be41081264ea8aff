"""`PoolingServingBase`: what every pooling endpoint does, so that each says only what is its own."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, ClassVar, Generic, TypeVar, cast

from fastapi import Request
from pydantic import ValidationError
from starlette.responses import Response

from poolhook.errors import InvalidRequest, PluginContractError, UnknownModel, describe_problems, shorten
from poolhook.plugins import PoolingRequest, Route
from poolhook.runtime import Answer, OnlineRunner
from poolhook.serving.json import MEDIA_TYPE, dumps
from poolhook.serving.protocol import CommonFields

Body = TypeVar("Body", bound=CommonFields)

_SMALL_BODY = 64 * 1024  # bytes

CLIENT_LEFT = 499
"""nginx's status for a client that closed its connection; nobody is there to read it, but the metrics are."""


class PoolingServingBase(ABC, Generic[Body]):
    """Checks the model's name, runs the request, writes the answer, and notices when the client leaves.

    Args:
        runner: runs requests.
        model_name: the name under which the model is served.
    """

    body_type: ClassVar[type[CommonFields]]
    """What the body is read as; `Body`, where it can be seen at run time."""

    def __init__(self, runner: OnlineRunner, model_name: str) -> None:
        self._runner = runner
        self.model_name = model_name

    @abstractmethod
    def as_request(self, body: Body) -> PoolingRequest:
        """What `body` asks for."""

    @abstractmethod
    def as_content(self, body: Body, answer: Answer) -> Any:
        """The response's JSON, as anything that `dumps` understands."""

    async def __call__(self, http: Request) -> Response:
        """Answer a request.

        Raises:
            PoolhookError: whatever the request ran into; the app turns it into a response.
        """
        body = await self._read(http)
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

    async def _read(self, http: Request) -> Body:
        content_type = http.headers.get("content-type", "")
        if content_type.partition(";")[0].strip().lower() != MEDIA_TYPE:
            raise InvalidRequest(
                f"Send a JSON object, with Content-Type: {MEDIA_TYPE} (it was {shorten(content_type)!r})."
            )
        content = await http.body()
        # What takes a while must not hold up the event loop; what does not is not worth a thread.
        is_small = len(content) <= _SMALL_BODY
        return self._parse(content) if is_small else await asyncio.to_thread(self._parse, content)

    def _parse(self, content: bytes) -> Body:
        try:
            return cast(Body, self.body_type.model_validate_json(content))
        except ValidationError as error:
            problems = error.errors(include_url=False, include_input=False)
            text, field = describe_problems(problems)
            what = "body is not valid JSON" if problems[0]["type"] == "json_invalid" else "request is invalid"
            raise InvalidRequest(f"The {what}: {shorten(text, 1000)}", param=field) from error

    @staticmethod
    def created() -> int:
        """Now, in seconds since the epoch, as OpenAI stamps its answers."""
        return int(time.time())

    def envelope(self, kind: str, answer: Answer) -> dict[str, Any]:
        """What stands before the data of an answer in vLLM's shapes."""
        return {
            "id": f"{kind}-{answer.request_id}",
            "object": "list",
            "created": self.created(),
            "model": self.model_name,
        }

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
