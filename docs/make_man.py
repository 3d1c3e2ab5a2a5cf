"""The manual page, docs/spklink.1, from the commands and the descriptions of their options.

make_reference.py writes it; a test fails when the two disagree.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from spklink import __version__
from spklink.cli.app import EXIT_CODES
from spklink.cli.commands import EXAMPLES, HELP, ORDER, whole
from spklink.cli.parameters import parameters_of
from spklink.option_groups import grouped
from spklink.options import REQUIRED, Option

PAGE = Path(__file__).parent / "spklink.1"


def manual() -> str:
    """The whole page, as roff."""
    lines = [f'.TH SPKLINK 1 "" "spklink {__version__}" "User Commands"']
    lines += [".SH NAME", f"spklink \\- {_text(HELP[0].lower() + HELP[1:].rstrip('.'))}"]
    lines += [".SH SYNOPSIS", ".B spklink", "[\\fIoptions\\fR] \\fIcommand\\fR [\\fIarguments\\fR]"]
    lines += [".SH OPTIONS", "With every command, anywhere on its line:"]
    for parameter in get_command(whole()).params:
        words = ", ".join(sorted(parameter.opts, key=len))
        lines += [".TP", f"\\fB{_text(words)}\\fR", _text(parameter.help)]
    lines += [".SH COMMANDS"]
    for function in ORDER:
        lines += _command(function)
    lines += [".SH EXIT STATUS"]
    for code, what in EXIT_CODES.items():
        lines += [".TP", f"\\fB{code}\\fR", f"{_text(what[0].upper() + what[1:])}."]
    lines += [".SH EXAMPLES", ".nf", *(_text(one) for f in ORDER for one in EXAMPLES[f]), ".fi"]
    return "\n".join(lines) + "\n"


def _command(function: Callable[..., Any]) -> Iterator[str]:
    every = parameters_of(function)
    given = {name: option for name, (_, option) in every.items() if option.argument}
    words = " ".join(f"\\fI{_text(option.argument)}\\fR" for option in given.values())
    yield f".SS spklink {function.__name__} {words}".rstrip()
    for part in inspect.cleandoc(function.__doc__ or "").split("\n\n"):
        yield from (_text(" ".join(part.split())), ".PP")
    for name, option in given.items():
        yield from _option(name, option)
    for title, names in grouped(name for name in every if name not in given).items():
        yield from (".PP", f".I {title}:")
        for name in names:
            yield from _option(name, every[name][1])


def _option(name: str, option: Option) -> Iterator[str]:
    words = [option.argument] if option.argument else option.flags_of(name)
    yield ".TP"
    yield f"\\fB{_text(', '.join(words).replace('/', ', '))}\\fR"
    yield _text(option.about() + _default(option.default))


def _default(value: Any) -> str:
    if value is REQUIRED:
        return " Required."
    without = value is None or value == () or isinstance(value, bool)
    return "" if without else f" Default: {value}."


def _text(words: str) -> str:
    """Words as roff shows them as they are."""
    shown = words.replace("\\", "\\e").replace("-", "\\-")
    shown = "".join(c if c.isascii() else f"\\[u{ord(c):04X}]" for c in shown)
    return f"\\&{shown}" if shown[:1] in (".", "'") else shown
