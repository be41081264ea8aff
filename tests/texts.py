"""Varied texts: many lengths, scripts and oddities, the same on every machine."""

from __future__ import annotations

import random
import string

ODD = [
    "",
    " ",
    "\n\t",
    "a",
    "?!",
    "word " * 1000,
    "x" * 500,
    "tab\tand\nnewline",
    "null\x00byte",
    "\u200bzero\u200dwidth",
    "emoji 🎉👩‍👩‍👧‍👦 and flags 🇩🇪",
    "日本語のテキストです。",
    "مرحبا بالعالم",
    "Ünïcödé ñ ﬁ ligature",
    "[CLS] literal [SEP] special [PAD] tokens [MASK]",
    "1234567890 " * 40,
    "<html><body>markup</body></html>",
]
_WORDS = [
    "the",
    "of",
    "retrieval",
    "embedding",
    "engine",
    "batch",
    "vector",
    "model",
    "quick",
    "brown",
    "fox",
    "jumps",
    "over",
    "lazy",
    "dog",
    "bank",
    "river",
    "money",
    "search",
    "query",
    "document",
    "passage",
    "answer",
    "question",
    "science",
    "history",
    "music",
    "garden",
    "kitchen",
    "planet",
    "ocean",
    "mountain",
    "tokenization",
    "normalization",
    "attention",
    "antidisestablishmentarianism",
    "Zürich",
    "naïve",
    "café",
    "42",
    "3.14",
    "e-mail",
    "co-operate",
]


def varied_texts(count: int, seed: int = 0) -> list[str]:
    """`count` texts: the odd ones, then sentences of 1 to 400 words, most of them short."""
    rng = random.Random(seed)
    texts = list(ODD)
    while len(texts) < count:
        length = min(400, int(rng.lognormvariate(3, 1.1)) + 1)
        words = [rng.choice(_WORDS) for _ in range(length)]
        if rng.random() < 0.2:
            words.append("".join(rng.choices(string.printable, k=20)))
        texts.append(" ".join(words))
    return texts[:count]
