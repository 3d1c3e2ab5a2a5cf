"""The report: its numbers, its page in a browser, names that nobody should trust."""

from __future__ import annotations

import hashlib
import json
import re
import shutil

import numpy as np
import pytest
import soundfile

from made_reports import HOSTILE, LONG, Page, numbers_of, page_of, results_of, write_table
from spklink.cli.ahead import DRAW
from spklink.database.labels import read_key
from spklink.processes import ahead, waiting
from spklink.report import figures
from spklink.report.cells import percent
from spklink.report.figures import draw, draw_all
from spklink.report.graphs import size_classes
from spklink.report.layout import layout
from spklink.report.page import embedded, render
from spklink.report.write import write_report
from spklink.runs.assign import assign
from spklink.runs.folder import load
from spklink.words import chance_text
from spklink.worlds.simulate import simulate

# --- numbers ----------------------------------------------------------------------------------


def test_the_five_numbers_are_those_of_the_run(keyed):
    found, run = numbers_of(keyed)["found"], json.loads((keyed / "run.json").read_text())["result"]
    for ours, theirs in (("conversations",) * 2, ("speakers",) * 2, ("unresolvable",) * 2):
        assert found[ours] == run[theirs]
    assert found["settled"] == run["settled_99"]
    assert list(numbers_of(keyed))[-1] == "times"


def test_numbers_agree_with_evaluate(keyed, run):
    """Both report.json and the tables that a person reads."""
    code, text, _ = run("evaluate", keyed, "--key", keyed.parent / "key.csv", "--json")
    expected = json.loads(text)
    assert code == 0
    assert numbers_of(keyed)["evaluation"] == expected
    rows = Page(page_of(keyed)).tables["Table 2"]
    assert len(rows) == 1 + len(expected["by_size"]) + 1
    for cells, row in zip(rows[1:], [*expected["by_size"], expected["resolvable"]], strict=True):
        assert int(cells[2]) == row["cliques"]
        assert float(cells[3]) == pytest.approx(row["cross_entropy_bits"], abs=5.1e-5)
        assert float(cells[5]) == pytest.approx(row["confusion"], abs=5.1e-5)
        assert int(cells[7]) == row["clique_errors"]
        assert float(cells[8].rstrip(" %")) == pytest.approx(
            100 * row["clique_error_rate"], abs=0.051
        )
    table_3 = Page(page_of(keyed)).tables["Table 3"]
    solvable = [r for r in expected["by_size"] if r["cliques"] > r["unresolvable"]]
    for cells, row in zip(table_3[1:], [*solvable, expected["resolvable"]], strict=True):
        assert float(cells[1]) == pytest.approx(row["resolvable_bits"], abs=5.1e-5)
        if row["scale_ratio"] is not None:
            assert float(cells[5]) == pytest.approx(row["scale_ratio"], abs=5.1e-3)


def test_painters_started_ahead_draw_the_same_bytes(keyed):
    numbers = numbers_of(keyed)
    alone = draw_all(numbers)
    ahead(DRAW, 1)
    assert waiting(draw) == 1
    assert draw_all(numbers) == alone
    assert waiting(draw) == 0
    assert len(alone) > 2


def test_the_paper_stands_beside_our_values(keyed):
    rows = Page(page_of(keyed)).tables["Table 2"]
    assert [row[4] for row in rows[1:]] == [
        *("1.000", "0.205", "0.201", "0.032", "0.041", "0.019", "0.078"),
    ]


def test_expected_targets_are_those_of_the_posterior(keyed):
    """One of the side pairs of every link is the same person, so they add up to the links."""
    counts = numbers_of(keyed)["recognizer"]["histograms"][-1]["table"]["counts"]
    links = load(keyed).evidence.links
    assert counts["expected targets"] == pytest.approx(len(links.pair), rel=0.001)
    assert counts["targets by the key"] == len(links.pair)
    with np.load(keyed / "llrs.npz", allow_pickle=False) as arrays:
        pairs = len(arrays["score"])
    assert counts["non-targets by the key"] == pairs - len(links.pair)
    strangers = pairs - 4 * len(links.first)  # the file may hold known non-targets too
    assert counts.get("known non-targets", 0) == strangers


