"""Small valid files of every kind, for tests that spoil them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import spklink
from spklink.runs.folder import load
from spklink.settings import LinkOptions, options_json, resolved
from spklink.tables import write_csv, write_json
from spklink.worlds.simulate import write_simulation

KEY = ("conversation", "channel", "speaker")


def make_files(home: Path) -> Path:
    """A database of 12 calls, its scores in all forms, results of `assign` and of `link`."""
    made = spklink.simulate(shape="network", conversations=12, eer=3.0, seed=5)
    write_simulation(made, home)
    write_simulation(made, home / "npz", npz=True)
    (home / "npz" / "scores.npz").rename(home / "scores.npz")
    table = made.conversations
    sides = len(table.sides)
    square = np.random.default_rng(0).normal(size=(sides, sides))
    names = {
        "conversation": np.repeat(np.array(table.ids), 2),
        "channel": np.tile(np.array([1, 2], np.int8), len(table)),
    }
    np.savez(home / "dense.npz", scores=square + square.T, **names)
    long = [(m, p) for m, i in enumerate(table.ids) for p in table.names(m) if i]
    write_csv(
        home / "long.csv", ("conversation", "participant"), [(table.ids[m], p) for m, p in long]
    )
    rows = made.key()
    write_csv(home / "known.csv", KEY, [[row[name] for name in KEY] for row in rows[:4]])
    speech = [(i, c, "12.5", "", "") for i in table.ids for c in (1, 2)]
    columns = ("conversation", "channel", "speech_seconds", "mark", "sha256")
    write_csv(home / "sides.csv", columns, speech)
    assigned(home, home / "results")
    linked(home, home / "linked")
    return home


def assigned(home: Path, out: Path) -> None:
    """Results with raw scores and a calibration."""
    found = spklink.calibrate(
        home / "conversations.csv", home / "scores.csv", key=home / "key.csv", kind="lr"
    )
    write_json(home / "calibration.json", found)
    spklink.assign(
        home / "conversations.csv",
        home / "scores.csv",
        out,
        calibration=home / "calibration.json",
        known=home / "known.csv",
    )


def linked(home: Path, out: Path) -> None:
    """Results as `link` leaves them, made of those of `assign`: nobody has to listen."""
    assigned(home, out)
    run = json.loads((out / "run.json").read_text())
    options = resolved(LinkOptions, {"known": home / "known.csv"})
    run |= {"command": "link", "options": options_json(LinkOptions, options, out)}
    run["recognizer"] = {"name": "gmm-ubm", "trained_on": 12, "recordings": 12}
    run["inputs"].pop("scores")
    write_json(out / "run.json", run)
    (out / "sides.csv").write_bytes((home / "sides.csv").read_bytes())
    write_csv(
        out / "problems.csv", ("conversation", "channel", "file", "problem"), [("a", 1, "b", "c")]
    )
    one = load_names(home)
    columns = ("conversation", "probability", "claimed", "suggested")
    write_csv(
        out / "suspects.csv", columns, [(one[0], ".9", f"{one[2]};{one[1]}", f"{one[1]};{one[2]}")]
    )
    load(out)


def load_names(home: Path) -> tuple[str, str, str]:
    """The first conversation and its participants."""
    table = spklink.read_conversations(home / "conversations.csv")
    first, second = table.names(0)
    return table.ids[0], first, second
