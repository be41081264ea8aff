"""A runtime is built whole or not at all, says what it loaded, and closes engine and plugins once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from distributions import Site
from fake_engine import FakeEngine, runtime_of
from plugin_parts import Echo
from poolhook.config import EngineConfig
from poolhook.errors import ConfigError, PluginStageError
from poolhook.plugins import PromptsRequest
from poolhook.runtime import RuntimeConfig, build_runtime, run_offline


class Stops(Echo):
    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine
        self.closed_before: list[int] = []

    def shutdown(self) -> None:
        self.closed_before.append(self.engine.closed)


def test_closing_stops_the_engine_and_then_the_plugins_each_once(tmp_path: Path):
    engine = FakeEngine()
    processor = Stops(engine)
    runtime = runtime_of(tmp_path, processor, engine=engine)
    runtime.close()
    runtime.close()
    assert processor.closed_before == [1]
    assert engine.closed == 1


def test_plugins_are_shut_down_though_the_engine_has_died(tmp_path: Path):
    engine = FakeEngine()
    processor = Stops(engine)
    runtime = runtime_of(tmp_path, processor, engine=engine)
    engine.is_alive = False
    runtime.close()
    assert len(processor.closed_before) == 1


def test_plugins_are_shut_down_though_the_engine_fails_to_close(tmp_path: Path):
    class Stuck(FakeEngine):
        def close(self) -> None:
            raise RuntimeError("stuck")

    engine = Stuck()
    processor = Stops(engine)
    with pytest.raises(RuntimeError, match="stuck"):
        runtime_of(tmp_path, processor, engine=engine).close()
    assert processor.closed_before == [0]


def config(model: Path, wrapper: str = "audit", **more: object) -> RuntimeConfig:
    return RuntimeConfig(model=str(model), engine_config=EngineConfig(device="cpu"), wrappers=[wrapper], **more)  # type: ignore[arg-type]


def install(site: Site, startup: str = "pass") -> None:
    source = f"""
from poolhook.plugins import Wrapper

class Audit(Wrapper):
    def startup(self, model_info):
        {startup}
"""
    site.add("acme", wrappers={"audit": "acme_audit:Audit"}, modules={"acme_audit": source}, version="3.4")


def test_the_log_says_what_was_loaded(site: Site, tiny_model: Callable[..., Path], caplog: pytest.LogCaptureFixture):
    install(site)
    with caplog.at_level(logging.INFO, logger="poolhook"):
        runtime = build_runtime(config(tiny_model("bert")))
    try:
        assert len(run_offline(runtime, PromptsRequest(prompts=["w1", [5, 6]])).value) == 2
    finally:
        runtime.close()
    line = next(record.message for record in caplog.records if record.message.startswith("Loaded"))
    for part in ("BertModel", "task embed", "pooling CLS", "packed", "device cpu", "float32", "audit (acme 3.4)"):
        assert part in line


def engine_threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "poolhook-engine"}


def test_a_plugin_that_can_not_start_leaves_no_engine_running(site: Site, tiny_model: Callable[..., Path]):
    install(site, startup="raise OSError(model_info.architecture)")
    before = engine_threads()
    with pytest.raises(PluginStageError, match=r"'audit' \(acme 3\.4.* failed in startup: OSError: BertModel"):
        build_runtime(config(tiny_model("bert")))
    assert engine_threads() == before


def test_an_unknown_wrapper_leaves_no_engine_running(tiny_model: Callable[..., Path]):
    before = engine_threads()
    with pytest.raises(ConfigError, match="No plugin named 'nobody'"):
        build_runtime(config(tiny_model("bert"), "nobody"))
    assert engine_threads() == before