def test_evidence_is_the_difference_of_two_likelihoods(keyed):
    """All evidence of a conversation but its doubt is what its exchange would cost."""
    result = load(keyed)
    posterior = result.posterior
    table, model = result.conversations, posterior.model
    for row in numbers_of(keyed)["conversations"][::7]:
        m = table.index()[row["conversation"]]
        assert m + 1 == row["number"]
        gain = []
        for bit in (0, 1):
            x = posterior.best.copy()
            x[m] = bit
            both = x[model.first] * x[model.second]
            gain.append(float(model.field @ x + model.coupling @ both))
        best = int(posterior.best[m])
        expected = (gain[best] - gain[1 - best]) / np.log(10.0)
        told = [e["log10"] for e in row["evidence"] if e["piece"] != "doubt"]
        assert sum(told) == pytest.approx(expected, abs=1e-9)


def test_suspects_are_the_wrong_claims(keyed):
    found = numbers_of(keyed)["suspicious"]
    table = load(keyed).conversations
    claimed = read_key(keyed.parent / "claimed.csv", table).bits
    truth = read_key(keyed.parent / "key.csv", table).bits
    exchanged = {table.ids[m] for m in np.flatnonzero(claimed != truth)}
    suspected = {row["conversation"] for row in found["rows"]}
    assert len(suspected & exchanged) >= 0.7 * len(exchanged)
    assert found["count"] == numbers_of(keyed)["found"]["suspicious"] == len(found["rows"])
    for row in found["rows"]:
        assert row["claimed"] == row["suggested"][::-1]
        assert row["probability"] > 0.5


def test_without_claims_or_key_the_page_says_what_they_would_tell(network):
    numbers, text = numbers_of(network), page_of(network)
    assert numbers["found"]["suspicious"] is None
    assert numbers["evaluation"] is None
    assert "No claims were given to check" in text
    assert "need a key" in text
    assert numbers["posterior"]["expected_wrong_conversations"] > 0.0


def test_known_channels_make_the_staircase_one_step_longer(tmp_path):
    made = simulate(shape="cgn", seed=3)
    name = made.conversations.ids[0]
    speaker = made.conversations.names(0)[int(made.truth[0])]
    known = tmp_path / "known.csv"
    write_table(known, [("conversation", "channel", "speaker"), (name, 1, speaker)])
    out = results_of(tmp_path, shape="cgn", seed=3, known=known)
    write_report(out)
    steps = {row[0]: row[2] for row in numbers_of(out)["staircase"]["rows"]}
    assert list(steps) == ["I", "II", "III", "IV", "attainable", "linked", "reviewed"]
    assert steps["reviewed"] < steps["linked"]
    assert "--known" not in numbers_of(out)["next"]["steps"][0]["command"].replace(
        "--known known.csv", "", 1
    )


def test_a_large_clique_is_drawn_as_circles(network):
    drawing = numbers_of(network)["database"]["drawn"][0]
    assert drawing["circles"]
    assert sum(edge["conversations"] for edge in drawing["edges"]) == 1500
    assert sum(node["speakers"] for node in drawing["nodes"]) == drawing["speakers"]
    place = layout(drawing)
    assert np.isfinite(place).all()
    assert len(place) == len(drawing["nodes"])


def test_classes_of_sizes_cover_every_size_once():
    for largest in (1, 9, 11, 20, 21, 100, 4321):
        classes = size_classes(largest)
        covered = [m for _, low, high in classes for m in range(low, high + 1)]
        assert covered[:largest] == list(range(1, largest + 1))
        assert classes[-1][1] <= largest


def test_a_probability_below_one_is_never_shown_as_certainty():
    for p in (0.9996, 0.999999, 1 - 1e-9, 1 - 1e-15, 1.0):
        assert chance_text(p) == "over 99.9 %"
    assert [chance_text(p) for p in (0.9994, 0.5, 0.0004)] == ["99.9 %", "50.0 %", "under 0.1 %"]
    assert [percent(p) for p in (0.0, 0.5, 1.0)] == ["0.0 %", "50.0 %", "100.0 %"]  # counted
    assert "100" not in percent(1 - 1e-9)


# --- files ------------------------------------------------------------------------------------


def cut(text: str) -> str:
    assert text.count("<!-- times -->") == text.count("<!-- /times -->") == 1
    return re.sub("<!-- times -->.*<!-- /times -->", "", text, flags=re.DOTALL)


