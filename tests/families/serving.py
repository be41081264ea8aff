"""What poolhook answers and what plain transformers answers, for the same ids of the same model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from poolhook.config import EngineConfig, PoolingType
from poolhook.engine import EngineInput
from poolhook.engine.build import BuiltEngine, build_engine
from poolhook.models import ModelSpec, read_spec
from poolhook.params import PoolingParams
from tiny import VOCAB_SIZE

ANSWERS = ["w5", "w9"]
"""The words with which a language model answers, for rerankers made of one."""
ANSWER_IDS = [9, 13]
_FIRST_WORD = 5
_ONE_STEP = EngineConfig(device="cpu", dtype="float32", max_num_batched_tokens=100_000)


@contextmanager
def served(directory: Path, hf_overrides: Mapping[str, Any] | None = None) -> Iterator[BuiltEngine]:
    """An engine of the model in `directory`; inside, torch has one thread, with which tiny models run fastest."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        built = build_engine(read_spec(directory, directory.name, hf_overrides), _ONE_STEP)
        with closing(built.core):
            yield built
    finally:
        torch.set_num_threads(threads)


def texts(spec: ModelSpec) -> list[list[int]]:
    """Lengths 1 to the longest, equal pairs, and just beyond a sliding window, in no order."""
    lengths = [40, 1, 7, spec.max_length, 2, 7, spec.max_length, 101]
    lengths += [spec.sliding_window, spec.sliding_window + 1] if spec.sliding_window else []
    generator = torch.Generator().manual_seed(1)
    return [
        torch.randint(_FIRST_WORD, VOCAB_SIZE, (min(n, spec.max_length),), generator=generator).tolist()
        for n in lengths
    ]


def ask(built: BuiltEngine, task: Any, sequences: Sequence[Sequence[int]]) -> list[Tensor]:
    """The answers to one request, before softmax, sigmoid or normalising."""
    params = PoolingParams(task=task, use_activation=False)
    futures = built.core.submit([EngineInput(ids, params) for ids in sequences])
    return [future.result(120).data for future in futures]


@torch.inference_mode()
def plain(model: Any, task: str, ids: Sequence[int], pooling: Sequence[PoolingType]) -> Tensor:
    """What transformers makes of one text alone; `pooling` counts for embeddings."""
    output = model(torch.tensor([ids]))
    if task == "token_embed":
        return output[0][0]
    if task == "embed":
        (method,) = pooling
        states = output[0][0]
        return {PoolingType.CLS: states[0], PoolingType.LAST: states[-1], PoolingType.MEAN: states.mean(0)}[method]
    if task == "rerank":
        return output.logits[0, -1, ANSWER_IDS]
    return output.logits[0]
