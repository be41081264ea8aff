"""What pluggy would drop or misread in silence is refused when a plugin is registered, with the way to mend it."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from pydantic import BaseModel

from plugin_parts import Echo, ref_of
from poolhook.errors import PluginContractError
from poolhook.plugins import IOProcessor, Settings, Wrapper
from poolhook.plugins.contract import check_class
from poolhook.registry import IO_PROCESSORS, WRAPPERS, PluginRef


def problem(plugin_class: object) -> str:
    """What the contract has against `plugin_class`."""
    with pytest.raises(PluginContractError) as caught:
        check_class(ref_of(plugin_class), plugin_class)
    message = str(caught.value)
    assert "acme 1.2" in message
    return message


class TestGoodClasses:
    """These pass, and come back as they are."""

    def test_a_processor_of_three_methods(self):
        assert check_class(ref_of(Echo), Echo) is Echo

    def test_an_override_of_every_hook_without_a_decorator(self):
        class Full(Echo):
            def startup(self, settings: Any, model_info: Any) -> None: ...
            def shutdown(self) -> None: ...
            def prefetch_online(self, ctx: Any, request: Any) -> Any: ...
            def pre_process_offline(self, ctx: Any, request: Any) -> Any: ...
            def pre_process_online(self, ctx: Any, request: Any) -> Any: ...
            def merge_pooling_params(self, ctx: Any, prompts: Any, params: Any) -> Any: ...
            def post_process_offline(self, ctx: Any, outputs: Any) -> Any: ...
            def post_process_online(self, ctx: Any, outputs: Any) -> Any: ...
            def on_error(self, ctx: Any, stage: str, error: BaseException) -> None: ...
            def on_finish(self, ctx: Any) -> None: ...

        assert check_class(ref_of(Full), Full) is Full

    def test_arguments_that_are_not_needed_may_be_left_out(self):
        class Brief(Echo):
            def startup(self, model_info: Any) -> None: ...
            def merge_pooling_params(self, prompts: Any) -> Any: ...
            def on_error(self, error: BaseException) -> None: ...
            def on_finish(self) -> None: ...

        assert check_class(ref_of(Brief), Brief) is Brief

    def test_a_wrapper_that_goes_around_stages_and_caches(self):
        class Around(Wrapper):
            def parse_data(self, ctx: Any):
                return (yield)

            def post_process_online(self, ctx: Any, outputs: Any):
                return (yield)

            def lookup(self, inputs: Any) -> Any: ...
            def store(self, inputs: Any, outputs: Any) -> None: ...

        assert check_class(ref_of(Around), Around) is Around

    def test_helpers_nested_classes_properties_and_attributes_of_any_other_name(self):
        class Helped(Echo):
            class Settings(Settings):
                size: int = 1

            class Request(BaseModel):
                text: str

            limit = 3

            def parse_sentences(self, text: str, *, sep: str = ".") -> list[str]:
                return text.split(sep)

            def _parse_date(self) -> None: ...

            @property
            def ready(self) -> bool:
                raise RuntimeError("looked at")

        assert check_class(ref_of(Helped), Helped) is Helped

    def test_a_method_decorated_with_wraps_counts_as_what_it_wraps(self):
        def traced(method: Any) -> Any:
            @functools.wraps(method)
            def inner(*args: Any, **kwargs: Any) -> Any:
                return method(*args, **kwargs)

            return inner

        class Traced(Echo):
            @traced
            def parse_data(self, ctx: Any, data: Any) -> Any:
                return data

        assert check_class(ref_of(Traced), Traced) is Traced


@pytest.mark.parametrize(("group", "base"), [(IO_PROCESSORS, "IOProcessor"), (WRAPPERS, "Wrapper")])
@pytest.mark.parametrize("thing", [dict, len, 7, None, Settings], ids=str)
def test_what_is_not_a_subclass_is_refused_naming_the_base(thing: object, group: str, base: str):
    with pytest.raises(PluginContractError, match=rf"acme:It is .*not a subclass of poolhook\.plugins\.{base}"):
        check_class(PluginRef("it", group, "acme:It", "acme", "1.2"), thing)


def test_a_processor_is_no_wrapper():
    with pytest.raises(PluginContractError, match="acme:It is Echo, not a subclass"):
        check_class(PluginRef("it", WRAPPERS, "acme:It", "acme", "1.2"), Echo)


def test_missing_methods_are_named_all_at_once():
    class Half(IOProcessor[Any, Any]):
        def parse_data(self, ctx: Any, data: Any) -> Any: ...

    assert "it does not define post_process, pre_process" in problem(Half)


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("post_proces", "post_process"),
        ("pre_process_ofline", "pre_process_offline"),
        ("on_finished", "on_finish"),
        ("parse_date", "parse_data"),
        ("merge_pooling_param", "merge_pooling_params"),
        ("start_up", "startup"),
    ],
)
def test_a_name_that_looks_like_a_hook_gets_a_suggestion(misspelt: str, meant: str):
    assert f"{misspelt} is no hook; did you mean {meant}?" in problem(type("Typo", (Echo,), {misspelt: lambda self: 0}))


@pytest.mark.parametrize("name", ["pre_process", "post_process"])
def test_a_wrapper_is_told_that_it_goes_around_the_hooks_of_each_face(name: str):
    message = problem(type("Around", (Wrapper,), {name: lambda self, ctx: 0}))
    assert f"go around {name}_offline and {name}_online" in message


def test_a_renamed_argument_is_refused_with_the_right_names():
    class Renamed(Echo):
        def parse_data(self, context: Any, data: Any) -> Any: ...

    assert "parse_data has an argument 'context'; its arguments are ctx, data" in problem(Renamed)


def test_an_argument_too_many_is_refused():
    class More(Echo):
        def shutdown(self, force: bool) -> None: ...

    assert "shutdown has an argument 'force'; its arguments are none" in problem(More)


@pytest.mark.parametrize("name", ["pre_process", "post_process"])
def test_pre_and_post_process_take_all_their_arguments_since_they_are_called_by_position(name: str):
    given = {"pre_process": "ctx, request", "post_process": "ctx, outputs"}[name]
    assert f"{name} must take exactly {given}" in problem(type("Less", (Echo,), {name: lambda self, ctx: 0}))


def test_a_default_is_refused_since_its_argument_would_never_be_passed():
    class Defaulted(Echo):
        def parse_data(self, ctx: Any, data: Any = None) -> Any: ...

    assert "parse_data gives its argument 'data' a default, and then it is never passed" in problem(Defaulted)


def test_starred_arguments_are_refused():
    class Starred(Echo):
        def on_finish(self, *args: Any, **kwargs: Any) -> None: ...

    message = problem(Starred)
    assert "on_finish takes *args" in message.replace(": Any", "")
    assert "on_finish takes **kwargs" in message.replace(": Any", "")


def test_keyword_only_arguments_are_refused():
    class Keyword(Echo):
        def parse_data(self, ctx: Any, *, data: Any) -> Any: ...

    assert "parse_data takes 'data' by keyword only" in problem(Keyword)


@pytest.mark.parametrize("method", [lambda ctx, data: data, lambda: None], ids=["ctx first", "nothing"])
def test_a_forgotten_self_is_refused(method: Any):
    assert "parse_data does not take self first" in problem(type("Selfless", (Echo,), {"parse_data": method}))


def test_async_hooks_are_refused_since_nothing_awaits_them():
    class Async(Echo):
        async def pre_process_online(self, ctx: Any, request: Any) -> Any: ...

        async def prefetch_online(self, ctx: Any, request: Any) -> Any:
            yield

    message = problem(Async)
    assert "pre_process_online is async, but nothing awaits it" in message
    assert "prefetch_online is async" in message
    assert "prefetch_online returns what is to be awaited" in message


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (staticmethod(lambda ctx, data: data), "staticmethod"),
        (classmethod(lambda cls, ctx, data: data), "classmethod"),
        (property(lambda self: len), "property"),
        (functools.partial(print), "partial"),
        (None, "NoneType"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_hook_that_is_no_plain_method_is_refused(value: Any, kind: str):
    message = problem(type("Odd", (Echo,), {"parse_data": value}))
    assert f"parse_data must be a plain method, not a {kind}" in message


@pytest.mark.parametrize("name", ["parse_data", "post_process", "on_finish"])
def test_a_processor_goes_around_nothing(name: str):
    def generator(self: Any, ctx: Any) -> Any:
        yield

    assert f"{name} is a generator; only wrappers go around a stage" in problem(type("Gen", (Echo,), {name: generator}))


@pytest.mark.parametrize("name", ["lookup", "store"])
def test_a_processor_is_no_cache(name: str):
    assert f"{name} is for wrappers" in problem(type("Cache", (Echo,), {name: lambda self, inputs: None}))


def test_a_wrappers_stage_must_be_a_generator():
    class Plain(Wrapper):
        def parse_data(self, ctx: Any, data: Any) -> Any:
            return data

    assert "parse_data must be a generator that yields once" in problem(Plain)


@pytest.mark.parametrize("name", ["lookup", "store", "startup", "shutdown", "on_error", "on_finish"])
def test_a_hook_without_an_answer_must_not_be_a_generator(name: str):
    def generator(self: Any) -> Any:
        yield

    message = problem(type("Gen", (Wrapper,), {name: generator}))
    assert f"{name} is a generator, but it is called for its own sake" in message


@pytest.mark.parametrize("settings", [dict, type("Options", (BaseModel,), {}), Settings()], ids=str)
def test_settings_of_another_kind_are_refused(settings: object):
    assert "Settings must be a subclass of poolhook.plugins.Settings" in problem(
        type("Set", (Echo,), {"Settings": settings})
    )


def test_every_problem_is_told_at_once():
    class Many(Echo):
        async def on_finish(self, ctx: Any) -> None: ...

        def parse_data(self, ctx: Any, payload: Any) -> Any: ...

        def post_proces(self) -> None: ...

    message = problem(Many)
    assert "on_finish" in message
    assert "'payload'" in message
    assert "post_proces is no hook" in message