def test_two_reports_are_the_same_but_for_the_times(keyed, tmp_path):
    again = tmp_path / "elsewhere"
    shutil.copytree(keyed, again)
    for name in ("key.csv", "claimed.csv"):
        shutil.copy(keyed.parent / name, tmp_path)
    (again / "timings.json").write_text('{"seconds": {"x": 1.0}, "peak_memory_bytes": 5}')
    write_report(again, key=tmp_path / "key.csv", claimed=tmp_path / "claimed.csv")
    assert cut(page_of(again)) == cut(page_of(keyed))
    one, two = numbers_of(keyed), numbers_of(again)
    assert one.pop("times") != two.pop("times")
    assert one == two
    figures = {p.name: p.read_bytes() for p in (keyed / "figures").iterdir()}
    assert figures == {p.name: p.read_bytes() for p in (again / "figures").iterdir()}
    assert {"staircase.svg", "staircase.pdf", "database.pdf", "det.svg"} <= set(figures)


def test_a_run_with_other_results_removes_the_old_report(tmp_path):
    out = results_of(tmp_path, shape="cgn", seed=1)
    for name in ("report.html", "report.json"):
        (out / name).write_text("old")
    for beta, stays in ((None, True), (0.9, False)):
        assign(tmp_path / "conversations.csv", tmp_path / "scores.npz", out, beta=beta)
        assert (out / "report.html").exists() == stays
        assert (out / "report.json").exists() == stays


@pytest.mark.parametrize("kind", ["keyed", "network", "hostile", "single", "broken"])
def test_page_is_self_contained_and_every_figure_speaks(kind, request):
    out = request.getfixturevalue(kind)
    page = Page(page_of(out))
    assert [a for a in page.addresses if not a.startswith(("#", "data:"))] == []
    assert page.policy.keys() >= {"default-src", "script-src", "style-src", "base-uri"}
    assert page.policy["default-src"] == ["'none'"]
    for kind_of_code in ("script-src", "style-src"):  # by hash, so nothing else runs or styles
        (allowed,) = page.policy[kind_of_code]
        assert allowed.startswith("'sha256-")
    assert page.forbidden == []
    assert (out / "report.html").stat().st_size < 3_000_000
    assert page.figures
    for figure in page.figures:
        assert figure["text"] == 1
        assert figure["table"] >= 1 or not figure["own"]  # cliques share one table


def test_a_name_that_looks_like_a_place_in_the_page_is_a_name(network):
    """The page was once searched for where its data go; a name could stand there first."""
    numbers = numbers_of(network)
    place = "⟨data of the page⟩"
    numbers["conversations"][0]["conversation"] = 'x" onclick="window.hacked = 1" y="'
    for node in numbers["database"]["drawn"][0]["nodes"]:
        node["speaker"] = place
    figures = {path.stem: path.read_text() for path in (network / "figures").glob("*.svg")}
    page = Page(render(numbers, figures))
    assert page.forbidden == []
    assert page.tips
    for tip in page.tips:
        assert f"\u2068{place}\u2069" in tip
        assert "onclick" not in tip


def test_names_are_text(hostile):
    text = page_of(hostile)
    assert "<script>window" not in text
    assert "<img src=x" not in text
    assert "{{ 7 * 7 }}" in text  # a template in a name is not run
    assert text.count(LONG) <= 8  # ids and names of the table, and not once a mention
    assert len(text) < 1_000_000
    assert json.loads(embedded(HOSTILE)) == HOSTILE
    assert "<" not in embedded(HOSTILE)


# --- commands ---------------------------------------------------------------------------------


