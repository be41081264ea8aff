"""`poolhook classify`, `encode`, `score` and `rerank`: JSON lines of what `LLM` answers."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from served import Models
from tiny import TinyModel

Lines = list[dict[str, Any]]
Command = Callable[..., Lines]
DOCUMENTS = ["w2 w1 w7", "w9", "w3 w4 w5"]


def test_classify_prints_the_label_and_all_probabilities(models: Models, poolhook: Command):
    lines = poolhook("classify", models.path("classifier"), "w1", "w2 w3")
    outputs = models("classifier").llm.classify(["w1", "w2 w3"])
    assert [line["index"] for line in lines] == [0, 1]
    assert [line["input"] for line in lines] == ["w1", "w2 w3"]
    for line, output in zip(lines, outputs, strict=True):
        assert list(line["probs"]) == ["LABEL_0", "LABEL_1", "LABEL_2"]
        assert list(line["probs"].values()) == pytest.approx(output.outputs.probs, abs=1e-6)
        assert line["label"] == output.outputs.label


def test_encode_prints_ids_and_pooled_data_of_the_task(models: Models, poolhook: Command):
    for task in ("token_embed", "embed"):
        (line,) = poolhook("encode", models.path("embedder"), "w1 w2", "--task", task, "--prompt-name", "query")
        (output,) = models("embedder").llm.encode("w1 w2", pooling_task=task, prompt_name="query")
        assert line["prompt_token_ids"] == list(output.prompt_token_ids)
        np.testing.assert_allclose(line["data"], output.outputs.data, atol=1e-6)
    (line,) = poolhook("encode", models.path("tagger"), "w1 w2")
    np.testing.assert_allclose(line["data"], models("tagger").llm.encode("w1 w2")[0].outputs.data, atol=1e-6)


def test_encode_prints_the_parts_of_a_model_that_answers_in_several_ways(models: Models, poolhook: Command):
    (line,) = poolhook("encode", models.path("bge-m3"), "w1 w2", "--task", "plugin")
    (output,) = models("bge-m3").llm.encode("w1 w2", pooling_task="plugin")
    assert set(line) == {"index", "input", "prompt_token_ids", "data", "sparse", "colbert"}
    np.testing.assert_allclose(line["colbert"], output.outputs.parts["colbert"], atol=1e-6)


@pytest.mark.parametrize("name", ["embedder", "reranker", "colbert"])
def test_score_compares_the_query_with_each_document(models: Models, poolhook: Command, name: str):
    lines = poolhook("score", models.path(name), "w1 w2", *DOCUMENTS)
    wanted = [output.outputs.score for output in models(name).llm.score("w1 w2", DOCUMENTS)]
    assert [line["score"] for line in lines] == pytest.approx(wanted, abs=1e-5)
    assert [(line["index"], line["query"], line["document"]) for line in lines] == [
        (index, "w1 w2", document) for index, document in enumerate(DOCUMENTS)
    ]


def test_score_reads_pairs_from_a_file_and_from_standard_input(
    models: Models, poolhook: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pairs = [{"query": f"w{number}", "document": document, "id": 7} for number, document in enumerate(DOCUMENTS)]
    content = "\n".join(map(json.dumps, pairs)) + "\n\n"
    (tmp_path / "pairs.jsonl").write_text(content)
    from_file = poolhook("score", models.path("reranker"), "--pairs", tmp_path / "pairs.jsonl")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    assert poolhook("score", models.path("reranker"), "--pairs", "-") == from_file
    wanted = models("reranker").llm.score([pair["query"] for pair in pairs], DOCUMENTS)
    assert [line["score"] for line in from_file] == pytest.approx([out.outputs.score for out in wanted], abs=1e-6)
    assert [line["query"] for line in from_file] == ["w0", "w1", "w2"]


@pytest.mark.parametrize("top_n", [None, 1, 99])
def test_rerank_prints_the_best_documents_first(models: Models, poolhook: Command, top_n: int | None):
    option = [] if top_n is None else ["--top-n", str(top_n)]
    lines = poolhook("rerank", models.path("reranker"), "w1 w2", *DOCUMENTS, *option)
    wanted = models("reranker").llm.rerank("w1 w2", DOCUMENTS, top_n=top_n)
    assert [(line["index"], line["document"]) for line in lines] == [(one.index, one.document) for one in wanted]
    assert [line["score"] for line in lines] == pytest.approx([one.score for one in wanted], abs=1e-6)


def test_inputs_come_from_a_file_and_results_go_to_one(models: Models, poolhook: Command, tmp_path: Path):
    source, target = tmp_path / "in.txt", tmp_path / "out.jsonl"
    source.write_text("\r\n".join(["w1", "w2\u2028w3", "", "w4"]) + "\r\n", encoding="utf-8", newline="")
    for command in (["classify"], ["encode"], ["rerank", "w5"], ["score", "w5"]):
        model = models.path("reranker")
        arguments = [command[0], model, *command[1:], "--input", source]
        printed = poolhook(*arguments)
        assert poolhook(*arguments, "--output", target) == []
        assert [json.loads(line) for line in target.read_text(encoding="utf-8").split("\n") if line] == printed
        assert sorted(line.get("input", line.get("document")) for line in printed) == ["", "w1", "w2\u2028w3", "w4"]


def test_json_lines_may_be_pairs_ids_and_objects_with_more_than_a_text(
    models: Models, poolhook: Command, tmp_path: Path
):
    source = tmp_path / "in.jsonl"
    given = [{"text": "w1", "id": 1}, {"text": "w1", "text_pair": "w2", "id": 2}, [5, 6], "w3"]
    source.write_text("\n".join(map(json.dumps, given)))
    lines = poolhook("classify", models.path("classifier"), "--input", source)
    outputs = models("classifier").llm.classify(["w1", {"text": "w1", "text_pair": "w2"}, [5, 6], "w3"])
    wanted = [pytest.approx(output.outputs.probs, abs=1e-6) for output in outputs]
    assert [list(line["probs"].values()) for line in lines] == wanted


def test_too_long_inputs_are_cut_where_that_was_asked_for(models: Models, poolhook: Command):
    cut = ["--truncate-prompt-tokens", "-1"]
    (line,) = poolhook("encode", models.path("tagger"), "w1 " * 300, *cut)
    assert len(line["data"]) == len(line["prompt_token_ids"]) == 160
    assert len(poolhook("score", models.path("reranker"), "w1", "w2 " * 300, *cut)) == 1


def test_hf_overrides_go_over_the_models_config(models: Models, poolhook: Command, tiny_model: TinyModel):
    names = json.dumps({"id2label": {"0": "bad", "1": "fair", "2": "good"}})
    (line,) = poolhook("classify", models.path("classifier"), "w1", "--hf-overrides", names)
    assert list(line["probs"]) == ["bad", "fair", "good"]
    options = ["--hf-overrides", '{"is_matryoshka": true}', "--pooler-config.dimensions", "5"]
    (line,) = poolhook("embed", tiny_model("bert"), "w1", *options)
    assert len(line["embedding"]) == 5


def test_a_chat_template_of_the_operators_makes_the_text_of_chats(models: Models, poolhook: Command, tmp_path: Path):
    template, source = tmp_path / "template.jinja", tmp_path / "in.jsonl"
    template.write_text("{% for m in messages %}w7 {{ m.content }} {% endfor %}")
    source.write_text(json.dumps({"messages": [{"role": "user", "content": "w1"}, {"role": "user", "content": "w2"}]}))
    (line,) = poolhook(
        "encode", models.path("embedder"), "--task", "embed", "--input", source, "--chat-template", template
    )
    words = [token for token in line["prompt_token_ids"] if token > 3]
    assert words == [11, 5, 11, 6]


def test_pooler_options_reach_the_model(models: Models, poolhook: Command):
    raw = poolhook("classify", models.path("classifier"), "w1", "--pooler-config.no-use-activation")
    wanted = models("classifier", use_activation=False).llm.classify("w1")[0].outputs.probs
    assert list(raw[0]["probs"].values()) == pytest.approx(wanted, abs=1e-6)
    options = ["--pooler-config.enable-chunked-processing", "--pooler-config.max-embed-len", "400"]
    (line,) = poolhook("embed", models.path("embedder"), "w1 " * 300, *options)
    assert len(line["embedding"]) == 32
    (served,) = poolhook("encode", models.path("embedder"), "w1", "--pooler-config.task", "token_embed")
    assert np.shape(served["data"]) == (3, 32)
