"""Calls that are added to a table in which some people have very many: sums kept and settled."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from spklink.cache import ENDING
from spklink.calibration import certificate
from spklink.calibration.frequent import FrequentVoices
from spklink.calibration.resettling import resettled
from spklink.calibration.settling import SETTLED
from spklink.database import frequent
from spklink.runs.clique_store import clique_names
from spklink.runs.link import link

AGENTS, EACH, NEW, WIDTH = 8, 30, 4, 24
CALLS = AGENTS * EACH
MOST = 16  # conversations of people whose links are listed


class Centre:
    """Agents and clients; the new calls are by the first two agents, the last with somebody new."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        agent = np.concatenate([rng.permutation(np.arange(CALLS) % AGENTS), [0, 0, 1, 0]])
        client = rng.integers(0, int(0.6 * CALLS), CALLS + NEW)
        client[-1] = CALLS
        self.rows = [
            {"conversation": f"c{m}", "participants": f"a{a};k{k}"}
            for m, (a, k) in enumerate(zip(agent.tolist(), client.tolist(), strict=True))
        ]
        self.agent, self.truth = agent, rng.integers(0, 2, len(agent))
        voice = rng.standard_normal((2, CALLS + AGENTS, WIDTH))
        sides = rng.standard_normal((len(agent), 2, WIDTH)) * 0.8
        at = np.arange(len(agent))
        sides[at, self.truth] += voice[0][agent]
        sides[at, 1 - self.truth] += voice[1][client]
        self.vectors = sides.astype(np.float32)

    def link(self, calls, out: Path, **more):
        calls = np.asarray(calls)
        vectors = self.vectors[calls].reshape(-1, WIDTH)
        more = {"list_errors": 0.0, "seed": 1, **more}
        return link([self.rows[m] for m in calls.tolist()], out, embeddings=vectors, **more)


@pytest.fixture(scope="module", autouse=True)
def few_are_many():
    """Agents are frequent, clients are not."""
    before, frequent.LONGEST = frequent.LONGEST, MOST
    yield
    frequent.LONGEST = before


@pytest.fixture(scope="module")
def centre() -> Centre:
    return Centre()


@pytest.fixture(scope="module")
def before(centre, tmp_path_factory) -> Path:
    """A run on the first calls; copied, never written to."""
    out = tmp_path_factory.mktemp("before") / "out"
    centre.link(range(CALLS), out)
    return out


@pytest.fixture(scope="module")
def fresh(centre, tmp_path_factory) -> Path:
    """A run on all calls, without a past."""
    out = tmp_path_factory.mktemp("fresh") / "out"
    centre.link(range(CALLS + NEW), out)
    return out


@pytest.fixture
def out(before, tmp_path) -> Path:
    return Path(shutil.copytree(before, tmp_path / "out"))


def content(out: Path) -> dict[str, bytes]:
    files = (path for path in out.iterdir() if path.is_file() and path.name != "timings.json")
    return {path.name: path.read_bytes() for path in files}


def run_json(out: Path) -> dict:
    return json.loads((out / "run.json").read_text())


def answers(out: Path) -> dict[tuple[str, str], tuple[str, float]]:
    lines = (line.split(",") for line in (out / "assignments.csv").read_text().splitlines()[1:])
    return {(row[0], row[1]): (row[2], float(row[3])) for row in lines}


@pytest.fixture
def summed(monkeypatch) -> list[int]:
    """Whose sums are made, one number a person and time."""
    found: list[int] = []
    one = FrequentVoices.one
    monkeypatch.setattr(
        FrequentVoices, "one", lambda self, f, *rest: found.append(f) or one(self, f, *rest)
    )
    return found


@pytest.fixture
def proved(monkeypatch) -> list[int]:
    """Of whom every two conversations are looked at."""
    found: list[int] = []
    one = certificate._voice
    monkeypatch.setattr(
        certificate, "_voice", lambda voices, f, *rest: found.append(f) or one(voices, f, *rest)
    )
    return found


def test_the_same_calls_give_the_same_bytes(centre, before, out, summed, proved):
    centre.link(range(CALLS), out)
    assert content(out) == content(before)
    assert run_json(out)["model"]["new"] == 0
    assert not proved
    assert not summed


def test_new_calls_cost_what_they_touch(centre, before, out, summed, proved):
    found = centre.link(range(CALLS + NEW), out)
    said = run_json(out)["model"]
    assert said["name"] == run_json(before)["model"]["name"]
    assert said["new"] == NEW
    assert "came after model" in found.notes[-1]
    assert 2 <= len(proved) < AGENTS  # the two with new calls, and where an answer changed
    once = AGENTS  # for the proof
    assert set(proved[:2]) <= set(summed[:2])  # these first
    assert len(summed) - once < AGENTS
    assert (found.posterior.best == centre.truth).mean() > 0.97


