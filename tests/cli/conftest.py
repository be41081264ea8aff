"""Fixtures of this room."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from poolhook.cli import main
from served import models  # noqa: F401 (a fixture is found by its name)

Lines = list[dict[str, Any]]


@pytest.fixture
def poolhook(capsys: pytest.CaptureFixture[str]) -> Callable[..., Lines]:
    """`poolhook("classify", model, "text")`: the JSON lines that the command prints, run in this process."""

    def run(*arguments: str | Path) -> Lines:
        capsys.readouterr()
        main([*map(str, arguments), "--device", "cpu", "--no-progress"])
        return [json.loads(line) for line in capsys.readouterr().out.split("\n") if line]

    return run


@pytest.fixture
def mistake(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """`mistake("classify", ...)`: the one line that the command says, which ends with exit code 2 and no output."""

    def run(*arguments: str | Path) -> str:
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_info:
            main([*map(str, arguments)])
        out, err = capsys.readouterr()
        assert (exit_info.value.code, out) == (2, "")
        assert err.startswith("poolhook: ")
        assert err.count("\n") == 1
        return err.removeprefix("poolhook: ").removesuffix("\n")

    return run
