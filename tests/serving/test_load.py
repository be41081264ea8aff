"""Under load: a full queue says so, and clients who leave make room."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator

import httpx
import pytest

from servers import Server, running_server


@pytest.fixture(scope="module")
def small() -> Iterator[Server]:
    """A server whose queue holds few tokens."""
    options = ("--max-queued-tokens", "5000", "--max-num-batched-tokens", "512")
    with running_server("demo", "--device", "cpu", *options) as server:
        yield server


def queued_inputs(server: Server) -> int:
    found = re.search(r"^poolhook_queue_inputs (\d+)", httpx.get(f"{server.url}/metrics").text, re.MULTILINE)
    if found is None:
        raise LookupError("the metrics have no poolhook_queue_inputs")
    return int(found.group(1))


def test_overload_is_a_429_with_retry_after_and_a_lone_request_of_any_size_is_served(small: Server):
    body = {"input": ["word " * 200] * 40}

    async def ask_many() -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=small.url, timeout=120) as http:
            return await asyncio.gather(*(http.post("/v1/embeddings", json=body) for _ in range(8)))

    responses = asyncio.run(ask_many())
    statuses = [response.status_code for response in responses]
    assert set(statuses) == {200, 429}
    refused = responses[statuses.index(429)]
    assert int(refused.headers["retry-after"]) >= 1
    assert "the queue holds 5000" in refused.json()["error"]["message"]


def test_hundreds_of_clients_who_leave_change_nothing_for_the_rest(small: Server):
    async def leave(http: httpx.AsyncClient) -> None:
        with pytest.raises(httpx.TimeoutException):
            await http.post("/v1/embeddings", json={"input": ["word " * 200] * 10}, timeout=0.05)

    async def ask_among_leavers() -> httpx.Response:
        async with httpx.AsyncClient(base_url=small.url, limits=httpx.Limits(max_connections=None)) as http:
            leavers = [asyncio.ensure_future(leave(http)) for _ in range(200)]
            await asyncio.gather(*leavers, return_exceptions=True)
            return await http.post("/v1/embeddings", json={"input": "hello"}, timeout=120)

    response = asyncio.run(ask_among_leavers())
    assert response.status_code == 200
    deadline = time.monotonic() + 60
    while queued_inputs(small) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert queued_inputs(small) == 0
    assert httpx.get(f"{small.url}/health").status_code == 200
