"""The house: imports point one way, and every module is on the map."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "spklink"
# In the order in which data flows; what stands first may be used by all that follow.
ROOMS = (
    *("errors", "words", "shown", "arrays", "texts", "json_files", "npz_files", "streams"),
    *("compiled", "memory"),
    *("table_forms", "foreign_tables", "column_words", "columns", "file_names", "whole_files"),
    "tables",
    *("whole_columns", "table_blocks", "written_columns", "parquet_tables", "result_tables"),
    *("onnx_files", "threads", "serving", "processes", "elsewhere", "object_store", "cache"),
    *("hands", "cluster_tasks"),
    *("cluster_flight", "cluster", "options", "shared_options"),
    *("world_options", "review_options", "table_options", "partition_options"),
    *("compare_options", "option_groups", "settings"),
    *("database", "formats", "sound", "corpora", "recognizers", "scores", "posterior"),
    *("calibration", "cues", "partitions", "measures", "worlds", "runs", "decisions"),
    *("report", "review"),
    "cli",
)
# Small tools that anybody may use; the settings look into tables of names, which import nothing.
TABLES = {
    "spklink.posterior.inference.table",
    "spklink.calibration.table",
    "spklink.recognizers.table",
    "spklink.formats.out.table",
}
MODULES = sorted(SOURCE.rglob("*.py"))


def room_of(module: str) -> str:
    """'spklink.database.links' → 'database'; the package itself belongs to the last room."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "spklink"


def name_of(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> set[str]:
    """Every spklink module that a file imports, at the top or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    known = {name_of(module) for module in MODULES}
    return {name for name in found if name in known and name != "spklink"}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_upstream_only(path):
    here = room_of(name_of(path))
    if here in ("spklink", "__main__"):  # the door of the house
        return
    for module in imports(path) - TABLES:
        there = room_of(module)
        assert ROOMS.index(there) <= ROOMS.index(here), f"{name_of(path)} imports {module}"


def test_a_wrong_import_would_be_seen(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def f():\n    from spklink.runs.link import link\n    return link\n")
    assert imports(wrong) == {"spklink.runs.link"}


def test_every_room_has_its_place():
    rooms = {room_of(name_of(path)) for path in MODULES} - {"spklink", "__main__"}
    assert rooms == set(ROOMS)


def test_every_module_is_on_the_map():
    text = (ROOT / "docs" / "architecture.md").read_text()
    listed = set(re.findall(r"`((?:\w+/)*\w+\.py)`", text))
    there = {path.relative_to(SOURCE).as_posix() for path in MODULES if path.name != "__init__.py"}
    assert there - listed == set(), "not in docs/architecture.md"
    assert {name for name in listed if "tests/" not in name} - there == set(), "no such module"


def test_the_walk_visits_functions_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text()
    steps = re.findall(r"`((?:\w+/)+\w+\.py):(\w+(?:\.\w+)?)`", text)
    assert len(steps) > 15
    assert len(steps) == len(set(steps)), "the walk visits something twice"
    for file, name in steps:
        source = (SOURCE / file).read_text()
        for part in name.split("."):
            assert re.search(rf"(def|class) {part}\b", source), f"{file}:{name}"


def test_two_channels_are_known_in_one_place():
    """Numbers of sides are computed by module `sides` alone."""
    forbidden = re.compile(
        r"2 \* m \+|side(?:_\d)? // 2|side(?:_\d)? % 2|reshape\(-1, 2(?:, 2)?\)|participants\["
    )
    for path in MODULES:
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            assert not forbidden.search(line), f"{path.name}:{number}: {line.strip()}"


def test_files_of_tests_have_names_of_their_own():
    """Two of one name cannot be collected in one run, and only the whole run would tell."""
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
