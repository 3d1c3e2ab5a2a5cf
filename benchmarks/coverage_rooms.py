"""Lines and branches that tests run, by room: `make coverage` prints it after all tests.

Reads what `coverage run` has left (COVERAGE_FILE, else .coverage). Compiled functions are left out:
what is compiled is not seen while it runs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np

from mistakes import room_of
from timing import show

COUNTED = ("num_statements", "covered_lines", "num_branches", "covered_branches")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "coverage.json")
        command = [sys.executable, "-m", "coverage", "json", "-q", "-o", str(path)]
        subprocess.run(command, check=True)
        files = json.loads(path.read_text())["files"]
    rooms: dict[str, np.ndarray] = defaultdict(lambda: np.zeros(len(COUNTED), int))
    for name, found in sorted(files.items()):
        rooms[room_of(Path(name))] += [found["summary"][one] for one in COUNTED]
    rooms["all"] = sum(rooms.values())
    rows = [
        (room, lines, share(run, lines), branches, share(taken, branches))
        for room, (lines, run, branches, taken) in rooms.items()
    ]
    columns = ["room", "lines", "run by tests", "branches", "taken by tests"]
    show("Coverage", columns, rows)


def share(part: int, whole: int) -> str:
    return f"{100.0 * part / whole:.1f} %" if whole else ""


if __name__ == "__main__":
    main()
