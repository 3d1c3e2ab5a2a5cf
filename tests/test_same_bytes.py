"""What benchmarks/same_bytes.py takes for the same and what not; the commands are left out."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

BEFORE = "clique,method,bits\n1,sampling,0.5\n2,trace,0.25\n"


@pytest.fixture(scope="module")
def same_bytes():
    path = Path(__file__).parent.parent / "benchmarks" / "same_bytes.py"
    spec = spec_from_file_location("same_bytes", path)
    module = module_from_spec(spec)
    sys.modules["same_bytes"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("after", "same", "said"),
    [
        (BEFORE, True, "same"),
        (BEFORE.replace("sampling", "sample"), True, "renamed values"),
        ("clique,new,method,bits\n1,x,sample,0.5\n2,y,trace,0.25\n", True, "new column new"),
        (BEFORE.replace("0.25", "0.26"), False, "row 3, bits: 0.25 is 0.26 now"),
        (BEFORE.replace("trace", "tree"), False, "row 3, method: trace is tree now"),
        ("clique,method\n1,sample\n2,trace\n", False, "no column bits"),
        (BEFORE + "3,trace,1\n", False, "3 rows, not 2"),
        (BEFORE.replace("\n", "\r\n"), False, "written in another way"),
    ],
)
def test_tables(same_bytes, tmp_path, after, same, said):
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    old.write_bytes(BEFORE.encode())
    new.write_bytes(after.encode())
    found, text = same_bytes.compare(old, new)
    assert found is same
    assert said in text


def test_arrays_and_missing_files(same_bytes, tmp_path):
    old, new = tmp_path / "old.npz", tmp_path / "new.npz"
    np.savez(old, a=np.array([1.0, 2.0]))
    assert same_bytes.compare(old, new) == (False, "only in the old version")
    np.savez(new, a=np.array([1.0, 2.5]))
    assert same_bytes.compare(old, new) == (False, "differs: a in 1 of 2 values, by 0.5 at most")
    np.savez(new, a=np.array([1.0, 2.0]), b=np.zeros(1))
    assert same_bytes.compare(old, new) == (True, "same, but for new array b")
