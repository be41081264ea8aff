"""poolhook against sentence-transformers, offline, in turns, in one process; prints ratios.

    python benchmarks/offline.py --model demo --texts 500 --turns 5

Both get the same texts and must agree on every vector before a number is printed. sentence-transformers runs at its
default batch size and at the best of several. Read the ratios: seconds mean little on a shared machine.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from corpus import documentation_texts
from sentence_transformers import SentenceTransformer

from poolhook import LLM
from poolhook.models import resolve_model

BATCH_SIZES = (4, 8, 16, 32)
DEFAULT_BATCH_SIZE = 32


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="demo")
    parser.add_argument("--texts", type=int, default=500)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()

    texts = documentation_texts(options.texts)
    llm = LLM(options.model, device="cpu")
    peer = SentenceTransformer(str(resolve_model(options.model)), device="cpu")

    def ours() -> np.ndarray:
        outputs = llm.embed(texts, tokenization_kwargs={"truncate_prompt_tokens": -1}, use_tqdm=False)
        return np.stack([output.outputs.numpy() for output in outputs])

    def theirs(batch_size: int) -> np.ndarray:
        return peer.encode(texts, batch_size=batch_size, show_progress_bar=False)

    lengths = [len(o.prompt_token_ids) for o in llm.embed(texts, tokenization_kwargs={"truncate_prompt_tokens": -1})]
    difference = float(np.abs(ours() - theirs(DEFAULT_BATCH_SIZE)).max())
    print(
        f"{len(texts)} texts, {sum(lengths)} tokens (median {statistics.median(lengths):.0f}), "
        f"{torch.get_num_threads()} threads"
    )
    print(f"largest difference between the two: {difference:.1e}")
    if difference > 1e-5:
        raise SystemExit("The vectors disagree, so their speeds are not compared.")

    seconds: dict[str, list[float]] = {}
    for turn in range(options.turns):
        seconds.setdefault("poolhook", []).append(_time(ours))
        for size in BATCH_SIZES:
            seconds.setdefault(f"batch {size}", []).append(_time(lambda size=size: theirs(size)))
        print(f"turn {turn + 1}: " + ", ".join(f"{name} {times[-1]:.2f} s" for name, times in seconds.items()))

    best = min(BATCH_SIZES, key=lambda size: statistics.median(seconds[f"batch {size}"]))
    for title, size in (("default", DEFAULT_BATCH_SIZE), ("best", best)):
        ratios = [theirs / ours for theirs, ours in zip(seconds[f"batch {size}"], seconds["poolhook"], strict=True)]
        print(
            f"poolhook is {statistics.median(ratios):.2f} times sentence-transformers at its {title} batch size {size} "
            f"(turns: {min(ratios):.2f} to {max(ratios):.2f})"
        )
    llm.close()


def _time(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
