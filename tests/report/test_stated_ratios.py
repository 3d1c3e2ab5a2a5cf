"""Every likelihood ratio that the page states is the one of the alternative that it names: each is
computed again by going through all states, from the lists and the log-likelihood-ratios alone."""

from __future__ import annotations

import html
import re
from collections import defaultdict
from functools import cache

import numpy as np
import pytest

from made_reports import numbers_of, page_of, read_table
from plain_seats import solve
from spklink.report.write import write_report
from spklink.runs.assign import assign

RATE = 0.02
# Two who only talk to each other; three who all talk to each other, one of them also to somebody
# who talks to nobody else; three with voices that tell little; two who are always together.
LISTS = [
    *({"conversation": name, "participants": "ann;bo"} for name in ("twins1", "twins2")),
    {"conversation": "ring1", "participants": "cy;dan"},
    {"conversation": "ring2", "participants": "dan;eve"},
    {"conversation": "ring3", "participants": "eve;cy"},
    {"conversation": "lone", "participants": "cy;fay"},
    {"conversation": "weak1", "participants": "nat;oz"},
    {"conversation": "weak2", "participants": "oz;pam"},
    {"conversation": "weak3", "participants": "pam;nat"},
    *({"conversation": name, "participants": "gus;hal;ina"} for name in ("trio1", "trio2")),
    {"conversation": "ina", "participants": "ina;jo"},
    {"conversation": "once", "participants": "kim;lou"},
]
STRANGER = "someone else"
# Voices as they are; in one conversation somebody has the place of eve.
VOICES = {
    row["conversation"]: row["participants"].split(";")[:: 1 if k % 2 else -1]
    for k, row in enumerate(LISTS)
} | {"ring3": ["mo", "cy"]}
STATED = re.compile(
    r"The evidence is (?:(?P<times>[\d.,]+) times (?P<way>as|less) probable|as probable) "
    r"with (?P<said>[\w ]+?) on channel (?P<channel>\d) (?P<than>as|than) with (?P<other>[\w ]+?) "
    r"there[:.,]"
)
ALIKE = re.compile(
    r"Voices cannot tell which of (?P<said>\w+) and (?P<other>\w+) is which: [\w ]+, and the "
    r"evidence is as probable with the two exchanged \(likelihood ratio 1\)\."
)


def score(one, two):
    """Voices that tell something, not everything, and sometimes the wrong thing."""
    a, b = sorted([one, two])
    wobble = 2.0 * np.sin(sum(map(ord, a[0])) * 7.1 + sum(map(ord, b[0])) * 3.3 + a[1] + 2 * b[1])
    same = VOICES[a[0]][a[1] - 1] == VOICES[b[0]][b[1] - 1]
    return ((2.0 if same else -2.0) + wobble) * (0.3 if "weak" in a[0] else 1.0)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    out = tmp_path_factory.mktemp("stated")
    assign(LISTS, score, out, list_errors=RATE)
    write_report(out, verbal="enfsi")
    return out


def cards(out) -> dict[str, str]:
    """The text of every entry of the page."""
    found = re.findall(r'<article class="call".*?</article>', page_of(out), re.DOTALL)
    plain = [html.unescape(re.sub(r"<[^>]+>", "", one)) for one in found]
    return {one.split()[1]: one for one in plain}


@cache
def every_state(clique: tuple[str, ...], listened: bool):
    """Track by track how probable everybody is there, from all states of a clique."""
    lists = [next(r for r in LISTS if r["conversation"] == name) for name in clique]
    calls = [
        {
            "people": (people := row["participants"].split(";")),
            "presence": [None] * len(people),
            "tracks": len(people),
            "unknown": 0,
        }
        for row in lists
    ]

    def worth(i, k, j, m):
        return score((clique[i], k + 1), (clique[j], m + 1)) if listened else 0.0

    return solve(calls, worth, RATE)


def chance(clique, name, channel, who, *, listened):
    found, i = every_state(clique, listened), clique.index(name)
    if who == STRANGER:
        return found["stranger"][i, channel - 1]
    return found["place"].get((i, who, channel - 1), 0.0)


def ratio(clique, name, channel, one, two) -> float:
    """log10 of how many times as probable all comparisons are with one there as with two: what they
    change of the odds of the one to the other."""
    after, before = (
        chance(clique, name, channel, one, listened=heard)
        / chance(clique, name, channel, two, listened=heard)
        for heard in (True, False)
    )
    return float(np.log10(after / before))


def cliques_of(out) -> dict[str, tuple[str, ...]]:
    members = defaultdict(list)
    for row in read_table(out / "assignments.csv"):
        if row["conversation"] not in members[row["clique"]]:
            members[row["clique"]].append(row["conversation"])
    return {name: tuple(some) for some in members.values() for name in some}


