"""An embedder that is served for its tokens' vectors scores by MaxSim over them, whatever its files say of texts."""

from __future__ import annotations

from itertools import product

import pytest

from poolhook import LLM, PoolerConfig

QUERY = "a cat on a mat"
DOCUMENTS = ["stocks fell sharply on Monday", "a kitten", "the cat sat on the mat all day long"]


@pytest.mark.parametrize("config", [{"task": "token_embed"}, {"pooling_type": "ALL"}], ids=repr)
def test_scores_are_maxsim_and_rank(config: dict[str, str]) -> None:
    with LLM("demo", device="cpu", pooler_config=PoolerConfig(**config)) as llm:
        query, *documents = (output.outputs.data for output in llm.encode([QUERY, *DOCUMENTS], use_tqdm=False))
        one_to_many = [output.outputs.score for output in llm.score(QUERY, DOCUMENTS, use_tqdm=False)]
        pairs = [output.outputs.score for output in llm.score([QUERY] * 3, DOCUMENTS, use_tqdm=False)]
        ranked = [result.index for result in llm.rerank(QUERY, DOCUMENTS, use_tqdm=False)]
    wanted = []
    for document in documents:
        best = dict.fromkeys(range(len(query)), float("-inf"))
        for (place, ours), theirs in product(enumerate(query), document):
            best[place] = max(best[place], float(ours @ theirs))
        wanted.append(sum(best.values()))
    assert one_to_many == pytest.approx(wanted, abs=1e-4)
    assert pairs == pytest.approx(wanted, abs=1e-4)
    assert ranked == sorted(range(3), key=lambda index: -wanted[index])
