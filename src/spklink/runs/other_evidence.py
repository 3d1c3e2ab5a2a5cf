"""All other evidence than voices that a run is given: read with its tables, gathered once the sound
is heard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from spklink.cues.attributes import AttributeCue, small_voices
from spklink.cues.cue import Cue
from spklink.cues.speakers import Attribute, read_attributes
from spklink.cues.turns import Spoken, TurnCue, of_table
from spklink.database.conversations import Conversations
from spklink.formats.turns import GivenTurns
from spklink.recognizers.training import Trained
from spklink.runs.cues import Cues, given_cues
from spklink.runs.inputs import Inputs
from spklink.runs.stages import Stages
from spklink.settings import LinkOptions
from spklink.sound.listening import Sound
from spklink.tables import SEPARATOR


@dataclass(frozen=True)
class OtherEvidence:
    """What was given, checked against the table."""

    spoken: list[Spoken] | None = None  # who has the turn when
    given: tuple[Cue, ...] = ()  # evidence that somebody computed
    attributes: tuple[Attribute, ...] = ()  # what is known of people

    @classmethod
    def read(
        cls, inputs: Inputs, turns: GivenTurns | None, asked: LinkOptions, people: Conversations
    ) -> OtherEvidence:
        return cls(
            None if turns is None else of_table(turns, people),
            given_cues(inputs, people),
            tuple(read_attributes(inputs.table("speakers"), asked["attribute"], people)),
        )


def gathered(
    table: Conversations,
    others: OtherEvidence,
    sound: Sound,
    trained: Trained | None,
    stages: Stages,
) -> tuple[Cues, list[tuple[Any, ...]]]:
    """All cues, learned from what was heard, and what is odd about them."""
    learners, odd = [*others.given], []
    if others.spoken is not None:
        with stages.stage("turns"):
            turns = TurnCue(table, others.spoken, sound.levels)
        learners.append(turns)
        for m, text in turns.problems:
            odd.append((table.ids[m], "", SEPARATOR.join(table.audio[m]), text))
    if not learners and not others.attributes:
        return Cues(), odd
    with stages.stage("other evidence"):
        if others.attributes and trained is not None:
            voices = small_voices(trained.unit_vectors, sound.usable, sound.order)
            learners += [AttributeCue(table, one, voices) for one in others.attributes]
        return Cues.first(learners, table), odd
