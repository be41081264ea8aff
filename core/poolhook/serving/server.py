"""Binding the port, and running the application with uvicorn."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from types import FrameType

import uvicorn
from fastapi import FastAPI

from poolhook.errors import ConfigError

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 30


def bind(host: str, port: int) -> socket.socket:
    """A socket bound to the address, before anything slow is done: a port in use should be known at once.

    It does not listen yet, so that nobody takes the server for ready.

    Args:
        host: a name or an address of this machine.
        port: 0 takes a free one.

    Raises:
        ConfigError: the address can't be bound.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(family, kind, protocol)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        raise ConfigError(
            f"Can't serve on {host}, port {port}: {error.strerror or error}. Choose others with --host and --port; "
            "port 0 takes a free one."
        ) from error
    return bound


def serve(app: FastAPI, bound: socket.socket) -> None:
    """Serve `app` until SIGINT or SIGTERM; then answer what runs, for at most `DRAIN_SECONDS`, and exit with 0.

    Args:
        app: what to serve.
        bound: where to listen; see `bind`.
    """
    # uvicorn raises the signal again once it has drained; a planned stop is no failure.
    for planned in (signal.SIGINT, signal.SIGTERM):
        signal.signal(planned, _exit_cleanly)
    config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=DRAIN_SECONDS)
    _Server(config).run(sockets=[bound])


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for bound in sockets or ():
            host, port = bound.getsockname()[:2]
            logger.info("Serving on http://%s:%d", f"[{host}]" if ":" in host else host, port)


def _exit_cleanly(_: int, __: FrameType | None) -> None:
    sys.exit(0)
