"""The main job: from recordings and a table to who is on which channel.

listen → train the recognizer → a vector a side → scores → calibration → posterior → results. Every
stage leaves its outcome in a cache under a name that is the hash of all it depends on, so the same
command after a kill, or with ten more calls, does only what is missing, to the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.calibration.choice import LABELFREE, NONE, Calibrated, Choice, calibrated
from spklink.calibration.curves import pair_speech
from spklink.calibration.label_free import Pairs
from spklink.database.conversations import Conversations, read_conversations
from spklink.database.labels import Labels, read_key, read_known
from spklink.database.links import Links, find_links
from spklink.posterior.likelihood import Weight
from spklink.posterior.posterior import Options
from spklink.recognizers import link_wccn, normalise
from spklink.recognizers.products import pair_scores, unit_vectors
from spklink.recognizers.products import table as score_table
from spklink.recognizers.recognizer import Recognizer
from spklink.recognizers.table import make_recognizer
from spklink.recognizers.training import Trained, Trainer, name_of, prepare
from spklink.runs.assign import Database, PathName, Result, Stages, write_results, write_timings
from spklink.runs.claims import write_suspects
from spklink.runs.recipe import Recipe, recipe_of
from spklink.scores.needed import Scores, SideScores, known_non_targets, needed_and, needed_sides
from spklink.sound.listening import Sound, hear, write_problems
from spklink.sound.speech_table import write_speech_table
from spklink.tables import read_json, sweep

Floats = NDArray[np.float64]
Sides = NDArray[np.int64]
Mask = NDArray[np.bool_]
OWN_FILES = ("sides.csv", "problems.csv", "suspects.csv")


@dataclass(frozen=True)
class Settings:
    """What `link` can be told, beyond how cliques are solved."""

    preset: str = "default"
    components: int | None = None
    background: Path | None = None
    calibration: Choice = field(default_factory=Choice)
    link_wccn: bool = True  # where the preset has it
    weight: Weight | None = None  # None: the paper's, unless known channels ask for another
    min_speech: float = 2.0  # seconds; sides with less are not used
    skip_bad_audio: bool = False
    all_pairs: bool = False
    retrain: bool = False
    cache: Path | None = None

    def recognizer(self) -> Recognizer:
        return make_recognizer("gmm-ubm", preset=self.preset, components=self.components)

    def recipe(self) -> Recipe:
        return recipe_of(self.preset)

    def choice(self) -> Choice:
        """The calibration, of the recipe's kind unless another is asked for."""
        return replace(self.calibration, kind=self.calibration.kind or self.recipe().kind)


@dataclass(frozen=True)
class Linked:
    """All that `link` found."""

    result: Result
    sound: Sound
    calibrated: Calibrated
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


@dataclass(frozen=True)
class Inputs:
    """The files of a run, read."""

    files: dict[str, Path]
    conversations: Conversations
    known: Labels | None
    claims: Labels | None


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
    for stale in cache.glob("**/"):
        sweep(stale, older_than_days=1.0)  # another run may be at work in a shared cache
    with stages.stage("reading the table"):
        inputs = _read(table, known, claimed, what.calibration)
    sound, trained = _listen(inputs.conversations, cache, what, how, stages)
    with stages.stage("scoring"):
        consecutive = what.weight is not None and what.weight.consecutive
        links = find_links(inputs.conversations, consecutive=consecutive)
        normaliser = _normaliser(trained, inputs.conversations, sound, what, how)
        scorer = Scorer(trained, sound, normaliser, how)
        pairs, sides = collect(inputs.conversations, links, scorer)
    with stages.stage("calibrating and linking"):
        scorer, pairs, found, note = compare_again(
            inputs, links, scorer, pairs, sides, what, stages
        )
    raw = (
        scorer.everything()
        if what.all_pairs
        else needed_and(links, pairs.scores, SideScores(*sides, pairs.non_targets))
    )
    others = len(raw.score) - found.llr.size
    scores = Scores(found.llr, others, SideScores(*sides, found.non_target_llr))
    database = Database(
        inputs.conversations, links, scores, found.posterior.model, found.weight, raw, found
    )
    result = Result(database, found.posterior)
    with stages.stage("writing the results"):
        settings_json = _settings_json(what, how, trained, sound)
        suspects = _write(folder, inputs, sound, result, settings_json, how)
    write_timings(folder, stages)
    notes = [text for text in (scorer.note, note, found.note) if text]
    return Linked(result, sound, found, notes, suspects)


