"""Plugins on a live server: a fault names its owner, wrappers go around, and the server serves on."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from distributions import Site
from servers import Server, running_server

PLUGINS = '''
from poolhook.errors import InvalidRequest
from poolhook.plugins import IOProcessor, Wrapper


class Moody(IOProcessor):
    """Raises in the stage that its data names."""

    def _stage(self, ctx, name):
        if ctx.state == name:
            raise KeyError("moody")
        if ctx.state == "exit " + name:
            raise SystemExit(3)
        if ctx.state == "stop iteration":
            raise StopIteration
        if ctx.state == "client " + name:
            raise InvalidRequest("not today", param="mood")

    def parse_data(self, ctx, data):
        ctx.state = data
        self._stage(ctx, "parse_data")
        return data

    def prefetch_online(self, ctx, request):
        async def fetch():
            self._stage(ctx, "prefetch")

        return [fetch()]

    def pre_process(self, ctx, request):
        self._stage(ctx, "pre_process")
        return {"nonsense": 1} if request == "nonsense" else "a prompt"

    def post_process(self, ctx, outputs):
        self._stage(ctx, "post_process")
        return object() if ctx.state == "unserialisable" else {"mood": ctx.state, "size": len(outputs[0].data)}


class Shout(Wrapper):
    def parse_data(self, ctx, data):
        request = yield
        if ctx.route == "moody":
            return request
        for index, prompt in enumerate(request.prompts):
            if hasattr(prompt, "text"):
                request.prompts[index] = type(prompt)(prompt.text.upper() + " wrapped")
        return request
'''


@pytest.fixture(scope="module")
def moody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    site = Site(tmp_path_factory.mktemp("site"))
    site.add(
        "acme-moods",
        io_processors={"moody": "acme_moods:Moody"},
        wrappers={"shout": "acme_moods:Shout"},
        modules={"acme_moods": PLUGINS},
        version="3.4",
    )
    env = {"PYTHONPATH": str(site.path)}
    with running_server("demo", "--io-processor-plugin", "moody", "--wrapper", "shout", env=env) as server:
        yield server


def ask(server: Server, data: object) -> httpx.Response:
    return httpx.post(f"{server.url}/pooling", json={"data": data}, timeout=30)


def test_a_processor_answers_in_its_own_terms(moody: Server):
    response = ask(moody, "fine")
    assert response.status_code == 200
    assert response.json()["data"] == {"mood": "fine", "size": 384}


@pytest.mark.parametrize("stage", ["parse_data", "pre_process", "post_process"])
def test_a_fault_of_the_plugin_is_a_500_that_names_it_and_the_server_serves_on(moody: Server, stage: str):
    response = ask(moody, stage)
    message = response.json()["error"]["message"]
    assert response.status_code == 500
    for part in ("'moody'", "acme-moods 3.4", "acme_moods:Moody", stage, "KeyError"):
        assert part in message
    assert "Traceback" in moody.log  # the cause is there for the operator
    assert ask(moody, "fine").status_code == 200
    assert httpx.get(f"{moody.url}/health").status_code == 200


@pytest.mark.parametrize("stage", ["parse_data", "pre_process", "post_process"])
def test_what_the_plugin_calls_the_clients_mistake_is_a_400(moody: Server, stage: str):
    error = ask(moody, f"client {stage}").json()["error"]
    assert (error["code"], error["message"], error["param"]) == (400, "not today", "mood")


@pytest.mark.parametrize(("data", "says"), [("nonsense", "must return prompts"), ("unserialisable", "can't be sent")])
def test_a_broken_contract_is_the_plugins_fault(moody: Server, data: str, says: str):
    response = ask(moody, data)
    assert response.status_code == 500
    assert says in response.json()["error"]["message"]
    assert "acme-moods 3.4" in response.json()["error"]["message"]


def test_plain_prompts_for_task_plugin_are_a_400_that_says_how_to_ask(moody: Server):
    response = httpx.post(f"{moody.url}/pooling", json={"input": "hello", "task": "plugin"})
    assert response.status_code == 400
    assert '{"data": ...}' in response.json()["error"]["message"]
    assert "moody" in response.json()["error"]["message"]


def test_a_wrapper_goes_around_the_built_in_task_too(moody: Server):
    got = httpx.post(f"{moody.url}/v1/embeddings", json={"input": "hello"}).json()
    assert got["usage"]["prompt_tokens"] == 4
    wanted = httpx.post(f"{moody.url}/v1/embeddings", json={"input": [101, 7592, 5058, 102]}).json()
    assert got["data"][0]["embedding"] == pytest.approx(wanted["data"][0]["embedding"], abs=1e-6)


def test_the_log_names_every_plugin_with_its_version(moody: Server):
    assert "shout (acme-moods 3.4)" in moody.log
    assert "moody (acme-moods 3.4)" in moody.log


@pytest.mark.parametrize("stage", ["exit parse_data", "exit post_process", "exit prefetch", "stop iteration"])
def test_a_plugin_that_ends_the_program_or_the_iteration_ends_its_own_request_only(moody: Server, stage: str):
    response = ask(moody, stage)
    assert response.status_code == 500
    assert ask(moody, "fine").status_code == 200
