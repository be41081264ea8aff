"""`LLM`: the offline face."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poolhook import LLM, EmbeddingRequestOutput, PoolerConfig, PoolingParams, PoolingRequestOutput, TokenizationParams
from poolhook.errors import ConfigError, EngineDead, InvalidRequest, ModelError, PoolhookError
from texts import varied_texts

CUT = {"truncate_prompt_tokens": -1}


def stack(outputs: list[EmbeddingRequestOutput]) -> np.ndarray:
    return np.stack([output.outputs.numpy() for output in outputs])


@pytest.fixture(scope="module")
def reference() -> Any:
    """sentence-transformers on the same directory."""
    from sentence_transformers import SentenceTransformer

    from poolhook.models import resolve_model

    return SentenceTransformer(str(resolve_model("demo")), device="cpu")


def test_three_hundred_varied_texts_equal_sentence_transformers(demo_llm: LLM, reference: Any):
    texts = varied_texts(300)
    vectors = reference.encode(texts)
    np.testing.assert_allclose(stack(demo_llm.embed(texts, tokenization_kwargs=CUT)), vectors, atol=1e-5, rtol=0)
    backwards = demo_llm.embed(texts[::-1], tokenization_kwargs=CUT, use_tqdm=False)
    np.testing.assert_allclose(stack(backwards)[::-1], vectors, atol=1e-5, rtol=0)


@pytest.mark.parametrize("budget", [1, 100, 3000])
def test_the_size_of_a_step_changes_no_vector(demo_llm: LLM, budget: int):
    texts = varied_texts(60)
    with LLM("demo", device="cpu", max_num_batched_tokens=budget) as llm:
        vectors = stack(llm.embed(texts, tokenization_kwargs=CUT))
    np.testing.assert_allclose(vectors, stack(demo_llm.embed(texts, tokenization_kwargs=CUT)), atol=1e-5, rtol=0)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=400), min_size=1, max_size=20))
def test_any_text_has_the_same_vector_alone_and_in_a_batch(demo_llm: LLM, texts: list[str]):
    texts = [text.encode(errors="ignore").decode() for text in texts]
    batch = stack(demo_llm.embed(texts, tokenization_kwargs=CUT, use_tqdm=False))
    alone = [demo_llm.embed(text, tokenization_kwargs=CUT, use_tqdm=False)[0].outputs.numpy() for text in texts]
    np.testing.assert_allclose(batch, alone, atol=1e-5, rtol=0)
    np.testing.assert_allclose(np.linalg.norm(batch, axis=1), 1, atol=1e-5)


def test_outputs_come_in_input_order_with_ids_of_their_own(demo_llm: LLM):
    outputs = demo_llm.embed(["one two three", "one", "one two"], use_tqdm=False)
    assert [len(output.prompt_token_ids) for output in outputs] == [5, 3, 4]
    assert all(isinstance(output, EmbeddingRequestOutput) and output.finished for output in outputs)
    assert len({output.request_id for output in outputs}) == 3
    assert outputs[0].outputs.hidden_size == len(outputs[0].outputs.embedding) == 384


@pytest.mark.parametrize(
    "prompt",
    [
        "hello",
        [101, 7592, 102],
        (101, 7592, 102),
        np.array([101, 7592, 102]),
        {"prompt": "hello"},
        {"prompt_token_ids": [101, 7592, 102]},
    ],
    ids=["text", "ids", "tuple", "array", "text dict", "ids dict"],
)
def test_a_prompt_may_come_in_many_forms(demo_llm: LLM, prompt: Any):
    wanted = demo_llm.embed("hello", use_tqdm=False)[0].outputs.numpy()
    for prompts in (prompt, [prompt], ["other", prompt]):
        np.testing.assert_allclose(demo_llm.embed(prompts, use_tqdm=False)[-1].outputs.numpy(), wanted, atol=1e-6)


def test_an_empty_list_is_an_empty_list(demo_llm: LLM):
    assert demo_llm.embed([]) == []
    assert demo_llm.encode([]) == []


def test_encode_gives_pooled_data(demo_llm: LLM):
    (output,) = demo_llm.encode("hello", pooling_task="embed")
    assert type(output) is PoolingRequestOutput
    np.testing.assert_array_equal(output.outputs.data, demo_llm.embed("hello")[0].outputs.data)


def test_pooling_params_are_for_all_or_for_each(demo_llm: LLM):
    raw, unit = PoolingParams(use_activation=False), PoolingParams(use_activation=True)
    both = stack(demo_llm.embed(["hello", "hello"], pooling_params=[raw, unit]))
    norms = np.linalg.norm(both, axis=1)
    assert norms[1] == pytest.approx(1, abs=1e-5)
    assert norms[0] != pytest.approx(1, abs=1e-2)
    np.testing.assert_allclose(both[0] / norms[0], both[1], atol=1e-6)
    np.testing.assert_allclose(
        np.linalg.norm(stack(demo_llm.embed(["a", "b"], pooling_params=unit)), axis=1), 1, atol=1e-5
    )


def test_truncation_keeps_special_tokens_and_cuts_the_side_asked_for(demo_llm: LLM):
    def ids(**wanted: Any) -> list[int]:
        return list(demo_llm.embed("one two three four", tokenization_kwargs=wanted)[0].prompt_token_ids)

    one, two, three, four = ids(add_special_tokens=False)
    assert ids(truncate_prompt_tokens=4) == [101, one, two, 102]
    assert ids(truncate_prompt_tokens=4, truncation_side="left") == [101, three, four, 102]
    assert ids(truncate_prompt_tokens=3, add_special_tokens=False) == [one, two, three]
    assert demo_llm.embed([[1, 2, 3]], tokenization_kwargs=TokenizationParams(truncate_prompt_tokens=2))[
        0
    ].prompt_token_ids == (1, 2)


MISTAKES: list[tuple[str, Callable[[LLM], Any], str]] = [
    ("too long", lambda llm: llm.embed(["ok", "word " * 300]), "Prompt 1 has 302 tokens; this model takes at most 256"),
    ("id too large", lambda llm: llm.embed([[1, 30522]]), "30522 is out of range"),
    ("negative id", lambda llm: llm.embed([[-1]]), "-1 is out of range"),
    ("no tokens", lambda llm: llm.embed([[]]), "no tokens"),
    ("surrogate", lambda llm: llm.embed(["ok", "\ud800"]), "lone surrogate"),
    ("not a prompt", lambda llm: llm.embed(7), "int 7"),
    ("none among texts", lambda llm: llm.embed(["a", None]), "Prompt 1 is NoneType"),
    ("unknown option", lambda llm: llm.embed("a", tokenization_kwargs={"max_length": 3}), "truncate_prompt_tokens"),
    ("dimensions", lambda llm: llm.embed("a", pooling_params=PoolingParams(dimensions=5)), "384"),
    ("prompt name", lambda llm: llm.embed("a", prompt_name="query"), "this model's prompts are none"),
    ("params count", lambda llm: llm.embed(["a"], pooling_params=[PoolingParams()] * 2), "2 entries for 1 prompts"),
    ("params type", lambda llm: llm.embed("a", pooling_params=3), "PoolingParams"),
    ("task", lambda llm: llm.encode("a", pooling_task="classify"), "Supported tasks: embed"),
    ("nonsense task", lambda llm: llm.encode("a", pooling_task="score"), "Supported tasks: embed"),
    (
        "params' task",
        lambda llm: llm.embed("a", pooling_params=PoolingParams(task="classify")),
        "Supported tasks: embed",
    ),
    ("data", lambda llm: llm.encode({"data": 1}), "io_processor_plugin"),
    ("data and more", lambda llm: llm.encode({"data": 1, "prompt": "a"}), "prompt"),
]


@pytest.mark.parametrize(("call", "says"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
def test_a_mistake_teaches(demo_llm: LLM, call: Callable[[LLM], Any], says: str):
    with pytest.raises(InvalidRequest) as caught:
        call(demo_llm)
    assert says in str(caught.value)
    assert demo_llm.embed("still works")


@pytest.mark.parametrize(
    ("model", "options", "error", "says"),
    [
        ("./nowhere", {}, ModelError, "no directory"),
        (".", {}, ModelError, "config.json"),
        ("demo", {"io_processor_plugin": "nobody"}, ConfigError, "nobody"),
        ("demo", {"pooler_config": {"pooling": "CLS"}}, ConfigError, "pooling_type"),
        ("demo", {"pooler_config": PoolerConfig(task="classify")}, ConfigError, "Supported tasks: embed"),
        ("demo", {"dtype": "int8"}, ConfigError, "dtype"),
        ("demo", {"devise": "cpu"}, ConfigError, "devise"),
        ("demo", {"plugin_config": {"x": {}}}, ConfigError, "x"),
    ],
)
def test_what_can_not_be_loaded_is_said_at_once(
    model: str, options: Any, error: type[Exception], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    before = threading.active_count()
    with pytest.raises(error, match=says):
        LLM(model, **options)
    assert threading.active_count() == before


def test_threads_may_share_one(demo_llm: LLM):
    requests = [varied_texts(60, seed=number)[20:] for number in range(6)]
    alone = [stack(demo_llm.embed(texts, tokenization_kwargs=CUT)) for texts in requests]
    limits = [{"truncate_prompt_tokens": limit} for limit in (-1, 8, 16, -1, 4, -1)]

    with ThreadPoolExecutor(6) as pool:
        outputs = list(pool.map(lambda r, k: demo_llm.embed(r, tokenization_kwargs=k), requests, limits))
    for index in (0, 3, 5):
        np.testing.assert_allclose(stack(outputs[index]), alone[index], atol=1e-5)
    for index, limit in ((1, 8), (2, 16), (4, 4)):
        assert max(len(output.prompt_token_ids) for output in outputs[index]) == limit


def test_prompts_of_the_model_are_applied_once(tiny_model: Callable[..., Path], tmp_path: Path):
    import json
    import shutil

    directory = shutil.copytree(tiny_model("bert"), tmp_path / "model")
    modules = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}]
    (directory / "modules.json").write_text(json.dumps(modules))
    (directory / "config_sentence_transformers.json").write_text(
        json.dumps({"prompts": {"query": "w1 ", "none": ""}, "default_prompt_name": "query"})
    )
    with LLM(str(directory)) as llm:

        def ids(**options: Any) -> list[int]:
            return list(llm.embed("w9", **options)[0].prompt_token_ids)

        assert ids() == ids(prompt_name="query") == [2, 5, 13, 3]
        assert ids(prompt_name="none") == [2, 13, 3]
        assert list(llm.embed([[13]])[0].prompt_token_ids) == [13]
        with pytest.raises(InvalidRequest, match="query, none"):
            ids(prompt_name="passage")


def test_the_tokenizers_own_truncation_side_counts(tiny_model: Callable[..., Path], tmp_path: Path):
    import json
    import shutil

    directory = shutil.copytree(tiny_model("bert"), tmp_path / "model")
    config = json.loads((directory / "tokenizer_config.json").read_text())
    (directory / "tokenizer_config.json").write_text(json.dumps({**config, "truncation_side": "left"}))
    with LLM(str(directory)) as llm:
        cut = {"truncate_prompt_tokens": 4}
        assert list(llm.embed("w1 w2 w3", tokenization_kwargs=cut)[0].prompt_token_ids) == [2, 6, 7, 3]
        right = {**cut, "truncation_side": "right"}
        assert list(llm.embed("w1 w2 w3", tokenization_kwargs=right)[0].prompt_token_ids) == [2, 5, 6, 3]


def test_decoders_pool_their_last_token_and_padded_families_work_too(tiny_model: Callable[..., Path]):
    import torch
    from transformers import AutoModel

    for family in ("qwen3", "mpnet"):
        path = tiny_model(family)
        texts = ["w1 w2 w3", "w4", "w5 w6 w7 w8 w9 w10 w11"]
        with LLM(str(path)) as llm:
            outputs = llm.embed(texts)
        model = AutoModel.from_pretrained(path).eval()
        for output in outputs:
            with torch.no_grad():
                hidden = model(torch.tensor([output.prompt_token_ids]))[0][0]
            vector = hidden[-1 if family == "qwen3" else 0]
            np.testing.assert_allclose(output.outputs.numpy(), vector / vector.norm(), rtol=1e-4, atol=1e-5)


def test_a_forked_child_is_told_instead_of_waiting_for_ever(tiny_model: Callable[..., Path]):
    program = f"""
