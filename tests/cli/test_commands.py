"""Commands are made from the descriptions of their options, and from nothing else."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import typer.main

from spklink import assign, link
from spklink.cli import commands as cli
from spklink.cli.parameters import options_class, parameters_of
from spklink.options import REQUIRED
from spklink.settings import COMMANDS, AssignOptions, LinkOptions, options_of

FUNCTIONS = {function.__name__: function for function in cli.EXAMPLES}
BUILT = typer.main.get_command(cli.whole()).commands


def test_every_command_has_its_description():
    assert set(FUNCTIONS) == set(COMMANDS)
    assert list(BUILT) == [function.__name__ for function in cli.ORDER]
    assert set(BUILT) == set(FUNCTIONS)
    for name, function in FUNCTIONS.items():
        assert options_class(function) is COMMANDS[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_options_of_the_parser_equal_the_description(name, run):
    help_text = run(name, "--help")[1]
    built = {p.name: p for p in BUILT[name].params if p.name != "help"}
    described = parameters_of(FUNCTIONS[name])
    assert list(built) == list(described)
    for key, (_, option) in described.items():
        parameter = built[key]
        assert parameter.help == option.help
        assert parameter.required == (option.default is REQUIRED)
        assert option.default is REQUIRED or parameter.default == option.default
        if not option.argument:
            on = [flag.partition("/")[0] for flag in option.flags_of(key)]
            off = [flag.partition("/")[2] for flag in option.flags_of(key)]
            assert parameter.opts == on
            assert parameter.secondary_opts == [flag for flag in off if flag]
        if option.words() and not option.file:
            shown = option.argument or option.flags_of(key)[0]
            assert f"{shown} <{'|'.join(option.words())}>" in help_text


@pytest.mark.parametrize("name", COMMANDS)
def test_options_have_one_name_on_the_command_line_and_in_the_library(name):
    for key, (_, option) in options_of(COMMANDS[name]).items():
        first = option.flags_of(key)[0].partition("/")[0]
        assert first == f"--{key.replace('_', '-')}"


@pytest.mark.parametrize(("function", "kind"), [(assign, AssignOptions), (link, LinkOptions)])
def test_the_library_takes_the_options_of_the_command(function, kind):
    keywords = inspect.signature(function).parameters
    own = [name for name in ("table", "scores", "out", "stages") if name in keywords]
    own = [name for name in own if name not in options_of(kind)]
    assert list(keywords) == [*own, *options_of(kind)]
    for name, (_, option) in options_of(kind).items():
        assert keywords[name].default == option.default
        assert option.help in function.__doc__


def test_an_unknown_option_is_answered_with_the_nearest(run):
    code, _, err = run("link", "table.csv", "-o", "out", "--metod", "auto")
    assert code == 2
    assert "--metod" in err
    assert "--method" in err


def test_words_reach_the_command_as_the_library_takes_them(run, monkeypatch, tmp_path):
    given = {}
    monkeypatch.setattr(
        "spklink.worlds.simulate.simulate", lambda **options: given.update(options) or stop()
    )
    run("simulate", tmp_path, "--shape", "star", "--conversations", 5)
    assert given == {
        **{"shape": "star", "conversations": 5, "world": "gaussian", "eer": 7.0, "seed": 0},
        **{"people": None, "tracks": None, "missing": 0.0, "absent": 0.0, "placeholders": 0.0},
        "split": 0.0,
    }
    assert type(given["shape"]) is str


def stop():
    from spklink.errors import SpklinkError

    raise SpklinkError("far enough")


@pytest.mark.parametrize(
    "words",
    [
        ["link", "none.csv", "-o", "file"],
        ["link", "none.csv", "-o", "file/below"],
        ["assign", "none.csv", "--scores", "none.csv", "-o", "file"],
        ["calibrate", "none.csv", "--scores", "none.csv", "-o", "file/c.json"],
        ["demo", "-o", "file"],
        ["simulate", "file"],
    ],
)
def test_a_file_where_a_folder_is_needed_is_told_before_any_work(run, words, write, monkeypatch):
    monkeypatch.chdir(write("file", "precious").parent)
    assert run(*words)[::2] == (2, "spklink: file is a file; give a folder\n")
    assert Path("file").read_text() == "precious"


def test_a_folder_where_a_file_is_needed_is_told_before_any_work(run, tmp_path):
    code, _, err = run("calibrate", "none.csv", "--scores", "none.csv", "-o", tmp_path)
    assert (code, err) == (2, f"spklink: {tmp_path} is a folder; give a file\n")
