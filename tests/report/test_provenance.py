"""The command that gives results again, from run.json alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from spklink.report.provenance import command, notes
from spklink.settings import AssignOptions, LinkOptions, options_json, resolved

KINDS = {"assign": AssignOptions, "link": LinkOptions}


def run_json(name: str, *, trained_on=420, inputs=(), **given):
    """What a run in the folder `results`, beside its inputs, keeps."""
    kind = KINDS[name]
    files = {"conversations": "../conversations.csv"} | dict(inputs)
    if name == "assign":
        files |= {"scores": "../scores.npz"}
    run = {
        "command": name,
        "options": options_json(kind, resolved(kind, given), Path("results")),
        "inputs": {key: {"file": file, "sha256": "0"} for key, file in files.items()},
    }
    if name == "link":
        run["recognizer"] = {"name": "gmm-ubm", "trained_on": trained_on, "recordings": 420}
    return run


def test_defaults_need_no_words():
    assert command(run_json("link")) == "spklink link ../conversations.csv -o ."
    assert command(run_json("assign")) == (
        "spklink assign ../conversations.csv --scores ../scores.npz -o ."
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"preset": "paper", "components": 8}, "--preset paper --components 8"),
        ({"known": "known.csv"}, "--known ../known.csv"),
        ({"key": "my key.csv"}, "--key '../my key.csv'"),
        ({"on_bad_audio": "skip"}, "--on-bad-audio skip"),
        ({"all_pairs": True, "retrain": True}, "--all-pairs"),  # as a run without a past
        ({"cache": "results/cache"}, "--cache cache"),
        ({"calibration": "c.json", "kind": "lr"}, "--calibration ../c.json --kind lr"),
        ({"calibration": "none"}, "--calibration none"),
        ({"link_wccn": False, "report": False}, "--no-link-wccn --no-report"),
        ({"weight": "book", "beta": 2.5}, "--weight book --beta 2.5"),
        ({"budget_seconds": 1e-3, "seed": 7}, "--budget-seconds 0.001 --seed 7"),
        ({"workers": 3}, ""),
    ],
)
def test_every_option_that_is_not_at_its_default_is_told(given, words):
    made = command(run_json("link", **given))
    assert made == f"spklink link ../conversations.csv -o . {words}".strip()


def test_known_channels_can_be_left_out():
    run = run_json("assign", known="known.csv", seed=2)
    assert command(run, known=False).endswith("-o . --seed 2")
    assert run["options"]["known"] == "../known.csv"


def test_a_table_whose_name_looks_like_an_option():
    run = run_json("link", inputs={"conversations": "-my calls.csv"})
    assert command(run) == "spklink link './-my calls.csv' -o ."


def test_it_does_not_depend_on_where_one_stands(monkeypatch):
    run = run_json("link", known="known.csv")
    monkeypatch.chdir("/")
    assert command(run).endswith("--known ../known.csv")


def test_a_recognizer_of_fewer_calls_is_told():
    assert notes(run_json("link")) == ["Run it inside the folder of the results."]
    told = notes(run_json("link", trained_on=400))
    assert told[1:] == [
        "The recognizer was trained on 400 of 420 recordings and taken from the cache; without "
        "that cache, or with --retrain, the results differ."
    ]


def test_a_model_that_has_not_seen_every_call_is_named():
    run, learned = run_json("link"), {"conversations": 400, "sides": 800, "usable_sides": 800}
    run["model"] = {
        "name": "0123",
        "learned_on": learned,
        "new": 0,
        "made_by": "spklink 1",
        "why": "",
    }
    assert len(notes(run)) == 1
    run["model"]["new"] = 20
    (told,) = notes(run)[1:]
    assert "model 0123" in told
    assert "learned on 400 conversations by spklink 1; 20 came later" in told


def test_other_speech_does_not_make_it_independent_of_the_cache():
    (told,) = notes(run_json("link", background="speech", trained_on=17))[1:]
    assert "fitted to 17 of 420 recordings and taken from the cache" in told


def test_scores_come_without_a_recognizer():
    assert len(notes(run_json("assign"))) == 1


def test_no_side_was_usable():
    run = run_json("link")
    run["recognizer"] = None
    assert len(notes(run)) == 1


def test_a_recognizer_that_the_command_line_does_not_know():
    class Mine:
        name = "mine"

    run = run_json("link", recognizer=Mine())
    assert "(mine) was handed over by a program" in notes(run)[1]
