"""A corpus that every machine has: the paragraphs of Python's own documentation strings and source comments.

Real prose of very mixed length, the same for everyone who runs the same Python version.
"""

from __future__ import annotations

import ast
import random
import re
import sysconfig
from pathlib import Path


def documentation_texts(count: int, seed: int = 0) -> list[str]:
    """`count` distinct texts, shuffled: single paragraphs and whole documentation strings of the standard library."""
    texts: dict[str, None] = {}
    for file in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "site-packages" in file.parts or "test" in file.parts:
            continue
        for text in _docstrings(file):
            paragraphs = [re.sub(r"\s+", " ", p).strip() for p in re.split(r"\n\s*\n", text)]
            texts.update(dict.fromkeys(p for p in [*paragraphs[:2], re.sub(r"\s+", " ", text)] if len(p) > 30))
    chosen = list(texts)
    random.Random(seed).shuffle(chosen)
    if len(chosen) < count:
        raise ValueError(f"The standard library has {len(chosen)} such texts, not {count}.")
    return chosen[:count]


def _docstrings(file: Path) -> list[str]:
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return []
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, documented)]
    return [text for text in found if text]
