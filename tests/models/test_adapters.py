"""Specifies packed adapters: MPNet and DeBERTa-v2/v3 run packed, and nothing else about the models changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import AttentionInterface, AutoModel, PreTrainedModel

from poolhook.engine import EngineInput
from poolhook.engine.attention import ATTENTION_NAME, UnsupportedAttention, attending, packed_attention
from poolhook.engine.forward import Forward, PackedForward, PaddedForward
from poolhook.engine.packing import pack
from poolhook.engine.proof import choose_forward
from poolhook.models import adapt, load_model, read_spec
from poolhook.params import PoolingParams
from tiny import VOCAB_SIZE, TinyModel

CPU = torch.device("cpu")
ADAPTED = {
    "mpnet": ("mpnet", {}),
    "deberta-v3": ("deberta_v2", {}),
    "deberta-v2 with tables of its own": ("deberta_v2", {"share_att_key": False, "norm_rel_ebd": "none"}),
    "deberta-v2 without buckets": ("deberta_v2", {"position_buckets": -1}),
    "deberta-v2 with fewer relative positions than tokens": (
        "deberta_v2",
        {"position_buckets": -1, "max_relative_positions": 20},
    ),
    "deberta-v2 with content to position alone": ("deberta_v2", {"share_att_key": False, "pos_att_type": "c2p"}),
    "deberta-v2 with position to content alone": ("deberta_v2", {"share_att_key": False, "pos_att_type": "p2c"}),
    "deberta-v2 with neither": ("deberta_v2", {"pos_att_type": None}),
    "deberta-v2 with absolute positions and segments": (
        "deberta_v2",
        {"relative_attention": False, "position_biased_input": True, "type_vocab_size": 2},
    ),
}
of_every_adapted_family = pytest.mark.parametrize("name", ADAPTED)
LENGTHS = st.lists(st.integers(1, 158), min_size=1, max_size=6)
many_mixes = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=12)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def directory(tiny_model: TinyModel, name: str) -> Path:
    family, overrides = ADAPTED[name]
    return tiny_model(family, **overrides)


@cache
def plain_model(directory: Path) -> PreTrainedModel:
    """The model as transformers loads it."""
    return AutoModel.from_pretrained(directory).eval().requires_grad_(False)


def load(directory: Path) -> PreTrainedModel:
    return load_model(read_spec(directory), CPU, torch.float32)


@cache
def forward_of(directory: Path) -> Forward:
    return choose_forward(load(directory), read_spec(directory))


def sequences(lengths: list[int], seed: int = 0) -> list[EngineInput]:
    generator = torch.Generator().manual_seed(seed)
    rows = [torch.randint(VOCAB_SIZE, (length,), generator=generator).tolist() for length in lengths]
    return [EngineInput(row, PoolingParams(task="embed")) for row in rows]


@torch.inference_mode()
def alone(directory: Path, inputs: list[EngineInput]) -> Tensor:
    model = plain_model(directory)
    return torch.cat([model(input_ids=torch.tensor([item.token_ids]))[0][0] for item in inputs])


@contextmanager
def attending_with(function: Callable[..., Any]) -> Iterator[None]:
    """While inside, `function` is what the adapted models call."""
    AttentionInterface.register(ATTENTION_NAME, function)
    try:
        yield
    finally:
        AttentionInterface.register(ATTENTION_NAME, packed_attention)


@of_every_adapted_family
def test_the_proof_at_load_chooses_the_packed_way(directory: Path, caplog: pytest.LogCaptureFixture):
    assert choose_forward(load(directory), read_spec(directory)).name == "packed"
    assert caplog.records == []


@of_every_adapted_family
@many_mixes
@given(lengths=LENGTHS, seed=st.integers(0, 10**6))
def test_hidden_states_are_those_of_transformers_for_each_sequence(directory: Path, lengths: list[int], seed: int):
    inputs = sequences(lengths, seed)
    with torch.inference_mode():
        hidden, _ = forward_of(directory)(inputs)
    torch.testing.assert_close(hidden, alone(directory, inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["mpnet", "deberta-v3"])
class TestThatTheTestsAboveWouldSee:
    def test_a_bias_that_is_left_out(self, directory: Path):
        def attend(*args: Any, **kwargs: Any) -> Any:
            assert kwargs.pop("score_bias") is not None
            return packed_attention(*args, **kwargs)

        assert self.error_with(attend, directory) > 0.01

    def test_sequences_that_see_each_other(self, directory: Path):
        def attend(*args: Any, **kwargs: Any) -> Any:
            with attending(pack(sequences([53]), CPU)):  # one sequence, as long as all those of the batch
                attended = packed_attention(*args, **kwargs)
            packed_attention(*args, **kwargs)  # so that the batch counts its calls
            return attended

        assert self.error_with(attend, directory) > 0.1

    def error_with(self, attend: Callable[..., Any], directory: Path) -> float:
        """Relative to the states' norm; the tests above allow about 1e-4."""
        inputs = sequences([9, 9, 30, 5])
        forward = forward_of(directory)
        expected = alone(directory, inputs)
        with attending_with(attend), torch.inference_mode():
            hidden, _ = forward(inputs)
        return float(((hidden - expected).norm(dim=-1) / expected.norm(dim=-1)).median())


