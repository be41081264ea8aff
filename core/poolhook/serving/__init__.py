"""The online face: HTTP. Needs the `server` extra."""

from poolhook.serving.app import build_app
from poolhook.serving.server import bind, serve

__all__ = ["bind", "build_app", "serve"]
