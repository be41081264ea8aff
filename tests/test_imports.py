"""Heavy imports come late: what only looks or helps must not load torch or transformers."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "transformers", "fastapi", "numpy")

LIGHT = {
    "import poolhook": "import poolhook",
    "the vocabulary": "from poolhook import PoolerConfig, PoolingParams, EmbeddingRequestOutput, __version__",
    "poolhook --help": "from poolhook.cli import main; main(['--help'])",
    "poolhook --version": "from poolhook.cli import main; main(['--version'])",
    "poolhook embed --help": "from poolhook.cli import main; main(['embed', '--help'])",
    "poolhook serve --help": "from poolhook.cli import main; main(['serve', '--help'])",
    "poolhook plugins list": "from poolhook.cli import main; main(['plugins', 'list'])",
    "what plugin authors import": "import poolhook.plugins, poolhook.outputs, poolhook.params, poolhook.errors",
    "the built-in plugins": "import poolhook_builtin.embed, poolhook_builtin.passthrough",
    "discovery": "from poolhook.registry import installed_plugins; assert installed_plugins()",
}


@pytest.mark.parametrize("code", LIGHT.values(), ids=LIGHT)
def test_stays_light(code: str):
    check = f"""
import sys
{code}
loaded = [name for name in {HEAVY!r} if name in sys.modules]
sys.exit(f"loaded {{loaded}}" if loaded else 0)
"""
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_every_public_name_exists():
    import poolhook

    for name in poolhook.__all__:
        assert getattr(poolhook, name) is not None
    assert set(poolhook.__all__) <= set(dir(poolhook))
    with pytest.raises(AttributeError, match="nonsense"):
        poolhook.nonsense  # noqa: B018
