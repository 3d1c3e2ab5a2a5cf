from __future__ import annotations

import sys
from pathlib import Path

from spklink.runs import stages


def test_memory_is_known_here():
    assert stages.peak_memory() > 1 << 20


def test_systems_that_do_not_tell_are_no_error(monkeypatch):
    """Windows has neither /proc nor the module `resource`."""
    monkeypatch.setattr(Path, "exists", lambda _: False)
    monkeypatch.setitem(sys.modules, "resource", None)
    assert stages.peak_memory() is None
    assert stages.Stages().timings() == {"seconds": {}, "peak_memory_bytes": None}
