"""The three faces of poolhook behind one set of methods: `LLM`, a server and the command line, for the same questions.

Each method answers in plain numbers. Inputs that are too long are cut to what the model takes.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np

from poolhook import LLM, PoolingParams
from poolhook.cli import main

Pair = tuple[str, str]
FP32 = {"device": "cpu", "dtype": "float32"}
_CUT = {"truncate_prompt_tokens": -1}


class Face(ABC):
    """What a user asks, whichever way."""

    @abstractmethod
    def encode(self, prompts: Sequence[Any], prompt_name: str | None = None) -> list[np.ndarray]:
        """The pooled data of each prompt, for the task that the model is served for."""

    @abstractmethod
    def classify(self, prompts: Sequence[Any]) -> list[tuple[str, list[float]]]:
        """The best label and all probabilities of each prompt."""

    @abstractmethod
    def score(self, queries: str | Sequence[str], documents: Sequence[str]) -> list[float]:
        """The score of each pair."""

    @abstractmethod
    def rerank(self, query: str, documents: Sequence[str], top_n: int | None = None) -> list[tuple[int, float]]:
        """The place and the score of each document, best first."""

    def score_pairs(self, pairs: Sequence[Pair]) -> list[float]:
        """The score of each of these pairs, asked for at once."""
        queries, documents = zip(*pairs, strict=True)
        return self.score(queries, documents)


class Offline(Face):
    """`LLM`."""

    def __init__(self, llm: LLM, use_activation: bool | None = None) -> None:
        self._llm = llm
        self._options: dict[str, Any] = {
            "pooling_params": PoolingParams(use_activation=use_activation),
            "tokenization_kwargs": _CUT,
            "use_tqdm": False,
        }

    def without_activation(self) -> Offline:
        """The same, for what stands before the model's last step."""
        return Offline(self._llm, use_activation=False)

    def encode(self, prompts: Sequence[Any], prompt_name: str | None = None) -> list[np.ndarray]:
        outputs = self._llm.encode(prompts, prompt_name=prompt_name, **self._options)
        return [output.outputs.data.numpy() for output in outputs]

    def classify(self, prompts: Sequence[Any]) -> list[tuple[str, list[float]]]:
        outputs = [output.outputs for output in self._llm.classify(prompts, **self._options)]
        return [(output.label, output.probs) for output in outputs]

    def score(self, queries: str | Sequence[str], documents: Sequence[str]) -> list[float]:
        return [output.outputs.score for output in self._llm.score(queries, documents, **self._options)]

    def rerank(self, query: str, documents: Sequence[str], top_n: int | None = None) -> list[tuple[int, float]]:
        results = self._llm.rerank(query, documents, top_n=top_n, **self._options)
        assert all(result.document == documents[result.index] for result in results)
        return [(result.index, result.score) for result in results]


class Served(Face):
    """`/pooling`, `/classify`, `/score` and `/rerank` of a server."""

    def __init__(self, url: str, use_activation: bool | None = None) -> None:
        self._url = url
        self._options: dict[str, Any] = {**_CUT, "use_activation": use_activation}

    def without_activation(self) -> Served:
        """The same, for what stands before the model's last step."""
        return Served(self._url, use_activation=False)

    def encode(self, prompts: Sequence[Any], prompt_name: str | None = None) -> list[np.ndarray]:
        data = self._post("/pooling", input=list(prompts), prompt_name=prompt_name)["data"]
        assert [item["index"] for item in data] == list(range(len(prompts)))
        return [np.array(item["data"], dtype=np.float32) for item in data]

    def embed(self, prompts: Sequence[Any], prompt_name: str | None = None) -> list[np.ndarray]:
        """The embedding of each prompt, from `/v1/embeddings`."""
        data = self._post("/v1/embeddings", input=list(prompts), prompt_name=prompt_name)["data"]
        return [np.array(item["embedding"], dtype=np.float32) for item in data]

    def classify(self, prompts: Sequence[Any]) -> list[tuple[str, list[float]]]:
        return [(item["label"], item["probs"]) for item in self._post("/classify", input=list(prompts))["data"]]

    def score(self, queries: str | Sequence[str], documents: Sequence[str]) -> list[float]:
        queries = queries if isinstance(queries, str) else list(queries)
        return [item["score"] for item in self._post("/score", queries=queries, documents=list(documents))["data"]]

    def rerank(self, query: str, documents: Sequence[str], top_n: int | None = None) -> list[tuple[int, float]]:
        results = self._post("/rerank", query=query, documents=list(documents), top_n=top_n)["results"]
        assert all(result["document"]["text"] == documents[result["index"]] for result in results)
        return [(result["index"], result["relevance_score"]) for result in results]

    def _post(self, path: str, **body: Any) -> Any:
        response = httpx.post(self._url + path, json={**body, **self._options}, timeout=120)
        assert response.status_code == 200, response.text
        return response.json()


class CommandLine(Face):
    """`poolhook encode`, `classify`, `score` and `rerank`; each loads the model anew."""

    def __init__(self, model: Path) -> None:
        self._model = str(model)

    def encode(self, prompts: Sequence[Any], prompt_name: str | None = None) -> list[np.ndarray]:
        named = ["--prompt-name", prompt_name] if prompt_name else []
        return [np.array(line["data"], dtype=np.float32) for line in self._run("encode", prompts, *named)]

    def classify(self, prompts: Sequence[Any]) -> list[tuple[str, list[float]]]:
        return [(line["label"], list(line["probs"].values())) for line in self._run("classify", prompts)]

    def score(self, queries: str | Sequence[str], documents: Sequence[str]) -> list[float]:
        if isinstance(queries, str):
            return [line["score"] for line in self._run("score", documents, query=queries)]
        pairs = [{"query": query, "document": document} for query, document in zip(queries, documents, strict=True)]
        return [line["score"] for line in self._run("score", pairs, source="--pairs")]

    def rerank(self, query: str, documents: Sequence[str], top_n: int | None = None) -> list[tuple[int, float]]:
        best = ["--top-n", str(top_n)] if top_n else []
        return [(line["index"], line["score"]) for line in self._run("rerank", documents, *best, query=query)]

    def info(self) -> dict[str, Any]:
        """What `poolhook info --load` says."""
        facts: dict[str, Any] = json.loads(_stdout(["info", self._model, "--json", "--load", *_AS_OPTIONS]))
        return facts

    def _run(
        self, command: str, inputs: Sequence[Any], *options: str, query: str | None = None, source: str = "--input"
    ) -> list[Any]:
        with TemporaryDirectory() as directory:
            file = Path(directory) / "inputs.jsonl"
            file.write_text("".join(json.dumps(entry) + "\n" for entry in inputs), encoding="utf-8")
            asked = [self._model, *([query] if query is not None else []), source, str(file), *options]
            lines = _stdout([command, *asked, "--truncate-prompt-tokens", "-1", "--no-progress", *_AS_OPTIONS])
        return [json.loads(line) for line in lines.splitlines()]


_AS_OPTIONS = [part for name, value in FP32.items() for part in (f"--{name}", value)]


def _stdout(arguments: list[str]) -> str:
    with redirect_stdout(StringIO()) as written:
        main(arguments)
    return written.getvalue()
