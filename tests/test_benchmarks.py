"""Benchmarks keep up with the code that they time, where no other test runs them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.mark.parametrize(("preset", "sides"), [("default", 32), ("paper", 16)])
def test_scoring_is_timed(preset, sides):
    """In a process of its own, which is bound to one core."""
    code = f"import gmm; gmm.scoring_speed({preset!r}, {sides})"
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=BENCHMARKS, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"scoring, preset {preset}, {sides} sides" in done.stdout