import os, sys
from poolhook import LLM
from poolhook.errors import EngineDead

llm = LLM({str(tiny_model("bert"))!r})
if os.fork() == 0:
    try:
        llm.embed("w1")
    except EngineDead as error:
        sys.exit(7 if "spawn" in str(error) else 8)
    sys.exit(9)
print(os.waitstatus_to_exitcode(os.wait()[1]), len(llm.embed("w1")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "7 1"), done.stderr


def test_a_generator_is_read_to_its_end(demo_llm: LLM):
    assert len(demo_llm.embed(f"text {number}" for number in range(3))) == 3


def test_a_closed_one_says_so_and_closing_twice_is_harmless(tiny_model: Callable[..., Path]):
    with LLM(str(tiny_model("bert"))) as llm:
        llm.embed("w1")
    llm.close()
    with pytest.raises(EngineDead, match="closed"):
        llm.embed("w1")


def test_it_ends_with_its_last_reference(tiny_model: Callable[..., Path]):
    before = threading.active_count()
    llm = LLM(str(tiny_model("bert")))
    llm.embed("w1")
    gone = weakref.ref(llm)
    del llm
    gc.collect()
    assert gone() is None
    assert threading.active_count() == before


def test_a_program_that_never_closes_it_still_exits_cleanly(tiny_model: Callable[..., Path]):
    program = f"from poolhook import LLM; llm = LLM({str(tiny_model('bert'))!r}); print(len(llm.embed(['w1', 'w2'])))"
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "2", "")


def test_every_error_has_the_same_root(demo_llm: LLM):
    with pytest.raises(PoolhookError):
        demo_llm.embed(7)
    with pytest.raises(ValueError, match="int 7"):
        demo_llm.embed(7)
