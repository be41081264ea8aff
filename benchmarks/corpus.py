"""A corpus that every machine has: the documentation strings of Python's standard library.

Real prose of very mixed length (with MiniLM's tokenizer: median 57 tokens, 95th percentile 280), the same for everyone
who runs the same Python version.
"""

from __future__ import annotations

import ast
import random
import sysconfig
from pathlib import Path

_SHORTEST = 90  # characters


def documentation_texts(count: int, seed: int = 0) -> list[str]:
    """`count` distinct texts, shuffled."""
    texts: dict[str, None] = {}
    for file in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "site-packages" not in file.parts and "test" not in file.parts:
            texts.update(dict.fromkeys(" ".join(text.split()) for text in _docstrings(file)))
    chosen = [text for text in texts if len(text) >= _SHORTEST]
    if len(chosen) < count:
        raise ValueError(f"The standard library has {len(chosen)} such texts, not {count}.")
    random.Random(seed).shuffle(chosen)
    return chosen[:count]


def _docstrings(file: Path) -> list[str]:
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return []
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, documented)]
    return [text for text in found if text]
