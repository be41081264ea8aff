"""Every family of the table, for every task it has: what poolhook answers is what transformers answers for each text
alone, and the model runs in the way that the table states, so that none falls from packed to padded unseen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from torch.testing import assert_close

from families.making import save, tiny_model
from families.serving import ANSWERS, ask, plain, served, texts
from families.table import FAMILIES, Family
from poolhook.models import adapt

TASKS: dict[str, list[tuple[str, int | None]]] = {
    "embed": [("embed", None)],
    "classify": [("classify", 1), ("classify", 3)],
    "token_classify": [("token_classify", 3)],
    "causal_lm": [("rerank", None)],
}
"""Head -> the tasks that it is asked for, each with a number of labels."""


def cases() -> Iterator[Any]:
    for title, family in FAMILIES.items():
        for head in family.heads:
            for task, labels in TASKS[head]:
                name = f"{title} {task}" + (f" {labels}" if labels else "")
                marks = () if family.is_common else (pytest.mark.large,)
                yield pytest.param(family, head, task, labels, id=name.replace(" ", "-"), marks=marks)


@pytest.mark.parametrize(("family", "head", "task", "labels"), cases())
def test_answers_alone_and_mixed_are_those_of_transformers(
    family: Family, head: str, task: str, labels: int | None, tmp_path: Path
) -> None:
    model = tiny_model(family.name, head, {**family.values, **({"num_labels": labels} if labels else {})})
    save(model, tmp_path)
    is_rerank = task == "rerank"
    with served(tmp_path, {"classifier_from_token": ANSWERS} if is_rerank else None) as built:
        assert built.forward == ("packed" if family.way == "adapter" else family.way)
        sequences = texts(built.spec)
        for asked in {"embed": ["embed", "token_embed"], "rerank": ["classify"]}.get(task, [task]):
            alone = [ask(built, asked, [ids])[0] for ids in sequences]
            if asked == "embed":
                assert len(alone[0]) == built.spec.embedding_size
            steps = built.core.stats().steps
            mixed = ask(built, asked, sequences)
            assert built.core.stats().steps == steps + 1, "the mixed batch was not one batch"
            for ids, apart, together in zip(sequences, alone, mixed, strict=True):
                own = plain(model, "rerank" if is_rerank else asked, ids, built.spec.pooling)
                for how, answer in (("alone", apart), ("mixed", together)):
                    said = f"{asked} of {len(ids)} tokens, {how}: "
                    assert_close(answer, own, rtol=1e-4, atol=1e-5, msg=lambda m, said=said: said + m)


@pytest.mark.parametrize("family", [family for family in FAMILIES.values() if family.is_common], ids=lambda f: f.title)
def test_an_adapter_is_there_where_the_table_says_so(family: Family) -> None:
    assert adapt(tiny_model(family.name, "embed", family.values)) == (family.way == "adapter")