def in_words(card: str) -> re.Match[str]:
    found = [*STATED.finditer(card), *ALIKE.finditer(card)]
    assert len(found) == 1, card
    return found[0]


@pytest.mark.parametrize("name", [row["conversation"] for row in LISTS])
def test_the_page_states_the_ratio_of_the_alternative_that_it_names(told, name):
    numbers = numbers_of(told)
    row = next(one for one in numbers["conversations"] if one["conversation"] == name)
    said, clique = in_words(cards(told)[name]), cliques_of(told)[name]
    if said.re is ALIKE:
        for channel, one in enumerate(row["tracks"], start=1):
            pair = [said["said"], said["other"]]
            if one["speaker"] in pair:
                assert ratio(clique, name, channel, *pair) == pytest.approx(0.0, abs=1e-6)
        return
    true = ratio(clique, name, int(said["channel"]), said["said"], said["other"])
    assert row["strength"] == pytest.approx(true, abs=1e-6)
    stated = min(max(true, numbers["strength"]["low"]), numbers["strength"]["high"])
    assert row["stated"] == pytest.approx(stated, abs=1e-6)
    if said["times"] is None:
        assert 10 ** abs(stated) < 1.0501  # what is printed as 1.0
        assert said["than"] == "as"
    else:
        assert (said["way"], said["than"]) == (("as", "as") if true > 0.0 else ("less", "than"))
        latter = "support for the latter" in cards(told)[name]
        assert latter == (true < 0.0 and float(said["times"].replace(",", "")) >= 2.0)
        assert float(said["times"].replace(",", "")) == pytest.approx(10 ** abs(stated), rel=0.051)
    # It is the probability of assignments.csv that is spoken of, and the likeliest alternative.
    track = row["tracks"][int(said["channel"]) - 1]
    assert (track["speaker"] or STRANGER) == said["said"]
    assert track["probability"] == min(one["probability"] for one in row["tracks"])
    people = [*next(r for r in LISTS if r["conversation"] == name)["participants"].split(";")]
    others = {
        who: chance(clique, name, int(said["channel"]), who, listened=True)
        for who in [*people, STRANGER]
        if who != said["said"]
    }
    assert others[said["other"]] == pytest.approx(max(others.values()), rel=1e-6)


def test_who_cannot_be_told_apart_is_said_not_to_be(told):
    found = {name: in_words(card) for name, card in cards(told).items()}
    alike = {name for name, said in found.items() if said.re is ALIKE}
    assert {"twins1", "twins2", "once"} <= alike
    assert not {"ring1", "ring2", "ring3", "weak1", "weak2", "weak3", "lone", "ina"} & alike
    for name in ("trio1", "trio2"):
        if name in alike:
            assert {found[name]["said"], found[name]["other"]} == {"gus", "hal"}


def test_so_it_is_said_where_probabilities_are_not_exact(tmp_path):
    """Of two people who only talk to each other, in more conversations than are summed exactly."""
    calls = [{"conversation": f"c{k}", "participants": "ann;bo"} for k in range(40)]

    def alike(one, two):
        here, there = sorted((int(name[1:]), track) for name, track in (one, two))
        same = sum(here) % 2 == sum(there) % 2
        wobble = np.sin(7.1 * here[0] + 3.3 * there[0] + here[1] + 2 * there[1])
        return (1.0 if same else -1.0) + 2.0 * wobble

    found = assign(calls, alike, tmp_path, list_errors=RATE, budget_seconds=1.0)
    write_report(tmp_path, result=found)
    assert {row["certainty"] for row in read_table(tmp_path / "assignments.csv")} != {"exact"}
    assert {in_words(card).re for card in cards(tmp_path).values()} == {ALIKE}


def test_both_ways_and_someone_else_are_among_what_is_stated(told):
    """So that the test above has met them."""
    found = [in_words(card) for card in cards(told).values()]
    stated = [one for one in found if one.re is STATED]
    assert STRANGER in {one["other"] for one in stated}
    assert {one["other"] for one in stated} & {"nat", "oz", "pam"}
    assert {one["way"] for one in stated} >= {"as", "less"}


def test_appendix_csv_has_the_strength_that_is_stated(told):
    summed, odds = defaultdict(float), defaultdict(float)
    for row in read_table(told / "appendix.csv"):
        odds[row["conversation"]] += float(row["log10"])
        if row["piece"] not in ("before", "other possibilities"):
            summed[row["conversation"]] += float(row["log10"])
    for row in numbers_of(told)["conversations"]:
        name, p = row["conversation"], row["probability"]
        assert summed[name] == pytest.approx(row["strength"], abs=1e-5)
        assert odds[name] == pytest.approx(np.log10(p / (1.0 - p)), abs=1e-5)