@of_every_adapted_family
class TestAnAdaptedModel:
    def test_answers_a_plain_call_as_before(self, directory: Path):
        model = load(directory)
        assert adapt(model)
        self.assert_like_transformers(model, directory)

    def test_answers_a_plain_call_as_before_once_it_has_run_packed_and_then_padded(self, directory: Path):
        model = load(directory)
        with torch.inference_mode():
            PackedForward(model, read_spec(directory).position_offset)(sequences([3, 5]))
        PaddedForward(model)
        self.assert_like_transformers(model, directory)

    def test_falls_back_to_the_padded_way(self, directory: Path):
        model, inputs = load(directory), sequences([1, 20, 158])
        PackedForward(model, read_spec(directory).position_offset)
        with torch.inference_mode():
            hidden, _ = PaddedForward(model)(inputs)
        torch.testing.assert_close(hidden, alone(directory, inputs), rtol=1e-4, atol=1e-5)

    def test_may_be_adapted_again_with_other_weights(self, directory: Path):
        model, inputs, spec = load(directory), sequences([4, 4, 30]), read_spec(directory)
        with torch.inference_mode():
            PackedForward(model, spec.position_offset)(inputs)
            for weight in model.parameters():
                weight.mul_(1.1)
            hidden, _ = PackedForward(model, spec.position_offset)(inputs)
            PaddedForward(model)
            expected = [model(input_ids=torch.tensor([item.token_ids]))[0][0] for item in inputs]
        torch.testing.assert_close(hidden, torch.cat(expected), rtol=1e-4, atol=1e-5)

    def assert_like_transformers(self, model: PreTrainedModel, directory: Path) -> None:
        ids = torch.tensor([[5, 6, 7, 8, 9], [7, 8, 9, 1, 1]])
        call = {"input_ids": ids, "attention_mask": (ids != 1).long(), "output_hidden_states": True}
        with torch.inference_mode():
            mine, theirs = model(**call), plain_model(directory)(**call)
        assert all(torch.equal(a, b) for a, b in zip(mine.hidden_states, theirs.hidden_states, strict=True))
        assert torch.equal(mine.last_hidden_state, theirs.last_hidden_state)


class TestFamiliesWithoutAnAdapter:
    @pytest.mark.parametrize("family", ["bert", "roformer", "qwen3"])
    def test_are_left_as_they_are(self, tiny_model: TinyModel, family: str):
        model = load(tiny_model(family))
        classes = [type(module) for module in model.modules()]
        assert not adapt(model)
        assert [type(module) for module in model.modules()] == classes

    def test_include_deberta_with_a_convolution_which_runs_padded(
        self, tiny_model: TinyModel, caplog: pytest.LogCaptureFixture
    ):
        directory = tiny_model("deberta_v2", conv_kernel_size=3, conv_act="gelu")
        assert not adapt(load(directory))
        forward = choose_forward(load(directory), read_spec(directory))
        assert forward.name == "padded"
        (record,) = caplog.records
        assert "(DebertaV2Model) can't be run packed: its code calls no registered attention function" in (
            record.getMessage()
        )
        inputs = sequences([1, 7, 100])
        with torch.inference_mode():
            hidden, _ = forward(inputs)
        torch.testing.assert_close(hidden, alone(directory, inputs), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("option", [{"is_causal": True}, {"sliding_window": 4}, {"softcap": 30.0}])
def test_packed_attention_refuses_a_bias_together_with(option: dict[str, Any]):
    heads = torch.zeros(1, 2, 8, 4)
    options = {"is_causal": False, **option}
    with attending(pack(sequences([8]), CPU)), pytest.raises(UnsupportedAttention, match="a bias on scores that are"):
        packed_attention(torch.nn.Module(), heads, heads, heads, None, score_bias=lambda q, k: q @ k.mT, **options)
