"""Specifies tokenizing: the ids are transformers' own, whole or cut, for any text, and from any thread."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from poolhook.errors import ModelError
from poolhook.render import TextTokenizer
from tiny import edit_json, save_tokenizer

KINDS = ["demo", "limited", "bytes", "pieces", "roberta"]
WORDS = [
    "the",
    "quick",
    "fox's",
    "isn't",
    "über",
    "日本語",
    "🙂",
    "w1",
    "w2",
    "\n\n",
    "  ",
    "[SEP]",
    "<end>",
    "x" * 120,
]
ODD = ["", " ", "\t\n\r\u2028", "\0", "a\0b", "\x07\x1b[31m", "🙂\u200d🙂", "\u200b", "e\u0301" * 50, "\ufffd"]
TEXTS = st.text(max_size=60) | st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join)
VALID = TEXTS.filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text))
relaxed = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def encode(
    tokenizer: TextTokenizer, text: str, keep: int | None = None, side: Any = "right", specials: bool = True
) -> list[int]:
    frame = tokenizer.frame(add_special_tokens=specials)
    (tokens,) = tokenizer.tokenize([text], [None if keep is None else keep - frame.size], side)
    return frame.around(tokens.ids)


@pytest.mark.parametrize("kind", KINDS)
@relaxed
@given(text=VALID, specials=st.booleans())
def test_a_whole_text_has_the_ids_of_transformers(
    tokenizer_pair: Callable[[str], Any], kind: str, text: str, specials: bool
):
    pair = tokenizer_pair(kind)
    assert encode(pair.ours, text, specials=specials) == pair.theirs(text, add_special_tokens=specials).input_ids


@pytest.mark.parametrize("kind", KINDS)
@relaxed
@given(text=VALID, specials=st.booleans(), keep=st.integers(2, 40), side=st.sampled_from(["left", "right"]))
def test_a_cut_text_has_the_ids_of_transformers(
    tokenizer_pair: Callable[[str], Any], kind: str, text: str, specials: bool, keep: int, side: str
):
    pair = tokenizer_pair(kind)
    pair.theirs.truncation_side = side
    expected = pair.theirs(text, add_special_tokens=specials, truncation=True, max_length=keep).input_ids
    ids = encode(pair.ours, text, keep, side, specials)
    assert ids == expected
    assert len(ids) <= keep


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_is_each_text_alone(tokenizer_pair: Callable[[str], Any], kind: str):
    ours = tokenizer_pair(kind).ours
    texts = ["the quick", "", "w1 " * 50, " ", "über 日本語 " * 400, "w2"]
    keeps = [8, 8, 7, None, 6, 5]
    together = ours.tokenize(texts, keeps, "right")
    assert [tokens.ids for tokens in together] == [
        encode(ours, text, keep, specials=False) for text, keep in zip(texts, keeps, strict=True)
    ]


class TestSpecialTokens:
    def test_count_towards_the_limit(self, tokenizer_pair: Callable[[str], Any]):
        ids = encode(tokenizer_pair("demo").ours, "word " * 100, keep=16)
        assert len(ids) == 16
        assert (ids[0], ids[-1]) == (101, 102)

    def test_may_be_all_that_fits(self, tokenizer_pair: Callable[[str], Any]):
        assert encode(tokenizer_pair("demo").ours, "word " * 100, keep=2) == [101, 102]

    def test_can_be_left_out(self, tokenizer_pair: Callable[[str], Any]):
        ours = tokenizer_pair("demo").ours
        assert encode(ours, "word word word", keep=1, specials=False) == encode(ours, "word", specials=False)


@pytest.mark.parametrize("splits", [False, True])
def test_special_tokens_in_a_text_are_split_where_the_tokenizer_says_so(tmp_path: Path, splits: bool):
    save_tokenizer(tmp_path)
    edit_json(tmp_path / "tokenizer_config.json", split_special_tokens=splits)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    ours = TextTokenizer.from_directory(tmp_path)
    assert ours is not None
    text = "w1 [SEP] w2"
    assert encode(ours, text) == theirs(text).input_ids
    assert (encode(ours, text).count(theirs.sep_token_id) == 1) is splits


class TestOddTexts:
    @pytest.mark.parametrize("text", ODD)
    @pytest.mark.parametrize("kind", KINDS)
    def test_have_a_defined_result(self, tokenizer_pair: Callable[[str], Any], kind: str, text: str):
        pair = tokenizer_pair(kind)
        assert encode(pair.ours, text) == pair.theirs(text).input_ids


class TestThreads:
    def test_with_different_limits_get_their_own(self, tokenizer_pair: Callable[[str], Any]):
        ours = tokenizer_pair("demo").ours
        text = "the quick brown fox " * 50
        limits = [3 + i % 60 for i in range(600)]
        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(lambda keep: len(encode(ours, text, keep)), limits)) == limits

    def test_do_not_touch_the_tokenizer_they_share(self, tokenizer_pair: Callable[[str], Any]):
        pair = tokenizer_pair("limited")
        before = pair.theirs.backend_tokenizer.to_str()
        encode(TextTokenizer(pair.theirs.backend_tokenizer), "w1 " * 30, 8)
        assert pair.theirs.backend_tokenizer.to_str() == before


class TestLowerCase:
    @pytest.mark.parametrize("kind", ["limited", "bytes"])
    def test_is_applied_before_everything_else(self, tokenizer_pair: Callable[[str], Any], kind: str):
        theirs = tokenizer_pair(kind).theirs
        ours = TextTokenizer(theirs.backend_tokenizer, lower_case=True)
        assert encode(ours, "W1 The QUICK Über") == theirs("w1 the quick über").input_ids

    def test_is_off_unless_asked_for(self, tokenizer_pair: Callable[[str], Any]):
        ours = tokenizer_pair("limited").ours
        assert encode(ours, "W1") != encode(ours, "w1")


class TestADirectory:
    def test_without_a_tokenizer_gives_none(self, tmp_path: Path):
        (tmp_path / "config.json").write_text("{}")
        assert TextTokenizer.from_directory(tmp_path) is None

    @pytest.mark.parametrize("content", ["", "{}", "not json", '{"model": 5}'])
    def test_with_a_broken_one_is_refused(self, tmp_path: Path, content: str):
        save_tokenizer(tmp_path)
        (tmp_path / "tokenizer.json").write_text(content)
        with pytest.raises(ModelError, match=r"tokenizer in .* can't be loaded"):
            TextTokenizer.from_directory(tmp_path)

    def test_never_runs_code_that_it_brings(self, tmp_path: Path):
        save_tokenizer(tmp_path)
        config = {"tokenizer_class": "Mine", "auto_map": {"AutoTokenizer": ["code.Mine", None]}}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
        (tmp_path / "code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
        with suppress(ModelError):
            TextTokenizer.from_directory(tmp_path)
        assert not (tmp_path / "ran").exists()
