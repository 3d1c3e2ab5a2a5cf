"""What anybody who reads conclusions must know first, in plain words: whether probabilities are
calibrated, whether lists were doubted, what a key says, how strong evidence may be called."""

from __future__ import annotations

from spklink.measures.bounds import Bounds
from spklink.report.answers import any_answers, given_calls, sentence
from spklink.report.results import Results
from spklink.report.strength import times
from spklink.runs.sentences import rate_sentence
from spklink.words import counted

GOOD, NOTE, WARNING = "good", "note", "warning"
Told = dict[str, str]


def status(results: Results, bounds: Bounds) -> list[Told]:
    """The most important first; warnings before all else."""
    told = [calibrated(results), lists(results), vouched(bounds)]
    if any_answers(results):
        told.insert(1, _told(NOTE, "Answers of people", sentence(results)))
    if results.evaluation is not None:
        told.insert(1, by_key(results))
    told += [_told(NOTE, "Note", f"{note[:1].upper()}{note[1:]}.") for note in results.run["notes"]]
    return sorted(told, key=lambda one: one["level"] != WARNING)


def _told(level: str, title: str, text: str) -> Told:
    return {"level": level, "title": title, "text": text}


def calibrated(results: Results) -> Told:
    """Whether probabilities mean what they say."""
    found = results.calibration
    if found is None:
        return _told(
            WARNING,
            "Not calibrated here",
            "The scores were taken for log-likelihood-ratios, as they were given. Every "
            "probability on this page is as good as they are; nothing here has tested them.",
        )
    if found.get("kind") == "default":
        return _told(
            WARNING,
            "Not calibrated",
            "There was too little to learn from how scores become probabilities, so a stated "
            "guess was used. Do not read the probabilities as frequencies. "
            f"({str(found.get('source')).partition(': ')[2]}.)",
        )
    if found.get("source") != "labelfree":
        return _told(
            GOOD, "Calibrated", "With answers that were known, or a calibration that was given."
        )
    pairs = (
        f"from {found.get('expected_targets', 0):,.0f} expected comparisons of one person and "
        f"{counted(int(found.get('non_targets', 0)), 'comparison')} of different people."
    )
    if not found.get("converged", True) or not found.get("starts_agree", True):
        what = "had not come to rest" if not found.get("converged", True) else "was not unique"
        return _told(
            WARNING,
            "Calibration in doubt",
            f"It was learned {_from(results)} and {what}, {pairs}",
        )
    return _told(
        GOOD,
        "Calibrated on these recordings",
        f"{_from(results)[:1].upper()}{_from(results)[1:]}, {pairs}",
    )


def _from(results: Results) -> str:
    """What calibration without labels was learned from."""
    given = given_calls(results)
    if given:
        return f"with known channels of {counted(given, 'conversation')}"
    if any_answers(results):
        return "without the decisions that people made"
    return "without any known answer"


def lists(results: Results) -> Told:
    """Whether it was doubted that the listed people are there."""
    if results.answer.binary:
        return _told(
            NOTE,
            "Lists taken at their word",
            "Whether the people who are listed really took part was not questioned "
            "(--list-errors auto would).",
        )
    rate = results.answer.rate.as_json()
    said = " A listing is one person on one list." if rate["estimated"] else ""
    title = "Participant lists questioned" if rate["rate"] > 0.0 else "Lists taken at their word"
    return _told(GOOD if rate["rate"] > 0.0 else NOTE, title, f"{rate_sentence(rate)}{said}")


def by_key(results: Results) -> Told:
    """How the answers compare with the truth, where somebody knows it."""
    assert results.evaluation is not None
    found = results.evaluation.as_json()
    if found.get("seats"):
        tracks = found["seats"]["tracks"]
        wrong = tracks["wrong_named"] + tracks["wrong_strangers"]
        what = f"{wrong:,} of {counted(tracks['tracks'], 'channel')}"
        expected = tracks["expected_wrong"] or 0.0
    else:
        calls = found["conversations"]
        wrong = calls["wrong"]
        what = f"{wrong:,} of {counted(calls['total'], 'conversation')}"
        expected = found["marginals"]["expected_wrong"]
    verb = "is" if wrong == 1 else "are"
    return _told(
        NOTE,
        "Tested against a key",
        f"{what} {verb} wrong; by the probabilities {expected:.1f} should be. Where no voice can "
        "tell, nothing is counted.",
    )


def vouched(bounds: Bounds) -> Told:
    """How strong evidence may be called."""
    how = "by the key" if bounds.by_key else "expected"
    pairs = (
        f"{bounds.targets:,.0f} comparisons of one person ({how}) and {bounds.nontargets:,.0f} of "
        "different people"
    )
    if bounds.high < 0.01:
        return _told(
            WARNING,
            "No strength can be vouched for",
            f"There are {pairs}: too few to say how strong any evidence is.",
        )
    return _told(
        NOTE,
        f"No evidence is called stronger than {times(bounds.high)} times",
        f"More cannot be vouched for with {pairs}, however high the computed figure is (ELUB).",
    )
