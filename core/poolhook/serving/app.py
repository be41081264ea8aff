"""The ASGI application: which path is answered by what."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response

from poolhook._version import __version__
from poolhook.runtime import OnlineRunner, Runtime
from poolhook.serving.base import PoolingServingBase
from poolhook.serving.classify import ServingClassification
from poolhook.serving.embeddings import ServingEmbedding
from poolhook.serving.errors import error_response, install_error_handlers
from poolhook.serving.json import MEDIA_TYPE, JSONResponse
from poolhook.serving.metrics import CONTENT_TYPE, Metrics
from poolhook.serving.middleware import BoundedBody, Counted
from poolhook.serving.pooling import ServingPooling
from poolhook.serving.score import ServingRerank, ServingScore

MAX_BODY_BYTES = 64 * 2**20


def build_app(runtime: Runtime, *, model_name: str | None = None, max_body_bytes: int = MAX_BODY_BYTES) -> FastAPI:
    """An application that serves `runtime` and closes it when it shuts down.

    Args:
        runtime: what serves.
        model_name: the name that clients use; None is the model's own.
        max_body_bytes: larger bodies are refused.
    """
    runner = OnlineRunner(runtime)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        with closing(runtime), closing(runner):
            yield

    app = FastAPI(title="poolhook", version=__version__, lifespan=lifespan)
    metrics = Metrics(runtime.engine)
    labels = runtime.spec.classifier.labels if runtime.spec.classifier else ()
    _add_pooling_endpoints(app, runner, model_name or runtime.spec.name, labels)
    _add_operation_endpoints(app, runtime, metrics, model_name or runtime.spec.name)
    install_error_handlers(app)
    endpoints = frozenset(getattr(route, "path", "") for route in app.routes)
    app.add_middleware(BoundedBody, limit=max_body_bytes)
    app.add_middleware(Counted, metrics=metrics, endpoints=endpoints)
    return app


def _add_pooling_endpoints(app: FastAPI, runner: OnlineRunner, name: str, labels: tuple[str, ...]) -> None:
    embedding, pooling = ServingEmbedding(runner, name), ServingPooling(runner, name)
    classification = ServingClassification(runner, name, labels)
    score, rerank = ServingScore(runner, name), ServingRerank(runner, name)

    @app.post("/v1/embeddings", tags=["pooling"], openapi_extra=_body_of(embedding))
    async def create_embeddings(http: Request) -> Response:
        """Embed texts or token ids, as OpenAI's API does."""
        return await embedding(http)

    @app.post("/classify", tags=["pooling"], openapi_extra=_body_of(classification))
    async def classify(http: Request) -> Response:
        """Label texts, or pairs of texts."""
        return await classification(http)

    @app.post("/score", tags=["pooling"], openapi_extra=_body_of(score))
    async def score_pairs(http: Request) -> Response:
        """Score a text with each of several, or texts with texts."""
        return await score(http)

    @app.post("/rerank", tags=["pooling"], openapi_extra=_body_of(rerank))
    async def rerank_documents(http: Request) -> Response:
        """Put documents in the order in which they answer a query."""
        return await rerank(http)

    @app.post("/pooling", tags=["pooling"], openapi_extra=_body_of(pooling))
    async def create_pooling(http: Request) -> Response:
        """Run any task on prompts, or an IO processor on its data."""
        return await pooling(http)


def _body_of(serving: PoolingServingBase[Any]) -> dict[str, Any]:
    """The body's schema for the API's documentation; FastAPI does not see it, since the endpoint reads it itself."""
    schema = serving.body_type.model_json_schema()
    return {"requestBody": {"required": True, "content": {MEDIA_TYPE: {"schema": schema}}}}


def _add_operation_endpoints(app: FastAPI, runtime: Runtime, metrics: Metrics, name: str) -> None:
    started = ServingEmbedding.created()

    @app.get("/health", tags=["operation"])
    async def health() -> Response:
        """200 while the engine works, 503 once it has stopped."""
        if runtime.engine.is_alive:
            return JSONResponse({"status": "ok"})
        return error_response(HTTPStatus.SERVICE_UNAVAILABLE, "The engine has stopped.")

    @app.get("/v1/models", tags=["operation"])
    async def models() -> Response:
        """The served model, as OpenAI lists models."""
        card: dict[str, Any] = {
            "id": name,
            "object": "model",
            "created": started,
            "owned_by": "poolhook",
            "max_model_len": runtime.spec.max_length,
        }
        return JSONResponse({"object": "list", "data": [card]})

    @app.get("/metrics", tags=["operation"])
    async def show_metrics() -> Response:
        """Prometheus metrics."""
        return Response(metrics.render(), media_type=CONTENT_TYPE)
