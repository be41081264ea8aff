"""Specifies that a huge text costs no more than the end that is kept, and loses nothing by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from poolhook.render import TextTokenizer, tokenizer

KINDS = ["demo", "limited", "bytes", "pieces", "roberta"]
SIDES = st.sampled_from(["left", "right"])
WORDS = st.sampled_from(
    [
        "the",
        "quick",
        "fox's",
        "über",
        "日本語",
        "🙂",
        "w1",
        "\n\n",
        " ",
        "12345",
        "a-b-c",
        "e\u0301",
        "don't",
        "y" * 150,
    ]
)


def cut(ours: TextTokenizer, text: str, keep: int, side: Any = "right") -> list[int]:
    frame = ours.frame(add_special_tokens=True)
    (tokens,) = ours.tokenize([text], [keep - frame.size], side)
    return frame.around(tokens.ids)


def theirs(pair: Any, text: str, keep: int, side: str) -> list[int]:
    pair.theirs.truncation_side = side
    ids: list[int] = pair.theirs(text, truncation=True, max_length=keep).input_ids
    return ids


class Counting:
    """Stands in for `tokenizers.Tokenizer` and counts the characters that it is given."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.characters = 0

    def from_str(self, text: str) -> Counting:
        self.inner = Tokenizer.from_str(text)
        return self

    def encode_batch(self, texts: list[str], **options: Any) -> Any:
        self.characters += sum(map(len, texts))
        return self.inner.encode_batch(texts, **options)

    def encode_batch_fast(self, texts: list[str], **options: Any) -> Any:
        self.characters += sum(map(len, texts))
        return self.inner.encode_batch_fast(texts, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@pytest.fixture
def counted(tokenizer_pair: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch) -> tuple[TextTokenizer, Counting]:
    backend = tokenizer_pair("demo").theirs.backend_tokenizer
    counting = Counting(backend)
    monkeypatch.setattr(tokenizer, "Tokenizer", counting)
    return TextTokenizer(backend), counting


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    words=st.lists(WORDS, min_size=1, max_size=12),
    glue=st.sampled_from([" ", "", "  "]),
    keep=st.integers(2, 12),
    side=SIDES,
)
def test_the_ids_are_those_of_the_whole_text(
    tokenizer_pair: Callable[[str], Any], kind: str, words: list[str], glue: str, keep: int, side: str
):
    pair = tokenizer_pair(kind)
    text = (glue.join(words) + glue) * (2000 // len(glue.join([*words, ""])) + 1)
    assert cut(pair.ours, text, keep, side) == theirs(pair, text, keep, side)


@pytest.mark.parametrize("length", [63, 64, 65, 255, 256, 257, 10_000])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("letter", ["x", "7"])
def test_a_word_longer_than_the_part_is_read_to_its_end(
    tokenizer_pair: Callable[[str], Any], kind: str, length: int, letter: str
):
    pair = tokenizer_pair(kind)
    for text, side in ((letter * length + " quick" * 2000, "right"), ("quick " * 2000 + letter * length, "left")):
        assert cut(pair.ours, text, 8, side) == theirs(pair, text, 8, side)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text", [" " * 50_000, "\n" * 50_000, " " * 50_000 + "quick", "\0" * 50_000, "\u200b" * 50_000]
)
@pytest.mark.parametrize("side", ["left", "right"])
def test_mere_space_is_read_to_its_end(tokenizer_pair: Callable[[str], Any], kind: str, text: str, side: str):
    pair = tokenizer_pair(kind)
    assert cut(pair.ours, text, 8, side) == theirs(pair, text, 8, side)


@pytest.mark.parametrize("side", ["left", "right"])
def test_only_the_end_that_is_kept_reaches_the_tokenizer(counted: tuple[TextTokenizer, Counting], side: str):
    ours, counting = counted
    text = "the quick brown fox " * 500_000
    assert len(cut(ours, text, 512, side)) == 512
    assert counting.characters < 50_000


def test_only_a_prefix_is_needed_to_see_that_a_text_is_too_long(counted: tuple[TextTokenizer, Counting]):
    ours, counting = counted
    assert ours.exceeds("the quick brown fox " * 500_000, 512)
    assert counting.characters < 50_000


def test_a_text_of_ordinary_length_is_not_even_looked_at_for_that(counted: tuple[TextTokenizer, Counting]):
    ours, counting = counted
    assert not ours.exceeds("the quick brown fox " * 500, 512)
    assert counting.characters == 0


def test_many_characters_of_few_tokens_do_not_exceed(counted: tuple[TextTokenizer, Counting]):
    ours, _ = counted
    assert not ours.exceeds(" " * 100_000 + "quick", 512)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("text", ["a" * 3_000_000, " " * 3_000_000, "\0" * 3_000_000], ids=["word", "blank", "nul"])
def test_a_huge_text_without_word_borders_is_not_read_whole(
    counted: tuple[TextTokenizer, Counting], text: str, side: str
):
    ours, counting = counted
    cut(ours, text, 64, side)
    assert counting.characters <= 3 * 2**17
