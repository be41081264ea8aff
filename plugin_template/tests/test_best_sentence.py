"""The plugin's own tests: its parts by themselves, then the whole of it in an `LLM`. Start from these for yours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from poolhook import LLM
from poolhook.errors import ConfigError, InvalidRequest
from poolhook_best_sentence.processor import Answer, split_sentences

DOCUMENT = "The ferry leaves at nine. Dogs travel free of charge! Is there a café on board? Yes, on the upper deck."


@pytest.fixture(scope="module")
def llm() -> Iterator[LLM]:
    with LLM(
        "demo", io_processor_plugin="best-sentence", plugin_config={"best-sentence": {"max_sentences": 4}}
    ) as loaded:
        yield loaded


def ask(llm: LLM, **data: object) -> Answer:
    [output] = llm.encode({"data": data})
    answer = output.outputs
    assert isinstance(answer, Answer)
    return answer


@pytest.mark.parametrize(
    ("document", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("no full stop", ["no full stop"]),
        ("  a heading \n\n Pi is 3.14 here. ", ["a heading", "Pi is 3.14 here."]),
        (" \n ", []),
    ],
)
def test_sentences_end_at_marks_and_line_breaks(document: str, sentences: list[str]) -> None:
    assert split_sentences(document) == sentences


@pytest.mark.parametrize(
    ("question", "index"), [("When does the boat go?", 0), ("What does it cost to bring a pet?", 1)]
)
def test_the_answer_is_the_sentence_most_like_the_question(llm: LLM, question: str, index: int) -> None:
    answer = ask(llm, question=question, document=DOCUMENT)
    assert answer.index == index
    assert answer.sentence == split_sentences(DOCUMENT)[index]
    assert 0 < answer.score < 1


def test_a_sentence_asked_for_by_its_own_words_scores_one(llm: LLM) -> None:
    assert ask(llm, question="Yes, on the upper deck.", document=DOCUMENT).score == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"question": "Where?"}, "document"),
        ({"question": " ", "document": DOCUMENT}, "question"),
        ({"question": "Where?", "document": 7}, "document"),
        ({"question": "Where?", "document": DOCUMENT, "documents": []}, "documents"),
        ({"question": "Where?", "document": DOCUMENT + " And one more."}, "document"),
    ],
)
def test_wrong_data_is_the_callers_mistake_and_names_the_field(llm: LLM, data: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        ask(llm, **data)
    assert caught.value.param == field


def test_a_misspelt_setting_stops_the_start() -> None:
    with pytest.raises(ConfigError, match="'best-sentence' option 'max_sentence'"):
        LLM("demo", io_processor_plugin="best-sentence", plugin_config={"best-sentence": {"max_sentence": 4}})
