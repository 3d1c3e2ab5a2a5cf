"""Made results and their reports: names that nobody should trust, tables, a page taken apart."""

from __future__ import annotations

import csv
import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from spklink.runs.assign import assign
from spklink.worlds.simulate import simulate, write_simulation

LONG = "long" * 2500
HOSTILE = [
    "<script>window.hacked = 1</script>",
    "\"><img src=x onerror='window.hacked = 2'>",
    "</script><script>window.hacked = 3</script>",
    LONG,
    "שלום עולם ‮reversed",
    "مرحبا، كيف الحال",
    "🦊 👩‍👩‍👧",
    "$\\frac{1}{2}$ & {{ 7 * 7 }} {% raw %}",
    "a'b`c${window.hacked = 4}",
]


def results_of(folder: Path, *, known: Path | None = None, **simulation) -> Path:
    """Simulated results in folder/out, with conversations.csv and key.csv beside them."""
    write_simulation(simulate(**simulation), folder, npz=True)
    assign(folder / "conversations.csv", folder / "scores.npz", folder / "out", known=known)
    return folder / "out"


def write_table(path: Path, rows) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)


def read_table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def numbers_of(out: Path):
    return json.loads((out / "report.json").read_text())


def page_of(out: Path) -> str:
    return (out / "report.html").read_text()


class Page(HTMLParser):
    """Tables below their headings, figures, every address of a page, and what its policy says and
    would forbid."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.figures: list[dict[str, int]] = []
        self.addresses: list[str] = []
        self.policy: dict[str, list[str]] = {}
        self.forbidden: list[str] = []
        self.tips: list[str] = []
        self.heading, self.inside, self.cell, self.in_figure = "", "", None, False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.addresses += [given[name] for name in ("src", "href", "action") if given.get(name)]
        self.inside = tag
        self.forbidden += [name for name in given if name == "style" or name.startswith("on")]
        self.tips += [given["data-t"]] if "data-t" in given else []
        if given.get("http-equiv") == "Content-Security-Policy":
            rules = [rule.split() for rule in given["content"].split(";")]
            self.policy = {name: values for name, *values in rules}
        if tag in ("h2", "h3"):
            self.heading = ""
        if tag == "figure":
            self.in_figure = True
            self.figures.append({"text": 0, "table": 0, "own": "id" in given})
        if tag == "svg" and self.in_figure and "aria-hidden" not in given:
            said = given.get("aria-label") or given.get("aria-labelledby")
            self.figures[-1]["text"] += bool(said and given.get("role") in ("img", "group"))
        if tag == "table" and self.in_figure:
            self.figures[-1]["table"] += 1
        if tag == "tr":
            self.tables.setdefault(self.heading, []).append([])
        if tag in ("td", "th"):
            self.cell = ""

    def handle_data(self, data):
        if self.inside in ("h2", "h3"):
            self.heading += data
        if self.cell is not None:
            self.cell += data

    def handle_endtag(self, tag):
        self.inside = ""
        self.in_figure = self.in_figure and tag != "figure"
        if tag in ("td", "th") and self.cell is not None:
            self.tables[self.heading][-1].append(self.cell)
            self.cell = None


FEWER = """
    const drop = (query) => document.querySelectorAll(query).forEach((node) => node.remove());
    drop(".call:nth-child(n + 8)"), drop(".gallery figure:nth-child(n + 4)");
    drop("tbody tr:nth-child(n + 8)"), drop(".e.cell:nth-of-type(n + 80)");
    document.querySelectorAll("details").forEach((one) => { one.open = true; });
"""


def violations(browser, out: Path, width: int, scheme: str) -> str:
    """What axe-core complains about, of a page with a few of everything. The policy of the page
    would not let it run, so it is set aside."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
    )
    page = context.new_page()
    page.goto((out / "report.html").as_uri())
    page.evaluate(FEWER)
    found = axe.run(page)
    context.close()
    return found.generate_report() if found.response["violations"] else ""
