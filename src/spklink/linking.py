"""The main job: from recordings and a table to who is on which channel.

listen → train the recognizer → a vector a side → scores → calibration → posterior → results. Every
stage leaves its outcome in a cache under a name that is the hash of all it depends on, so the same
command after a kill, or with ten more calls, does only what is missing, to the same bytes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.assignment import Database, PathName, Result, Stages, write_results, write_timings
from spklink.calibration import Calibration, LabelFree, label_free
from spklink.claims import write_suspects
from spklink.cliques import find_cliques
from spklink.conversations import Conversations, read_conversations
from spklink.errors import SpklinkError
from spklink.features import PRESETS as FRONT_ENDS
from spklink.labels import Labels, read_key, read_known
from spklink.likelihood import Weight, build_model, combine_prior
from spklink.links import Links, find_links
from spklink.listening import Sound, hear, write_problems, write_sides
from spklink.posterior import Options, Posterior, solve
from spklink.recognizers import gmm_ubm, normalise
from spklink.recognizers.gmm_ubm import Preset
from spklink.scores import Scores, known_non_targets, needed_sides, write_scores
from spklink.tables import sweep, write_json
from spklink.training import Trained, Trainer, name_of, prepare

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
OWN_FILES = ("sides.csv", "problems.csv", "suspects.csv", "scores.npz", "calibration.json")


@dataclass(frozen=True)
class Settings:
    """What `link` can be told, beyond how cliques are solved."""

    preset: str = "default"
    components: int | None = None
    background: Path | None = None
    weight: Weight = field(default_factory=Weight)
    min_speech: float = 2.0  # seconds; sides with less are not used
    skip_bad_audio: bool = False
    all_pairs: bool = False
    retrain: bool = False
    cache: Path | None = None

    def recognizer(self) -> Preset:
        if self.preset not in gmm_ubm.PRESETS:
            raise SpklinkError(f"preset {self.preset!r} is not one of {', '.join(gmm_ubm.PRESETS)}")
        preset = gmm_ubm.PRESETS[self.preset]
        if self.components is None:
            return preset
        if self.components < 1:
            raise SpklinkError(f"--components {self.components}: at least 1")
        return replace(preset, components=self.components)


@dataclass(frozen=True)
class Linked:
    """All that `link` found."""

    result: Result
    sound: Sound
    calibration: Calibration
    learned: LabelFree | None
    notes: list[str]  # what a person should know about this run
    suspects: int | None  # claims that the posterior contradicts

    def summary(self) -> dict[str, Any]:
        """The few numbers a person asks for first."""
        return self.result.summary() | {
            "speech_hours": round(float(self.sound.seconds().sum()) / 3600.0, 3),
            "unused_sides": int((~self.sound.usable).sum()),
            "suspects": self.suspects,
            "notes": self.notes,
        }


def link(
    table: PathName,
    out: PathName,
    *,
    settings: Settings | None = None,
    known: PathName | None = None,
    claimed: PathName | None = None,
    options: Options | None = None,
    stages: Stages | None = None,
) -> Linked:
    """Listen to all calls and find who is on which channel; everything is written to `out`."""
    what, how, stages = settings or Settings(), options or Options(), stages or Stages()
    folder = Path(out)
    cache = what.cache or folder / "cache"
    preset = what.recognizer()
    for stale in cache.glob("**/"):
        sweep(stale, older_than_days=1.0)  # another run may be at work in a shared cache
    with stages.stage("reading the table"):
        conversations = read_conversations(table)
        labels = read_known(known, conversations) if known is not None else None
        claims = read_key(claimed, conversations) if claimed is not None else None
    front_end = FRONT_ENDS[what.preset]
    with stages.stage("listening"):
        sound = hear(
            conversations,
            front_end,
            cache / "features",
            min_speech=what.min_speech,
            skip_bad=what.skip_bad_audio,
            workers=how.workers,
            tell=stages.progress,
        )
    with stages.stage("training the recognizer"):
        trainer = Trainer(
            preset,
            cache,
            front_end,
            background=what.background,
            seed=how.seed,
            threads=how.workers,
            retrain=what.retrain,
            tell=stages.progress,
        )
        trained = prepare(sound, trainer)
    with stages.stage("scoring"):
        links = find_links(conversations, consecutive=what.weight.consecutive)
        raw = score(conversations, links, trained, sound.usable, how)
    with stages.stage("calibrating and linking"):
        posterior, line, learned, llr = calibrate(conversations, links, raw, labels, what, how)
    notes = [note for note in (raw.note, line.source if learned is None else "") if note]
    database = Database(conversations, links, Scores(llr), posterior.model)
    result = Result(database, posterior)
    with stages.stage("writing the results"):
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("run.json", *OWN_FILES):
            (folder / name).unlink(missing_ok=True)
        write_sides(folder, conversations, sound)
        write_problems(folder, conversations, sound)
        write_raw(folder, conversations, links, raw, trained if what.all_pairs else None, how)
        write_json(folder / "calibration.json", _calibration_json(line, learned))
        suspects = None if claims is None else write_suspects(folder, result, claims)
        inputs = {"conversations": table, "known": known, "claimed": claimed}
        given = {name: Path(path) for name, path in inputs.items() if path is not None}
        write_results(
            result, folder, _settings_json(what, how, trained.name, sound), given, how.seed
        )
    write_timings(folder, stages)
    return Linked(result, sound, line, learned, notes, suspects)


@dataclass(frozen=True)
class Raw:
    """Scores before calibration, normalised where that was possible."""

    needed: Floats  # (E, 2, 2)
    usable: Mask  # (E, 2, 2)
    side_1: NDArray[np.int64]  # known non-targets
    side_2: NDArray[np.int64]
    non_targets: Floats
    normaliser: normalise.Normaliser | None

    @property
    def note(self) -> str:
        return "" if self.normaliser is None else self.normaliser.reason


def score(
    conversations: Conversations, links: Links, trained: Trained, usable: Mask, how: Options
) -> Raw:
    """The needed pairs and a sample of pairs that are certainly different people."""
    one, two = needed_sides(links)
    recognizer, vectors = trained.recognizer, trained.vectors
    rng = np.random.default_rng([how.seed, 1])
    other_1, other_2 = known_non_targets(conversations, rng, usable)
    normaliser = None
    if recognizer.preset.normalise:
        normaliser = normalise.fit(
            lambda rows, columns: recognizer.table(vectors, rows, columns, threads=how.workers),
            conversations.participants,
            usable,
            seed=how.seed,
        )

    def scored(a: NDArray[np.int64], b: NDArray[np.int64]) -> Floats:
        plain = recognizer.scores(vectors, a, b, threads=how.workers)
        return plain if normaliser is None else normaliser.apply(plain, a, b)

    return Raw(
        needed=scored(one, two).reshape(-1, 2, 2),
        usable=(usable[one] & usable[two]).reshape(-1, 2, 2),
        side_1=other_1,
        side_2=other_2,
        non_targets=scored(other_1, other_2),
        normaliser=normaliser,
    )


def calibrate(
    conversations: Conversations,
    links: Links,
    raw: Raw,
    known: Labels | None,
    what: Settings,
    how: Options,
) -> tuple[Posterior, Calibration, LabelFree | None, Floats]:
    """Posterior, calibration, how it was learned, and the log-likelihood-ratios."""
    prior = combine_prior(conversations, known)
    cliques = find_cliques(conversations, prior.clamped >= 0)

    def posterior(llr: Floats) -> Posterior:
        model = build_model(conversations, cliques, links, llr, weight=what.weight, prior=prior)
        return solve(model, options=how)

    try:
        learned = label_free(links, raw.needed, raw.usable, raw.non_targets, posterior)
    except SpklinkError as error:
        line = _stated_default(raw, str(error))
        llr = np.where(raw.usable, line(raw.needed), 0.0)
        return posterior(llr), line, None, llr
    llr = np.where(raw.usable, learned.calibration(raw.needed), 0.0)
    return learned.posterior, learned.calibration, learned, llr


def _stated_default(raw: Raw, why: str) -> Calibration:
    """One unit of log-likelihood-ratio a standard deviation of all scores: a guess, and said so."""
    scores = np.concatenate([raw.needed[raw.usable], raw.non_targets])
    spread = float(scores.std()) if len(scores) else 0.0
    scale = 1.0 / spread if spread > 0.0 else 0.0
    centre = float(scores.mean()) if len(scores) else 0.0
    return Calibration(
        scale, -scale * centre, kind="default", source=f"probabilities are not calibrated: {why}"
    )


def write_raw(
    folder: Path,
    conversations: Conversations,
    links: Links,
    raw: Raw,
    everything: Trained | None,
    how: Options,
) -> None:
    """Uncalibrated scores: the needed and the sampled ones, or those of all side pairs."""
    if everything is None:
        one, two = needed_sides(links)
        side_1, side_2 = np.concatenate([one, raw.side_1]), np.concatenate([two, raw.side_2])
        scores = np.concatenate([raw.needed.ravel(), raw.non_targets])
    else:
        recognizer, vectors = everything.recognizer, everything.vectors
        side_1, side_2 = np.triu_indices(len(vectors), 1)
        scores = recognizer.scores(vectors, side_1, side_2, threads=how.workers)
        if raw.normaliser is not None:
            scores = raw.normaliser.apply(scores, side_1, side_2)
    write_scores(folder / "scores.npz", conversations, side_1, side_2, scores)


def _calibration_json(line: Calibration, learned: LabelFree | None) -> dict[str, Any]:
    found = asdict(line)
    if learned is not None:
        found |= {
            "rounds": learned.rounds,
            "converged": learned.converged,
            "history": learned.history,
        }
    return found


def _settings_json(what: Settings, how: Options, name: str, sound: Sound) -> dict[str, Any]:
    return {
        **how.as_json(),
        "weight": what.weight.rule,
        "beta": what.weight.beta,
        "recognizer": "gmm-ubm",
        "preset": asdict(what.recognizer()),
        "min_speech": what.min_speech,
        "background": None if what.background is None else what.background.name,
        "trained": name,
        "recordings": name_of([one.key for one in sound.heard]),
    }
