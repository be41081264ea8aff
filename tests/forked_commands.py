"""`poolhook` commands in processes of their own that need not import torch and transformers first.

They are forked from a server that has done so once, which takes as long as all of what many a command does. Beyond that
they are processes like any other: their arguments, directory, output and exit code are their own.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory

from poolhook.cli import main

# Modules that transformers loads lazily, and that every command needs.
_PRELOADED = ["poolhook.engine.build", "poolhook.serving", "transformers.models.auto.modeling_auto"]
_RUNNING = re.compile(r"Serving on (http://[\d.]+:\d+)")


def run_command(arguments: Sequence[str], directory: Path, site: Path, *, with_errors: bool) -> tuple[int, str, str]:
    """Run `poolhook ARGUMENTS` in `directory`, with the plugins in `site`.

    Args:
        arguments: what follows `poolhook`.
        directory: the working directory.
        site: put on `sys.path`.
        with_errors: standard error goes where standard output goes.

    Returns:
        The exit code, and what it wrote to standard output and to standard error.
    """
    with TemporaryDirectory() as written:
        output = Path(written) / "output"
        errors = output if with_errors else Path(written) / "errors"
        process = _start(arguments, directory, site, output, errors)
        process.join()
        return process.exitcode or 0, output.read_text(), errors.read_text()


@contextmanager
def forked_server(arguments: Sequence[str], directory: Path, site: Path) -> Iterator[str]:
    """Run `poolhook serve ARGUMENTS` on a free port, and yield its URL once it answers; stop it afterwards."""
    with TemporaryDirectory() as written:
        log = Path(written) / "log"
        process = _start(["serve", *arguments, "--port", "0"], directory, site, log, log)
        try:
            yield _wait_for_url(process, log)
        finally:
            process.terminate()
            process.join(60)
            if process.is_alive():
                process.kill()
                raise TimeoutError(f"The server did not stop:\n{log.read_text()}")


def _start(arguments: Sequence[str], directory: Path, site: Path, output: Path, errors: Path) -> BaseProcess:
    context: ForkServerContext = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    for file in (output, errors):
        file.touch()
    process = context.Process(target=_command, args=(list(arguments), directory, site, output, errors))
    process.start()
    return process


def _command(arguments: list[str], directory: Path, site: Path, output: Path, errors: Path) -> None:
    for file, descriptor in ((output, 1), (errors, 2)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_APPEND), descriptor)
    sys.path.insert(0, str(site))
    os.chdir(directory)
    main(arguments)


def _wait_for_url(process: BaseProcess, log: Path, seconds: float = 120) -> str:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        running = _RUNNING.search(log.read_text())
        if running:
            return running.group(1)
        if not process.is_alive():
            raise RuntimeError(f"The server ended with {process.exitcode}:\n{log.read_text()}")
        time.sleep(0.05)
    raise TimeoutError(f"The server did not start in {seconds} s:\n{log.read_text()}")
