"""The benchmark that plants mistakes in the code, on a package of a few lines."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
PACKAGE = {
    "src/spklink/__init__.py": "",
    "src/spklink/scores/sums.py": '''"""Has a < b here."""
LIMIT = 3 + 4


@nb.njit(cache=True)
def total(values, start=1 + 1):
    "A sum of values from `start` on."
    found = 0.0
    for k in range(start, len(values)):
        if values[k] > found and not values[k] == LIMIT:
            found += values[k]
    return found
''',
    "src/spklink/scores/tops.py": """from spklink.scores.sums import total


def top(values, others):
    if not len(values):
        raise ValueError(f"{1 + 1} values")
    ordered = sorted(
        values,
        key=lambda value: -value,
    )
    return max(ordered), total(others) * min(
        len(values), 2,  # é
    )
""",
    "tests/test_top.py": "from spklink.scores.tops import top\n",
    "tests/scores/test_any.py": "",
    "tests/scores/test_sums.py": "from spklink.scores.sums import total\n",
    "tests/runs/test_runs.py": "import spklink.scores.tops\n",
    "tests/runs/test_other.py": "",
}


@pytest.fixture
def mistakes(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    yield __import__("mistakes")
    for name in ("mistakes", "mistake_kinds", "timing"):
        sys.modules.pop(name, None)


@pytest.fixture
def root(tmp_path):
    for name, text in PACKAGE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def all_of(mistakes, root):
    for path in sorted((root / "src").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for one in mistakes.places(path.relative_to(root), text):
            yield text, one


def test_every_mistake_is_another_program_with_the_same_lines(mistakes, root):
    found = list(all_of(mistakes, root))
    made = {one.applied(text.encode()) for text, one in found}
    assert len(made) == len(found) > 20
    for text, one in found:
        assert one.compiles(text), one
        changed = one.applied(text.encode()).decode().splitlines()
        assert len(changed) == len(text.splitlines()), one
        assert changed[: one.line - 1] == text.splitlines()[: one.line - 1]


def test_texts_defaults_messages_and_constants_of_a_module_are_left_alone(mistakes, root):
    places = {(one.file.name, one.line) for _, one in all_of(mistakes, root)}
    assert {("sums.py", 10), ("sums.py", 11), ("tops.py", 5), ("tops.py", 11)} <= places
    left = {("sums.py", line) for line in (1, 2, 5, 6, 7)} | {("tops.py", 6)}
    assert not left & places


def test_the_lot_depends_on_the_seed_alone(mistakes, root):
    first, again, other = (mistakes.draw(root, 2, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len({one.function for one in first}) == 2
    assert mistakes.draw(root, 2, 1, "scores") == first
    assert mistakes.draw(root, 2, 1, "runs") == []


def test_nothing_is_left_of_a_planted_mistake(mistakes, root):
    """Neither in the source nor in what was compiled from it, or from what calls it."""
    (mistake,) = (one for one in mistakes.draw(root, 2, 1) if one.compiled)
    source = root / mistake.file
    cached = source.parent / "__pycache__"
    cached.mkdir()
    for name in ("sums.total-5.py311.nbi", "tops.top-4.py311.nbi", "rest.other-4.py311.nbi"):
        (cached / name).write_text("compiled before")
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*.*")}
    with mistakes.planted(root, mistake):
        assert source.read_text() != PACKAGE[mistake.file.as_posix()]
        assert [path.name for path in cached.iterdir()] == ["rest.other-4.py311.nbi"]
        (cached / "tops.top-4.py311.1.nbc").write_text("compiled with the mistake")
    assert source.read_text() == PACKAGE[mistake.file.as_posix()]
    assert source.stat().st_mtime_ns == before[source]
    assert {path.read_text() for path in cached.iterdir()} == {"compiled before"}
    assert set(root.rglob("*.*")) == set(before)


def test_the_tests_nearest_to_a_module_come_first(mistakes, root):
    assert mistakes.tests_of(root, Path("src/spklink/scores/sums.py")) == [
        *("tests/scores/test_sums.py", "tests/scores/test_any.py"),
        *("tests/runs/test_runs.py", "tests/test_top.py"),
    ]
    assert mistakes.tests_of(root, Path("src/spklink/scores/tops.py"))[0] == "tests/test_top.py"