def test_close_to_a_fresh_run(centre, out, fresh):
    centre.link(range(CALLS + NEW), out)
    kept, anew = answers(out), answers(fresh)
    assert kept.keys() == anew.keys()
    assert all(kept[key][0] == anew[key][0] for key in anew if anew[key][1] > 0.9)
    assert np.mean([abs(kept[key][1] - anew[key][1]) for key in anew]) < 0.01


def test_retrain_is_a_fresh_run_to_the_byte(centre, out, fresh):
    centre.link(range(CALLS + NEW), out)
    centre.link(range(CALLS + NEW), out, retrain=True)
    assert content(out) == content(fresh)


def test_what_is_kept_is_what_would_be_solved(centre, out, tmp_path):
    """Without what the run before left, the same model says the same within what settling means."""
    other = Path(shutil.copytree(out, tmp_path / "other"))
    shutil.rmtree(other / "cache" / "answers")
    one = centre.link(range(CALLS + NEW), out)
    two = centre.link(range(CALLS + NEW), other)
    assert one.model == two.model
    assert np.allclose(one.posterior.exchanged, two.posterior.exchanged, atol=20 * SETTLED)
    assert (one.posterior.exchanged_low <= two.posterior.exchanged_high).all()
    assert (two.posterior.exchanged_low <= one.posterior.exchanged_high).all()
    assert (one.posterior.certainty == two.posterior.certainty).all()


def test_calls_one_by_one_are_as_settled_as_all_at_once(centre, out, tmp_path):
    other = Path(shutil.copytree(out, tmp_path / "other"))
    for count in range(1, NEW + 1):
        one = centre.link(range(CALLS + count), out)
    two = centre.link(range(CALLS + NEW), other)
    assert np.allclose(one.posterior.exchanged, two.posterior.exchanged, atol=20 * SETTLED)
    again = content(out)
    centre.link(range(CALLS + NEW), out)
    assert content(out) == again


def test_any_order_of_rows(centre, out, tmp_path):
    other = Path(shutil.copytree(out, tmp_path / "other"))
    centre.link(range(CALLS + NEW), out)
    centre.link(np.random.default_rng(3).permutation(CALLS + NEW), other)
    mine, theirs = answers(out), answers(other)
    assert {key: mine[key][0] for key in mine} == {key: theirs[key][0] for key in mine}
    assert max(abs(mine[key][1] - theirs[key][1]) for key in mine) < 1e-9


@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_workers(centre, out, workers, tmp_path):
    other = Path(shutil.copytree(out, tmp_path / "other"))
    centre.link(range(CALLS + NEW), out, workers=2)
    centre.link(range(CALLS + NEW), other, workers=workers)
    assert answers(out) == answers(other)


def test_intervals_hold_the_proof_of_a_run_that_kept_nothing(centre, out, monkeypatch):
    """Kept parts of a proof are the numbers that would be computed."""
    made, voice, certify = [], certificate._voice, certificate.certify
    kept = centre.link(range(CALLS + NEW), out)

    def watched(voices, f, *rest):
        made.append(f)
        return voice(voices, f, *rest)

    monkeypatch.setattr(certificate, "_voice", watched)
    monkeypatch.setattr("spklink.runs.sums.certify", lambda *args: certify(*args[:-1], None))
    anew = centre.link(range(CALLS + NEW), out)
    assert sorted(made) == list(range(AGENTS))
    assert (kept.posterior.exchanged_low == anew.posterior.exchanged_low).all()
    assert (kept.posterior.exchanged_high == anew.posterior.exchanged_high).all()
    assert "certified" in set(kept.posterior.certainty)


@pytest.mark.parametrize(
    "where",
    [
        "spklink.runs.link.with_slack",
        "spklink.runs.link.with_misfits",
        "spklink.runs.result.Result.save",
    ],
)
def test_killed_between_what_is_kept_and_the_results(centre, out, where, tmp_path, monkeypatch):
    whole = Path(shutil.copytree(out, tmp_path / "whole"))
    centre.link(range(CALLS + NEW), whole)

    def killed(*args, **more):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(where, killed)
        with pytest.raises(KeyboardInterrupt):
            centre.link(range(CALLS + NEW), out)
    centre.link(range(CALLS + NEW), out)
    assert content(out) == content(whole)


@pytest.mark.parametrize("how", ["byte", "cut", "gone"])
def test_damage_is_seen(centre, out, how, tmp_path):
    whole = Path(shutil.copytree(out, tmp_path / "whole"))
    centre.link(range(CALLS), whole)
    for path in (out / "cache" / "answers").glob(f"*{ENDING}"):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data if how == "byte" else data[:-7])
        if how == "gone":
            path.unlink()
    found = centre.link(range(CALLS), out)
    assert any("damaged" in note for note in found.notes) == (how != "gone")
    assert answers(out).keys() == answers(whole).keys()
    mine, theirs = answers(out), answers(whole)
    assert max(abs(mine[k][1] - theirs[k][1]) for k in mine) < 20 * SETTLED


