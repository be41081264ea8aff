"""A wrapper's `lookup` spares the engine what is known, and its `store` gets what was computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fake_engine import FakeEngine, Serve, both_faces, runtime_of
from plugin_parts import Echo
from poolhook.outputs import PoolingOutput
from poolhook.plugins import DataRequest, Wrapper


class Cache(Wrapper):
    """Knows what it has seen."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, ...], PoolingOutput] = {}
        self.stores: list[int] = []

    def lookup(self, inputs: Any) -> Any:
        return [self.known.get(tuple(item.token_ids)) for item in inputs]

    def store(self, inputs: Any, outputs: Any) -> None:
        self.stores.append(len(inputs))
        self.known.update({tuple(item.token_ids): out for item, out in zip(inputs, outputs, strict=True)})


@both_faces
def test_only_what_no_lookup_knows_goes_to_the_engine_and_then_to_store(tmp_path: Path, serve: Serve):
    engine, cache = FakeEngine(), Cache()
    runtime = runtime_of(tmp_path, Echo(), cache, engine=engine)
    serve(runtime, DataRequest(data=[[1], [2]]))
    answer = serve(runtime, DataRequest(data=[[3], [2], [4], [1]]))
    assert [row[2] for row in answer.value] == [3, 2, 4, 1]
    assert answer.prompt_tokens == 4
    assert [list(item.token_ids) for item in engine.submitted] == [[1], [2], [3], [4]]
    assert cache.stores == [2, 2]


@both_faces
def test_a_request_that_is_known_whole_stores_nothing(tmp_path: Path, serve: Serve):
    cache = Cache()
    runtime = runtime_of(tmp_path, Echo(), cache)
    first, second = (serve(runtime, DataRequest(data=[[1], [2]])).value for _ in range(2))
    assert first == second
    assert cache.stores == [2]
