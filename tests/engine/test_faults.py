"""Specifies how faults stay contained: who fails, who does not, and that everybody is told."""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fake_runner import FAILS, IS_NAN, KILLS, FakeRunner, answer, sequence
from poolhook.config import EngineConfig
from poolhook.engine import EngineInput
from poolhook.engine.core import EngineCore
from poolhook.errors import EngineDead, EngineError, InvalidRequest, NonFiniteOutput
from poolhook.outputs import PoolingOutput

SOON = 30  # seconds; no test gets near


def engine(runner: Any, budget: int = 1000) -> EngineCore:
    return EngineCore(runner, EngineConfig(max_num_batched_tokens=budget), torch.device("cpu"))


def outcomes(core: EngineCore, inputs: Sequence[EngineInput]) -> list[Any]:
    """For each input its answer, or the type of its error."""
    errors = [(future, future.exception(SOON)) for future in core.submit(inputs)]
    return [type(error) if error else future.result().data.tolist() for future, error in errors]


class TestAnInputThatFails:
    @pytest.mark.parametrize("place", range(9))
    def test_fails_alone_wherever_it_stands_in_its_step(self, place: int):
        core = engine(FakeRunner())
        inputs = [sequence(5, i, FAILS if i == place else 1) for i in range(9)]
        expected = [EngineError if i == place else answer(item) for i, item in enumerate(inputs)]
        assert outcomes(core, inputs) == expected
        assert core.is_alive
        core.close()

    @settings(deadline=None, max_examples=50)
    @given(st.lists(st.sampled_from([1, FAILS, IS_NAN]), min_size=1, max_size=30))
    def test_fails_alone_among_any_others(self, ids: list[int]):
        core = engine(FakeRunner(), budget=16)
        inputs = [sequence(5, token) for token in ids]
        kinds = {FAILS: EngineError, IS_NAN: NonFiniteOutput}
        assert outcomes(core, inputs) == [
            kinds.get(token, answer(item)) for token, item in zip(ids, inputs, strict=True)
        ]
        core.close()

    def test_is_told_what_the_model_raised(self):
        core = engine(FakeRunner())
        error = core.submit([sequence(FAILS)])[0].exception(SOON)
        assert str(error) == "The model failed on this prompt: ValueError: the model does not like this"
        assert isinstance(error.__cause__, ValueError)
        core.close()

    def test_gets_poolhooks_own_errors_as_they_are(self):
        class Refuses(FakeRunner):
            def run(self, inputs: Sequence[EngineInput]) -> list[PoolingOutput | None]:
                raise InvalidRequest("not like this", param="input")

        core = engine(Refuses())
        assert outcomes(core, [sequence(1), sequence(2)]) == [InvalidRequest, InvalidRequest]
        core.close()

    def test_holds_on_to_no_tensor_of_its_step_during_the_next_try(self):
        class Activations:
            pass

        class Remembers(FakeRunner):
            def __init__(self) -> None:
                super().__init__(memory=1)
                self.alive_at_start: list[bool] = []
                self.last: Any = lambda: None

            def run(self, inputs: Sequence[EngineInput]) -> list[PoolingOutput | None]:
                self.alive_at_start.append(self.last() is not None)
                activations = Activations()
                self.last = weakref.ref(activations)
                try:
                    return super().run(inputs)
                except torch.OutOfMemoryError as error:
                    raise RuntimeError("out of memory") from error

        runner = Remembers()
        core = engine(runner)
        outcomes(core, [sequence(1)] * 4)
        assert len(runner.alive_at_start) == 7
        assert not any(runner.alive_at_start)
        core.close()


class TestAnOutputThatIsNotFinite:
    def test_is_that_inputs_error_and_the_others_are_answered_in_the_same_step(self):
        runner = FakeRunner()
        core = engine(runner)
        inputs = [sequence(1), sequence(IS_NAN), sequence(2)]
        assert outcomes(core, inputs) == [[1, 1], NonFiniteOutput, [1, 2]]
        assert len(runner.steps) == 1
        core.close()


