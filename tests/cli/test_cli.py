"""The command line, run as a user runs it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from poolhook import LLM
from poolhook.cli import main
from servers import COMMAND
from texts import varied_texts


def poolhook(*arguments: str | Path, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "COLUMNS": "100"}
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], input=stdin, capture_output=True, text=True, env=env, timeout=120
    )


def vectors(output: str) -> np.ndarray:
    return np.array([json.loads(line)["embedding"] for line in output.splitlines()], dtype=np.float32)


def expected(llm: LLM, prompts: object) -> np.ndarray:
    return np.stack([output.outputs.numpy() for output in llm.embed(prompts, use_tqdm=False)])


def test_embed_prints_a_json_line_for_each_text(demo_llm: LLM):
    done = poolhook("embed", "demo", "hello world", "--", "--a second text")
    assert done.returncode == 0
    assert [json.loads(line)["input"] for line in done.stdout.splitlines()] == ["hello world", "--a second text"]
    np.testing.assert_allclose(vectors(done.stdout), expected(demo_llm, ["hello world", "--a second text"]), atol=1e-6)


def test_embed_reads_lines_and_writes_an_array(tmp_path: Path, demo_llm: LLM):
    texts = [" ".join(text.split()) for text in varied_texts(60)]
    source, target = tmp_path / "texts.txt", tmp_path / "vectors.npy"
    source.write_text("\n".join(texts) + "\n", encoding="utf-8")
    main(["embed", "demo", "--input", str(source), "--output", str(target), "--truncate-prompt-tokens", "-1"])
    cut = demo_llm.embed(texts, tokenization_kwargs={"truncate_prompt_tokens": -1}, use_tqdm=False)
    np.testing.assert_allclose(np.load(target), [output.outputs.numpy() for output in cut], atol=1e-5, rtol=0)


def test_embed_reads_jsonl_from_a_file_and_from_standard_input(
    tmp_path: Path, demo_llm: LLM, capsys: pytest.CaptureFixture[str]
):
    lines = ['"a text"', "[101, 7592, 102]", '{"text": "an object", "id": 7}', '{"prompt_token_ids": [101, 102]}']
    wanted = expected(demo_llm, ["a text", [101, 7592, 102], "an object", [101, 102]])
    file = tmp_path / "inputs.jsonl"
    file.write_text("\n".join(lines))
    main(["embed", "demo", "--input", str(file)])
    from_stdin = poolhook("embed", "demo", "--input", "-", "--input-format", "jsonl", stdin="\n".join(lines))
    np.testing.assert_allclose(vectors(capsys.readouterr().out), wanted, atol=1e-6)
    np.testing.assert_allclose(vectors(from_stdin.stdout), wanted, atol=1e-6)


def test_info_says_what_decided_each_value(tiny_model: Callable[..., Path], capsys: pytest.CaptureFixture[str]):
    def info(*arguments: str | Path) -> str:
        main(["info", *map(str, arguments)])
        return capsys.readouterr().out

    demo = json.loads(info("demo", "--json", "--load"))
    assert demo["architecture"] == "BertModel"
    assert demo["pooling"] == ["MEAN"]
    assert demo["max_length"] == 256
    assert demo["batches"] == "packed"
    shown = info("demo", "--pooler-config.pooling-type", "cls")
    assert "CLS  (from pooler config)" in shown
    assert "256  (from sentence_bert_config.json)" in shown
    assert "LAST  (from default of Qwen3Model)" in info(tiny_model("qwen3"))


def test_plugins_list_shows_the_built_in_processors():
    done = poolhook("plugins", "list")
    shown = {tuple(line.split()[:3]) for line in done.stdout.splitlines()}
    built_in = ["embed", "classify", "token_embed", "token_classify", "plugin", "score", "rerank", "reward"]
    assert {(name, "io_processors", "poolhook") for name in built_in} <= shown


COMMANDS = ["", "embed", "classify", "encode", "score", "rerank", "serve", "info", "plugins", "plugins list"]


@pytest.mark.parametrize("command", [command.split() for command in COMMANDS], ids=COMMANDS)
def test_every_command_has_help(command: list[str]):
    done = poolhook(*command, "--help")
    assert done.returncode == 0
    assert "Usage: poolhook" in done.stdout


MISTAKES = [
    (["embed"], "requires an argument"),
    (["embed", "demo"], "Give either texts or --input"),
    (["embed", "demo", "a", "--input", "f"], "Give either texts or --input"),
    (["embed", "demo", "--input", "missing.txt"], "missing.txt"),
    (["embed", "./missing", "a"], "There is no directory './missing'"),
    (["embed", "no/such-model", "a"], "There is no directory 'no/such-model'"),
    (["embed", "demo", "word " * 300], "302 tokens; this model takes at most 256"),
    (["embed", "demo", "a", "--pooler-config.task", "classify"], "Supported tasks: embed"),
    (["embed", "demo", "a", "--dtype", "int4"], "--dtype"),
    (["embed", "demo", "a", "--device", "cuda:7"], "cuda:7"),
    (["embed", "demo", "a", "--no-such-option"], "--no-such-option"),
    (["serve", "demo", "--port", "abc"], "--port"),
    (["serve", "demo", "--port", "80000"], "65535"),
    (["serve", "demo", "--host", "no-such-host.invalid"], "no-such-host.invalid"),
    (["embed", "demo", "a", "--pooler-config.pooling-type", "men"], "--pooler-config.pooling-type"),
    (["embed", "demo", "a", "--output", "no/such/directory/x.npy"], "no directory no/such/directory"),
    (["serve", "demo", "--io-processor-plugin", "nobody"], "No plugin named 'nobody'"),
    (["serve", "demo", "--wrapper", "nobody"], "No plugin named 'nobody'"),
    (["info", "/"], "no /config.json"),
    (["nonsense"], "nonsense"),
]


@pytest.mark.parametrize(("arguments", "says"), MISTAKES)
def test_a_mistake_is_one_clear_line_and_exit_code_2(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as exit_info:
        main(arguments)
    assert exit_info.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert err.startswith("poolhook: ")
    assert err.count("\n") == 1


def test_a_line_that_is_not_json_is_named():
    done = poolhook("embed", "demo", "--input", "-", "--input-format", "jsonl", stdin='"good"\nbad')
    assert done.returncode == 2
    assert "Line 2" in done.stderr


def test_an_object_without_text_is_named_and_blank_lines_are_nothing():
    lines = '{"text": "one"}\n\n{"title": "two"}\n'
    done = poolhook("embed", "demo", "--input", "-", "--input-format", "jsonl", stdin=lines)
    assert done.returncode == 2
    assert "Line 3" in done.stderr
    assert "`text`" in done.stderr


def test_a_port_in_use_is_said_before_the_model_is_loaded(capsys: pytest.CaptureFixture[str]):
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(SystemExit) as exit_info:
        main(["serve", "no-such-model", "--port", str(taken.getsockname()[1])])
    assert exit_info.value.code == 2
    assert "Address already in use" in capsys.readouterr().err


def test_a_reader_that_has_had_enough_is_no_error():
    command = " ".join(["'" + part + "'" for part in COMMAND])
    piped = subprocess.run(
        f"{command} embed demo a b c d | head -c 10",
        shell=True,
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        timeout=120,
    )
    assert "Traceback" not in piped.stderr
