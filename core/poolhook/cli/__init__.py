"""The command line: `poolhook embed`, `serve`, `info` and `plugins`, one module a command.

Modules here import nothing heavy at the top, so that `--help` answers at once.
"""

from poolhook.cli.main import main

__all__ = ["main"]
