"""What poolhook does, in a minute: real embeddings of a few texts, then the same engine behind a plugin.

pip install 'poolhook[demo]' ./plugin_template
python examples/demo.py
"""

from __future__ import annotations

import logging
import sys
import textwrap

import numpy as np

from poolhook import LLM
from poolhook.errors import ConfigError

TEXTS = [
    "A cat sleeps on the warm windowsill.",
    "The kitten is napping in the sun.",
    "How do I reset my password?",
    "I forgot my login and can't get in.",
    "The stock market fell sharply on Monday.",
]
PLUGIN = "best-sentence"
QUESTION = "What happened to the ship?"
DOCUMENT = (
    "The lighthouse keeper wakes before dawn. At noon a storm comes up from the west. "
    "A fishing boat with three men aboard loses its mast. In the evening they eat soup together."
)


def main() -> None:
    """Load the demo model with the example plugin, and show both at work."""
    show_what_is_loaded()
    try:
        llm = LLM("demo", io_processor_plugin=PLUGIN)
    except ConfigError as error:
        sys.exit(f"{error}\nThe example plugin is in this repository: pip install ./plugin_template")
    with llm:
        print(f"\nCosine similarities of {len(TEXTS)} texts, by LLM.embed:\n")
        vectors = np.stack([output.outputs.numpy() for output in llm.embed(TEXTS)])
        print(similarity_table(TEXTS, vectors @ vectors.T))

        print(f"\nThe most fitting sentence, by the plugin {PLUGIN!r}:\n")
        [output] = llm.encode({"data": {"question": QUESTION, "document": DOCUMENT}})
        answer = output.outputs
        print(textwrap.fill(DOCUMENT, 84, initial_indent="  document  ", subsequent_indent=" " * 12))
        print(f"  question  {QUESTION}")
        print(f"  answer    {answer.sentence}  (sentence {answer.index}, score {answer.score:.2f})")


def show_what_is_loaded() -> None:
    """Print poolhook's own log line about what it loaded and whether batches are packed or padded."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("poolhook")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)


def similarity_table(texts: list[str], similarities: np.ndarray) -> str:
    """Rows and columns are the texts; each text is written once."""
    width = max(map(len, texts))
    header = " " * (width + 4) + "".join(f"{column:>6}" for column in range(1, len(texts) + 1))
    rows = [
        f"{row} {text.ljust(width)}  " + "".join(f"{value:6.2f}" for value in values)
        for row, (text, values) in enumerate(zip(texts, similarities, strict=True), 1)
    ]
    return "\n".join([header, *rows])


if __name__ == "__main__":
    main()
