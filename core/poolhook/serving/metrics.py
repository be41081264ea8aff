"""Prometheus metrics, with labels from fixed sets only: paths that clients invent are not counted by name."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from poolhook.engine import EngineClient

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The metrics of one server.

    Args:
        engine: whose queue and steps are shown.
    """

    def __init__(self, engine: EngineClient) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_EngineCollector(engine))
        self._requests = Counter(
            "poolhook_http_requests",
            "HTTP requests answered",
            ["endpoint", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "poolhook_http_request_seconds",
            "From the request's arrival to its answer, in seconds",
            ["endpoint"],
            registry=self._registry,
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
        )

    def count(self, endpoint: str, status: int, seconds: float) -> None:
        """Note an answered request."""
        self._requests.labels(endpoint, str(status)).inc()
        self._seconds.labels(endpoint).observe(seconds)

    def render(self) -> bytes:
        """The metrics in Prometheus' text format."""
        return generate_latest(self._registry)


class _EngineCollector(Collector):
    def __init__(self, engine: EngineClient) -> None:
        self._engine = engine

    def collect(self) -> Iterable[Metric]:
        stats = self._engine.stats()
        yield CounterMetricFamily("poolhook_engine_steps", "Forward passes", value=stats.steps)
        yield CounterMetricFamily("poolhook_engine_tokens", "Tokens that went through the model", value=stats.tokens)
        yield GaugeMetricFamily("poolhook_queue_inputs", "Prompts that wait for a step", value=stats.queued_inputs)
        yield GaugeMetricFamily("poolhook_queue_tokens", "Tokens that wait for a step", value=stats.queued_tokens)
        yield GaugeMetricFamily("poolhook_engine_alive", "1 while the engine works", value=int(self._engine.is_alive))