def test_somebody_becomes_frequent(centre, tmp_path):
    """From the first call beyond the limit a person's voice is summed, by the same model."""
    few = [m for m in range(CALLS) if centre.agent[m] != 0]
    own = np.flatnonzero(centre.agent[:CALLS] == 0)
    start, more = sorted([*few, *own[:MOST].tolist()]), own[MOST : MOST + 2].tolist()
    out, whole = tmp_path / "out", tmp_path / "whole"
    first = centre.link(start, out)
    found = centre.link(sorted([*start, *more]), out)
    anew = centre.link(sorted([*start, *more]), whole)
    assert found.model is not None
    assert first.model is not None
    assert found.model["name"] == first.model["name"]
    assert len(found.evidence.links.pair) < len(first.evidence.links.pair)
    assert len(found.evidence.links.pair) == len(anew.evidence.links.pair)
    mine, theirs = answers(out), answers(whole)
    assert all(mine[key][0] == theirs[key][0] for key in theirs if theirs[key][1] > 0.9)


def test_the_first_frequent_person_renews_a_model_that_cannot_be_summed(centre, tmp_path):
    """lr-floor, which is learned where nobody is frequent, bends."""
    out = tmp_path / "out"
    few = np.flatnonzero(centre.agent[:CALLS] < 3)
    frequent.LONGEST = EACH
    try:
        first = centre.link(few, out)
        found = centre.link([*few, CALLS], out)
    finally:
        frequent.LONGEST = MOST
    assert found.model is not None
    assert first.model is not None
    assert found.model["name"] != first.model["name"]
    assert "more than 30 conversations" in found.model["why"]
    assert any("renewed" in note for note in found.notes)


def test_lists_that_may_be_wrong(centre, tmp_path):
    """With a rate of list errors, and twice the same."""
    out = tmp_path / "out"
    centre.link(range(CALLS), out, list_errors=0.01)
    found = centre.link(range(CALLS + NEW), out, list_errors=0.01)
    assert not found.answer.binary
    assert found.model is not None
    assert found.model["new"] == NEW
    before = content(out)
    centre.link(range(CALLS + NEW), out, list_errors=0.01)
    assert content(out) == before
    anew = centre.link(range(CALLS + NEW), tmp_path / "fresh", list_errors=0.01)
    assert np.abs(anew.answer.presence.chance - found.answer.presence.chance).mean() < 0.01


def test_settled_sums_are_those_of_their_probabilities(centre, out, monkeypatch):
    """Whatever is kept and skipped: sums are within what SETTLED allows of those made anew."""
    seen = []

    def watched(problem, weight, llr, curve, before):
        after = resettled(problem, weight, llr, curve, before)
        seen.append((problem, weight, curve, after))
        return after

    monkeypatch.setattr("spklink.runs.recall.resettled", watched)
    found = centre.link(range(CALLS + NEW), out)
    (problem, weight, curve, after) = seen[0]
    assert not after.stale.any()
    made = problem.voices.gains(curve, weight, after.base)
    assert np.allclose(made, after.sums, atol=10 * SETTLED)
    chance = np.stack([1.0 - found.posterior.exchanged, found.posterior.exchanged], axis=1)
    both = np.concatenate([chance, chance[:, ::-1]], axis=1).ravel()
    owned = after.sums != 0.0
    assert np.abs(both - after.base)[owned].max() <= 2 * SETTLED


def test_names_tell_all_that_an_answer_depends_on(centre, out, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "spklink.runs.sums.certify",
        lambda voices, *rest: seen.append(rest[-1]) or certify(voices, *rest),
    )
    certify = certificate.certify
    voices = []
    one = certificate.in_full
    monkeypatch.setattr(
        certificate, "in_full", lambda these, most: voices.append(these) or one(these, most)
    )
    found = centre.link(range(CALLS), out)
    spreads, place = seen[0].before, np.zeros(len(voices[0].frequent.entry), np.int64)
    turned = place.copy()
    turned[7] = 1
    other = spreads._names(voices[0], place) != spreads._names(voices[0], turned)
    assert other.sum() == 1  # the agent of that call
    sums = found.evidence.conversations.sums
    moved = sums.copy()
    moved[np.flatnonzero(sums)[3]] += 1e-12
    evidence, keys = found.evidence, np.arange(CALLS, dtype=np.uint64)
    names = [clique_names(evidence.with_sums(these), keys) for these in (sums, moved)]
    assert (names[0] != names[1]).sum() == 1


def test_an_absent_agent_is_told_with_what_his_other_conversations_say(tmp_path):
    """No pair of his conversations is listed; that is not the same as having no others."""
    centre = Centre(3)
    m = int(np.flatnonzero(centre.agent[:CALLS] == 2)[0])
    centre.vectors[m] = 1.6 * np.random.default_rng(0).standard_normal((2, WIDTH))
    found = centre.link(range(CALLS), tmp_path / "out", list_errors=0.02)
    mine = next(one for one in found.misfits if one[0] == f"c{m}")
    others = int((centre.agent[:CALLS] == 2).sum()) - 1
    assert mine[1] == "absent"
    assert f"from {others} other conversations together)" in mine[5]
