"""Every block in docs/ and the READMEs runs, in order, and prints what the page shows. See `markdown_pages` for how."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from markdown_pages import LANGUAGES, PAGES, PageRunner, blocks_of
from plugins_fixture import REPOSITORY
from poolhook.registry import installed_plugins


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PageRunner]:
    runner = PageRunner(tmp_path)
    monkeypatch.syspath_prepend(str(runner.site))
    yield runner
    runner.close()
    installed_plugins.cache_clear()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_a_page_does_what_it_says(page: Path, runner: PageRunner) -> None:
    for block in blocks_of(page):
        # An earlier block may have installed a plugin.
        installed_plugins.cache_clear()
        runner.run(block)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_every_block_says_what_it_is(page: Path) -> None:
    assert {block.language for block in blocks_of(page)} <= LANGUAGES


def test_a_block_is_left_out_only_for_a_reason() -> None:
    reasons = {block.marker for page in PAGES for block in blocks_of(page) if block.is_skipped}
    assert reasons <= {"not run: installs", "not run: takes minutes", "not run: downloads"}


def test_output_that_differs_from_the_page_is_noticed(tmp_path: Path, runner: PageRunner) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1)\n```\n\n```text\n2\n```\n\n```console\n$ echo 1\n1\n$ echo 2\n1\n```\n")
    python, _, console = blocks_of(page)
    with pytest.raises(AssertionError, match=r"page.md:2 shows\n2\n\nbut prints\n1"):
        runner.run(python)
    with pytest.raises(AssertionError, match=r"page.md:10, \$ echo 2 shows\n1\n\nbut prints\n2"):
        runner.run(console)
