"""Several recognizers on one database, side by side.

Each is linked in a process of its own, so that its peak memory is its own and one that fails ends
no other; all share one cache. A folder that is finished is not linked again as long as nothing that
it depends on has changed. A key measures; without one stands what the runs say about themselves and
about each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from spklink.calibration.curves import load as load_curve
from spklink.calibration.curves import pair_speech
from spklink.database.conversations import Conversations, read_conversations
from spklink.database.labels import read_key
from spklink.database.segments import read_tracks
from spklink.errors import SpklinkError, check_folder
from spklink.json_files import ANYTHING, Each
from spklink.measures.detection import measure
from spklink.options import described, resolved
from spklink.processes import Died, in_processes
from spklink.runs.candidates import Candidate, candidates, differing, state_of
from spklink.runs.comparison import Answers, Compared, Comparison, Measures
from spklink.runs.folder import load, make_folder, read_run
from spklink.runs.folder_files import kept_tables
from spklink.runs.inputs import Inputs, read_inputs, reading
from spklink.runs.link import link
from spklink.runs.measure import measured
from spklink.runs.result import Result
from spklink.runs.rows import ASSIGNMENTS, SETTLED, UNRESOLVABLE, UNUSABLE
from spklink.runs.stages import Stages
from spklink.scores.needed import SideScores
from spklink.scores.trials import split_trials
from spklink.settings import CompareOptions
from spklink.tables import Content, Table, read_cells, read_json, write_json

TIMINGS = {"seconds": Each(float), "peak_memory_bytes": (int, None)}
DONE = "compared.json"  # in the folder of a run: what it depended on, and its measures
SHARED = (
    "embedding_keys",
    "sides",
    "tracks",
    "known",
)  # tables that go to every run that takes them
FEW = 2000  # sides: all their pairs are scored and measured. A choice: two million scores
LISTENING = ("listening", "reading the embeddings", "reading the scores")


@described(CompareOptions)
def compare(
    table: Table,
    out: str | PathLike[str],
    *,
    stages: Stages | None = None,
    **options: Unpack[CompareOptions],
) -> Comparison:
    """Link with several recognizers, each into a folder of `out`, and hold them against each other.

    Recognizers are names or model files, with `:paper` behind them for another preset; embeddings
    and scores are files.
    """
    asked, stages = resolved(CompareOptions, options), stages or Stages()
    folder = make_folder(check_folder(out))
    every = candidates(asked)
    with stages.stage("reading the table"):
        inputs, people = _read(table, asked)
    done, failed = dict[str, Measures](), dict[str, str]()
    for number, one in enumerate(every, start=1):
        with stages.stage(f"linking with {one.name} ({number} of {len(every)})"):
            found = _one(Job.of(one, table, folder, people, inputs, asked))
        if isinstance(found, str):
            failed[one.name] = found
        else:
            done[one.name] = found
    if not done:
        said = "; ".join(f"{name}: {why}" for name, why in failed.items())
        raise SpklinkError(f"no recognizer came to an end: {said}")
    answers = {name: _answers(folder / name) for name in done}
    comparison = _held_together(every, done, failed, answers)
    comparison.save(folder, safe=asked["safe_csv"])
    return comparison


def _read(table: Table, asked: CompareOptions) -> tuple[Inputs, Conversations]:
    """The tables, read and checked before anything is linked."""
    tables: dict[str, Any] = {"conversations": table}
    how = reading(asked)
    for name in SHARED:
        given = asked[name]  # type: ignore[literal-required]
        diarized = name == "tracks" and given is not None
        tables[name] = read_tracks(given, how=how) if diarized else given
    inputs = read_inputs(tables, None, {"key": asked["key"]}, how)
    people = read_conversations(inputs.table("conversations"), inputs.table("tracks"))
    if (key := inputs.table("key")) is not None:
        read_key(key, people)
    return inputs, people


# --- one run ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """All that one process needs."""

    table: Table
    folder: Path
    options: Mapping[str, Any]  # of `link`
    state: str
    key: Content | None

    @classmethod
    def of(
        cls,
        one: Candidate,
        table: Table,
        out: Path,
        people: Conversations,
        inputs: Inputs,
        asked: CompareOptions,
    ) -> Job:
        unfit = {name for name, kinds in NEEDS.items() if not kinds & set(one.options)}
        plain = {name: asked[name] for name in asked if name not in OWN and name not in unfit}  # type: ignore[literal-required]
        own = {"cache": asked["cache"] or out / "cache", "all_pairs": len(people.sides) <= FEW}
        options = plain | own | dict(one.options)
        hashes = {name: given.sha256 for name, given in inputs.given.items()}
        counted = {
            k: v for k, v in options.items() if k not in (*SHARED, "workers", "cluster", "cache")
        }
        state = state_of(one, people, hashes, counted)
        return cls(table, out / one.name, options, state, inputs.table("key"))

    @property
    def key_hash(self) -> str | None:
        return None if self.key is None else self.key.sha256


OWN = ("recognizer", "embeddings", "scores", "key")  # options that are not handed on
NEEDS = {  # what goes with some kinds of candidates only
    "sides": {"embeddings", "scores"},
    "embedding_keys": {"embeddings"},
    "background": {"recognizer"},
}


def _one(job: Job) -> Measures | str:
    """The measures of a run; or why there are none."""
    kept = _kept(job)
    if kept is not None and kept["key"] == job.key_hash:
        return Measures(**kept["measures"])
    try:
        (found,) = in_processes(run_job, [job], 1, parents=True)
    except SpklinkError as error:
        return str(error)
    except Exception as error:  # whatever somebody else's model raises, the others go on
        return f"{type(error).__name__}: {error}"
    return f"its process ended, twice ({found.how})" if isinstance(found, Died) else found


def _kept(job: Job) -> dict[str, Any] | None:
    """What a finished run left; None where it has to be done again."""
    path = job.folder / DONE
    if not path.is_file() or not (job.folder / "run.json").is_file():
        return None
    try:
        found: dict[str, Any] = read_json(
            path, {"state": str, "key": (str, None), "measures": ANYTHING}, "remove it"
        )
        Measures(**found["measures"])
    except (SpklinkError, TypeError):
        return None
    return found if found["state"] == job.state else None


def run_job(job: Job) -> Measures:
    """In a process of its own: link, unless that is done, and measure."""
    path = job.folder / DONE
    if _kept(job) is None:
        path.unlink(missing_ok=True)
        result = link(job.table, job.folder, **job.options)
    else:
        result = load(job.folder, workers=job.options["workers"])
    found = measures_of(result, job)
    kept = {"state": job.state, "key": job.key_hash, "measures": asdict(found)}
    write_json(path, kept)
    return found


def measures_of(result: Result, job: Job) -> Measures:
    """All figures of one result."""
    timings = read_json(job.folder / "timings.json", TIMINGS, "")
    seconds = timings["seconds"]
    plain = _of_itself(result, job.folder) | {
        "seconds": round(sum(seconds.values()), 2),
        "listening_seconds": round(sum(seconds.get(name, 0.0) for name in LISTENING), 2),
        "peak_memory_bytes": timings["peak_memory_bytes"],
    }
    found: dict[str, Any] = plain | ({} if job.key is None else _by_key(result, job.key))
    for name, value in found.items():
        found[name] = float(value) if isinstance(value, float) else value  # none of numpy's
    return Measures(**found)


def _of_itself(result: Result, folder: Path) -> dict[str, Any]:
    """What a run says without a key."""
    rows = _assignments(folder)
    kept = [row for row in rows if row[9] not in (UNRESOLVABLE, UNUSABLE)]
    expected = sum(1.0 - float(row[3]) for row in kept)
    summary = result.summary()
    solved, table = result.answer, result.conversations
    if table.plain:
        solved = solved.given(lists_right=True)
    evidence = float(solved.log_evidence.sum() / np.log(2.0)) / len(table)
    weight = result.evidence.weight
    return {
        "evidence_bits": evidence if np.isfinite(evidence) else None,
        "expected_errors": expected,
        "settled": sum(row[9] == SETTLED for row in rows),
        "tracks": len(rows),
        "unused_sides": summary.get("unused_sides"),
        "list_errors": summary.get("list_errors", {}).get("rate"),
        "weight": weight.rule if weight.beta is None else f"{weight.rule} {weight.beta:g}",
    }


def _by_key(result: Result, key: Content) -> dict[str, Any]:
    labels = read_key(key, result.conversations)
    found = measured(result, labels)
    targets, others = split_trials(result.conversations, labels, _ratios(result))
    detected = measure(targets, others) if len(targets) and len(others) else None
    seats, plain = found.seats, result.conversations.plain
    row = found.resolvable if plain else seats.resolvable if seats is not None else None
    if plain:
        expected, wrong = found.marginals.expected_wrong, found.marginals.wrong
    else:
        assert seats is not None
        tracks = seats.tracks
        expected, wrong = tracks.expected_wrong, tracks.wrong_named + tracks.wrong_strangers
    return {
        "eer": None if detected is None else detected.eer,
        "cllr": None if detected is None else detected.cllr,
        "min_cllr": None if detected is None else detected.min_cllr,
        "trials": len(targets) + len(others),
        **{
            name: _middle(row, name)
            for name in ("cross_entropy_bits", "confusion", "clique_error_rate")
        },
        "expected_wrong": expected,
        "wrong": wrong,
    }


def _middle(row: Any, name: str) -> float | None:
    """A figure of a row; the middle of its interval where it is not exact."""
    value = getattr(row, name, None)
    if value is None and name in getattr(row, "intervals", {}):
        low, high = row.intervals[name]
        value = (low + high) / 2.0
    return None if value is None or not np.isfinite(value) else float(value)


def _ratios(result: Result) -> SideScores:
    """Log-likelihood-ratios of all pairs of used sides that have a score: the raw scores read as
    this run calibrated them."""
    raw, listening = result.raw, result.listening
    if raw is None or result.calibration is None or listening is None:
        return result.evidence.ratios()
    speech = listening.speech
    raw = raw.chosen(speech.usable[raw.side_1] & speech.usable[raw.side_2])
    curve = load_curve(result.calibration)
    spoken = pair_speech(speech.seconds, raw.side_1, raw.side_2) if speech.known else None
    return raw.scored(curve(raw.score, spoken))


# --- all of them --------------------------------------------------------------------------------


def _assignments(folder: Path) -> list[Any]:
    kept = kept_tables(folder, read_run(folder))
    return read_cells(kept.table("assignments"), dict.fromkeys(ASSIGNMENTS, str))


def _answers(folder: Path) -> Answers:
    """Who is on which track and how probable that is; no name where the sound cannot be used."""
    return {
        (row[0], row[1]): ("", "") if row[9] in (UNUSABLE, UNRESOLVABLE) else (row[2], row[3])
        for row in _assignments(folder)
    }


def _held_together(
    every: list[Candidate],
    done: dict[str, Measures],
    failed: dict[str, str],
    answers: Mapping[str, Answers],
) -> Comparison:
    places = differing(answers.values())
    runs = []
    for one in every:
        if one.name in failed:
            runs.append(Compared(one.name, failed=failed[one.name]))
            continue
        own = answers[one.name]
        against = sum(
            any(other[place][0] not in ("", own[place][0]) for other in answers.values())
            for place in places
            if own[place][0]
        )
        runs.append(Compared(one.name, done[one.name], against))
    return Comparison(runs, places, answers, _notes(list(done.values()), failed))


def _notes(done: list[Measures], failed: Mapping[str, str]) -> list[str]:
    """What a person should know before figures are held against each other."""
    notes = [f"{name} failed: {why}" for name, why in failed.items()]
    if len({one.weight for one in done}) > 1:
        notes.append(
            "evidence cannot be compared: the pairs of a speaker's calls are not weighed alike"
        )
    if len({one.unused_sides for one in done}) > 1:
        notes.append(
            "evidence and errors are not about the same sides: some are used by one run only"
        )
    return notes
