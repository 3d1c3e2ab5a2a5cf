"""Docs cannot rot: README commands run, the reference is generated, links lead somewhere."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from commands import assign
from spklink.cli.commands import whole

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def console_blocks(text: str) -> list[str]:
    return re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL)


def commands(block: str) -> list[tuple[str, str]]:
    """(command, expected output) of a console block."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [tuple(part.split("\n", 1)) for part in parts]


@pytest.mark.parametrize("page", [p for p in PAGES if "```console" in p.read_text()], ids=str)
def test_console_blocks_print_what_they_show(page, tmp_path):
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for block in console_blocks(page.read_text()):
        for command, expected in commands(block):
            done = subprocess.run(
                ["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stderr
            found = "\n".join(line.rstrip() for line in done.stdout.splitlines()).strip()
            assert found == "\n".join(line.rstrip() for line in expected.splitlines()).strip()


def test_python_blocks_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = [
        b for p in PAGES for b in re.findall(r"```python\n(.*?)```", p.read_text(), re.DOTALL)
    ]
    assert blocks
    for block in blocks:
        exec(compile(block, "docs", "exec"), {})


def script(name):
    """A script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_reference_is_up_to_date():
    made = script("make_reference").reference()
    assert (ROOT / "docs" / "reference.md").read_text() == made


def test_every_public_name_is_in_the_library():
    assert (ROOT / "docs" / "library.md").read_text() == script("make_library").library()


def test_the_glossary_is_that_of_the_report():
    assert (ROOT / "docs" / "glossary.md").read_text() == script("make_glossary").glossary()


def test_every_page_is_in_the_site():
    """Whoever adds a page finds out here, not when the site is built."""
    nav = (ROOT / "mkdocs.yml").read_text()
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    listed = set(re.findall(r"[\w/-]+\.md", nav[nav.index("\nnav:") :]))
    assert pages - {"files.md"} == listed


def test_the_manual_page_is_up_to_date(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    page = importlib.import_module("make_man")
    assert page.PAGE.read_text() == page.manual()


def test_every_option_is_explained():
    text = (ROOT / "docs" / "reference.md").read_text()
    for name, command in get_command(whole()).commands.items():
        (section,) = re.findall(rf"### spklink {name}\n(.*?)(?=\n### |\Z)", text, re.DOTALL)
        for parameter in command.params:
            assert parameter.help, f"spklink {name}: {parameter.name} has no help"
            for word in (*parameter.opts, *parameter.secondary_opts):
                if word.startswith("--") and word != "--help":
                    assert f"`{word}`" in section, f"spklink {name}: {word} is not documented"


def test_tables_are_whole():
    """A blank line in the middle would make text of the rest."""
    for page in PAGES:
        lines = ["", *page.read_text().splitlines(), ""]
        for above, line, below in zip(lines, lines[1:], lines[2:], strict=False):
            if line.startswith("|") and not above.startswith("|"):
                assert below.startswith("|--"), f"{page.name}: {line[:60]}"


def test_columns_of_files_are_documented(run, tmp_path):
    sim, out = tmp_path / "sim", tmp_path / "out"
    assert run("simulate", sim)[0] == 0
    assert assign(run, sim, out, "--method", "trace")[0] == 0
    text = (ROOT / "docs" / "files.md").read_text()
    given, results = text.split("## What you get")
    names = ("assignments.csv", "cliques.csv", "methods.csv")
    for part, paths in ((given, sim.glob("*.csv")), (results, map(out.joinpath, names))):
        for path in paths:
            (row,) = re.findall(rf"^\| {path.name} .*", part, re.MULTILINE)
            columns = path.read_text().splitlines()[0]
            assert f"`{columns}`" in row.replace("[", "").replace("]", ""), path.name


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_functions_and_tests_named_in_the_paper_page_exist():
    text = (ROOT / "docs" / "paper.md").read_text()
    for file, test in re.findall(r"`(test_\w+\.py)(?:::(\w+))?`", text):
        (source,) = (path.read_text() for path in (ROOT / "tests").rglob(file))
        assert f"def {test}" in source if test else source
    for module, name in re.findall(r"`(\w+)\.(\w+)`", text):
        for path in (ROOT / "src").rglob(f"{module}.py"):
            assert f"def {name}(" in path.read_text(), f"{module}.{name}"
