"""The online face: HTTP. Needs the `server` extra."""

from poolhook.serving.app import build_app
from poolhook.serving.server import serve

__all__ = ["build_app", "serve"]