class TestOutOfMemory:
    def test_splits_the_step_and_answers_everybody(self):
        core = engine(FakeRunner(memory=250))
        inputs = [sequence(*[i] * 100) for i in range(9)]
        assert outcomes(core, inputs) == [answer(item) for item in inputs]
        core.close()

    def test_keeps_later_steps_small(self):
        runner = FakeRunner(memory=250)
        core = engine(runner)
        inputs = [sequence(*[i] * 50) for i in range(20)]
        outcomes(core, inputs)
        runner.steps.clear()
        outcomes(core, inputs)
        assert max(sum(map(len, step)) for step in runner.steps) <= 250
        core.close()

    def test_of_a_single_input_is_its_error_and_the_engine_goes_on(self):
        runner = FakeRunner(memory=0)
        core = engine(runner)
        assert outcomes(core, [sequence(i) for i in range(5)]) == [EngineError] * 5
        assert len(runner.steps) == 9  # each half once: no endless loop
        runner.memory = None
        assert outcomes(core, [sequence(7)]) == [[1, 7]]
        core.close()

    def test_of_a_sequence_beyond_the_budget_leaves_the_budget_of_the_others_alone(self):
        runner = FakeRunner(memory=400)
        core = engine(runner, budget=200)
        for _ in range(5):
            assert outcomes(core, [sequence(*[1] * 450)]) == [EngineError]
        runner.steps.clear()
        outcomes(core, [sequence(*[1] * 50)] * 4)
        assert [len(step) for step in runner.steps] == [4]
        core.close()

    def test_never_shrinks_the_budget_to_nothing(self):
        runner = FakeRunner(memory=0)
        core = engine(runner)
        for _ in range(20):
            outcomes(core, [sequence(1)])
        runner.memory = None
        runner.steps.clear()
        outcomes(core, [sequence(1)] * 32)
        assert [len(step) for step in runner.steps] == [32]
        core.close()

    @pytest.mark.parametrize(
        "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate")]
    )
    def test_is_known_in_each_of_its_forms(self, error: Exception, caplog: pytest.LogCaptureFixture):
        class Exhausted(FakeRunner):
            def run(self, inputs: Sequence[EngineInput]) -> list[PoolingOutput | None]:
                raise error

        core = engine(Exhausted())
        assert outcomes(core, [sequence(1)]) == [EngineError]
        assert "Out of memory" in caplog.text
        core.close()


class TestAWorkerThatDies:
    def test_tells_those_in_its_step_those_who_wait_and_those_who_come(self):
        runner = FakeRunner()
        core = engine(runner, budget=4)
        runner.may_step.clear()
        futures = core.submit([sequence(1, KILLS), sequence(1, 2), sequence(3)])
        assert runner.is_stepping.wait(SOON)
        futures += core.submit([sequence(4)])
        runner.may_step.set()
        for future in futures:
            with pytest.raises(EngineDead, match="worker died: SystemExit: the end"):
                future.result(SOON)
        assert not core.is_alive
        with pytest.raises(EngineDead, match="worker died: SystemExit: the end"):
            core.submit([sequence(1)])
        core.close()

    def test_tells_the_other_half_of_a_step_that_was_split(self):
        class DiesOnTheSecondTry(FakeRunner):
            def run(self, inputs: Sequence[EngineInput]) -> list[PoolingOutput | None]:
                self.steps.append([])
                if len(self.steps) == 1:
                    raise ValueError("first try")
                raise SystemExit("second try")

        core = engine(DiesOnTheSecondTry())
        assert outcomes(core, [sequence(1), sequence(2), sequence(3)]) == [EngineDead] * 3
        core.close()

    def test_tells_everybody_when_a_runner_breaks_its_contract(self):
        class LosesRows(FakeRunner):
            def run(self, inputs: Sequence[EngineInput]) -> list[PoolingOutput | None]:
                return super().run(inputs)[:1]

        core = engine(LosesRows())
        first, *others = core.submit([sequence(1), sequence(2), sequence(3)])
        assert first.result(SOON).data.tolist() == [1, 1]
        assert [type(future.exception(SOON)) for future in others] == [EngineDead] * 2
        core.close()

    def test_dies_with_its_device(self):
        class LosesItsDevice(FakeRunner):
            def run(self, inputs: Sequence[EngineInput]) -> list[PoolingOutput | None]:
                raise torch.AcceleratorError("CUDA error: device-side assert triggered")

        core = engine(LosesItsDevice())
        assert outcomes(core, [sequence(1), sequence(2)]) == [EngineDead] * 2
        assert not core.is_alive
        core.close()

    def test_gives_each_its_own_error(self):
        core = engine(FakeRunner())
        errors = [future.exception(SOON) for future in core.submit([sequence(KILLS), sequence(1)])]
        assert errors[0] is not errors[1]
        core.close()


@pytest.mark.parametrize("token", [FAILS, IS_NAN, KILLS])
def test_errors_cross_process_borders(token: int):
    core = engine(FakeRunner())
    error = core.submit([sequence(token)])[0].exception(SOON)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    core.close()