def _read(
    table: PathName, known: PathName | None, claimed: PathName | None, choice: Choice
) -> Inputs:
    given = {"conversations": table, "known": known, "claimed": claimed}
    given |= {f"calibration_{k}": path for k, path in enumerate(choice.files(), start=1)}
    conversations = read_conversations(table)
    return Inputs(
        files={name: Path(path) for name, path in given.items() if path is not None},
        conversations=conversations,
        known=read_known(known, conversations) if known is not None else None,
        claims=read_key(claimed, conversations) if claimed is not None else None,
    )


def _listen(
    conversations: Conversations, cache: Path, what: Settings, how: Options, stages: Stages
) -> tuple[Sound, Trained | None]:
    """Features of every side, and a vector of each by a recognizer trained on them; no vectors
    where all recordings are bad and may be."""
    recognizer = what.recognizer()
    with stages.stage("listening"):
        sound = hear(
            conversations,
            recognizer.front_end,
            cache / "features",
            min_speech=what.min_speech,
            skip_bad=what.skip_bad_audio,
            workers=how.workers,
            tell=stages.progress,
        )
    if what.skip_bad_audio and not sound.usable.any():
        return sound, None
    with stages.stage("training the recognizer"):
        trainer = Trainer(
            cache,
            background=what.background,
            skip_bad=what.skip_bad_audio,
            seed=how.seed,
            threads=how.workers,
            retrain=what.retrain,
            tell=stages.progress,
        )
        return sound, prepare(recognizer, sound, trainer)


