"""A selected plugin is made from validated options; whatever fails says which plugin and which option."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import Field

from distributions import Site
from plugin_parts import MODEL_INFO, Echo, instance_of
from poolhook.errors import ConfigError, InvalidRequest, PluginContractError, PluginLoadError, PluginStageError
from poolhook.plugins import PluginInstance, Settings, instantiate
from poolhook.registry import IO_PROCESSORS, select

SOURCE = """
from plugin_parts import Echo
from test_instance_settings import Limits

class Limited(Echo):
    Settings = Limits

    def __init__(self):
        {constructor}
"""
SETTINGS = """
from poolhook.plugins import Settings
from pydantic import BaseModel

class Cache(BaseModel):
    size: int = 10

class Limits(Settings):
    limit: int = 3
    cache: Cache = Cache()
"""


def make(site: Site, options: Any, constructor: str = "pass") -> PluginInstance:
    site.add(
        "acme",
        io_processors={"limited": "acme_limited:Limited"},
        modules={"acme_limited": SOURCE.format(constructor=constructor), "test_instance_settings": SETTINGS},
    )
    return instantiate(select("limited", IO_PROCESSORS), options)


def test_options_become_typed_settings(site: Site):
    made = make(site, {"limit": 5, "cache": {"size": 2}})
    assert made.settings.limit == 5  # type: ignore[attr-defined]
    assert made.settings.cache.size == 2  # type: ignore[attr-defined]


def test_without_options_the_settings_defaults_hold(site: Site):
    assert make(site, {}).settings.limit == 3  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"limit": "many"}, "Plugin 'limited' option 'limit': Input should be a valid integer"),
        ({"limt": 3}, "Plugin 'limited' option 'limt': Extra inputs are not permitted"),
        ({"cache": {"size": []}}, "Plugin 'limited' option 'cache.size': Input should be a valid integer"),
        (["limit"], "Plugin 'limited' option '(all)': Input should be a valid dictionary"),
        (None, "Plugin 'limited' option '(all)': Input should be a valid dictionary"),
    ],
)
def test_a_wrong_option_is_named_with_its_plugin_and_what_is_allowed(site: Site, options: Any, expected: str):
    with pytest.raises(ConfigError) as caught:
        make(site, options)
    assert expected in str(caught.value)
    assert "Its options: limit, cache." in str(caught.value)


def test_several_wrong_options_are_all_told(site: Site):
    with pytest.raises(ConfigError, match=r"option 'limit'.*; Plugin 'limited' option 'other'"):
        make(site, {"limit": "x", "other": 1})


def test_a_constructor_that_fails_is_a_load_error_with_its_cause(site: Site):
    with pytest.raises(PluginLoadError, match=r"'limited' \(acme 1\.2.*Limited\(\) raised OSError: no disk") as caught:
        make(site, {}, constructor="raise OSError('no disk')")
    assert isinstance(caught.value.__cause__, OSError)


def test_what_breaks_the_contract_is_never_constructed(site: Site):
    site.add("acme", io_processors={"odd": "acme_odd:Odd"}, modules={"acme_odd": "class Odd:\n    pass"})
    with pytest.raises(PluginContractError, match="acme_odd:Odd is Odd, not a subclass"):
        instantiate(select("odd", IO_PROCESSORS), {})


def test_settings_can_not_be_changed():
    class Own(Settings):
        limit: int = Field(default=3, ge=1)

    with pytest.raises(ValueError, match="frozen"):
        Own().limit = 4


def test_startup_gets_the_arguments_that_it_names():
    seen: list[Any] = []

    class Both(Echo):
        def startup(self, settings: Any, model_info: Any) -> None:
            seen.append((settings, model_info))

    class One(Echo):
        def startup(self, model_info: Any, /) -> None:
            seen.append(model_info)

    both = instance_of(Both())
    both.startup(MODEL_INFO)
    instance_of(One()).startup(MODEL_INFO)
    assert seen == [(both.settings, MODEL_INFO), MODEL_INFO]


@pytest.mark.parametrize("stage", ["startup", "shutdown"])
@pytest.mark.parametrize("error", [RuntimeError("no GPU"), InvalidRequest("no GPU"), ConfigError("no GPU")])
def test_a_failing_start_or_stop_names_the_plugin_whatever_it_raised(stage: str, error: Exception):
    def fail(self: Any) -> None:
        raise error

    instance = instance_of(type("Fails", (Echo,), {stage: fail})(), "fails")
    arguments = [MODEL_INFO] if stage == "startup" else []
    with pytest.raises(PluginStageError, match=rf"Plugin 'fails' \(acme 1\.2.* failed in {stage}: .*no GPU") as caught:
        getattr(instance, stage)(*arguments)
    assert caught.value.__cause__ is error


def test_a_plugin_without_startup_and_shutdown_starts_and_stops():
    instance = instance_of(Echo())
    assert instance.startup(MODEL_INFO) is None
    assert instance.shutdown() is None
