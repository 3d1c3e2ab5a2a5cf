"""What a run that links is asked for and given: options settled, tables read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from spklink.calibration.choice import NONE, Choice
from spklink.calibration.table import find_kind
from spklink.database.conversations import Conversations, read_conversations, with_splits
from spklink.database.enrolment import with_enrolment
from spklink.database.labels import Labels, read_claims, read_key
from spklink.database.segments import read_tracks
from spklink.errors import SpklinkError
from spklink.formats.turns import read_turns
from spklink.posterior.likelihood import Weight, asked_weight
from spklink.posterior.list_errors import asked_rate
from spklink.posterior.posterior import Options
from spklink.recognizers.none import NAME as NO_VOICES
from spklink.recognizers.recognizer import Recognizer
from spklink.recognizers.table import ENERGY, make_recognizer
from spklink.runs.assign import read_known_channels
from spklink.runs.enrolled import enrolment_table, refuse_nobody
from spklink.runs.folder import solving
from spklink.runs.inputs import Inputs, read_inputs, reading
from spklink.runs.other_evidence import OtherEvidence
from spklink.runs.recipe import Recipe, recipe_of, with_back_end
from spklink.runs.sources import (
    is_given,
)
from spklink.runs.unknown import NOTHING_EARLIER, Earlier
from spklink.settings import LinkOptions
from spklink.tables import Table


@dataclass(frozen=True)
class Plan:
    """What the options ask for, checked before any listening."""

    recognizer: Recognizer | None  # None: vectors or scores are given
    recipe: Recipe
    choice: Choice
    weight: Weight | None  # None: the paper's, unless known channels ask for another
    rate: float | None  # of list errors; None: estimated
    how: Options

    @classmethod
    def of(cls, asked: LinkOptions) -> Plan:
        recipe, name = recipe_of(asked["preset"]), asked["recognizer"]
        recognizer = None if is_given(asked) else _recognizer(name, asked)
        weight = asked_weight(asked["weight"], asked["beta"])
        known = "" if recognizer is None else recognizer.name
        recipe = with_back_end(recipe, asked["back_end"], known, twice=asked["link_wccn"])
        rate, choice = asked_rate(asked["list_errors"]), Choice.of(asked, recipe.kind)
        if known == NO_VOICES:  # nothing to calibrate, and nothing against any list
            rate, choice = rate or 0.0, replace(choice, source=NONE)
        return cls(recognizer, recipe, choice, weight, rate, solving(asked))

    @property
    def silent(self) -> bool:
        """Whether voices are not compared at all."""
        return self.recognizer is not None and self.recognizer.name == NO_VOICES

    def without_seconds(self, asked: LinkOptions) -> Plan:
        """The same where nobody knows the seconds of speech: unless a kind of calibration is asked
        for, one that does without them."""
        if asked["kind"] is not None or not find_kind(self.recipe.kind).needs_speech:
            return self
        return replace(self, choice=replace(self.choice, kind=None))


def _recognizer(name: Any, asked: LinkOptions) -> Recognizer:
    """The recognizer of this name or file, or the one that a program handed over."""
    speech = asked["speech"]
    if isinstance(name, str):
        own = {"preset": asked["preset"], "components": asked["components"], "speech": speech}
        return make_recognizer(name, **own)
    if speech != ENERGY:
        raise SpklinkError("speech: a recognizer of your own says itself what speech is")
    found: Recognizer = name
    return found


@dataclass(frozen=True)
class Case:
    """The tables of a run, read."""

    inputs: Inputs
    conversations: Conversations
    known: Labels | None
    claims: Labels | None
    others: OtherEvidence
    before: Earlier = NOTHING_EARLIER  # labels of people without a name, where there are results

    @classmethod
    def read(cls, table: Table, asked: LinkOptions, plan: Plan) -> Case:
        how = reading(asked)
        names = ("known", "claimed", "sides", "embedding_keys")
        tables = {"conversations": table} | {name: asked[name] for name in names}  # type: ignore[literal-required]
        if asked["tracks"] is not None:
            tables["tracks"] = read_tracks(asked["tracks"], how=how)
        turns = None if asked["turns"] is None else read_turns(asked["turns"], how)
        if turns is not None:
            tables["turns"] = turns.content
        tables |= {"cue": asked["cue"], "speakers": asked["speakers"]}
        tables["enrol"] = enrolment_table(asked["enrol"])
        measured_by = {"key": asked["key"]}
        inputs = read_inputs(tables, plan.choice.named_files(), measured_by, how)
        people = read_conversations(
            inputs.table("conversations"), inputs.table("tracks"), unlisted=True
        )
        people = with_splits(with_enrolment(people, inputs.table("enrol")), asked["split_speakers"])
        refuse_nobody(people)
        claimed, key = inputs.table("claimed"), inputs.table("key")
        if key is not None:
            read_key(key, people)  # what is wrong with it is said now, not in an hour
        return cls(
            inputs,
            people,
            read_known_channels(inputs, people),
            None if claimed is None else read_claims(claimed, people),
            OtherEvidence.read(inputs, turns, asked, people),
        )
