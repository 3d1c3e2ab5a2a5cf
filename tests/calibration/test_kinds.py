"""A kind of calibration is one file and one entry of the table."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import spklink
from spklink import SpklinkError, build_model, find_cliques, solve
from spklink.calibration import kinds
from spklink.calibration.choice import Choice, calibrated
from spklink.calibration.curves import Line, load, save
from spklink.calibration.fitting import Trials, fit
from spklink.calibration.label_free import label_free
from spklink.calibration.logistic import Regression, logistic
from spklink.calibration.pairs import make_pairs
from spklink.calibration.table import DEFAULT, DEFAULT_WITH_SPEECH, KINDS, Kind, find_kind
from spklink.worlds.simulate import simulate

HOME = Path(spklink.__file__).parent


class Slope(Kind):
    """A line through zero."""

    name = "slope"

    def fit(self, trials, *, source, start, least_floor):
        same, other = trials.same / trials.same.sum(), trials.other / trials.other.sum()
        given = Regression(trials.scores[:, None], same / 2, other / 2, np.full(1, 0.01))
        return Line(logistic(given, np.ones(1)).item(), 0.0, kind=self.name, source=source)

    def read(self, found):
        return Line.from_json(found)


@dataclass(frozen=True)
class Clipped:
    """A shape of its own: nothing speaks for or against a pair by more than `most`."""

    scale: float
    centre: float
    most: float = 3.0
    kind: str = "clipped"
    source: str = "given"
    needs_speech: bool = False

    def __call__(self, scores, speech=None):
        return np.clip(self.scale * (scores - self.centre), -self.most, self.most)

    def unstandardised(self, centre, spread):
        return Clipped(
            self.scale / spread, centre + spread * self.centre, self.most, source=self.source
        )

    def as_json(self):
        return asdict(self)


class ClippedKind(Kind):
    name = "clipped"
    learned_as = "lr"

    def fit(self, trials, *, source, start, least_floor):
        line = fit(trials, "lr", source=source)
        return Clipped(line.scale, -line.offset / line.scale, source=source)

    def read(self, found):
        return Clipped(**{name: found[name] for name in Clipped.__dataclass_fields__})


@pytest.fixture(params=[Slope, ClippedKind])
def new_kind(request, monkeypatch):
    """A file in `kinds/` and an entry of the table, nothing else."""
    made = request.param()
    monkeypatch.setitem(
        sys.modules, f"{kinds.__name__}.{made.name}_file", SimpleNamespace(KIND=made)
    )
    monkeypatch.setitem(KINDS, made.name, f"{made.name}_file")
    return made.name


@pytest.fixture(scope="module")
def world():
    made = simulate(eer=10.0, seed=1)
    cliques = find_cliques(made.conversations)

    def posterior(llr, curve=None):
        return solve(build_model(made.conversations, cliques, made.links, llr))

    others = made.non_targets.scored(3 * made.non_targets.score + 7)
    pairs = make_pairs(made.conversations, made.links, 3 * made.llr + 7, others)
    return made, pairs, posterior


def test_a_new_kind_is_fitted_saved_and_read(new_kind, tmp_path):
    rng = np.random.default_rng(0)
    same = np.repeat([1.0, 0.0], 500)
    trials = Trials(rng.normal(size=1000) + 2 * same, same, 1 - same)
    found = fit(trials, new_kind, source="here")
    assert (found.kind, found.source) == (new_kind, "here")
    assert 0.5 < found.scale < 4.0
    save(tmp_path / "c.json", found, rounds=3)
    assert load(tmp_path / "c.json") == found


def test_a_new_kind_is_learned_without_labels(new_kind, world):
    made, pairs, posterior = world
    found = label_free(pairs, posterior, new_kind)
    assert found.converged
    assert found.calibration.kind == new_kind
    again = posterior(found.calibration(pairs.scores))
    assert np.allclose(found.posterior.exchanged, again.exchanged, atol=1e-9)
    right = np.abs(found.posterior.exchanged - made.truth) < 0.5
    assert right.mean() > 0.8


def test_a_new_kind_is_chosen_as_the_others_are(new_kind, world):
    made, pairs, _ = world
    found = calibrated(made.conversations, pairs, Choice(kind=new_kind))
    assert found.as_json()["kind"] == new_kind
    assert found.note == ""
    with pytest.raises(SpklinkError, match=f"--wrong-lists does not go with --kind {new_kind}"):
        Choice(kind=new_kind, wrong_lists=0.02)


def test_the_table_lists_the_files():
    files = {path.stem for path in Path(kinds.__path__[0]).glob("*.py")} - {"__init__"}
    assert files == set(KINDS.values())
    assert [find_kind(name).name for name in KINDS] == list(KINDS)
    assert {DEFAULT, DEFAULT_WITH_SPEECH} <= set(KINDS)
    assert {find_kind(name).learned_as for name in KINDS} - {None} <= set(KINDS)


def test_the_table_is_light():
    """The command line reads it for its help."""
    code = "import sys, spklink.calibration.table; print({'numpy', 'scipy'} & set(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_nobody_compares_names_of_kinds():
    """What a kind needs is asked of the kind: else a new one would be more than a file."""
    found = [
        f"{path.relative_to(HOME)}:{node.lineno}"
        for path in HOME.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare)
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and part.value in tuple(KINDS)
    ]
    assert found == []
