"""Write `docs/families.md`: `python tests/families/make_docs.py`. Its tables are made of `table` and `refusals`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs" / "families.md"
sys.path[:0] = [] if str(TESTS) in sys.path else [str(TESTS)]

from families.making import LONGEST, model_class, tiny_config  # noqa: E402
from families.refusals import REFUSALS  # noqa: E402
from families.table import DECODERS, ENCODERS, Family  # noqa: E402
from poolhook.models import read_spec  # noqa: E402
from tiny import edit_json  # noqa: E402

_BEFORE = """# Model families

Which families of transformers poolhook runs, for which tasks, and how. This page is written by a program from the table
that the tests go through: for each row and each of its tasks, a tiny model with random weights answers texts of 1 token
up to its maximum, one by one and all in one batch, and every answer must be what transformers says of that text alone
(float32, within 1e-4). A family that begins to run in another way than its row says fails a test.

A family that is not here may run just as well. Nothing is looked up in this table when a model loads: whatever
the architecture, a few sequences go through the model as transformers wrote it, one at a time, and then through
each way below, the fastest first, until one agrees on every token. The layers for labels behind it are compared in the
same manner. If nothing agrees, the model is refused. `poolhook info MODEL --load` says how yours runs.

* **packed**: the texts of a step end to end, no padding at all. [How packing works](architecture.md#packing).
* **adapter**: packed as well. transformers writes this family's attention out by hand, and poolhook brings code that
  lets it take part.
* **padded**: every text of a step padded to the longest. Slower, and just as right.
* **by length**: only texts of the same length together, for models in which padding would change the answer.

The column *embed* names the pooling of a model whose directory does not name one; every family that embeds answers
`token_embed` too. *classify* and *token_classify* stand for the classes of transformers that end in
ForSequenceClassification and ForTokenClassification. *words* are rerankers and classifiers made of a language model,
which answer with the probability of a word, such as Qwen3-Reranker (`classifier_from_token`).
"""
_HEAD = """
| `model_type` | transformer | embed | classify | token_classify | words | runs |
|---|---|---|---|---|---|---|
"""
_REFUSED = """
## Refused

Each of these ends the load with an error that gives the reason.

| what | why |
|---|---|
"""
_AFTER = """
Heads for other tasks (ForQuestionAnswering, ForMultipleChoice, ForNextSentencePrediction) are refused by name.
"""


def page() -> str:
    """The whole page."""
    refused = "".join(f"| {refusal.what} | {refusal.why} |\n" for refusal in REFUSALS)
    encoders = f"\n## Encoders\n{_HEAD}{_rows(ENCODERS)}"
    decoders = f"\n## Decoders\n{_HEAD}{_rows(DECODERS)}"
    return f"{_BEFORE}{encoders}{decoders}{_REFUSED}{refused}{_AFTER}"


def _rows(families: Iterable[Family]) -> str:
    return "".join(f"| {' | '.join(_cells(family))} |\n" for family in families)


def _cells(family: Family) -> list[str]:
    name = f"`{family.name}`" + (f", {family.variant}" if family.variant else "")
    heads = ["yes" if head in family.heads else "" for head in ("classify", "token_classify", "causal_lm")]
    return [name, model_class(family.name, "embed").__name__, _pooling(family), *heads, family.way]


def _pooling(family: Family) -> str:
    """What `read_spec` makes of a directory that says nothing of pooling."""
    architecture = model_class(family.name, "embed").__name__
    with TemporaryDirectory() as directory:
        tiny_config(family.name, {**family.values, "architectures": [architecture]}).save_pretrained(directory)
        edit_json(Path(directory) / "tokenizer_config.json", model_max_length=LONGEST)
        return "+".join(read_spec(Path(directory)).pooling)


if __name__ == "__main__":
    PAGE.write_text(page())
