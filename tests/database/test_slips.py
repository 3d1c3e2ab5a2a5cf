"""Names that may be one person's: told with their reason, and not where they are two people's."""

from __future__ import annotations

import unicodedata

import pytest

from spklink import check
from spklink.database.slips import slips


def said(*names, calls=None, met=lambda a, b: False):
    return slips(names, calls or [1] * len(names), met)


@pytest.mark.parametrize(
    ("one", "two", "why"),
    [
        ("Anna Berg", "anna  berg", "a typing slip?"),
        ("José", unicodedata.normalize("NFD", "José"), "two Unicode forms (U+00E9 LATIN SMALL"),
        (
            "Anna",
            "Аnna",
            "they look alike, but U+0041 LATIN CAPITAL LETTER A in the first is U+0",
        ),
        ("Anna", "An\u200bna", "U+200B ZERO WIDTH SPACE in the second"),
        ("O'Neill", "O’Neill", "U+2019 RIGHT SINGLE QUOTATION MARK"),
        ("Müller", "Mueller", "one name in two spellings?"),
        ("Müller", "Muller", "one name in two spellings?"),
        ("Groß", "Gross", "a typing slip?"),
        ("Renée", "Renee", "one name in two spellings?"),
        ("Søren", "Soeren", "one name in two spellings?"),
        ("Janssen", "Jansen", "a typing slip? (they have 1 and 1 conversations)"),
        ("Schmitd", "Schmidt", "a typing slip?"),
        ("Meyerh", "Meyers", "a typing slip?"),
    ],
)
def test_slips_are_told(one, two, why):
    [found] = said(one, two)
    assert found.startswith(f"speakers {one!r} and {two!r} are taken for two people: ")
    assert why in found


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("N01001", "N01002"),
        ("spk12", "spk121"),
        ("4912345678", "4912345679"),
        ("Jan", "Jana"),
        ("Anna", "Anne"),
        ("Peters", "Schmidt"),
        ("Janssens", "Jansen"),
    ],
)
def test_two_people_are_two_people(one, two):
    assert said(one, two) == []


def test_one_letter_is_no_slip_of_people_who_meet_or_are_often_there():
    assert said("Janssen", "Jansen", met=lambda a, b: True) == []
    assert said("Janssen", "Jansen", calls=[9, 7]) == []
    assert len(said("Janssen", "Jansen", calls=[9, 2])) == 1


def test_many_are_counted():
    found = said(*(f"Name{chr(97 + k)}{chr(97 + k)}" + "x" * m for k in range(25) for m in (0, 1)))
    assert len(found) == 21
    assert found[-1] == "and 5 more pairs of names that are alike"


def test_check_tells_them_and_what_it_would_cost(calls, write, run):
    rows = (calls / "conversations.csv").read_text().replace("a;b", "a;Müller", 1)
    table = calls / "slips.csv"
    table.write_text(rows.replace("a;c", "a;Mueller", 1))
    found = check(table)
    assert any("'Müller' and 'Mueller'" in text for text in found["problems"])
    cost = found["cost"]
    assert (cost["sides"], cost["headers_read"]) == (28, 14)
    assert cost["hours"] == pytest.approx(14 * 10 / 3600, rel=0.05)
    assert cost["minutes"][0] < cost["minutes"][1]
    code, text, _ = run("check", table)
    assert code == 0
    assert "28 sides, " in text
    assert "linking would take " in text


def test_missing_recordings_are_exit_code_1(write, run):
    path = write("t.csv", "conversation,audio,participants\n1,gone.wav,a;b\n2,,b;c\n")
    code, text, _ = run("check", path)
    assert code == 1
    assert "1 audio file is not there: 1 (row 2, gone.wav)" in text
    assert "no recording tells its length" in text
    assert run("check", write("u.csv", "conversation,participants\n1,a;b\n2,b;c\n"))[0] == 0
