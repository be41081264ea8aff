"""A caller may leave at any moment: what waits is withdrawn, what runs is awaited, and the end is told exactly once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fake_engine import FakeEngine, Journal, runtime_of
from plugin_parts import Echo
from poolhook.errors import EngineDead
from poolhook.plugins import DataRequest
from poolhook.runtime import OnlineRunner, run_offline

REQUEST = DataRequest(data=[[5], [6]])


class Slow(Journal, Echo):
    """Stops in one hook until it is told to go on."""

    def __init__(self, stage: str = "") -> None:
        super().__init__()
        self.stage = stage
        self.reached = threading.Event()
        self.go_on = threading.Event()
        self.parsed: list[Any] = []

    def stop_in(self, stage: str) -> None:
        if stage == self.stage:
            self.reached.set()
            assert self.go_on.wait(30)

    def parse_data(self, ctx: Any, data: Any) -> Any:
        self.parsed.append(data)
        self.stop_in("parse_data")
        return data

    def post_process(self, ctx: Any, outputs: Any) -> Any:
        self.stop_in("post_process")
        return super().post_process(ctx, outputs)

    def on_error(self, stage: str, error: BaseException) -> None:
        self.stop_in("on_error")
        super().on_error(stage, error)


class Server:
    """A runner whose requests are started as tasks."""

    def __init__(self, directory: Path, processor: Slow, engine: FakeEngine, threads: int) -> None:
        self.processor = processor
        self.engine = engine
        self.runner = OnlineRunner(runtime_of(directory, processor, engine=engine), threads=threads)

    def start(self, request: DataRequest = REQUEST) -> asyncio.Task[Any]:
        return asyncio.ensure_future(self.runner.run(request, lambda _, answer: answer.value))


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Any]:
    servers: list[Server] = []

    def make(stage: str = "", *, hold: bool = False, threads: int = 2) -> Server:
        servers.append(Server(tmp_path, Slow(stage), FakeEngine(hold), threads))
        return servers[-1]

    yield make
    for server in servers:
        server.runner.close()


async def reached(server: Server) -> None:
    assert await asyncio.to_thread(server.processor.reached.wait, 30)


async def ends_cancelled(task: asyncio.Task[Any]) -> None:
    with pytest.raises(asyncio.CancelledError):
        await task


def test_leaving_while_the_engine_works_withdraws_every_input(serve: Any):
    async def main() -> None:
        server = serve(hold=True)
        task = server.start()
        futures = await asyncio.to_thread(server.engine.wait_for, 2)
        task.cancel()
        await ends_cancelled(task)
        assert all(future.cancelled() for future in futures)
        assert server.processor.entries == [("on_error", "engine", "CancelledError"), "on_finish"]

    asyncio.run(main())


def test_one_who_leaves_changes_nothing_for_the_rest(serve: Any):
    async def main() -> None:
        server = serve(hold=True)
        tasks = [server.start(DataRequest(data=[[n]])) for n in range(20, 60)]
        await asyncio.to_thread(server.engine.wait_for, len(tasks))
        for task in tasks[::2]:
            task.cancel()
        await asyncio.wait(tasks[::2])
        server.engine.release()
        answers = await asyncio.gather(*tasks[1::2])
        assert [answer[0][2] for answer in answers] == list(range(21, 60, 2))
        assert server.processor.entries.count("on_finish") == len(tasks)

    asyncio.run(main())


@pytest.mark.parametrize("times", [1, 3])
def test_leaving_while_a_hop_runs_waits_for_it_however_often_one_cancels(serve: Any, times: int):
    async def main() -> None:
        server = serve("parse_data")
        task = server.start()
        await reached(server)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        assert server.processor.entries == []
        server.processor.go_on.set()
        await ends_cancelled(task)
        assert server.processor.entries == [("on_error", "lookup", "CancelledError"), "on_finish"]
        assert server.engine.submitted == []

    asyncio.run(main())


def test_leaving_while_the_end_is_being_told_does_not_cut_it_short(serve: Any):
    async def main() -> None:
        server = serve("on_error", hold=True)
        task = server.start()
        await asyncio.to_thread(server.engine.wait_for, 2)
        task.cancel()
        await reached(server)
        task.cancel()
        await asyncio.sleep(0)
        server.processor.go_on.set()
        await ends_cancelled(task)
        assert server.processor.entries == [("on_error", "engine", "CancelledError"), "on_finish"]

    asyncio.run(main())


def test_leaving_before_a_thread_is_free_drops_the_work_but_not_the_end(serve: Any):
    async def main() -> None:
        server = serve("parse_data", threads=1)
        first = server.start(DataRequest(data=[[5]]))
        await reached(server)
        second = server.start(DataRequest(data=[[6]]))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.sleep(0)
        server.processor.go_on.set()
        await ends_cancelled(second)
        assert (await first)[0][2] == 5
        assert server.processor.parsed == [[[5]]]
        assert sorted(map(str, server.processor.entries)) == sorted(
            ["on_finish", "on_finish", str(("on_error", "parse_data", "CancelledError"))]
        )

    asyncio.run(main())


def test_leaving_while_the_answer_is_written_is_no_error_and_ends_once(serve: Any):
    async def main() -> None:
        server = serve("post_process")
        task = server.start()
        await reached(server)
        task.cancel()
        await asyncio.sleep(0)
        server.processor.go_on.set()
        await ends_cancelled(task)
        assert server.processor.entries == ["on_finish"]

    asyncio.run(main())


def test_the_end_is_told_though_the_threads_are_gone(serve: Any):
    async def main() -> None:
        server = serve(hold=True)
        task = server.start()
        futures = await asyncio.to_thread(server.engine.wait_for, 2)
        server.runner.close()
        for future in futures:
            future.set_exception(EngineDead("The engine is closed."))
        with pytest.raises(EngineDead):
            await task
        assert server.processor.entries == [("on_error", "engine", "EngineDead"), "on_finish"]

    asyncio.run(main())


def test_a_deliverer_that_fails_is_told_to_the_plugins_too(serve: Any):
    async def main() -> None:
        server = serve()
        with pytest.raises(TypeError):
            await server.runner.run(REQUEST, lambda route, answer: int(answer.value))
        assert server.processor.entries == [("on_error", "post_process_online", "TypeError"), "on_finish"]

    asyncio.run(main())


def test_a_failing_input_withdraws_the_rest_of_its_request(serve: Any):
    async def main() -> None:
        server = serve(hold=True)
        task = server.start()
        first, second = await asyncio.to_thread(server.engine.wait_for, 2)
        first.set_exception(EngineDead("gone"))
        with pytest.raises(EngineDead):
            await task
        assert second.cancelled()

    asyncio.run(main())


def test_ctrl_c_offline_withdraws_what_waits(tmp_path: Path):
    engine, processor = FakeEngine(hold=True), Slow()

    def interrupt(futures: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_offline(runtime_of(tmp_path, processor, engine=engine), REQUEST, watch=interrupt)
    assert all(future.cancelled() for future in engine.wait_for(2))
    assert processor.entries == [("on_error", "engine", "KeyboardInterrupt"), "on_finish"]
