"""What the scores of a run come from: recordings that are listened to, vectors that were given, or
scores that were given. From here on a run goes one way whichever it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from spklink.database.conversations import Conversations
from spklink.database.links import Links
from spklink.errors import SpklinkError, problems_in
from spklink.formats.files import hash_of, read_vectors
from spklink.formats.keys import read_keys
from spklink.formats.vectors import Vectors
from spklink.posterior.posterior import Options
from spklink.recognizers.given import GivenVectors, given_vectors
from spklink.recognizers.none import NAME as NO_VOICES
from spklink.recognizers.recognizer import Recognizer
from spklink.recognizers.training import Trained, Trainer, prepare, room
from spklink.runs.given_scores import GivenScorer, given_scorer, score_sides
from spklink.runs.inputs import Given, Inputs, Passing
from spklink.runs.scoring import Scorer
from spklink.runs.stages import Stages
from spklink.settings import LinkOptions
from spklink.sound.given import given_sound, marked
from spklink.sound.listening import Sound, hear
from spklink.sound.speech_table import SpeechTable, read_speech_table
from spklink.words import counted

NO_VECTOR, BAD_VECTOR = "no embedding", "bad embedding"
LISTENING = ("background", "components", "turns")  # options of runs that listen


@dataclass(frozen=True)
class Source:
    """The sides of a run, and what compares them."""

    sound: Sound
    scorer: Scorer | GivenScorer
    recognizer: Recognizer | None  # None where only scores are known
    files: Mapping[str, Given | Passing] = field(default_factory=dict)  # read on the way
    note: str = ""

    @property
    def trained(self) -> Trained | None:
        return self.scorer.trained if isinstance(self.scorer, Scorer) else None

    def about(self) -> dict[str, Any]:
        """What compared the voices: all that tells it from another."""
        if self.recognizer is None:
            hashes = {name: one.sha256 for name, one in self.files.items()}
            return {"name": "scores", "recipe": hashes, "front_end": None}
        one = self.recognizer
        return {"name": one.name, "recipe": one.recipe, "front_end": one.front_end.key}


def is_given(asked: LinkOptions) -> bool:
    """Whether nobody has to listen; what does not go together is refused."""
    given = [name for name in ("embeddings", "scores") if asked[name] is not None]
    if len(given) > 1:
        raise SpklinkError("--embeddings and --scores: give one of the two")
    if not given:
        for name in ("sides", "embedding_keys"):
            if asked[name] is not None:
                flag, what = name.replace("_", "-"), "--embeddings"
                what += " or --scores" if name == "sides" else ""
                raise SpklinkError(f"--{flag} goes with {what}; a run that listens needs none")
        return False
    for name in LISTENING:
        if asked[name] is not None and asked[name] is not False:  # type: ignore[literal-required]
            raise SpklinkError(f"--{name} is about listening; it does not go with --{given[0]}")
    if asked["embedding_keys"] is not None and given[0] == "scores":
        raise SpklinkError("--embedding-keys goes with --embeddings, not with --scores")
    return True


def listened(
    conversations: Conversations,
    recognizer: Recognizer,
    how: Options,
    cache: Path,
    asked: LinkOptions,
    stages: Stages,
) -> Source:
    """What the recognizer hears of every side, and its vectors; no vectors where all recordings
    are bad and may be."""
    skip_bad = asked["on_bad_audio"] == "skip"
    with stages.stage("listening"):
        sound = hear(
            conversations,
            recognizer.front_end,
            cache / "features",
            min_speech=asked["min_speech"],
            skip_bad=skip_bad,
            hands=how.hands,
            tell=stages.progress,
        )
    if recognizer.name == NO_VOICES or (skip_bad and not sound.usable.any()):
        return Source(sound, Scorer(conversations, sound, None, how.seed, how.hands), recognizer)
    with stages.stage("training the recognizer"):
        trained = prepare(recognizer, sound, trainer_of(how, cache, asked, stages))
    return Source(sound, Scorer(conversations, sound, trained, how.seed, how.hands), recognizer)


def background_of(asked: LinkOptions) -> Path | None:
    """The folder of other speech, where there is one."""
    return None if asked["background"] is None else Path(asked["background"])


def trainer_of(how: Options, cache: Path, asked: LinkOptions, stages: Stages) -> Trainer:
    """Where and how recognizers are made in a run."""
    return Trainer(
        cache,
        background=background_of(asked),
        skip_bad=asked["on_bad_audio"] == "skip",
        seed=how.seed,
        hands=how.hands,
        retrain=asked["retrain"],
        tell=stages.progress,
    )


def given_embeddings(
    conversations: Conversations,
    inputs: Inputs,
    how: Options,
    cache: Path,
    asked: LinkOptions,
    stages: Stages,
) -> Source:
    """Vectors from a file, or as a program handed them over."""
    with stages.stage("reading the embeddings"):
        given, keys = as_passing(asked["embeddings"]), inputs.table("embedding_keys")
        found, archives = read_vectors(
            given,
            conversations,
            lambda shape: room(shape, cache),
            None if keys is None else read_keys(keys),
        )
        files = _files("embeddings", given, hash_of(found))
        for k, one in enumerate(archives, start=1):
            files[f"embeddings_{k}"] = Given(one.path, one.sha256)
        sha256, skip_bad = files["embeddings"].sha256, asked["on_bad_audio"] == "skip"
        if found.bad and not skip_bad:
            said, name = list(found.bad.values()), files["embeddings"].path
            raise problems_in(name, said, "mend or remove these, or use --on-bad-audio skip")
        speech = _speech(conversations, inputs, found)
        sound = _vector_sides(conversations, found, speech, asked["min_speech"])
        if not sound.usable.any() and not skip_bad:
            raise SpklinkError(f"{files['embeddings'].path}: no side of the table can be used")
        trained = given_vectors(found, sound, sha256, cache)
    recognizer = GivenVectors(sha256, found.vectors.shape[1])
    scorer = Scorer(conversations, sound, trained, how.seed, how.hands)
    return Source(sound, scorer, recognizer, files, _missing(found))


def given_scores(
    conversations: Conversations,
    inputs: Inputs,
    links: Links,
    how: Options,
    asked: LinkOptions,
    stages: Stages,
    *,
    again: bool,
) -> Source:
    """Scores from a file, or as a program handed them over."""
    with stages.stage("reading the scores"):
        given = as_passing(asked["scores"])
        sound = score_sides(
            conversations, _speech(conversations, inputs, None), asked["min_speech"]
        )
        scorer = given_scorer(given, conversations, links, sound, seed=how.seed, again=again)
    return Source(sound, scorer, None, _files("scores", given, ""))


def as_passing(given: Any) -> Any:
    """A file that is read once; what is no file as it is."""
    return Passing(given) if isinstance(given, str | PathLike) else given


def _files(name: str, given: Any, sha256: str) -> dict[str, Given | Passing]:
    one = given if isinstance(given, Passing) else Given(Path(name), sha256, file=False)
    return {name: one}


def _speech(
    conversations: Conversations, inputs: Inputs, found: Vectors | None
) -> SpeechTable | None:
    """Seconds of speech: from a table, else from the file of vectors."""
    table = inputs.table("sides")
    if table is not None:
        return read_speech_table(table, conversations)
    if found is None or found.seconds is None:
        return None
    nothing = [""] * len(found.seconds)
    return SpeechTable(found.seconds, nothing, nothing)


def _vector_sides(
    conversations: Conversations, found: Vectors, speech: SpeechTable | None, least: float
) -> Sound:
    own = dict.fromkeys(found.bad, BAD_VECTOR)
    lacking = [side for side, there in enumerate(found.there.tolist()) if not there]
    own |= dict.fromkeys(lacking, NO_VECTOR)
    problems = found.bad | dict.fromkeys(lacking, f"missing: {NO_VECTOR} in the file")
    seconds, marks = marked(len(found.there), own, speech, least)
    return given_sound(conversations, found.hashes, seconds=seconds, marks=marks, problems=problems)


def _missing(found: Vectors) -> str:
    """What a person should know about the file."""
    lacking = int((~found.there).sum())
    if not lacking:
        return ""
    return (
        f"{counted(lacking, 'side')} of {len(found.there):,} without an embedding: nothing is "
        "known of who is on them but by the other tracks (sides.csv)"
    )