def _write(
    folder: Path,
    inputs: Inputs,
    sound: Sound,
    result: Result,
    settings: dict[str, Any],
    how: Options,
) -> int | None:
    """All files; the number of contradicted claims."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("run.json", *OWN_FILES):
        (folder / name).unlink(missing_ok=True)
    write_speech_table(folder / "sides.csv", inputs.conversations, sound.table())
    write_problems(folder, inputs.conversations, sound)
    suspects = None if inputs.claims is None else write_suspects(folder, result, inputs.claims)
    write_results(result, folder, settings, inputs.files, how.seed)
    return suspects


@dataclass(frozen=True)
class Scorer:
    """Scores pairs of sides: by the recognizer, normalised where that was possible, and compared
    again where links have taught how."""

    trained: Trained | None
    sound: Sound
    normaliser: normalise.Normaliser | None
    how: Options
    again: link_wccn.LinkScorer | None = None

    @property
    def note(self) -> str:
        if self.trained is None:
            return "no side of any recording could be used: nothing is known of any channel"
        return "" if self.normaliser is None else self.normaliser.reason

    def __call__(self, side_1: Sides, side_2: Sides) -> Floats:
        if self.trained is None:
            return np.zeros(len(side_1))
        product, vectors = self.trained.recognizer.product, self.trained.vectors
        scores = pair_scores(product, vectors, side_1, side_2, threads=self.how.workers)
        if self.normaliser is not None:
            scores = self.normaliser.apply(scores, side_1, side_2)
        return scores if self.again is None else scores + self.again.scores(side_1, side_2)

    def everything(self) -> SideScores:
        """The scores of all pairs of sides."""
        side_1, side_2 = np.triu_indices(len(self.sound.usable), 1)
        return SideScores(side_1, side_2, self(side_1, side_2))


def _normaliser(
    trained: Trained | None,
    conversations: Conversations,
    sound: Sound,
    what: Settings,
    how: Options,
) -> normalise.Normaliser | None:
    if trained is None or not what.recipe().normalise:
        return None
    product, vectors = trained.recognizer.product, trained.vectors
    return normalise.fit(
        lambda rows, columns: score_table(product, vectors, rows, columns, threads=how.workers),
        conversations,
        sound.usable,
        seed=how.seed,
    )


def collect(
    conversations: Conversations, links: Links, scorer: Scorer
) -> tuple[Pairs, tuple[Sides, Sides]]:
    """Scores of the needed pairs and of a sample of pairs that are certainly different people, and
    which sides those are."""
    usable, seconds = scorer.sound.usable, scorer.sound.seconds()
    rng = np.random.default_rng([scorer.how.seed, 1])
    others = known_non_targets(conversations, rng, usable)
    one, two = needed_sides(links)
    pairs = Pairs(
        links=links,
        scores=scorer(one, two).reshape(-1, 2, 2),
        usable=(usable[one] & usable[two]).reshape(-1, 2, 2),
        non_targets=scorer(*others),
        speech=pair_speech(seconds, one, two).reshape(-1, 2, 2),
        non_target_speech=pair_speech(seconds, *others),
    )
    return pairs, others


def compare_again(
    inputs: Inputs,
    links: Links,
    scorer: Scorer,
    pairs: Pairs,
    sides: tuple[Sides, Sides],
    what: Settings,
    stages: Stages,
) -> tuple[Scorer, Pairs, Calibrated, str]:
    """Calibrate and link; then, where the preset says so and the links can teach, compare the
    voices again and do both once more. The last is a note on why not."""

    choice = what.choice()

    def linked(these: Pairs, *, first: bool) -> Calibrated:
        return calibrated(
            inputs.conversations,
            these,
            replace(choice, first=first),
            known=inputs.known,
            weight=what.weight,
            options=scorer.how,
            tell=stages.progress,
        )

    found = linked(pairs, first=True)
    wanted = what.link_wccn and what.recipe().link_wccn
    if not wanted or scorer.trained is None or not (found.learned or _compared_twice(choice)):
        return scorer, pairs, found, ""
    taught = link_wccn.fit(
        inputs.conversations,
        links,
        (found.posterior.link_probabilities(links) * pairs.usable[links.pair]).ravel(),
        partial(unit_vectors, scorer.trained.recognizer.product, scorer.trained.vectors),
        scorer.sound.usable,
        seed=scorer.how.seed,
    )
    if isinstance(taught, str):
        return scorer, pairs, found, taught
    one, two = needed_sides(links)
    more = replace(
        pairs,
        scores=pairs.scores + taught.scores(one, two).reshape(-1, 2, 2),
        non_targets=pairs.non_targets + taught.scores(*sides),
    )
    second = linked(more, first=False)
    if found.learned and not second.learned:
        return scorer, pairs, found, f"voices were compared once only: {second.note}"
    again = replace(scorer, again=taught)
    return again, more, replace(second, first=found.calibration), ""


def _compared_twice(choice: Choice) -> bool:
    """Whether a saved calibration is about voices that were compared twice."""
    if choice.source in (LABELFREE, NONE):
        return False
    return read_json(choice.source).get("first") is not None


def _settings_json(
    what: Settings, how: Options, trained: Trained | None, sound: Sound
) -> dict[str, Any]:
    return {
        **how.as_json(),
        "calibration": what.choice().as_json(),
        "recognizer": "gmm-ubm",
        "preset": {
            "name": what.preset,
            **what.recognizer().recipe,
            "normalise": what.recipe().normalise,
            "link_wccn": what.recipe().link_wccn,
            "calibration": what.recipe().kind,
        },
        "link_wccn": what.link_wccn,
        "min_speech": what.min_speech,
        "background": None if what.background is None else what.background.name,
        "trained": None if trained is None else trained.name,
        "recordings": name_of([one.key for one in sound.heard]),
    }
