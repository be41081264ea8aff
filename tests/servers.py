"""A real `poolhook serve` in a process of its own, on a free port of the loopback interface."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

COMMAND = [sys.executable, "-c", "from poolhook.cli import main; main()"]
_RUNNING = re.compile(r"Serving on (http://[\d.]+:\d+)")


class Server:
    """A running server.

    Args:
        url: where it listens.
        process: the process.
        log_file: what it writes.
    """

    def __init__(self, url: str, process: subprocess.Popen[bytes], log_file: Path) -> None:
        self.url = url
        self.process = process
        self._log_file = log_file

    @property
    def log(self) -> str:
        """What it has logged so far."""
        return self._log_file.read_text()

    def stop(self) -> int:
        """Send SIGTERM and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)


@contextmanager
def running_server(*arguments: str, env: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Run `poolhook serve ARGUMENTS` and yield it once it answers; stop it afterwards."""
    with TemporaryDirectory() as directory:
        log_file = Path(directory) / "log"
        with log_file.open("wb") as log:
            process = subprocess.Popen(
                [*COMMAND, "serve", *arguments, "--port", "0"],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "HF_HUB_OFFLINE": "1", **(env or {})},
            )
        try:
            yield Server(_wait_for_url(process, log_file), process, log_file)
        finally:
            process.terminate()
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def _wait_for_url(process: subprocess.Popen[bytes], log_file: Path, seconds: float = 120) -> str:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        running = _RUNNING.search(log_file.read_text())
        if running:
            return running.group(1)
        if process.poll() is not None:
            raise RuntimeError(f"The server ended with {process.returncode}:\n{log_file.read_text()}")
        time.sleep(0.05)
    raise TimeoutError(f"The server did not start in {seconds} s:\n{log_file.read_text()}")
