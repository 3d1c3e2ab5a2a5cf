"""Write docs/reference.md and the manual page from the commands and the descriptions of their
options; a test fails when they disagree.

python docs/make_reference.py
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spklink.cli.app import EXIT_CODES
from spklink.cli.commands import EXAMPLES, ORDER
from spklink.cli.parameters import parameters_of
from spklink.option_groups import grouped
from spklink.options import REQUIRED, Option

HERE = Path(__file__).parent
EVERYWHERE = """With every command, anywhere on its line: `--quiet` (no progress, only results and
errors), `--verbose` or `-v` (the time of each stage, also without a screen), `--log FILE` (adds the
command, the time of each stage and what goes wrong, with where it came from, to a file), `--debug`
(shows where an error came from)."""


def reference() -> str:
    """The whole page: the fixed part about files, then every command with its options."""
    parts = [(HERE / "files.md").read_text(encoding="utf-8").rstrip(), "## Commands"]
    parts += [_everywhere(), *(_command(function, EXAMPLES[function]) for function in ORDER)]
    return "\n\n".join(parts) + "\n"


def _everywhere() -> str:
    """What holds for all commands."""
    lines = [EVERYWHERE, "", "### Exit codes", "", "| code | what it says |", "|---|---|"]
    return "\n".join([*lines, *(f"| {code} | {what} |" for code, what in EXIT_CODES.items())])


def _command(function: Callable[..., None], examples: list[str]) -> str:
    about = inspect.cleandoc(function.__doc__ or "")
    lines = [f"### spklink {function.__name__}", "", about, "", f"    {examples[0]}", ""]
    every = parameters_of(function)
    given = [name for name, (_, option) in every.items() if option.argument]
    parts = {"Arguments": given} if given else {}
    parts |= grouped(name for name in every if name not in given)
    for title, names in parts.items():
        lines += [f"| {title} | default | meaning |", "|---|---|---|"]
        lines += [*(_row(name, every[name][1]) for name in names), ""]
    return "\n".join(lines).rstrip()


def _row(name: str, option: Option) -> str:
    words = [option.argument.strip("[]")] if option.argument else option.flags_of(name)
    names = ", ".join(f"`{word}`" for flag in words for word in flag.split("/"))
    return f"| {names} | {_default(option.default)} | {option.about()} |"


def _default(value: Any) -> str:
    if value is REQUIRED:
        return "required"
    if value is None or value == ():
        return "–"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"`{value}`"


if __name__ == "__main__":
    from make_man import PAGE, manual

    for page, text in ((HERE / "reference.md", reference()), (PAGE, manual())):
        page.write_text(text, encoding="utf-8")
        print(page)
