"""All benchmarks, each in a process of its own: `make bench`, or `run.py NAME…` for some."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = ("cliques", "large", "states_exact", "front_end", "gmm", "detection")


def main() -> None:
    for name in sys.argv[1:] or NAMES:
        print(f"== {name}", flush=True)
        subprocess.run([sys.executable, str(HERE / f"{name}.py")], check=True)


if __name__ == "__main__":
    main()
