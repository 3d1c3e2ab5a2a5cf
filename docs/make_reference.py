"""Write docs/reference.md from the commands and the descriptions of their options; a test fails
when the two disagree.

python docs/make_reference.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from spklink.cli.commands import EXAMPLES
from spklink.cli.parameters import parameters_of
from spklink.options import REQUIRED, Option

HERE = Path(__file__).parent


def reference() -> str:
    """The whole page: the fixed part about files, then every command with its options."""
    parts = [(HERE / "files.md").read_text(encoding="utf-8").rstrip(), "## Commands"]
    parts += [_command(function, examples) for function, examples in EXAMPLES.items()]
    return "\n\n".join(parts) + "\n"


def _command(function: Callable[..., None], examples: list[str]) -> str:
    about = (function.__doc__ or "").strip()
    lines = [f"### spklink {function.__name__}", "", about, "", f"    {examples[0]}", ""]
    lines += ["| argument or option | default | meaning |", "|---|---|---|"]
    lines += [_row(name, option) for name, (_, option) in parameters_of(function).items()]
    return "\n".join(lines)


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
    (HERE / "reference.md").write_text(reference(), encoding="utf-8")
    print(HERE / "reference.md")
