"""The entry point: which command is which module, and what a mistake looks like."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError
from pydantic import ValidationError

from poolhook._version import __version__
from poolhook.errors import (
    ClientError,
    ConfigError,
    PluginContractError,
    PluginLoadError,
    PoolhookError,
    describe_problems,
)

MISTAKE = 2
"""Exit code for what the user can put right: a wrong option, model, plugin or input."""
FAILURE = 1
INTERRUPTED = 130

app = App(
    name="poolhook",
    help="Serve pooling models: embeddings, labels, scores, and whatever a plugin makes of them.",
    version=__version__,
    version_flags=["--version"],
)
# By import path: a command's module is imported when it is needed.
app.command("poolhook.cli.embed:embed", name="embed", help="Embed texts, or the lines of a file.")
app.command("poolhook.cli.classify:classify", name="classify", help="Label texts, or the lines of a file.")
app.command("poolhook.cli.encode:encode", name="encode", help="Run any task, such as vectors and labels of tokens.")
app.command("poolhook.cli.score:score", name="score", help="Score a query with documents, or pairs of texts.")
app.command("poolhook.cli.score:rerank", name="rerank", help="Put documents in the order in which they answer a query.")
app.command("poolhook.cli.serve:serve", name="serve", help="Serve a model over HTTP.")
app.command(
    "poolhook.cli.info:info",
    name="info",
    help="Show what a model directory says, and what poolhook makes of it.",
)
app.command("poolhook.cli.plugins:app", name="plugins", help="Look at installed plugins.")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    Args:
        arguments: what follows the program's name; None takes it from `sys.argv`.
    """
    try:
        app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        command = " ".join(["poolhook", *(error.command_chain or ())])
        _stop(MISTAKE, f"{_what_is_wrong(error)} Try `{command} --help`.")
    except (ConfigError, ClientError, PluginLoadError, PluginContractError) as error:
        _stop(MISTAKE, str(error))
    except PoolhookError as error:
        _stop(FAILURE, str(error))
    except BrokenPipeError:
        # The reader has had enough; Python must not complain about it when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILURE)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _what_is_wrong(error: CycloptsError) -> str:
    cause = error.__cause__
    if isinstance(cause, ValidationError):
        # Options that are flattened into the command's own belong to an argument named *.
        group = error.argument.name if error.argument else "*"
        prefix = "--" if group == "*" else f"{group}."
        problems = [
            {**problem, "loc": _as_option(prefix, problem["loc"])} for problem in cause.errors(include_url=False)
        ]
        return f"{describe_problems(problems)[0].removesuffix('.')}."
    return " ".join(str(error).split())


def _as_option(prefix: str, location: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Where a problem is, with the field's name as the command line spells it."""
    return (prefix + str(location[0]).replace("_", "-"), *location[1:]) if location else ()


def _stop(code: int, message: str) -> None:
    print(f"poolhook: {message}", file=sys.stderr)
    sys.exit(code)
