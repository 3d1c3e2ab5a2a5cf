"""Write docs/reference.md from the command line itself; a test fails when the two disagree.

python docs/make_reference.py
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any

from typer.main import get_command

from spklink.cli.commands import app

HERE = Path(__file__).parent


def reference() -> str:
    """The whole page: the fixed part about files, then every command with its options."""
    parts = [(HERE / "files.md").read_text(encoding="utf-8").rstrip(), "## Commands"]
    parts += [_command(name, command) for name, command in get_command(app).commands.items()]  # type: ignore[attr-defined]
    return "\n\n".join(parts) + "\n"


def _command(name: str, command: Any) -> str:
    lines = [f"### spklink {name}", "", command.help.strip(), "", f"    {_example(command)}", ""]
    lines += ["| argument or option | default | meaning |", "|---|---|---|"]
    lines += [_row(parameter) for parameter in command.params if parameter.name != "help"]
    return "\n".join(lines)


def _example(command: Any) -> str:
    return " ".join(command.epilog.split("Example:")[1].split("\n")[0].split())


def _row(parameter: Any) -> str:
    names = ", ".join(f"`{word}`" for word in parameter.opts)
    if not parameter.opts[0].startswith("-"):
        names = f"`{(parameter.metavar or parameter.name).strip('[]')}`"
    about = parameter.help or ""
    if isinstance(parameter.default, Enum):
        about += f" One of {', '.join(each.value for each in type(parameter.default))}."
    return f"| {names} | {_default(parameter)} | {about} |"


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    value = parameter.default
    if value is None or callable(value):
        return "–"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"`{_text(value)}`"


def _text(value: Any) -> str:
    return str(getattr(value, "value", value))


if __name__ == "__main__":
    (HERE / "reference.md").write_text(reference(), encoding="utf-8")
    print(HERE / "reference.md")
