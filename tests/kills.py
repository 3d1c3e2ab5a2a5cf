"""Commands that are killed at a moment of their work, which is told by the files they have made."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

PATIENCE = 120.0  # seconds that a machine at work may need


def killed_when(command: list[str], out: Path, pattern: str, files: int) -> bool:
    """Starts a command and kills it as soon as there are so many files; whether it was in time."""
    assert len(list(out.glob(pattern))) < files, "the moment is over"
    end, came = time.monotonic() + PATIENCE, False
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not came and process.poll() is None and time.monotonic() < end:
        time.sleep(0.001)
        came = len(list(out.glob(pattern))) >= files
    process.kill()
    return process.wait() == -signal.SIGKILL and came
