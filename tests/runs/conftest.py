from __future__ import annotations

from pathlib import Path

import pytest

from made_calls import write_calls


@pytest.fixture(scope="module")
def calls(tmp_path_factory) -> Path:
    """Fourteen calls of ten seconds with truth."""
    return write_calls(tmp_path_factory.mktemp("calls"))
