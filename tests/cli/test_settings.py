"""Options, described once: checks, defaults, help, the words that give them again."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from enum import StrEnum
from os import PathLike
from pathlib import Path
from shlex import split
from typing import Annotated, TypedDict, Unpack

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from spklink.cli.parameters import parsed
from spklink.errors import SpklinkError
from spklink.settings import (
    COMMANDS,
    AssignOptions,
    LinkOptions,
    Option,
    Table,
    command_words,
    described,
    options_json,
    options_of,
    resolved,
)


@pytest.mark.parametrize("command", COMMANDS)
def test_defaults_are_valid_and_every_option_has_help(command):
    kind = COMMANDS[command]
    defaults = {name: option.default for name, (_, option) in options_of(kind).items()}
    assert resolved(kind, {}) == defaults
    assert resolved(kind, resolved(kind, {})) == defaults
    assert all(option.help.endswith(".") for _, option in options_of(kind).values())
    assert command_words(kind, resolved(kind, {}), Path()) == []


def test_options_keep_the_order_in_which_they_are_written():
    assert list(options_of(AssignOptions)) == [
        *("columns", "encoding"),
        *("calibration", "kind", "sides", "fallback", "wrong_lists", "list_errors"),
        *("split_speakers", "weight"),
        *("beta", "known", "cue", "method", "budget_seconds", "budget_gb", "workers", "seed"),
        *("tables", "safe_csv"),
    ]


def test_values_become_what_the_library_uses():
    class Word(StrEnum):
        skip = "skip"

    found = resolved(
        LinkOptions,
        {"known": "a/b.csv", "on_bad_audio": Word.skip, "min_speech": 3, "calibration": Path("c")},
    )
    assert found["known"] == Path("a/b.csv")
    assert type(found["on_bad_audio"]) is str
    assert found["on_bad_audio"] == "skip"
    assert type(found["min_speech"]) is float
    assert found["calibration"] == "c"
    assert found["workers"] is None


def test_a_recognizer_is_a_name_or_an_object():
    one = object()
    assert resolved(LinkOptions, {"recognizer": one})["recognizer"] is one
    with pytest.raises(SpklinkError, match=r"recognizer: 'gmm-ubn' is not one of .*'gmm-ubm'"):
        resolved(LinkOptions, {"recognizer": "gmm-ubn"})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("metod", "auto", "there is no option 'metod'; did you mean 'method'?"),
        ("zzz", 1, "there is no option 'zzz'; there are columns, encoding"),
        ("method", "gess", "method: 'gess' is not one of auto, enumerate"),
        ("method", "tre", "did you mean 'tree'?"),
        ("method", None, "method: None is not text"),
        ("weight", 3, "weight: 3 is not text"),
        ("workers", 0, "workers: 0 is too small; at least 1"),
        ("workers", 1.5, "workers: 1.5 is not a whole number"),
        ("workers", True, "workers: True is not a whole number"),
        ("seed", -1, "seed: -1 is too small; at least 0"),
        ("beta", float("nan"), "beta: nan is not a number"),
        ("beta", "2", "beta: '2' is not a number"),
    ],
)
def test_what_cannot_be_is_refused(name, value, message):
    with pytest.raises(SpklinkError) as error:
        resolved(AssignOptions, {name: value})
    assert message in str(error.value)


def test_what_is_required_is_asked_for():
    class Needs(TypedDict, total=False):
        scores: Annotated[Path, Option("Scores between sides.", file=True)]

    with pytest.raises(SpklinkError, match="scores: is missing; Scores between sides"):
        resolved(Needs, {})


def test_a_path_is_a_path():
    assert resolved(LinkOptions, {"cache": "here"})["cache"] == Path("here")
    with pytest.raises(SpklinkError, match="cache: 7 is not a path"):
        resolved(LinkOptions, {"cache": 7})
    with pytest.raises(SpklinkError, match="calibration: None is not text"):
        resolved(LinkOptions, {"calibration": None})


def test_help_lists_every_option():
    @described(LinkOptions)
    def work(table, out=None, *, stages=None, **options):
        """Do it.

        More.
        """

    parameters = inspect.signature(work).parameters
    assert list(parameters) == ["table", "out", "stages", *options_of(LinkOptions)]
    assert parameters["min_speech"].default == 2.0
    assert parameters["cache"].annotation == str | PathLike[str] | None
    assert work.__doc__.startswith("Do it.\n\nMore.\n\nOptions:\n")
    assert "    on_bad_audio: Stop at bad recordings, or do without them. One of fail, skip." in (
        work.__doc__.splitlines()
    )


def test_words_are_those_not_at_their_default(tmp_path):
    options = resolved(
        LinkOptions,
        {
            "known": tmp_path / "given it's.csv",
            "all_pairs": True,
            "link_wccn": False,
            "seed": 3,
            "wrong_lists": 0.05,
            "calibration": str(tmp_path / "out" / "none"),
        },
    )
    words = command_words(LinkOptions, options, tmp_path / "out")
    assert split(" ".join(words)) == [
        *("--known", "../given it's.csv", "--all-pairs", "--calibration", "./none"),
        *("--wrong-lists", "0.05", "--no-link-wccn", "--seed", "3"),
    ]


def test_json_gives_the_same_words_wherever_one_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = {"known": "known.csv", "sides": "-s.csv", "calibration": "c.json", "workers": 2}
    options = resolved(AssignOptions, said)
    kept = options_json(AssignOptions, options, Path("out"))
    assert kept["known"] == "../known.csv"
    assert kept["calibration"] == "../c.json"
    assert kept["fallback"] is None
    assert "workers" not in kept  # results are the same bytes for any number of them
    words = command_words(AssignOptions, options, Path("out"))
    monkeypatch.chdir("/")
    without = [w for w in words if w not in ("--workers", "2")]
    assert command_words(AssignOptions, kept, None) == without
    assert words[:4] == ["--calibration", "../c.json", "--sides", "../-s.csv"]


def test_a_path_is_not_taken_for_an_option(tmp_path):
    words = command_words(AssignOptions, {"known": tmp_path / "-k.csv"}, tmp_path)
    assert words == ["--known", "./-k.csv"]


def test_settings_load_nothing_heavy():
    code = (
        "import sys, spklink.settings as s; [s.options_of(k) for k in s.COMMANDS.values()]\n"
        "heavy = {'numpy', 'numba', 'scipy', 'rich', 'typer', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def value_of(option: Option, hint) -> st.SearchStrategy:
    """Anything that an option may be."""
    word = st.text("aé -'\"$;=.0", min_size=1, max_size=6).filter(lambda w: w.strip(". ") == w)
    if option.file and option.words():  # a word or a file
        return st.sampled_from(option.words()) | word.map(f"/data/{{}}{option.ending}".format)
    if option.file:
        return st.none() | word.map(lambda name: Path("/data", name))
    if option.words():
        return st.sampled_from(option.words())
    if hint is bool:
        return st.booleans()
    if hint == (str | None):
        return st.none() | word
    least = option.least if option.least is not None else -5
    numbers = st.integers(int(least), 99) if "int" in str(hint) else st.floats(-9, 9)
    return numbers if option.default is not None else st.none() | numbers


def parser_of(kind) -> tuple[typer.Typer, dict]:
    """A command line of these options, and where it leaves what it was given."""
    seen = {}

    def command(table: Table, **given):
        seen.update(given)

    command.__annotations__ = {"table": Table, "given": Unpack[kind]}
    app = typer.Typer()
    app.command()(parsed(command))
    return app, seen


PARSERS = {kind: parser_of(kind) for kind in (AssignOptions, LinkOptions)}


@pytest.mark.parametrize("kind", PARSERS)
@given(data=st.data())
def test_words_give_the_same_options_again(kind, data):
    options = resolved(
        kind,
        {
            name: data.draw(value_of(option, hint))
            for name, (hint, option) in options_of(kind).items()
        },
    )
    app, seen = PARSERS[kind]
    words = split(" ".join(command_words(kind, options, Path("/data/results"))))
    app(["table.csv", *words], standalone_mode=False)
    for name, (_, option) in options_of(kind).items():
        if option.file and seen[name] not in (None, *option.words()):
            where = os.path.normpath(Path("/data/results", seen[name]))
            assert where == str(options[name]), name
        else:
            assert seen[name] == options[name], name
