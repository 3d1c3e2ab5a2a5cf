"""Other evidence than voices on the page: the parts, the step, the conflicts."""

from __future__ import annotations

import json

import pytest

import spklink
from spklink.report.write import write_report

PAIRS = [("a", "b"), ("a", "c"), ("b", "c"), ("d", "e"), ("d", "e")]
TABLE = [{"conversation": f"c{k}", "participants": f"{x};{y}"} for k, (x, y) in enumerate(PAIRS)]
NAME = "<b>turns"


def score(one, two):
    on = [x for pair in PAIRS for x in pair]
    (c, k), (d, m) = one, two
    first, second = on[2 * int(c[1:]) + k - 1], on[2 * int(d[1:]) + m - 1]
    return 4.0 if first == second else -4.0


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cued")
    cue = [
        {"conversation": "c0", "log_odds": "-5", "name": NAME},
        {"conversation": "c3", "log_odds": "6", "name": NAME},
    ]
    spklink.assign(TABLE, score, folder, cue=cue)
    write_report(folder)
    return folder


def test_numbers(page):
    found = json.loads((page / "report.json").read_text())
    levels = {row[0]: row[2] for row in found["staircase"]["rows"]}
    assert levels["other evidence"] < levels["attainable"] < levels["linked"] + 1e-9
    assert found["cues"]["count"] == 1
    [conflict] = found["cues"]["conflicts"]
    assert (conflict["conversation"], conflict["other"]) == ("c0", NAME)
    assert conflict["log10"] * conflict["other_log10"] < 0.0
    first = next(row for row in found["conversations"] if row["conversation"] == "c0")
    assert [one["name"] for one in first["evidence"] if one["piece"] == "other"] == [NAME]
    total = sum(one["log10"] for one in first["evidence"]) + first["before"]
    assert 10.0**total / (1.0 + 10.0**total) == pytest.approx(first["probability"], abs=1e-6)
    assert {row[0] for row in found["cues"]["agreement"]["rows"]} == {f"voices, {NAME}"}


def test_page(page):
    text = (page / "report.html").read_text()
    assert 'id="other-evidence"' in text
    assert NAME not in text  # escaped
    assert "disagree: listen to them" in text
    assert 'id="figure-agreement"' in text
    assert (page / "figures" / "agreement.svg").is_file()


def test_no_cues_no_section(tmp_path):
    spklink.assign(TABLE, score, tmp_path)
    write_report(tmp_path)
    assert 'id="other-evidence"' not in (tmp_path / "report.html").read_text()
    assert "cues" not in json.loads((tmp_path / "report.json").read_text())
