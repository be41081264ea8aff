"""A request finds its route, or a message says how to ask."""

from __future__ import annotations

from typing import Any

import pytest

from plugin_parts import Echo, route_of
from poolhook.errors import InvalidRequest
from poolhook.plugins import (
    DataRequest,
    PluginWithIOProcessorPlugins,
    PluginWithoutIOProcessorPlugins,
    PromptsRequest,
    TaskDispatcher,
)
from poolhook.plugins.dispatch import Dispatcher, PoolingRequest


class Other(Echo):
    pass


EMBED = route_of(Echo())
ONE = route_of(Echo(), name="search")
TWO = route_of(Other(), name="segment")


def refused(dispatcher: Dispatcher, request: PoolingRequest) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        dispatcher.dispatch(request)
    return caught.value


class TestABuiltInTask:
    def test_prompts_go_to_its_route(self):
        dispatcher = TaskDispatcher(EMBED)
        route, data = dispatcher.dispatch(PromptsRequest(prompts=["a"], prompt_name="query"))
        assert route is EMBED
        assert data == {"input": ["a"], "prompt_name": "query"}
        assert dispatcher.routes == (EMBED,)

    def test_data_is_refused_naming_who_reads_it(self):
        error = refused(TaskDispatcher(EMBED, ["search", "segment"]), DataRequest(data=1))
        assert str(error).startswith("Task 'embed' takes `input` (prompts), not `data`.")
        assert "task 'plugin', which is served by search, segment." in str(error)
        assert error.param == "data"

    def test_data_is_refused_saying_that_nobody_reads_it(self):
        assert "'plugin', which is not served here." in str(refused(TaskDispatcher(EMBED), DataRequest(data=1)))


class TestPluginWithOneProcessor:
    dispatcher = PluginWithIOProcessorPlugins({"search": ONE})

    @pytest.mark.parametrize("plugin", [None, "search"])
    @pytest.mark.parametrize("data", [None, {"q": 1}, []], ids=repr)
    def test_data_goes_to_it_named_or_not(self, plugin: str | None, data: Any):
        assert self.dispatcher.dispatch(DataRequest(data=data, plugin=plugin)) == (ONE, data)

    def test_plain_prompts_are_refused_saying_how_to_ask(self):
        error = refused(self.dispatcher, PromptsRequest(prompts="a"))
        assert '{"data": ...}' in str(error)
        assert "processors: search" in str(error)
        assert "another task" in str(error)
        assert error.param == "input"


class TestPluginWithSeveralProcessors:
    dispatcher = PluginWithIOProcessorPlugins({"search": ONE, "segment": TWO})

    def test_data_goes_to_the_one_that_is_named(self):
        assert self.dispatcher.dispatch(DataRequest(data=1, plugin="search"))[0] is ONE
        assert self.dispatcher.dispatch(DataRequest(data=1, plugin="segment"))[0] is TWO
        assert self.dispatcher.routes == (ONE, TWO)

    def test_data_for_none_is_refused_with_the_names(self):
        error = refused(self.dispatcher, DataRequest(data=1))
        assert "say which with `plugin`: search, segment" in str(error)
        assert error.param == "plugin"

    @pytest.mark.parametrize("plugin", ["serach", "", ["search"], {}, 3], ids=repr)
    def test_an_unknown_name_is_refused_with_the_names(self, plugin: Any):
        error = refused(self.dispatcher, DataRequest(data=1, plugin=plugin))
        assert "is not served here. Served: search, segment." in str(error)
        assert error.param == "plugin"

    def test_an_endless_name_gives_a_bounded_message(self):
        assert len(str(refused(self.dispatcher, DataRequest(data=1, plugin="x" * 10**6)))) < 1000


class TestPluginWithoutProcessors:
    dispatcher = PluginWithoutIOProcessorPlugins(EMBED, ["search", "segment"])

    def test_prompts_pass_through(self):
        route, data = self.dispatcher.dispatch(PromptsRequest(prompts=[[1, 2]]))
        assert route is EMBED
        assert data["input"] == [[1, 2]]
        assert self.dispatcher.routes == (EMBED,)

    def test_data_is_refused_with_the_installed_names(self):
        error = refused(self.dispatcher, DataRequest(data=1))
        assert "io_processor_plugin (installed: search, segment)" in str(error)
        assert "`input`" in str(error)
        assert error.param == "data"

    def test_data_is_refused_where_none_is_installed(self):
        assert "(installed: none)" in str(refused(PluginWithoutIOProcessorPlugins(EMBED), DataRequest(data=1)))
