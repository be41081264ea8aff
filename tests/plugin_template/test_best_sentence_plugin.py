"""The plugin template lives in a distribution of its own, and is found, run and answered like any plugin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins_fixture import PLUGIN_TEMPLATE
from poolhook import LLM
from poolhook.errors import ConfigError, InvalidRequest
from poolhook.registry import installed_plugins
from servers import COMMAND, Server, running_server
from tiny import save_tiny_model

STORY = (
    "The lighthouse keeper wakes before dawn. She boils water for tea and feeds the cat. "
    "At noon a storm comes up from the west. A fishing boat with three men aboard loses its mast. "
    "She rows out and brings all of them ashore. In the evening they eat soup together."
)
QUESTIONS = {
    "What is the weather like?": 2,
    "When does the keeper get up?": 0,
    "What happened to the ship?": 3,
    "What was for dinner?": 5,
}


@pytest.fixture(scope="module")
def llm(best_sentence_installed: Path) -> Iterator[LLM]:
    with LLM("demo", io_processor_plugin="best-sentence") as loaded:
        yield loaded


@pytest.fixture(scope="module")
def server(best_sentence_installed: Path) -> Iterator[Server]:
    env = {"PYTHONPATH": str(best_sentence_installed)}
    with running_server("demo", "--io-processor-plugin", "best-sentence", env=env) as running:
        yield running


def python(*arguments: str, path: Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(path), "HF_HUB_OFFLINE": "1"}
    return subprocess.run([sys.executable, *arguments], env=env, cwd=cwd, capture_output=True, text=True, check=False)


def test_it_is_found_by_its_entry_point(best_sentence_installed: Path) -> None:
    [ref] = [ref for ref in installed_plugins() if ref.name == "best-sentence"]
    assert (ref.group, ref.distribution, ref.version) == ("poolhook.io_processors", "poolhook-best-sentence", "0.1.0")
    assert ref.target == "poolhook_best_sentence.processor:BestSentence"
    assert ref.requires == "poolhook>=0.1"
    assert not ref.editable


def test_the_command_line_lists_it_with_its_package(best_sentence_installed: Path) -> None:
    listed = python(*COMMAND[1:], "plugins", "list", path=best_sentence_installed)
    [line] = [line for line in listed.stdout.splitlines() if line.startswith("best-sentence")]
    assert "poolhook-best-sentence  0.1.0" in line


def test_importing_the_package_imports_nothing_heavy(best_sentence_installed: Path) -> None:
    code = "import sys, poolhook_best_sentence; print({'torch', 'transformers', 'pydantic'} & set(sys.modules))"
    assert python("-c", code, path=best_sentence_installed).stdout.strip() == "set()"


@pytest.mark.parametrize(("question", "index"), QUESTIONS.items())
def test_it_answers_the_right_sentence(llm: LLM, question: str, index: int) -> None:
    [output] = llm.encode({"data": {"question": question, "document": STORY}})
    assert output.outputs.index == index
    assert output.outputs.sentence in STORY
    assert output.finished


def test_requests_at_once_keep_their_own_sentences(llm: LLM) -> None:
    documents = [f"Nothing to see. Number {n} is here. Still nothing." for n in range(32)]

    def ask(n: int) -> str:
        [output] = llm.encode({"data": {"question": f"Where is number {n}?", "document": documents[n]}})
        return str(output.outputs.sentence)

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, range(32)))
    assert answers == [f"Number {n} is here." for n in range(32)]


@settings(max_examples=25, deadline=None)
@given(document=st.text(max_size=60), question=st.text(max_size=20))
def test_any_text_gets_a_sentence_of_its_own_and_none_a_clear_error(llm: LLM, document: str, question: str) -> None:
    data = {"question": question, "document": document}
    if not question.strip() or not document.strip():
        with pytest.raises(InvalidRequest, match="the text is empty"):
            llm.encode({"data": data})
        return
    [output] = llm.encode({"data": data})
    assert output.outputs.sentence in document
    assert -1.00001 <= output.outputs.score <= 1.00001


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"document": STORY}, "question"),
        ({"question": "Who?", "document": ""}, "document"),
        ({"question": "Who?", "document": STORY, "language": "en"}, "language"),
    ],
)
def test_wrong_data_names_the_field_offline_and_online(
    llm: LLM, server: Server, data: dict[str, str], field: str
) -> None:
    with pytest.raises(InvalidRequest) as caught:
        llm.encode({"data": data})
    response = httpx.post(f"{server.url}/pooling", json={"data": data})
    assert caught.value.param == field
    assert response.status_code == 400
    assert response.json()["error"]["param"] == field
    assert response.json()["error"]["message"] == str(caught.value)


def test_settings_limit_the_sentences(best_sentence_installed: Path, tiny_model: Callable[..., Path]) -> None:
    options = {"best-sentence": {"max_sentences": 2}}
    with LLM(str(tiny_model("bert")), io_processor_plugin="best-sentence", plugin_config=options) as limited:
        [output] = limited.encode({"data": {"question": "w1.", "document": "w1. w2."}})
        assert output.outputs.index == 0
        with pytest.raises(InvalidRequest, match=r"3 sentences.*at most 2") as caught:
            limited.encode({"data": {"question": "w1", "document": "w1. w2. w3."}})
    assert caught.value.param == "document"


def test_it_puts_the_models_own_prompts_before_question_and_sentences(
    best_sentence_installed: Path, tmp_path: Path
) -> None:
    save_tiny_model(tmp_path, "bert")
    (tmp_path / "1_Pooling").mkdir()
    files = {
        "modules.json": [
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ],
        "1_Pooling/config.json": {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True},
        "config_sentence_transformers.json": {"prompts": {"query": "w7 ", "document": "w9 "}},
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    with LLM(str(tmp_path), io_processor_plugin="best-sentence") as llm:
        [output] = llm.encode({"data": {"question": "w1", "document": "w2"}})
        question, sentence = (item.outputs.data for item in llm.embed(["w7 w1", "w9 w2"]))
    assert output.outputs.score == pytest.approx(float(torch.cosine_similarity(question, sentence, dim=0)), abs=1e-5)


@pytest.mark.parametrize("options", [{"max_sentences": 0}, {"max_sentence": 5}])
def test_wrong_settings_stop_the_start_and_name_plugin_and_option(
    best_sentence_installed: Path, tiny_model: Callable[..., Path], options: dict[str, int]
) -> None:
    [option] = options
    with pytest.raises(ConfigError, match=f"Plugin 'best-sentence' option '{option}'"):
        LLM(
            str(tiny_model("bert")),
            io_processor_plugin="best-sentence",
            plugin_config={"best-sentence": options},
        )


@pytest.mark.parametrize("question", QUESTIONS)
def test_online_answers_as_offline_does(llm: LLM, server: Server, question: str) -> None:
    data = {"question": question, "document": STORY}
    [offline] = llm.encode({"data": data})
    response = httpx.post(f"{server.url}/pooling", json={"data": data})
    assert response.status_code == 200
    online = response.json()["data"]
    assert online.pop("score") == pytest.approx(offline.outputs.score, abs=1e-5)
    assert online == offline.outputs.model_dump(exclude={"score"})


def test_the_server_names_the_plugin_in_its_log_and_ends_cleanly(best_sentence_installed: Path) -> None:
    env = {"PYTHONPATH": str(best_sentence_installed)}
    with running_server("demo", "--io-processor-plugin", "best-sentence", env=env) as running:
        assert httpx.get(f"{running.url}/health").json() == {"status": "ok"}
        assert "best-sentence (poolhook-best-sentence 0.1.0)" in running.log
        assert running.stop() == 0


def test_its_own_tests_pass(best_sentence_installed: Path) -> None:
    own = python("-m", "pytest", "-q", "-p", "no:cacheprovider", path=best_sentence_installed, cwd=PLUGIN_TEMPLATE)
    assert own.returncode == 0, own.stdout + own.stderr
    assert "passed" in own.stdout
