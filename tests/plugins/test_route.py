"""A route calls each hook in its own way and checks what comes back before anybody works with it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugin_parts import Echo, context, inputs_of, output_of, route_of
from poolhook.errors import InvalidRequest, PluginContractError, PluginStageError
from poolhook.outputs import PoolingOutput
from poolhook.params import PoolingParams
from poolhook.plugins import Plugin, TextPrompt, TokensPrompt, Wrapper


class Memory(Wrapper):
    """Knows the answers to some first token ids."""

    def __init__(self, known: dict[int, PoolingOutput]) -> None:
        self.known = known
        self.asked: list[int] = []
        self.stored: list[int] = []

    def lookup(self, inputs: Any) -> Any:
        firsts = [item.token_ids[0] for item in inputs]
        self.asked += firsts
        return [self.known.get(first) for first in firsts]

    def store(self, inputs: Any, outputs: Any) -> None:
        self.stored += [item.token_ids[0] for item in inputs]


class SecondMemory(Memory):
    pass


class Answers(Wrapper):
    """Answers a lookup with whatever it was given."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def lookup(self) -> Any:
        return self.answer


class Returns(Echo):
    """Returns whatever it was given, from one hook."""

    def __init__(self, hook: str, value: Any) -> None:
        self.hook = hook
        self.value = value

    def pre_process(self, ctx: Any, request: Any) -> Any:
        return self.value if self.hook == "pre_process" else request

    def merge_pooling_params(self, ctx: Any, prompts: Any, params: Any) -> Any:
        return self.value if self.hook == "merge" else super().merge_pooling_params(ctx, prompts, params)

    def prefetch_online(self) -> Any:
        return self.value


def test_the_plugins_of_a_route_are_its_wrappers_outermost_first_then_its_processor():
    echo, first, second = Echo(), Memory({}), SecondMemory({})
    assert [instance.plugin for instance in route_of(echo, first, second).plugins] == [first, second, echo]


def test_the_context_says_which_stage_runs():
    seen = []

    class Looks(Echo):
        def parse_data(self, ctx: Any, data: Any) -> Any:
            seen.append(ctx.stage)
            return data

        def pre_process(self, ctx: Any, request: Any) -> Any:
            seen.append(ctx.stage)
            return request

        def post_process(self, ctx: Any, outputs: Any) -> Any:
            seen.append(ctx.stage)

    route, ctx = route_of(Looks()), context("online")
    route.parse_data(ctx, "a")
    route.pre_process(ctx, "a")
    route.post_process(ctx, [])
    assert seen == ["parse_data", "pre_process_online", "post_process_online"]


class TestPrompts:
    def test_one_prompt_or_many_come_out_as_a_list_of_plain_prompts(self):
        route = route_of(Echo())
        assert route.pre_process(context(), "a") == [TextPrompt("a")]
        assert route.pre_process(context(), ["a", [1, 2]]) == [TextPrompt("a"), TokensPrompt((1, 2))]
        assert route.pre_process(context(), []) == []

    @pytest.mark.parametrize("value", [None, 3, [None], ["a", 1.5], {"text": "a"}], ids=repr)
    def test_something_else_is_the_plugins_fault_not_the_clients(self, value: Any):
        with pytest.raises(PluginContractError, match=r"'returns' \(acme 1\.2.*pre_process_online must return prompts"):
            route_of(Returns("pre_process", value)).pre_process(context("online"), None)

    def test_a_wrapper_around_the_stage_is_named_beside_the_processor(self):
        class Mangle(Wrapper):
            def pre_process_offline(self):
                yield
                return 7

        with pytest.raises(PluginContractError, match="unless a wrapper around it is to blame: 'mangle'"):
            route_of(Echo(), Mangle()).pre_process(context(), "a")


class TestPoolingParams:
    prompts = (TextPrompt("a"), TextPrompt("b"))

    def test_one_for_all_is_repeated_and_gets_the_routes_task(self):
        ctx = context(params=PoolingParams(dimensions=2))
        merged = route_of(Echo()).merge_pooling_params(ctx, self.prompts)
        assert merged == [PoolingParams(task="embed", dimensions=2)] * 2

    def test_one_for_each_stays_in_order_and_keeps_its_own_task(self):
        ctx = context(params=[PoolingParams(task="classify"), PoolingParams(dimensions=3)])
        merged = route_of(Echo()).merge_pooling_params(ctx, self.prompts)
        assert merged == [PoolingParams(task="classify"), PoolingParams(task="embed", dimensions=3)]

    def test_a_callers_wrong_number_is_the_callers_mistake(self):
        with pytest.raises(InvalidRequest, match="3 entries for 2 prompts") as caught:
            route_of(Echo()).merge_pooling_params(context(params=[PoolingParams()] * 3), self.prompts)
        assert caught.value.param == "pooling_params"

    @given(count=st.integers(0, 5).filter(lambda n: n != 2))
    def test_a_processors_wrong_number_is_its_own_mistake(self, count: int):
        route = route_of(Returns("merge", [PoolingParams()] * count))
        with pytest.raises(PluginContractError, match=f"returned {count} PoolingParams for 2 prompts"):
            route.merge_pooling_params(context(), self.prompts)

    @pytest.mark.parametrize(
        ("value", "said"),
        [
            (None, "not NoneType"),
            (PoolingParams(), "not PoolingParams"),
            ([PoolingParams(), {"dimensions": 2}], r"not a list of 2 \(PoolingParams, dict\)"),
        ],
    )
    def test_something_else_is_named(self, value: Any, said: str):
        with pytest.raises(
            PluginContractError, match=f"merge_pooling_params must return a list of PoolingParams, {said}"
        ):
            route_of(Returns("merge", value)).merge_pooling_params(context(), self.prompts)


