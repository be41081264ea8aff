"""`init_pooling_io_processors` builds every route of a model, starts each plugin once, leaves none half started."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from distributions import Site
from plugin_parts import MODEL_INFO
from poolhook.errors import ConfigError, InvalidRequest, PluginLoadError, PluginStageError
from poolhook.params import PoolingParams
from poolhook.plugins import (
    DataRequest,
    PluginWithoutIOProcessorPlugins,
    PromptsRequest,
    RequestContext,
    RouteRequest,
)
from poolhook.runtime import PoolingIOProcessors, init_pooling_io_processors

SOURCE = """
from plugin_parts import Echo
from poolhook.plugins import Settings, Wrapper

events = []

class Lives:
    class Settings(Settings):
        limit: int = 0
        fail_in: str = ""

    def startup(self, settings, model_info):
        events.append(("startup", type(self).__name__, settings.limit, model_info.name))
        self.settings = settings
        if settings.fail_in == "startup":
            raise OSError("no disk")

    def shutdown(self):
        events.append(("shutdown", type(self).__name__))
        if self.settings.fail_in == "shutdown":
            raise ValueError("can't")

class Search(Lives, Echo): pass
class Segment(Lives, Echo): pass
class Audit(Lives, Wrapper): pass
class Redact(Lives, Wrapper): pass
"""


@pytest.fixture
def events(site: Site) -> list[Any]:
    """What happened to the plugins of the distribution `acme`, which is installed for the test."""
    site.add(
        "acme",
        io_processors={"search": "acme_plugins:Search", "segment": "acme_plugins:Segment"},
        wrappers={"audit": "acme_plugins:Audit", "redact": "acme_plugins:Redact"},
        modules={"acme_plugins": SOURCE},
    )
    return importlib.import_module("acme_plugins").events  # type: ignore[no-any-return]


def init(
    processors: Sequence[str] = (),
    wrappers: Sequence[str] = (),
    config: Mapping[str, Any] | None = None,
    tasks: Sequence[Any] = ("embed",),
    task: Any = "embed",
) -> PoolingIOProcessors:
    return init_pooling_io_processors(
        model_info=replace(MODEL_INFO, supported_tasks=tuple(tasks)),
        task=task,
        io_processor_plugins=processors,
        wrappers=wrappers,
        plugin_config=config,
    )


def names(events: Sequence[Any], what: str) -> list[str]:
    return [event[1] for event in events if event[0] == what]


class TestRoutes:
    def test_the_built_in_comes_by_its_entry_point(self):
        route, data = init().dispatch(PromptsRequest(prompts="a"))
        assert route.processor.ref.target == "poolhook_builtin.embed:EmbedIOProcessor"
        assert (route.name, route.task, data["input"]) == ("embed", "embed", "a")

    def test_data_without_a_task_means_plugin(self, events: list[Any]):
        processors = init(["search"])
        route, data = processors.dispatch(DataRequest(data={"q": 1}))
        assert (route.name, data) == ("search", {"q": 1})
        assert processors.supported_tasks == ("embed", "plugin")

    def test_a_processors_prompts_are_pooled_for_what_the_model_computes(self, events: list[Any]):
        route, _ = init(["search"]).dispatch(DataRequest(data=1))
        ctx = RequestContext("offline", route.name, route.task)
        assert route.merge_pooling_params(ctx, route.pre_process(ctx, "a")) == [PoolingParams(task="embed")]

    def test_wrappers_are_on_every_route_in_their_order_as_one_instance(self, events: list[Any]):
        processors = init(["search", "segment"], ["redact", "audit"])
        routes = [
            processors.dispatch(PromptsRequest(prompts="a"))[0],
            *(processors.dispatch(DataRequest(data=1, plugin=name))[0] for name in ("search", "segment")),
        ]
        assert [[w.ref.name for w in route.wrappers] for route in routes] == [["redact", "audit"]] * 3
        assert len({wrapper for route in routes for wrapper in route.wrappers}) == 2

    def test_where_the_model_computes_plugin_itself_prompts_pass_through(self, events: list[Any]):
        processors = init(tasks=["plugin"], task="plugin")
        route, _ = processors.dispatch(PromptsRequest(prompts=[[1]]))
        assert isinstance(processors.dispatchers["plugin"], PluginWithoutIOProcessorPlugins)
        assert (route.task, route.processor.ref.name) == ("plugin", "plugin")
        with pytest.raises(InvalidRequest, match=r"installed: .*search, segment"):
            processors.dispatch(DataRequest(data=1))

    def test_data_where_none_was_chosen_is_refused_with_the_installed_names(self, events: list[Any]):
        with pytest.raises(InvalidRequest, match=r"No IO processor was chosen.*installed: .*search, segment") as caught:
            init().dispatch(DataRequest(data=1))
        assert "embed" not in str(caught.value)
        assert caught.value.param == "data"

    @pytest.mark.parametrize("task", ["classify", "plugin"])
    def test_an_unsupported_task_lists_all_supported_ones(self, task: Any):
        with pytest.raises(InvalidRequest, match=f"Task '{task}' is not supported. Supported tasks: embed") as caught:
            init().dispatch(PromptsRequest(prompts="a", task=task))
        assert caught.value.param == "task"


class TestBuiltOnTasks:
    @pytest.mark.parametrize(
        ("tasks", "model", "routes"),
        [
            (["embed"], {"score_type": "bi-encoder"}, {"score": "embed", "rerank": "embed"}),
            (
                ["embed", "token_embed"],
                {"score_type": "late-interaction"},
                {"score": "token_embed", "rerank": "token_embed"},
            ),
            (
                ["classify"],
                {"score_type": "cross-encoder", "labels": ("it",)},
                {"score": "classify", "rerank": "classify", "reward": "classify"},
            ),
            (
                ["classify"],
                {"score_type": "cross-encoder", "labels": ("good", "bad")},
                {"score": "classify", "rerank": "classify"},
            ),
            (["token_classify"], {"labels": ("good", "bad")}, {"reward": "token_classify"}),
            (["plugin"], {}, {}),
        ],
        ids=str,
    )
    def test_there_is_a_route_for_what_the_model_can_serve(
        self, tasks: list[Any], model: dict[str, Any], routes: dict[str, str]
    ):
        info = replace(MODEL_INFO, supported_tasks=tuple(tasks), **model)
        processors = init_pooling_io_processors(model_info=info, task=tasks[0])
        for name in ("score", "rerank", "reward"):
            request = RouteRequest(route=name, data=1)
            if name in routes:
                route, data = processors.dispatch(request)
                assert (route.name, route.task, data) == (name, routes[name], 1)
                assert route.processor.ref.distribution == "poolhook"
            else:
                with pytest.raises(InvalidRequest, match=f"this model supports {', '.join(tasks)}") as caught:
                    processors.dispatch(request)
                assert caught.value.param == "model"
        processors.close()

    def test_wrappers_are_on_them_too(self, events: list[Any]):
        info = replace(MODEL_INFO, score_type="bi-encoder")
        processors = init_pooling_io_processors(model_info=info, task="embed", wrappers=["audit"])
        (embed, _), (score, _) = (
            processors.dispatch(request)
            for request in (PromptsRequest(prompts="a"), RouteRequest(route="score", data=1))
        )
        assert embed.wrappers == score.wrappers
        assert names(events, "startup") == ["Audit"]


class TestLife:
    def test_each_plugin_starts_once_with_its_settings_and_stops_once(self, events: list[Any]):
        processors = init(["search"], ["audit"], {"audit": {"limit": 5}})
        assert events == [("startup", "Audit", 5, "tiny"), ("startup", "Search", 0, "tiny")]
        processors.close()
        assert sorted(names(events, "shutdown")) == ["Audit", "Search"]

    @pytest.mark.parametrize(
        ("failing", "left"), [("audit", []), ("redact", ["Audit"]), ("search", ["Audit", "Redact"])]
    )
    def test_a_start_that_fails_stops_those_already_started(self, events: list[Any], failing: str, left: list[str]):
        with pytest.raises(PluginStageError, match=f"'{failing}'.* failed in startup: OSError: no disk"):
            init(["search"], ["audit", "redact"], {failing: {"fail_in": "startup"}})
        assert sorted(names(events, "shutdown")) == left

    def test_a_stop_that_fails_is_logged_and_the_others_still_stop(
        self, events: list[Any], caplog: pytest.LogCaptureFixture
    ):
        processors = init(["search"], ["audit", "redact"], {"audit": {"fail_in": "shutdown"}})
        with caplog.at_level(logging.ERROR):
            processors.close()
        assert sorted(names(events, "shutdown")) == ["Audit", "Redact", "Search"]
        assert "Plugin 'audit' (acme 1.2, acme_plugins:Audit) failed in shutdown: ValueError: can't" in caplog.text


class TestMistakes:
    def test_nothing_starts_when_a_later_plugin_is_broken(self, site: Site, events: list[Any]):
        site.add("globex", wrappers={"broken": "globex_missing:Broken"})
        with pytest.raises(PluginLoadError, match="globex_missing"):
            init(["search"], ["audit", "broken"])
        assert events == []

    def test_options_for_no_selected_plugin_are_refused_with_the_names_of_the_selected(self, events: list[Any]):
        with pytest.raises(ConfigError, match=r"options for redact, which no .*Selected: audit, embed\."):
            init(wrappers=["audit"], config={"redact": {}, "audit": {}})
        assert events == []

    def test_a_wrong_option_names_its_plugin(self, events: list[Any]):
        with pytest.raises(ConfigError, match="Plugin 'audit' option 'limit'"):
            init(wrappers=["audit"], config={"audit": {"limit": "x"}})

    def test_options_may_be_for_a_distributions_plugin(self, events: list[Any]):
        init(wrappers=["audit"], config={"acme:audit": {"limit": 7}})
        assert events == [("startup", "Audit", 7, "tiny")]

    @pytest.mark.parametrize("twice", [["audit", "audit"], ["audit", "redact", "acme:audit"]], ids=str)
    def test_a_wrapper_selected_twice_is_refused_whatever_it_was_called(self, events: list[Any], twice: list[str]):
        with pytest.raises(ConfigError, match="A wrapper was selected twice: audit"):
            init(wrappers=twice)

    def test_a_processor_selected_twice_is_refused(self, events: list[Any]):
        with pytest.raises(ConfigError, match="An IO processor was selected twice: search, search"):
            init(["search", "search"])

    def test_a_name_alone_is_a_list_of_one(self, events: list[Any]):
        assert next(iter(init(wrappers="audit").plugins)).ref.name == "audit"

    def test_an_unknown_name_is_refused_with_the_installed_ones(self, events: list[Any]):
        with pytest.raises(ConfigError, match=r"No plugin named 'adit' is installed in wrappers\. .*audit.*redact"):
            init(wrappers=["adit"])


def test_two_processors_of_one_name_are_both_served_by_their_full_names(site: Site, events: list[Any]):
    site.add("globex", io_processors={"search": "acme_plugins:Segment"})
    with pytest.raises(ConfigError, match="'acme:search' or 'globex:search'"):
        init(["search"])
    processors = init(["acme:search", "globex:search"])
    for name, distribution in [("acme:search", "acme"), ("globex:search", "globex")]:
        route, _ = processors.dispatch(DataRequest(data=1, plugin=name))
        assert (route.name, route.processor.ref.distribution) == (name, distribution)
    with pytest.raises(InvalidRequest, match="say which with `plugin`: acme:search, globex:search"):
        processors.dispatch(DataRequest(data=1))
