"""What was found about lists and names, in sentences for the page and the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spklink.errors import SpklinkError
from spklink.runs.misfits import ABSENT, KNOWN
from spklink.runs.names import ONE, TWO
from spklink.words import counted

KINDS = {  # of misfits, as a person would say them
    ABSENT: "listed but absent",
    KNOWN: "known channel contradicted",
    ONE: "two names, one voice",
    TWO: "one name, two voices",
}
NAMES = (ONE, TWO)


def one_in(share: float) -> str:
    """A share as people say it: 1 in 400, 30 in 100."""
    if share <= 0.0:
        return "none"
    if share >= 0.15:
        return f"{100.0 * share:.0f} in 100"
    many = 1.0 / share
    return f"1 in {float(f'{many:.2g}'):,.0f}"


def rate_sentence(found: Mapping[str, Any]) -> str:
    """How often lists are wrong, from what a run says about it."""
    rate, low, high = (float(found[name]) for name in ("rate", "low", "high"))
    if found["estimated"] and not found["expected_absences"]:
        return "No list names anybody for certain, so none can be wrong."
    if found["estimated"]:
        return (
            f"About {_listings(rate)} wrong (between {one_in(low)} and {one_in(high)}), estimated "
            "from the voices."
        )
    if rate <= 0.0:
        return "Participant lists are taken at their word."
    return f"{_listings(rate)} taken to be wrong, as was given."


def _listings(rate: float) -> str:
    """1 listing in 400 is, 30 listings in 100 are."""
    number, rest = one_in(rate).split(" ", 1)
    return f"{number} listing {rest} is" if number == "1" else f"{number} listings {rest} are"


def count_misfits(misfits: Iterable[Sequence[Any]]) -> dict[str, int]:
    """What the voices contradict: what is more probably wrong than right, by what it is; `doubtful`
    are all others that are told."""
    found = dict.fromkeys(("lists", "known_channels", "names", "doubtful"), 0)
    for row in misfits:
        kind = "names" if row[1] in NAMES else "known_channels" if row[1] == KNOWN else "lists"
        found[kind if misfit_chance(row) > 0.5 else "doubtful"] += 1
    return found


def misfit_chance(row: Sequence[Any]) -> float:
    """The probability of a row of misfits.csv, which anybody may have written."""
    try:
        chance = float(row[2])
    except ValueError:
        chance = float("nan")
    if not 0.0 <= chance <= 1.0:
        raise SpklinkError(
            f"misfits.csv: probability {str(row[2])[:40]!r} of conversation {str(row[0])[:40]!r} "
            "is none; make the results anew"
        )
    return chance


def contradicted_sentence(count: Mapping[str, int]) -> str:
    """The same in words."""
    nouns = {"lists": "participant list", "known_channels": "known channel", "names": "name"}
    parts = [counted(count[key], noun) for key, noun in nouns.items() if count[key]]
    if not parts:
        told = "The voices contradict no participant list and no name"
    else:
        first = f"{', '.join(parts[:-1])} and " if len(parts) > 1 else ""
        told = f"The voices contradict {first}{parts[-1]}"
    if count["doubtful"]:
        one = count["doubtful"] == 1
        told += f"; {count['doubtful']:,} more {'is' if one else 'are'} worth a look"
    return told + "."
