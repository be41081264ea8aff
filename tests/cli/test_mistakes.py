"""A user's mistakes on the command line: one clear line and exit code 2, whatever the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from served import Models
from task_advice import ADVICE, EVERY_TASK

Mistake = Callable[..., str]


@pytest.mark.parametrize("task", ADVICE)
@pytest.mark.parametrize("command", ["embed", "serve", "info", "classify"])
def test_a_task_that_is_none_gets_advice(mistake: Mistake, command: str, task: str):
    text = [] if command in ("serve", "info") else ["a text"]
    said = mistake(command, "demo", *text, "--pooler-config.task", task)
    assert said == f"--pooler-config.task: {ADVICE[task]} {EVERY_TASK} Try `poolhook {command} --help`."


@pytest.mark.parametrize("task", ADVICE)
def test_encode_gets_advice_for_this_model(models: Models, mistake: Mistake, task: str):
    said = mistake("encode", models.path("embedder"), "w1", "--task", task)
    assert said == f"{ADVICE[task]} Supported tasks: embed, token_embed."


def test_a_task_that_the_model_does_not_support_lists_those_that_it_does(models: Models, mistake: Mistake):
    model, supported = models.path("embedder"), "Supported tasks: embed, token_embed."
    wanted = f"BertModel: Task 'classify' is not supported. {supported}"
    for command in (["embed", model, "w1"], ["encode", model, "w1"], ["serve", model, "--port", "0"]):
        assert mistake(*command, "--pooler-config.task", "classify") == wanted
    assert mistake("classify", model, "w1") == f"Task 'classify' is not supported. {supported}"


def test_commands_that_need_another_model_say_what_it_can_not_do(models: Models, mistake: Mistake):
    wanted = (
        "This model can't score texts: that needs task 'embed', 'classify', 'token_embed'; this model supports "
        "token_classify."
    )
    for command in ("score", "rerank"):
        assert mistake(command, models.path("tagger"), "w1", "w2") == wanted
        assert "This model has 3 labels (LABEL_0, LABEL_1, LABEL_2)" in mistake(
            command, models.path("classifier"), "w1", "w2"
        )


MISTAKES: list[tuple[list[str], str]] = [
    (["classify"], "requires an argument"),
    (["classify", "demo"], "Give either texts or --input FILE (`-` for standard input)."),
    (["encode", "demo", "a", "--input", "f"], "Give either texts or --input FILE (`-` for standard input)."),
    (["score", "demo"], "Give a query and documents, or --pairs FILE."),
    (["score", "demo", "q"], "Give either texts or --input FILE (`-` for standard input)."),
    (["score", "demo", "q", "d", "--pairs", "f"], "Give either a query with documents, or --pairs FILE."),
    (["score", "demo", "--pairs", "missing.jsonl"], "missing.jsonl"),
    (["rerank", "demo"], "requires an argument"),
    (["rerank", "demo", "q"], "Give either texts or --input FILE (`-` for standard input)."),
    (["rerank", "demo", "q", "d", "--top-n", "0"], "--top-n"),
    (["rerank", "demo", "q", "d", "--top-n", "-1"], "--top-n"),
    (["rerank", "demo", "q", "d", "--top-n", "many"], "--top-n"),
    (["classify", "demo", "a", "--output", "no/such/x.jsonl"], "--output can't be written"),
    (["classify", "demo", "a", "--input-format", "xml"], "--input-format"),
    (["embed", "demo", "a", "--hf-overrides", "not json"], "--hf-overrides must be a JSON object, not not json."),
    (["embed", "demo", "a", "--hf-overrides", "[1]"], "--hf-overrides must be a JSON object, not [1]."),
    (["embed", "demo", "a", "--pooler-config.dimensions", "0"], "--pooler-config.dimensions: Input should be greater"),
    (["embed", "demo", "a", "--pooler-config.pooling-type", "STEP"], "pooling_type STEP and step_tag_id go together"),
    (["embed", "demo", "a", "--pooler-config.max-embed-len", "9"], "set enable_chunked_processing too"),
    (["embed", "demo", "a", "--max-queued-tokens", "0"], "--max-queued-tokens: Input should be greater"),
    (["embed", "demo", "a", "--pooler-config.normalize"], "--pooler-config.normalize"),
]


@pytest.mark.parametrize(("arguments", "says"), MISTAKES, ids=[" ".join(m[0])[:60] for m in MISTAKES])
def test_a_wrong_call_is_said_before_anything_is_loaded(mistake: Mistake, arguments: list[str], says: str):
    assert says in mistake(*arguments)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"query": "w1"}', "Line 2 of --pairs is no object with query, document: {'query': 'w1'}"),
        ('"w1"', "Line 2 of --pairs is no object with query, document: w1"),
        ("w1", "Line 2 of --pairs is not JSON: w1"),
    ],
)
def test_a_line_that_is_no_pair_is_named(mistake: Mistake, tmp_path: Path, line: str, says: str):
    file = tmp_path / "pairs.jsonl"
    file.write_text(json.dumps({"query": "w1", "document": "w2"}) + "\n" + line)
    assert mistake("score", "demo", "--pairs", file) == says


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_an_empty_file_is_said(mistake: Mistake, tmp_path: Path, content: str):
    file = tmp_path / "in.jsonl"
    file.write_text(content)
    assert mistake("embed", "demo", "--input", file, "--output", tmp_path / "x.npy") == "--input is empty."
    assert mistake("score", "demo", "--pairs", file) == "--pairs is empty."


def test_a_directory_is_no_output(mistake: Mistake, tmp_path: Path):
    said = mistake("classify", "demo", "w1", "--output", tmp_path)
    assert said == f"--output can't be written: {tmp_path} is a directory."


def test_a_pair_that_is_no_text_is_named(models: Models, mistake: Mistake, tmp_path: Path):
    file = tmp_path / "pairs.jsonl"
    file.write_text(json.dumps({"query": 7, "document": "w2"}))
    said = mistake("score", models.path("reranker"), "--pairs", file)
    assert said == "The data is invalid: queries.0: Input should be a valid string"


def test_what_is_too_long_or_no_option_of_this_model_is_one_line_too(models: Models, mistake: Mistake):
    said = mistake("classify", models.path("classifier"), "w1 " * 300)
    assert said.startswith("Prompt 0 has 302 tokens; this model takes at most 160.")
    said = mistake("classify", models.path("classifier"), "w1", "--pooler-config.dimensions", "8")
    assert said.endswith("(BertForSequenceClassification): it is for models that embed.")
    assert "prompt_name is 'no'" in mistake("encode", models.path("embedder"), "w1", "--prompt-name", "no")


def test_a_template_that_is_none_is_one_line(models: Models, mistake: Mistake, tmp_path: Path):
    broken = tmp_path / "broken.jinja"
    broken.write_text("{% for %}")
    assert "template" in mistake("embed", models.path("embedder"), "w1", "--chat-template", broken)
