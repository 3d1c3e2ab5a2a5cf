"""What strangers see first: commands in the order of the job, options by group, plain lines."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from spklink.cli.commands import EXAMPLES, ORDER
from spklink.cli.parameters import parameters_of
from spklink.cli.parser import SECTIONS, hoisted, in_order
from spklink.option_groups import GROUPS, OWN, grouped

NAMES = [function.__name__ for function in ORDER]


def test_commands_stand_in_the_order_of_the_job(run):
    text = run("--help")[1]
    shown = [line.split()[0] for line in text.splitlines() if re.match(r"  [a-z]", line)]
    shown = [name for name in shown if name in NAMES]
    assert shown == NAMES
    job = [name for name in SECTIONS["The job"] if name in NAMES]
    assert NAMES[: len(job)] == job
    assert in_order([*NAMES, "new"])["Others"] == ["new"]


def test_first_lines_fit(run):
    text = run("--help")[1]
    assert not [line for line in text.splitlines() if line.endswith("...") and "Usage" not in line]


@pytest.mark.parametrize("name", ["", *NAMES])
def test_help_fits_80_columns(run, name):
    lines = run(*filter(None, [name]), "--help")[1].splitlines()
    assert max(map(len, lines)) <= 80
    assert name == "" or "With every command: --quiet" in "\n".join(lines)


@pytest.mark.parametrize("function", EXAMPLES, ids=lambda function: function.__name__)
def test_every_option_is_shown_once_in_its_group(run, function):
    text = run(function.__name__, "--help")[1]
    every = parameters_of(function)
    given = [name for name, (_, option) in every.items() if option.argument]
    groups = grouped(name for name in every if name not in given)
    assert sorted(name for names in groups.values() for name in names) == sorted(
        set(every) - set(given)
    )
    for title, names in groups.items():
        section = text.split(f"\n{title}:\n")[1].split("\n\n")[0]
        for name in names:
            assert every[name][1].flags_of(name)[0].partition("/")[0] in section


def test_options_of_the_job_are_all_in_a_group():
    for name in ("link", "assign", "compare", "calibrate", "export"):
        function = next(one for one in EXAMPLES if one.__name__ == name)
        every = parameters_of(function)
        free = [key for key, (_, option) in every.items() if not option.argument]
        assert OWN not in grouped(free), f"{name}: {grouped(free)[OWN]}"


def test_no_option_is_in_two_groups():
    every = [name for names in GROUPS.values() for name in names]
    assert len(every) == len(set(every))


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("link t -o out -v", "-v link t -o out"),
        ("link --log f t --quiet", "--log f --quiet link t"),
        ("link --log=f t", "--log=f link t"),
        ("link -- -v --log", "link -- -v --log"),
        ("link --log", "--log link"),
    ],
)
def test_some_words_go_anywhere(words, found):
    assert hoisted(words.split()) == found.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_completion_is_printed(run, shell):
    code, text, _ = run("completion", shell)
    assert code == 0
    assert "_SPKLINK_COMPLETE" in text


def test_bash_completes_commands_options_and_words():
    def told(words: str) -> list[str]:
        asked = {"_SPKLINK_COMPLETE": "complete_bash", "COMP_WORDS": words}
        asked["COMP_CWORD"] = str(len(words.split(" ")) - 1)
        program = [sys.executable, "-c", "from spklink.cli.app import main; main()"]
        done = subprocess.run(program, env=os.environ | asked, capture_output=True, text=True)
        return done.stdout.split()

    assert "export" in told("spklink ex")
    assert "--on-bad-audio" in told("spklink link --on")
    assert told("spklink export out --to text") == ["textgrid"]
