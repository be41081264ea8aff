"""Tiny models of every kind, each behind both faces: `LLM`, and in this process what `poolhook serve` runs."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from starlette.testclient import TestClient

from poolhook import LLM, PoolerConfig
from poolhook.config import EngineConfig
from poolhook.errors import InvalidRequest
from poolhook.runtime import RuntimeConfig, build_runtime
from poolhook.serving.app import build_app
from tiny import TinyModel, edit_json
from tiny_models import tiny_trained

Refusal = tuple[str, str | None]
"""A message, and the parameter that it is about."""

PROMPTS = {"query": "w101 w102 ", "document": "w103 "}
"""The embedder's own, which are [105, 106] and [107] in token ids."""


@dataclass(frozen=True)
class Served:
    """One model behind both faces."""

    llm: LLM
    http: TestClient

    def post(self, path: str, **body: Any) -> Any:
        """The answer to `body`."""
        response = self.http.post(path, json=body)
        assert response.status_code == 200, response.text
        return response.json()

    def refused(self, path: str, **body: Any) -> Refusal:
        """Why `body` is refused."""
        response = self.http.post(path, json=body)
        error = response.json()["error"]
        assert (response.status_code, error["code"], error["type"]) == (400, 400, "invalid_request_error")
        return error["message"], error["param"]


def refusal(call: Callable[[], Any]) -> Refusal:
    """Why the offline face refuses `call`."""
    with pytest.raises(InvalidRequest) as caught:
        call()
    return str(caught.value), caught.value.param


def save_embedder(source: Path, directory: Path) -> Path:
    """Mean pooling, normalised, with `PROMPTS`, and a Matryoshka model that can be cut to 8 and 16 dimensions."""
    shutil.copytree(source, directory)
    types = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    modules = [{"path": path, "type": f"sentence_transformers.models.{name}"} for path, name in types.items()]
    (directory / "modules.json").write_text(str(modules).replace("'", '"'))
    edit_json(directory / "1_Pooling" / "config.json", word_embedding_dimension=32, pooling_mode_mean_tokens=True)
    edit_json(directory / "config_sentence_transformers.json", prompts=PROMPTS)
    edit_json(directory / "config.json", matryoshka_dimensions=[8, 16])
    return directory


def save_bge_m3(source: Path, directory: Path) -> Path:
    """A model with BGE-M3's two further heads."""
    shutil.copytree(source, directory)
    generator = torch.Generator().manual_seed(0)
    for stem, size in (("sparse_linear", 1), ("colbert_linear", 32)):
        weights = {"weight": torch.randn(size, 32, generator=generator), "bias": torch.randn(size, generator=generator)}
        save_file(weights, directory / f"{stem}.safetensors")
    return directory


class Models:
    """Tiny models by name, made and loaded on first use.

    Args:
        tiny_model: the fixture.
        directory: where those go that are more than a tiny model of transformers.
    """

    def __init__(self, tiny_model: TinyModel, directory: Path) -> None:
        self._tiny_model = tiny_model
        self._directory = directory
        self._served: dict[str, Served] = {}
        self._closing = ExitStack()

    def path(self, name: str) -> Path:
        """The directory of a model."""
        match name:
            case "embedder" | "bge-m3":
                made = self._directory / name
                make = save_embedder if name == "embedder" else save_bge_m3
                return made if made.exists() else make(self._tiny_model("bert"), made)
            case "classifier":
                return self._tiny_model("bert_for_texts", num_labels=3)
            case "reranker":
                return self._tiny_model("bert_for_texts", num_labels=1)
            case "tagger":
                return self._tiny_model("bert_for_tokens", num_labels=3)
            case "step-rewarder":
                return self._tiny_model("bert_for_tokens", num_labels=1)
            case "colbert":
                return tiny_trained("tiny-colbert")
        raise LookupError(name)

    def __call__(self, name: str, **pooler_config: Any) -> Served:
        """A model behind both faces, with this `PoolerConfig`."""
        key = f"{name} {pooler_config}"
        if key not in self._served:
            config = PoolerConfig(**pooler_config)
            model = str(self.path(name))
            llm = self._closing.enter_context(LLM(model, device="cpu", pooler_config=config))
            runtime = build_runtime(
                RuntimeConfig(model=model, pooler_config=config, engine_config=EngineConfig(device="cpu"))
            )
            http = self._closing.enter_context(TestClient(build_app(runtime), raise_server_exceptions=False))
            self._served[key] = Served(llm, http)
        return self._served[key]

    def close(self) -> None:
        """Close them all."""
        self._closing.close()


@pytest.fixture(scope="session")
def models(tiny_model: TinyModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Models]:
    """`models("embedder")`: a tiny model behind both faces."""
    made = Models(tiny_model, tmp_path_factory.mktemp("models"))
    yield made
    made.close()
