"""Running the application with uvicorn."""

from __future__ import annotations

import signal
import sys
from types import FrameType

import uvicorn
from fastapi import FastAPI

DRAIN_SECONDS = 30


def serve(app: FastAPI, host: str, port: int) -> None:
    """Serve `app` until SIGINT or SIGTERM; then answer what runs, for at most `DRAIN_SECONDS`, and exit with 0.

    Args:
        app: what to serve.
        host: the address to bind.
        port: 0 takes a free one, which the log names.
    """
    # uvicorn raises the signal again once it has drained; a planned stop is no failure.
    for planned in (signal.SIGINT, signal.SIGTERM):
        signal.signal(planned, _exit_cleanly)
    config = uvicorn.Config(app, host=host, port=port, log_config=None, timeout_graceful_shutdown=DRAIN_SECONDS)
    uvicorn.Server(config).run()


def _exit_cleanly(_: int, __: FrameType | None) -> None:
    sys.exit(0)
