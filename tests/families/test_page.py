"""`docs/families.md` is what the table says."""

from __future__ import annotations

from families.make_docs import PAGE, page


def test_the_page_is_that_of_the_table() -> None:
    assert PAGE.read_text() == page(), "out of date: run `python tests/families/make_docs.py`"