class TestPrefetch:
    async def fetch(self) -> None: ...

    @pytest.mark.parametrize("value", [None, 3, ["not awaitable"], {"a": 1}], ids=repr)
    def test_what_can_not_be_awaited_is_a_contract_error(self, value: Any):
        with pytest.raises(PluginContractError, match="prefetch_online must return a list of awaitables"):
            route_of(Returns("prefetch", value)).prefetch_online(context("online"), None)

    def test_a_wrapper_alone_makes_no_prefetch(self):
        class Around(Wrapper):
            def prefetch_online(self):
                return (yield)

        assert not route_of(Echo(), Around()).prefetches
        assert route_of(Returns("prefetch", []), Around()).prefetches


class TestLookup:
    @given(first=st.sets(st.integers(0, 9)), second=st.sets(st.integers(0, 9)), asked=st.lists(st.integers(0, 9)))
    def test_only_the_nones_of_one_wrapper_are_asked_of_the_next(
        self, first: set[int], second: set[int], asked: list[int]
    ):
        outer = Memory({n: output_of(1.0, n) for n in first})
        inner = SecondMemory({n: output_of(2.0, n) for n in second})
        found = route_of(Echo(), outer, inner).lookup(context(), inputs_of(*([n] for n in asked)))
        expected = [[1.0, n] if n in first else [2.0, n] if n in second else None for n in asked]
        assert [output and output.data.tolist() for output in found] == expected
        assert outer.asked == asked
        assert inner.asked == [n for n in asked if n not in first]

    def test_without_wrappers_nothing_is_known(self):
        assert route_of(Echo()).lookup(context(), inputs_of([1], [2])) == [None, None]

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            (None, "not NoneType"),
            ([None], "not a list of 1"),
            ([None] * 3, "not a list of 3"),
            ([None, [0.5]], r"not a list of 2 \(NoneType, list\)"),
        ],
        ids=str,
    )
    def test_a_wrong_answer_names_the_wrapper(self, answer: Any, said: str):
        with pytest.raises(
            PluginContractError, match=rf"'answers' \(acme 1\.2.*lookup must return a list of 2.*{said}"
        ):
            route_of(Echo(), Answers(answer)).lookup(context(), inputs_of([1], [2]))

    def test_a_failing_lookup_names_the_wrapper(self):
        class Lost(Wrapper):
            def lookup(self) -> Any:
                raise ConnectionError("cache is away")

        with pytest.raises(PluginStageError, match=r"'lost'.*failed in lookup: ConnectionError: cache is away"):
            route_of(Echo(), Lost()).lookup(context(), inputs_of([1]))

    def test_what_was_computed_is_offered_to_every_wrapper(self):
        outer, inner = Memory({}), SecondMemory({})
        route_of(Echo(), outer, inner).store(context(), inputs_of([4], [5]), [output_of(0), output_of(0)])
        assert outer.stored == inner.stored == [4, 5]


class TestTheEndIsToldToEveryone:
    def plugins(self, told: list[Any], failing: Sequence[str]) -> list[Plugin]:
        def on_error(self: Any, stage: str, error: BaseException) -> None:
            told.append((type(self).__name__, stage, str(error)))
            if type(self).__name__ in failing:
                raise RuntimeError("while being told")

        def on_finish(self: Any, ctx: Any) -> None:
            told.append((type(self).__name__, ctx.request_id))
            if type(self).__name__ in failing:
                raise RuntimeError("while being told")

        hooks = {"on_error": on_error, "on_finish": on_finish}
        bases = {"Inmost": Echo, "Outer": Wrapper, "Inner": Wrapper}
        return [type(name, (base,), hooks)() for name, base in bases.items()]

    @pytest.mark.parametrize("failing", [(), ("Outer",), ("Inmost",), ("Outer", "Inner", "Inmost")])
    def test_on_error_and_on_finish_reach_all_though_some_raise(
        self, failing: Sequence[str], caplog: pytest.LogCaptureFixture
    ):
        told: list[Any] = []
        route, ctx = route_of(*self.plugins(told, failing)), context()
        ctx.stage = "engine"
        with caplog.at_level(logging.ERROR):
            route.fail(ctx, ValueError("boom"))
            route.finish(ctx)
        names = ["Outer", "Inner", "Inmost"]
        assert told == [(name, "engine", "boom") for name in names] + [(name, ctx.request_id) for name in names]
        for name in failing:
            assert f"Plugin '{name.lower()}' (acme 1.2" in caplog.text
        assert len(caplog.records) == 2 * len(failing)
