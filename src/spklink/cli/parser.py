"""What `--help` looks like: commands in the order of the job, options by what they are about.

And the words that go anywhere on a command line: they are about how spklink talks, not about what
it does.
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

from spklink.option_groups import grouped

FLAGS = ("--quiet", "-q", "--verbose", "-v", "--debug")  # that go anywhere
LOG = "--log"  # the same with a file
EVERYWHERE = "With every command: --quiet, --verbose, --log FILE, --debug (spklink --help)."
SECTIONS = {
    "The job": ("init", "check", "link", "review", "export"),
    "More of it": ("watch", "queue", "decisions", "report", "assign", "partition", "recognizers"),
    "How good it is": ("evaluate", "detect", "calibrate", "compare", "paper", "entropy"),
    "To try and to set up": ("demo", "simulate", "completion"),
}
OTHERS = "Others"
WIDEST = 30  # characters of options, before what they mean


def in_order(names: list[str]) -> dict[str, list[str]]:
    """Commands by section, in the order of the job."""
    known = [name for names_of in SECTIONS.values() for name in names_of]
    sections = {**SECTIONS, OTHERS: tuple(name for name in names if name not in known)}
    found = {title: [n for n in names_of if n in names] for title, names_of in sections.items()}
    return {title: every for title, every in found.items() if every}


class Command(TyperCommand):
    """A command whose options are shown by group."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        params = {param.name: param for param in self.get_params(ctx)}
        given = [p.name for p in params.values() if p.param_type_name == "argument"]
        groups = {"Arguments": given} if given else {}
        groups |= grouped(name for name in params if name not in given and name != "help")
        shown = {name: param.get_help_record(ctx) for name, param in params.items()}
        widest = min(WIDEST, max(len(record[0]) for record in shown.values() if record))
        for title, every in {**groups, "Help": ["help"]}.items():
            rows = [record for name in every if (record := shown[name]) is not None]
            with formatter.section(title):
                formatter.write_dl([(words.ljust(widest), about) for words, about in rows])

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        super().format_epilog(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(EVERYWHERE)


class Group(TyperGroup):
    """All commands, by section."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        widest = max(map(len, self.commands))
        for title, names in in_order(list(self.commands)).items():
            room = formatter.width - widest - 6
            rows = [(n.ljust(widest), self.commands[n].get_short_help_str(room)) for n in names]
            with formatter.section(title):
                formatter.write_dl(rows)


def hoisted(words: list[str]) -> list[str]:
    """A command line with the words that go anywhere at its begin."""
    front: list[str] = []
    rest: list[str] = []
    waiting = iter(words)
    for word in waiting:
        if word == "--":
            rest += [word, *waiting]
        elif word in FLAGS or word.startswith(f"{LOG}="):
            front.append(word)
        elif word == LOG:
            front += [word, *[next(waiting, "")][:1]]
        else:
            rest.append(word)
    return [word for word in front if word] + rest
