"""How long poolhook takes before it does anything: whole processes, in turns with a Python that does nothing.

python benchmarks/startup.py --turns 10
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

_CLI = "from poolhook.cli import main; main({!r})"
PROGRAMS = {
    "python alone": "pass",
    "import poolhook": "import poolhook",
    "poolhook --help": _CLI.format(["--help"]),
    "poolhook plugins list": _CLI.format(["plugins", "list"]),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=10)
    options = parser.parse_args()
    seconds: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for turn in range(options.turns + 1):
        for name, program in PROGRAMS.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
            if turn:  # the first fills the caches
                seconds[name].append(time.perf_counter() - start)
    alone = statistics.median(seconds["python alone"])
    for name, times in seconds.items():
        beyond = statistics.median(times) - alone
        print(f"{name:24} median {statistics.median(times):.3f} s, {beyond:+.3f} s beyond Python's own start")


if __name__ == "__main__":
    main()
