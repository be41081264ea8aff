"""The Markdown pages of the documentation, and running them: every block is a promise.

A page is a story: its blocks run in order, in one directory. What a block is, its language says:

* `python` runs in this process, with the names of the page's earlier blocks;
* `bash` runs as a script that must succeed; `console` runs each line after `$ `, and what it prints must be what
  the page shows (`poolhook` commands that need no shell run as `forked_commands` has them);
* `text` directly after a `python` or `bash` block is what that block must print; other `text` is for reading;
* `toml` must parse.

A comment on the line before a block changes that: `<!-- file: NAME -->` writes the block to a file,
`<!-- serves -->` starts the server that the block's one line starts, on a free port that takes the place of 8000 in
the rest of the page, and `<!-- not run: WHY -->` leaves it out.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from itertools import pairwise
from pathlib import Path
from typing import Any

from forked_commands import forked_server, run_command
from plugins_fixture import REPOSITORY
from servers import COMMAND
from tiny_models import tiny_trained

PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "plugin_template" / "README.md",
    *sorted((REPOSITORY / "docs").glob("*.md")),
]
LANGUAGES = {"python", "bash", "console", "text", "toml"}
DOCUMENTED_URL = "http://127.0.0.1:8000"
_WITH_ERRORS = " 2>&1"
MODELS = {
    "tiny-reranker": "tiny-reranker",
    "tiny-classifier": "tiny-injection-classifier",
    "tiny-tagger": "tiny-ner",
    "tiny-colbert": "tiny-colbert",
}
"""Model directories that pages find where they run, and the trained tiny models that they are."""

_BLOCK = re.compile(
    r"(?:^<!-- (?P<marker>.+?) -->\n)?^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Args:
        where: file and line, for messages.
        language: what follows the fence.
        code: its lines.
        marker: the comment before it.
        shown: the `text` block directly after it.
    """

    where: str
    language: str
    code: str
    marker: str = ""
    shown: str | None = None

    def file(self) -> str | None:
        """The file that the block is."""
        return self.marker.removeprefix("file: ") if self.marker.startswith("file: ") else None

    @property
    def is_skipped(self) -> bool:
        """Whether the page says that the block is not run."""
        return self.marker.startswith("not run: ")


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of `page`, in order."""
    text = page.read_text(encoding="utf-8")
    found = list(_BLOCK.finditer(text))
    blocks = []
    for match, following in pairwise([*found, None]):
        shown = None
        if (
            following is not None
            and following["language"] == "text"
            and not text[match.end() : following.start()].strip()
        ):
            shown = following["code"]
        name = page.relative_to(REPOSITORY) if page.is_relative_to(REPOSITORY) else page.name
        where = f"{name}:{text.count(chr(10), 0, match.start('code')) + 1}"
        blocks.append(Block(where, match["language"], match["code"], match["marker"] or "", shown))
    return blocks


class PageRunner:
    """Runs blocks in `directory`, which sees the repository's folders, `MODELS`, and a site directory for pip."""

    def __init__(self, directory: Path) -> None:
        self.site = directory / "site"
        self.site.mkdir()
        self.work = directory / "work"
        self.work.mkdir()
        for name in ("plugin_template", "examples", "benchmarks"):
            (self.work / name).symlink_to(REPOSITORY / name)
        for name, model in MODELS.items():
            (self.work / name).symlink_to(tiny_trained(model), target_is_directory=True)
        self._commands = directory / "bin"
        self._write_commands()
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._servers = contextlib.ExitStack()
        self._url = DOCUMENTED_URL

    def run(self, block: Block) -> None:
        """Run one block and check what it prints.

        Raises:
            AssertionError: it failed, or printed something else than the page shows.
        """
        code = block.code.replace(DOCUMENTED_URL, self._url)
        if block.is_skipped:
            return
        if block.file():
            path = self.work / str(block.file())
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(code, encoding="utf-8")
        elif block.marker == "serves":
            self._serve(code)
        elif block.language == "python":
            _check(block.where, block.shown, self._python(block.where, code))
        elif block.language == "bash":
            _check(block.where, block.shown, self._bash(block.where, code))
        elif block.language == "console":
            for command, shown in _commands_in(code):
                run = self._poolhook if _is_plain(command) else self._bash
                _check(f"{block.where}, $ {command}", shown, run(block.where, command))
        elif block.language == "toml":
            tomllib.loads(code)

    def close(self) -> None:
        """Stop the page's server."""
        self._names.clear()
        self._servers.close()

    def _python(self, where: str, code: str) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.chdir(self.work):
            exec(compile(code, where, "exec"), self._names)
        return printed.getvalue()

    def _poolhook(self, where: str, command: str) -> str:
        arguments = shlex.split(command.removesuffix(_WITH_ERRORS))[1:]
        code, output, errors = run_command(arguments, self.work, self.site, with_errors=command.endswith(_WITH_ERRORS))
        assert code == 0, f"{where} ended with {code}:\n{command}\n{output}{errors}"
        return output

    def _bash(self, where: str, code: str) -> str:
        if "curl" in code and shutil.which("curl") is None:
            return "(this machine has no curl)"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", code],
            cwd=self.work,
            env=self._environment(),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{where} ended with {done.returncode}:\n{code}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _serve(self, code: str) -> None:
        program, command, *arguments = shlex.split(code)
        assert (program, command) == ("poolhook", "serve"), code
        self._servers.close()
        self._url = self._servers.enter_context(forked_server(arguments, self.work, self.site))

    def _environment(self) -> dict[str, str]:
        pip = {"TARGET": str(self.site), "NO_DEPS": "1", "NO_BUILD_ISOLATION": "0", "NO_INDEX": "1", "QUIET": "1"}
        return {
            **os.environ,
            **{f"PIP_{name}": value for name, value in pip.items()},
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PATH": f"{self._commands}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(self.site),
            "HF_HUB_OFFLINE": "1",
        }

    def _write_commands(self) -> None:
        self._commands.mkdir()
        for name, command in {
            "python": [sys.executable],
            "pip": [sys.executable, "-m", "pip"],
            "poolhook": COMMAND,
        }.items():
            script = self._commands / name
            script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
            script.chmod(0o755)


def _commands_in(code: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, shown = re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", part, re.DOTALL).groups()
        yield command.strip(), shown


def _is_plain(command: str) -> bool:
    """Whether it is `poolhook` and arguments, without anything for a shell to do but to split and unquote them."""
    return command.startswith("poolhook ") and not set("|&;<>$`\\\n") & set(command.removesuffix(_WITH_ERRORS))


def _check(where: str, shown: str | None, printed: str) -> None:
    if shown is None or printed == "(this machine has no curl)":
        return
    assert OutputChecker().check_output(shown, printed, ELLIPSIS | NORMALIZE_WHITESPACE), (
        f"{where} shows\n{shown}\nbut prints\n{printed}"
    )
