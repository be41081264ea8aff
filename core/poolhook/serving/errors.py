"""Errors as OpenAI writes them: `{"error": {"message", "type", "param", "code"}}`, always bounded."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException

from poolhook.errors import ClientError, Overloaded, PluginError, PoolhookError, shorten
from poolhook.serving.json import JSONResponse

logger = logging.getLogger(__name__)

_TYPES = {
    HTTPStatus.NOT_FOUND: "not_found_error",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "request_too_large",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
}


def error_response(
    status: HTTPStatus, message: str, param: str | None = None, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """An error in OpenAI's shape."""
    kind = _TYPES.get(status, "invalid_request_error" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "server_error")
    body = {"message": message, "type": kind, "param": param and shorten(param), "code": int(status)}
    return JSONResponse({"error": body}, status_code=status, headers=dict(headers or {}))


def respond_to(error: PoolhookError) -> JSONResponse:
    """The response to an error of poolhook's own, which is logged if it is the server's fault."""
    if isinstance(error, PluginError):
        logger.error("%s", error, exc_info=error.__cause__)
    elif not isinstance(error, ClientError):
        logger.error("%s", error)
    headers = {"Retry-After": str(error.retry_after)} if isinstance(error, Overloaded) else {}
    return error_response(error.status, str(error), getattr(error, "param", None), headers)


def install_error_handlers(app: FastAPI) -> None:
    """Make every error that leaves `app` one of these."""
    app.add_exception_handler(PoolhookError, _on_poolhook_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_bug)


async def _on_poolhook_error(_: Request, error: Any) -> JSONResponse:
    return respond_to(error)


async def _on_http_error(request: Request, error: Any) -> JSONResponse:
    status = HTTPStatus(error.status_code)
    message = str(error.detail)
    if status is HTTPStatus.NOT_FOUND:
        message = f"There is no {shorten(request.url.path)} here. See /docs for what there is."
    return error_response(status, shorten(message, 1000), headers=error.headers)


async def _on_bug(_: Request, error: Exception) -> JSONResponse:
    return error_response(HTTPStatus.INTERNAL_SERVER_ERROR, f"An internal error occurred ({type(error).__name__}).")
