"""SmolLM2, a published decoder: its embedding is the last token's final hidden state, as transformers has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from parity.faces import CommandLine, Offline
from parity.ways import backwards, from_many_callers, together
from poolhook import LLM
from real_models import real_model
from texts import varied_texts

pytestmark = pytest.mark.large

# Its tokenizer adds no token of its own, so that an empty text has none.
TEXTS = [text for text in varied_texts(40) if text]
CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How do I bake bread?"}]


@pytest.fixture(scope="module")
def model() -> Path:
    return real_model("smollm2-135m-instruct-q4")


@pytest.fixture(scope="module")
def tokenizer(model: Path) -> Any:
    return AutoTokenizer.from_pretrained(model)


@pytest.fixture(scope="module")
def last_states(model: Path, tokenizer: Any) -> np.ndarray:
    """The last token's final hidden state of each text alone."""
    reference = AutoModel.from_pretrained(model, dtype=torch.float32).eval()
    with torch.inference_mode():
        outputs = [reference(**tokenizer(text, return_tensors="pt")) for text in TEXTS]
    return np.stack([output.last_hidden_state[0, -1].numpy() for output in outputs])


@pytest.mark.parametrize("way", [together, backwards, from_many_callers])
def test_an_embedding_is_the_last_tokens_state_at_unit_length(
    offline: Offline, last_states: np.ndarray, way: Any
) -> None:
    wanted = last_states / np.linalg.norm(last_states, axis=1, keepdims=True)
    np.testing.assert_allclose(way(offline.encode, TEXTS), wanted, rtol=0, atol=1e-5)


def test_without_activation_it_is_the_state_itself(offline: Offline, last_states: np.ndarray) -> None:
    states = np.stack(offline.without_activation().encode(TEXTS))
    # Some of a state's values are a thousand times the others, and noise goes with the largest.
    largest = np.abs(last_states).max(axis=1, keepdims=True)
    np.testing.assert_allclose(states / largest, last_states / largest, rtol=0, atol=1e-5)


def test_a_chat_goes_through_the_models_template(llm: LLM, tokenizer: Any) -> None:
    (output,) = llm.embed({"messages": CHAT}, use_tqdm=False)
    assert list(output.prompt_token_ids) == tokenizer.apply_chat_template(CHAT, return_dict=False)


def test_info_tells_the_truth(command_line: CommandLine) -> None:
    facts = command_line.info()
    wanted = {"architecture": "LlamaForCausalLM", "pooling": ["LAST"], "normalize": True, "max_length": 8192}
    wanted |= {"embedding_size": 576, "vocab_size": 49152, "batches": "packed", "dtype": "float32"}
    assert {fact: facts[fact] for fact in wanted} == wanted
    assert "embed" in facts["tasks"]