def test_command_report(keyed, single, run, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    out = tmp_path / "out"
    shutil.copytree(keyed, out)
    code, text, _ = run("report", out, "--open")
    assert (code, text) == (0, f"report: {out / 'report.html'}\n")
    assert opened == [(out / "report.html").as_uri()]
    assert numbers_of(out)["evaluation"] is None
    assert not (out / "figures" / "det.svg").exists()  # of the report with a key
    code, text, _ = run("report", single, "--json")
    assert code == 0
    assert json.loads(text) == numbers_of(single)
    code, text, err = run("report", tmp_path)
    assert (code, text) == (2, "")
    assert "run.json is missing" in err


def test_link_writes_a_report_unless_told_not_to(calls, run, tmp_path, monkeypatch):
    drawn = dict.fromkeys(figures.FIGURES, ("<svg></svg>", b"%PDF"))  # what is drawn: see above
    monkeypatch.setattr(figures, "draw_all", lambda _: drawn)
    words = ["link", calls / "conversations.csv", "-o", tmp_path / "out", "--components", 8]
    words += ["--workers", 1]
    code, text, _ = run(*words)
    assert code == 0
    assert text.endswith(f"report: {tmp_path / 'out' / 'report.html'}\n")
    numbers = numbers_of(tmp_path / "out")
    assert sum(row[2] + row[3] for row in numbers["recognizer"]["speech"]["rows"]) == 8
    for row in numbers["conversations"]:
        (one,) = row["recordings"]
        sound = calls / f"{row['number'] - 1}.wav"
        assert one["sha256"] == hashlib.sha256(sound.read_bytes()).hexdigest()
        assert one["seconds"] == pytest.approx(soundfile.info(sound).duration, abs=0.01)
        assert one["sha256"] in page_of(tmp_path / "out")
    assert numbers["provenance"]["command"] == (
        f"spklink link ../../{calls.name}/conversations.csv -o . --components 8"
    )
    page, name = page_of(tmp_path / "out"), tmp_path / "key.csv"
    name.write_text("conversation,channel,speaker\nc0,1,a\nc1,1,b\n")
    assert run(*words)[0] == 0
    assert page_of(tmp_path / "out") == page  # nothing has changed, times and all
    for other in (["--key", name], ["--verbal", "enfsi"]):
        assert run("report", tmp_path / "out", *other)[0] == 0
        assert run(*words)[0] == 0
        assert cut(page_of(tmp_path / "out")) == cut(page)
    assert run(*words, "--key", name)[0] == 0
    assert cut(page_of(tmp_path / "out")) != cut(page)
    (tmp_path / "out" / "report.json").write_text("[")
    assert run(*words)[0] == 0
    assert cut(page_of(tmp_path / "out")) == cut(page)
    code, text, _ = run(*words, "--no-report")
    assert code == 0
    assert not (tmp_path / "out" / "report.html").exists()

    def fail(*_, **__):
        raise OSError("no room for the page")

    monkeypatch.setattr("spklink.report.write.write_report", fail)
    code, text, err = run(*words)
    assert code == 2
    assert "who is where" in text  # the results are complete and told
    assert err == "spklink: no room for the page\n"
    assert (tmp_path / "out" / "run.json").exists()


# --- in a browser -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["keyed", "network", "hostile", "single", "broken"])
def test_pages_open_without_a_complaint(kind, request, open_page):
    out = request.getfixturevalue(kind)
    backgrounds = set()
    for width in (1280, 700):
        for scheme in ("light", "dark"):
            page = open_page(out, width, scheme)
            wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert wide[0] <= wide[1], f"{kind} overflows at {width}"
            assert page.locator(".five dd").count() == 5
            backgrounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            assert page.heard == []
    assert len(backgrounds) == 2
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert page.heard == []


def test_point_click_and_type(keyed, open_page):
    page = open_page(keyed)
    edge = page.locator(".gallery .e[data-c]").first
    edge.scroll_into_view_if_needed()
    edge.dispatch_event("pointermove", {"clientX": 300, "clientY": 300, "bubbles": True})
    assert "on channel 1" in page.locator("#tip").inner_text()
    edge.dispatch_event("click", {"bubbles": True})
    assert "channel 1" in page.locator("#detail").inner_text()
    page.keyboard.press("Escape")
    assert not page.locator("#detail").is_visible()
    page.locator("#conversations button").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("#detail").is_visible()
    assert (
        page.locator("#detail td").count() or "no evidence" in page.locator("#detail").inner_text()
    )
    page.keyboard.press("Escape")
    page.locator("#search").fill("call12")
    assert page.locator("#hits button").count() >= 9
    assert page.heard == []


def test_a_bundle_of_conversations_names_the_least_certain(network, open_page):
    page = open_page(network)
    bundle = page.locator(".gallery .e[data-e]:not([data-c=''])").first
    bundle.dispatch_event("click", {"bubbles": True})
    assert "conversation" in page.locator("#detail h3").inner_text()
    page.locator("#detail li button").first.click()
    assert "strength of the evidence" in page.locator("#detail").inner_text()
    assert page.heard == []


def test_hostile_names_do_nothing_and_can_be_read(hostile, open_page):
    page = open_page(hostile)
    for k in range(len(HOSTILE)):
        page.locator("#conversations button[data-c]").nth(k).click()
        page.keyboard.press("Escape")
    page.locator("#search").fill("img src=x")
    assert "<img src=x" in page.locator("#hits").inner_text()
    long = page.locator("[data-long]").first
    long.click()
    assert LONG in long.inner_text()
    long.press("Enter")
    assert LONG not in long.inner_text()
    assert page.evaluate("window.hacked") is None
    shown = page.locator("#conversations bdi").all_inner_texts()
    # A mark that turns text around is not obeyed but shown.
    seen = {name.replace("\u202e", "\\u202e") for name in HOSTILE if name != LONG}
    assert seen <= set(shown)
    assert page.heard == []
