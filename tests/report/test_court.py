"""The report as something to be handed over: evidence that adds up, strength that is vouched for,
one rule for digits, paper, keyboard, and whoever reads with other means than eyes."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from made_reports import numbers_of, page_of, violations
from spklink.report.glossary import GLOSSARY
from spklink.report.strength import in_words, levels, rounded_to_sum, times
from spklink.report.write import write_report

DOCS = Path(__file__).parents[2] / "docs"


# --- evidence ---------------------------------------------------------------------------------


@given(st.lists(st.floats(-50, 50, allow_nan=False), min_size=1, max_size=12))
def test_rounded_pieces_add_up_to_their_rounded_sum(values):
    shown, total = rounded_to_sum(values)
    assert round(sum(round(100 * one) for one in shown)) == round(100 * total)
    assert total == pytest.approx(sum(values), abs=0.00501)
    for one, value in zip(shown, values, strict=True):
        assert abs(one - value) < 0.0101


def in_appendix(out: Path) -> dict[str, float]:
    """Sums of appendix.csv."""
    found: dict[str, float] = defaultdict(float)
    with (out / "appendix.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            found[row["conversation"]] += float(row["log10"])
    return found


@pytest.mark.parametrize("kind", ["keyed", "network"])
def test_the_evidence_of_every_conversation_adds_up_to_its_probability(kind, request):
    out = request.getfixturevalue(kind)
    summed, checked = in_appendix(out), 0
    with (out / "assignments.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            p = float(row["probability"])
            if 1.0 - p > 1e-6:  # ten digits are written
                assert summed[row["conversation"]] == pytest.approx(
                    np.log10(p / (1.0 - p)), abs=2e-4
                )
                checked += 1
            else:
                assert summed[row["conversation"]] > 2.0
    assert checked > 100


def test_what_is_printed_adds_up_digit_by_digit(keyed):
    cards = re.findall(r'<article class="call".*?</article>', page_of(keyed), re.DOTALL)
    assert len(cards) == numbers_of(keyed)["found"]["conversations"]
    for card in cards:
        rows = re.findall(r"<tr( class=\"\w+\")?><td.*?</td><td>(.*?)</td></tr>", card)
        if not rows:
            continue
        figures = [(kind, round(100 * float(v.replace("−", "-")))) for kind, v in rows]
        strength = next(k for k, (kind, _) in enumerate(figures) if "sum" in kind)
        assert sum(value for _, value in figures[:strength]) == figures[strength][1]
        before = [value for kind, value in figures[strength + 1 :] if not kind]
        odds = [value for kind, value in figures[strength + 1 :] if "sum" in kind]
        assert odds == [figures[strength][1] + before[0]] if before else not odds


def test_nothing_is_stated_that_the_data_cannot_vouch_for(keyed):
    numbers = numbers_of(keyed)
    bounds = numbers["strength"]
    assert bounds["by_key"]
    assert bounds["high"] <= np.log10(bounds["nontargets"] + 1.0)
    for row in [*numbers["conversations"], *numbers["suspicious"]["rows"]]:
        assert bounds["low"] <= row["stated"] <= bounds["high"]
    assert any(row["limited"] for row in numbers["conversations"])
    assert "over 53" not in page_of(keyed)


def test_without_a_key_pairs_count_as_expected(network):
    bounds = numbers_of(network)["strength"]
    assert not bounds["by_key"]
    assert 0.0 < bounds["high"] <= np.log10(bounds["nontargets"] + 1.0)
    assert "no label among them" in page_of(network)


def test_a_page_that_cannot_hold_all_says_how_many_it_holds(network):
    assert len(numbers_of(network)["conversations"]) == 1000
    assert page_of(network).count('<article class="call"') == 1000
    assert "Of 1,500 conversations 1,000 are printed here" in page_of(network)
    assert len(in_appendix(network)) == 1500


# --- words and digits -------------------------------------------------------------------------


def test_the_verbal_scale_of_enfsi(tmp_path, keyed, run):
    ratios = [1.0, 1.9, 2.0, 9.9, 10.0, 99.0, 100.0, 1e3, 9900.0, 1e4, 9.9e5, 1e6, 1e30]
    words = [in_words("enfsi", float(np.log10(ratio))) for ratio in ratios]
    short = ["no", "no", "weak", "weak", "moderate", "moderate", "moderately strong", "strong"]
    short += ["strong", "very strong", "very strong", "extremely strong", "extremely strong"]
    assert [one.rpartition(" support")[0] for one in words] == short
    assert in_words("enfsi", -3.5) == "strong support"
    assert (times(0.299), in_words("enfsi", 0.299)) == ("2.0", "weak support")  # as it is printed
    assert in_words(None, 3.5) is None
    assert [row[0] for row in levels("enfsi")] == [
        *("1,000,000 and more", "10,000 to 1,000,000", "1,000 to 10,000", "100 to 1,000"),
        *("10 to 100", "2 to 10", "below 2"),
    ]
    assert "support" not in page_of(keyed)
    code, _, err = run("report", keyed, "--verbal", "hearsay")
    assert code == 2
    assert "enfsi" in err


def test_ratios_as_people_say_them():
    assert [times(x) for x in (0.0, 0.3, 1.0, -1.0, 2.6789, 4.4548)] == [
        *("1.0", "2.0", "10", "10", "480", "28,000"),
    ]


def test_uncalibrated_is_said_before_anything_else(network):
    numbers, text = numbers_of(network), page_of(network)
    assert numbers["status"][0]["title"] == "Not calibrated here"
    first = text[: text.index("<nav")]
    assert "Not calibrated here" in first
    assert "Lists taken at their word" in first


@pytest.mark.parametrize("kind", ["keyed", "network", "hostile", "single", "broken"])
def test_one_rule_for_probabilities(kind, request):
    """One digit, and nothing computed is certain."""
    text = re.sub(r"<svg.*?</svg>|<script.*?</script>", "", page_of(request.getfixturevalue(kind)))
    shown = re.findall(r"[\d.,]+ %", text)
    assert not [one for one in shown if re.fullmatch(r"\d+\.\d{2,} %", one)]
    cards = text[text.index('id="appendix"') :]
    assert "100.0 %" not in cards
    assert "100 %" not in cards


def test_the_terminal_follows_the_same_rule(tmp_path):
    from spklink.cli.summaries import _misfit

    row = ("c1", "absent", "0.99999999", "a;b", "", "x")
    assert _misfit(row).startswith("over 99.9 % c1")


def test_the_glossary_is_that_of_the_docs():
    text = (DOCS / "report.md").read_text()
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", text[text.index("## Words") :], re.MULTILINE)
    told = dict(sorted(GLOSSARY.items(), key=lambda item: item[0].lower()))
    assert dict(rows[1:]) == told


# --- in a browser -----------------------------------------------------------------------------


def test_a_table_of_people_can_be_walked_by_keyboard(network, open_page):
    page = open_page(network)
    walk(page, "rect")
    told = page.locator("#detail h3").inner_text()
    assert "between the circles of" in told or "within the circle of" in told
    assert page.heard == []


def test_small_pictures_can_be_walked_by_keyboard(keyed, open_page):
    page = open_page(keyed)
    walk(page, "path")
    assert "strength of the evidence" in page.locator("#detail").inner_text()
    page.keyboard.press("Escape")
    assert not page.locator("#detail").is_visible()


def walk(page, kind):
    """One stop a picture; arrows go on from there, Enter opens what is there."""
    stops = "svg => svg.querySelectorAll('[tabindex=\"0\"]').length"
    svg = page.locator(".gallery svg").first
    assert svg.evaluate(stops) == 1
    svg.locator('[tabindex="0"]').focus()
    seen = set()
    for key in ("Home", "ArrowRight", "ArrowDown", "ArrowLeft", "ArrowUp", "End"):
        page.keyboard.press(key)
        mark = page.evaluate("[document.activeElement.tagName, document.activeElement.ariaLabel]")
        assert mark[0] == kind
        assert "channel" in mark[1] or "conversation" in mark[1]
        seen.add(mark[1])
        assert page.locator("#tip").is_visible()
    assert len(seen) >= 2
    assert svg.evaluate(stops) == 1
    page.keyboard.press("Enter")
    assert page.locator("#detail").is_visible()


@pytest.mark.parametrize(
    ("kind", "width", "scheme"),
    [("keyed", 1280, "light"), ("network", 700, "dark"), ("single", 700, "light")],
)
def test_nobody_is_shut_out(kind, width, scheme, request, browser):
    complaints = violations(browser, request.getfixturevalue(kind), width, scheme)
    assert not complaints, complaints


def test_on_paper_nothing_is_hidden_or_torn(keyed, open_page):
    page = open_page(keyed)
    page.emulate_media(media="print")
    style = "([q, name]) => getComputedStyle(document.querySelector(q)).getPropertyValue(name)"
    for query, name, value in (
        (".call", "break-inside", "avoid"),
        (".call", "content-visibility", "visible"),
        ("h2", "break-after", "avoid"),
        ("#suspicious tr", "break-inside", "avoid"),
        ("#suspicious .scroll", "overflow-x", "visible"),
        ("thead", "display", "table-header-group"),
        (".weigh", "display", "table"),
    ):
        assert page.evaluate(style, [query, name]) == value, (query, name)
    assert page.locator(".search").is_hidden()
    wide = "document.documentElement.scrollWidth <= innerWidth"
    page.set_viewport_size({"width": 690, "height": 1000})  # about what A4 leaves
    assert page.evaluate(wide)


def test_verbal_scale_on_the_page(keyed, tmp_path):
    import shutil

    shutil.copytree(keyed, tmp_path / "out")
    write_report(tmp_path / "out", claimed=keyed.parent / "claimed.csv", verbal="enfsi")
    text = page_of(tmp_path / "out")
    assert "ENFSI guideline" in text
    assert "moderately strong support" in text
    assert all(row["words"] for row in numbers_of(tmp_path / "out")["suspicious"]["rows"])
