"""Tables in the manner of NIST's speaker recognition evaluations, divided by tabs.

segment_key.tsv  segmentid side subjectid probability: who is on which side (a, b, …)
enrollment.tsv   modelid segmentid side: one side a person, the one with the most speech
trials.tsv       modelid segmentid side: every other side of that person, and of other people
trial_key.tsv    the same with targettype: target, nontarget

Somebody who is not listed is in the key, and in no trial: he may be anybody. People who take part
in one conversation are never a trial against the side that they talk to. A model has at most
NONTARGETS of them, evenly taken from all sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from spklink.formats.out.labelled import Labelled, LabelledSide, letter, write_lines
from spklink.tables import probability_text

NONTARGETS = 1000


def write(labelled: Labelled, folder: Path) -> None:
    write_lines(folder / "segment_key.tsv", _key(labelled))
    models = _models(labelled.sides)
    head = "modelid\tsegmentid\tside"
    enrolled = (f"{_word(labelled, who)}\t{_side(labelled, s)}" for who, s in models.items())
    write_lines(folder / "enrollment.tsv", [head, *enrolled])
    write_lines(folder / "trials.tsv", _trials(labelled, models, head, key=False))
    write_lines(folder / "trial_key.tsv", _trials(labelled, models, head, key=True))


def _word(labelled: Labelled, speaker: str) -> str:
    return labelled.names.word("speaker", speaker)


def _side(labelled: Labelled, side: LabelledSide) -> str:
    name = labelled.names.word("conversation", side.conversation)
    return f"{name}\t{letter(side.track).lower()}"


def _key(labelled: Labelled) -> Iterator[str]:
    yield "segmentid\tside\tsubjectid\tprobability"
    for side in labelled.sides:
        sure = probability_text(side.probability)
        yield f"{_side(labelled, side)}\t{_word(labelled, side.speaker)}\t{sure}"


def _models(sides: Sequence[LabelledSide]) -> dict[str, LabelledSide]:
    """The side that each person is learned from, in order of their names."""
    found: dict[str, LabelledSide] = {}
    for side in sides:
        if side.listed and _spoken(side) > _spoken(found.get(side.speaker)):
            found[side.speaker] = side
    return dict(sorted(found.items()))


def _spoken(side: LabelledSide | None) -> int:
    """Milliseconds; nobody's are less than none."""
    return -1 if side is None else int((side.times[:, 1] - side.times[:, 0]).sum())


def _trials(
    labelled: Labelled, models: dict[str, LabelledSide], head: str, *, key: bool
) -> Iterator[str]:
    yield f"{head}\ttargettype" if key else head
    tested = [s for s in labelled.sides if s.listed and models[s.speaker] is not s]
    own: dict[str, list[LabelledSide]] = {}
    for side in tested:
        own.setdefault(side.speaker, []).append(side)
    step = max(1, len(tested) // NONTARGETS)
    for number, (who, model) in enumerate(models.items()):
        for side in own.get(who, []):
            yield _trial(labelled, who, side, "target" if key else "")
        for side in tested[number % step :: step][:NONTARGETS]:
            if side.speaker != who and side.conversation != model.conversation:
                yield _trial(labelled, who, side, "nontarget" if key else "")


def _trial(labelled: Labelled, who: str, side: LabelledSide, kind: str) -> str:
    words = [_word(labelled, who), _side(labelled, side), *filter(None, [kind])]
    return "\t".join(words)
