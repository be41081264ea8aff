"""Methods are hooks by their names, wrappers go around them in order, and a fault is laid at the right door."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from plugin_parts import Echo, context, output_of, route_of
from poolhook.errors import DeadlineExceeded, InvalidRequest, ModelError, PluginContractError, PluginStageError
from poolhook.plugins import Route, TextPrompt, Wrapper


def run_stage(route: Route, stage: str) -> Any:
    """Run one stage of a route on data that passes every stage."""
    ctx = context("online" if stage.endswith("online") else "offline")
    calls: dict[str, Callable[[], Any]] = {
        "parse_data": lambda: route.parse_data(ctx, "w1"),
        "pre_process_offline": lambda: route.pre_process(ctx, "w1"),
        "pre_process_online": lambda: route.pre_process(ctx, "w1"),
        "merge_pooling_params": lambda: route.merge_pooling_params(ctx, [TextPrompt("w1")]),
        "post_process_offline": lambda: route.post_process(ctx, [output_of(1.0)]),
        "post_process_online": lambda: route.post_process(ctx, [output_of(1.0)]),
    }
    return calls[stage]()


STAGES = [
    "parse_data",
    "pre_process_offline",
    "pre_process_online",
    "merge_pooling_params",
    "post_process_offline",
    "post_process_online",
]


def around(name: str, stage: str, body: Callable[[], Any]) -> Wrapper:
    """A wrapper called `name` whose generator `body` goes around `stage`."""

    def method(self: Any) -> Any:
        return (yield from body())

    return type(name, (Wrapper,), {stage: method})()  # type: ignore[no-any-return]


class Word(BaseModel):
    text: str


class TestHooksByName:
    def test_an_override_needs_no_decorator(self):
        class Shout(Echo):
            def pre_process_online(self, ctx: Any, request: Any) -> Any:
                return request.upper()

        route = route_of(Shout())
        assert route.pre_process(context("online"), "a") == [TextPrompt("A")]
        assert route.pre_process(context("offline"), "a") == [TextPrompt("a")]

    def test_an_override_on_a_grandchild_counts(self):
        class Child(Echo):
            def pre_process(self, ctx: Any, request: Any) -> Any:
                return "child"

        class Grandchild(Child):
            def pre_process(self, ctx: Any, request: Any) -> Any:
                return [super().pre_process(ctx, request), "grandchild"]

        prompts = route_of(Grandchild()).pre_process(context(), None)
        assert prompts == [TextPrompt("child"), TextPrompt("grandchild")]

    def test_a_wrapper_inherits_what_it_goes_around(self):
        class Base(Wrapper):
            def parse_data(self):
                return (yield) + "!"

        class Derived(Base):
            pass

        assert route_of(Echo(), Derived()).parse_data(context(), "a") == "a!"

    def test_arguments_that_a_hook_leaves_out_are_not_passed(self):
        class Brief(Echo):
            def pre_process_offline(self, request: Any) -> Any:
                return request

        assert route_of(Brief()).pre_process(context(), "a") == [TextPrompt("a")]

    def test_properties_of_a_plugin_are_never_evaluated(self):
        class Lazy(Echo):
            @property
            def model(self) -> Any:
                raise RuntimeError("looked at")

        assert route_of(Lazy()).parse_data(context(), 1) == 1


class TestOrder:
    @given(names=st.lists(st.sampled_from("abcdef"), min_size=1, max_size=5, unique=True))
    def test_the_first_in_the_list_is_the_outermost(self, names: list[str]):
        calls: list[str] = []

        def make(name: str) -> Wrapper:
            def body() -> Any:
                calls.append(f"in {name}")
                answer = yield
                calls.append(f"out {name}")
                return [*answer, name]

            return around(name, "parse_data", body)

        answer = route_of(Echo(), *map(make, names)).parse_data(context(), ["core"])
        assert answer == ["core", *reversed(names)]
        assert calls == [f"in {name}" for name in names] + [f"out {name}" for name in reversed(names)]

    def test_a_wrapper_rewrites_what_parse_data_and_pre_process_return(self):
        class Redact(Wrapper):
            def parse_data(self):
                request = yield
                return request.replace("secret", "***")

            def pre_process_offline(self):
                prompts = yield
                return [f"safe {prompts}"]

        route = route_of(Echo(), Redact())
        request = route.parse_data(context(), "a secret")
        assert request == "a ***"
        assert route.pre_process(context(), request) == [TextPrompt("safe a ***")]

    def test_a_wrapper_may_answer_for_a_processor_that_fails(self):
        class Broken(Echo):
            def post_process(self, ctx: Any, outputs: Any) -> Any:
                raise RuntimeError("no answer")

        class Rescue(Wrapper):
            def post_process_offline(self):
                try:
                    return (yield)
                except PluginStageError as error:
                    return f"rescued from {error.stage}"

        assert route_of(Broken(), Rescue()).post_process(context(), []) == "rescued from post_process_offline"


class TestFaults:
    @pytest.mark.parametrize("stage", STAGES)
    def test_a_processors_exception_names_the_processor_though_wrappers_are_around(self, stage: str):
        def fail(self: Any) -> Any:
            raise KeyError("lost")

        def body() -> Any:
            return (yield)

        broken = type("Broken", (Echo,), {stage: fail})()
        route = route_of(broken, around("Outer", stage, body), around("Inner", stage, body))
        with pytest.raises(PluginStageError, match=rf"'broken' \(acme 1\.2.* failed in {stage}: KeyError: 'lost'") as e:
            run_stage(route, stage)
        assert isinstance(e.value.__cause__, KeyError)

    @pytest.mark.parametrize("stage", STAGES)
    @pytest.mark.parametrize("when", ["before", "after"])
    def test_a_wrappers_exception_names_the_wrapper_though_another_is_around(self, stage: str, when: str):
        def fail() -> Any:
            if when == "before":
                raise KeyError("lost")
            yield
            raise KeyError("lost")

        def body() -> Any:
            return (yield)

        route = route_of(Echo(), around("Outer", stage, body), around("Inner", stage, fail))
        with pytest.raises(PluginStageError, match=rf"'inner' \(acme 1\.2.* failed in {stage}: KeyError: 'lost'"):
            run_stage(route, stage)

    @pytest.mark.parametrize("stage", STAGES)
    @pytest.mark.parametrize("error", [InvalidRequest("too long", param="text"), DeadlineExceeded("late")])
    def test_an_error_that_says_whose_it_is_passes_as_it_is(self, stage: str, error: Exception):
        def fail(self: Any) -> Any:
            raise error

        def body() -> Any:
            return (yield)

        route = route_of(type("Strict", (Echo,), {stage: fail})(), around("Outer", stage, body))
        with pytest.raises(type(error)) as caught:
            run_stage(route, stage)
        assert caught.value is error

    def test_an_error_of_poolhooks_that_names_nobody_is_the_plugins(self):
        class Side(Echo):
            def pre_process(self, ctx: Any, request: Any) -> Any:
                raise ModelError("No model directory 'side'.")

        with pytest.raises(PluginStageError, match=r"'side'.*ModelError: No model directory"):
            route_of(Side()).pre_process(context(), "w1")

    def test_a_validation_error_in_parse_data_is_the_clients_with_its_field(self):
        class Typed(Echo):
            def parse_data(self, ctx: Any, data: Any) -> Any:
                return Word.model_validate(data)

        with pytest.raises(
            InvalidRequest, match=r"The data is invalid: text: Input should be a valid string"
        ) as caught:
            route_of(Typed()).parse_data(context(), {"text": 3})
        assert caught.value.param == "text"

    def test_a_validation_error_of_the_whole_data_names_the_data(self):
        class Typed(Echo):
            def parse_data(self, ctx: Any, data: Any) -> Any:
                return Word.model_validate(data)

        with pytest.raises(InvalidRequest) as caught:
            route_of(Typed()).parse_data(context(), "no dict")
        assert caught.value.param == "data"

    @pytest.mark.parametrize("stage", STAGES[1:])
    def test_a_validation_error_in_any_other_stage_is_the_plugins_fault(self, stage: str):
        def fail(self: Any) -> Any:
            return Word.model_validate({"text": 3})

        with pytest.raises(PluginStageError, match=f"failed in {stage}: ValidationError"):
            run_stage(route_of(type("Careless", (Echo,), {stage: fail})()), stage)

    def test_a_long_reason_is_cut(self):
        class Loud(Echo):
            def parse_data(self, ctx: Any, data: Any) -> Any:
                raise RuntimeError("x" * 1_000_000)

        with pytest.raises(PluginStageError) as caught:
            route_of(Loud()).parse_data(context(), None)
        assert len(str(caught.value)) <= 2000


class TestWrappersThatBreakTheirContract:
    """Each names the wrapper, never the processor that it goes around."""

    def break_with(self, body: Callable[[], Any]) -> str:
        route = route_of(Echo(), around("Outer", "parse_data", lambda: (yield)), around("Odd", "parse_data", body))
        with pytest.raises(PluginContractError) as caught:
            route.parse_data(context(), "w1")
        assert "'odd' (acme 1.2" in str(caught.value)
        return str(caught.value)

    def test_no_yield(self):
        def body() -> Any:
            return "early"
            yield

        assert "parse_data returned without a yield" in self.break_with(body)

    def test_two_yields(self):
        def body() -> Any:
            yield
            return (yield)

        assert "parse_data yielded more than once" in self.break_with(body)

    def test_a_forgotten_return(self):
        def body() -> Any:
            yield

        message = self.break_with(body)
        assert "parse_data returned nothing in place of the answer" in message
        assert "`return result`" in message
