"""Pages full of hostile names, in a browser: nothing of theirs runs, and all can be read.

`make torture` takes all names instead of a few of every kind.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adversary.hostile_names import FIRST, cut, hostile_names, seen
from adversary.tally import TORTURE, count
from spklink.report.graphs import MOST_IN_ONE
from spklink.report.write import write_report
from spklink.runs.assign import assign

NAMES = hostile_names(240 if TORTURE else len(FIRST))
RING = 12  # conversations of a small clique: labels are drawn
HUBS = 34  # busy speakers of a clique that is drawn as circles
Call = tuple[str, str, str, str, str]  # conversation, audio, group, participants


@dataclass
class Watched:
    """An open page and all that it did which it should not."""

    page: Any
    heard: list[str] = field(default_factory=list)

    def assert_harmless(self) -> None:
        hacked = self.page.evaluate("window.hacked") is not None
        tried = hacked + len(self.page.evaluate("window.violations"))
        count("hostile names in Chromium", 0, {"scripts": tried})
        assert self.page.evaluate("window.hacked") is None
        assert self.page.evaluate("window.violations") == []
        assert self.page.evaluate("({}).hacked") is None
        assert self.heard == []


def ring_calls(names: list[str]) -> list[Call]:
    """Rings of calls; ids, files and groups are hostile too."""
    calls = []
    for begin in range(0, len(names), RING):
        ring = names[begin : begin + RING]
        for k, name in enumerate(ring):
            file = f"{name.replace(';', '')[:200]}.wav"
            calls.append((f"{name} call", file, ring[0], name, ring[(k + 1) % len(ring)]))
    return calls


def star_calls(names: list[str]) -> list[Call]:
    """Busy speakers with a star of calls each, and a call between each and the next."""
    leaves = MOST_IN_ONE // len(names) + 1
    calls = [
        (f"{name} {n}", "", "", name, f"leaf {k} {n}")
        for k, name in enumerate(names)
        for n in range(leaves)
    ]
    between = (
        (f"{k} {a[:100]} to {b[:100]}", "", "", a, b) for k, (a, b) in enumerate(pairwise(names))
    )
    return [*calls, *between]


def written(folder: Path, calls: list[Call]) -> Path:
    """The report of these calls with a key, and claims of which every third is right."""
    folder.mkdir()
    header = ("conversation", "audio", "group", "participants")
    rows = [(i, audio, group, f"{a};{b}") for i, audio, group, a, b in calls]
    put(folder / "c.csv", [header, *rows])
    labels = ("conversation", "channel", "speaker")
    put(folder / "key.csv", [labels, *((i, 1, a) for i, _, _, a, _ in calls)])
    claims = ((i, 1, a if k % 3 == 1 else b) for k, (i, _, _, a, b) in enumerate(calls))
    put(folder / "claimed.csv", [labels, *claims])
    number: dict[str, int] = {}
    people = np.array([number.setdefault(n, len(number)) for *_, a, b in calls for n in (a, b)])
    scores = np.where(people[:, None] == people[None, :], 2.5, -2.5)
    assign(folder / "c.csv", scores, folder / "out")
    write_report(folder / "out", key=folder / "key.csv", claimed=folder / "claimed.csv")
    return folder / "out" / "report.html"


def put(path: Path, rows) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    return written(tmp_path_factory.mktemp("pages") / "small", ring_calls(NAMES))


@pytest.fixture(scope="module")
def circles(tmp_path_factory) -> list[tuple[Path, list[str]]]:
    """Pages with a clique of circles each, and the busy speakers of each."""
    folder = tmp_path_factory.mktemp("pages")
    parts = [NAMES[k : k + HUBS] for k in range(0, min(len(NAMES), 4 * HUBS), HUBS)]
    return [(written(folder / f"{k}", star_calls(part)), part) for k, part in enumerate(parts)]


@pytest.fixture
def watch(browser) -> Iterator[Any]:
    contexts = []

    def open_(path: Path) -> Watched:
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        contexts.append(context)
        context.set_default_timeout(60_000)  # a busy machine is no failure
        context.add_init_script(
            "window.violations = []; addEventListener('securitypolicyviolation',"
            "(e) => window.violations.push(`${e.violatedDirective} ${e.sample}`), true);"
        )
        page = context.new_page()
        found = Watched(page)
        own = (path.as_uri(), "data:,")
        page.on("console", lambda message: found.heard.append(message.text))
        page.on("pageerror", lambda error: found.heard.append(str(error)))
        page.on("dialog", lambda dialog: (found.heard.append(dialog.message), dialog.dismiss()))
        page.on("popup", lambda other: found.heard.append(f"window {other.url}"))
        page.on(
            "request",
            lambda asked: found.heard.append(asked.url) if asked.url not in own else None,
        )
        page.goto(path.as_uri())
        return found

    yield open_
    for context in contexts:
        context.close()


def texts(page: Any, where: str) -> set[str]:
    return set(
        page.evaluate("(q) => [...document.querySelectorAll(q)].map((n) => n.textContent)", where)
    )


def test_there_are_enough_names():
    assert len(hostile_names(240)) == len(set(hostile_names(240))) == 240
    assert hostile_names(240)[: len(FIRST)] == [name.strip() for name in FIRST]


def test_names_do_nothing_and_can_be_read(small, watch):
    watched = watch(small)
    page = watched.page
    shown = texts(page, "bdi.name")
    for name in NAMES:
        assert cut(seen(name)) in shown, ascii(name)
        assert cut(seen(f"{name} call")) in shown, ascii(name)
    labels = texts(page, ".gallery text")
    assert {f"\u2068{_label(seen(name), 12)}\u2069" for name in NAMES} <= labels
    count("hostile names in Chromium", len(NAMES))
    watched.assert_harmless()


# Types a text, clicks the hit that begins with a title, and tells what opens.
SEARCH = """([text, title]) => {
  const search = document.getElementById("search"), detail = document.getElementById("detail");
  search.value = text;
  search.dispatchEvent(new Event("input"));
  const hits = [...document.querySelectorAll("#hits button")];
  const hit = hits.find((button) => button.textContent.startsWith(title));
  if (!hit) return document.getElementById("hits").textContent.slice(0, 200);
  hit.click();
  const found = detail.open && detail.querySelector("h3 bdi").textContent;
  detail.querySelector("form button").click();
  return detail.open ? "still open" : found;
}"""
# Points at a bundle and clicks it: what it is said to be, what the tip and the dialog say.
BUNDLES = """() => [...document.querySelectorAll(".gallery .e[data-e]")].map((bundle) => {
  const place = {clientX: 9, clientY: 9, bubbles: true}, detail = document.getElementById("detail");
  bundle.dispatchEvent(new PointerEvent("pointermove", place));
  const tip = document.getElementById("tip").textContent;
  bundle.dispatchEvent(new MouseEvent("click", place));
  const title = detail.open && detail.querySelector("h3").textContent;
  detail.close();
  return [bundle.dataset.t, tip, title];
})"""


def test_clicking_and_searching(small, watch):
    watched = watch(small)
    page = watched.page
    for name in NAMES:
        whole = seen(f"{name} call")
        found = page.evaluate(SEARCH, [whole[:200], cut(whole)])
        assert found == cut(whole), ascii(name)
    page.locator("#search").fill("onerror")  # once as a person does it
    page.locator("#hits button").first.click()
    page.locator("#detail form button").click()
    assert not page.locator("#detail").is_visible()
    page.locator(".gallery .e[data-c]").first.dispatch_event("pointermove", {"bubbles": True})
    assert "on channel 1" in page.locator("#tip").text_content()
    long = page.locator("#suspicious tbody td [data-long]").first
    short = long.text_content()
    long.click()
    assert len(long.text_content()) > len(short)
    long.press("Enter")
    assert long.text_content() == short
    watched.assert_harmless()


def test_circles(circles, watch):
    for path, hubs in circles:
        watched = watch(path)
        found = watched.page.evaluate(BUNDLES)
        named = {part.split("\u2069")[0] for said, *_ in found for part in said.split("\u2068")[1:]}
        busy = {_label(seen(name), 40) for name in hubs}
        assert busy <= named
        assert all(name.startswith("leaf ") for name in named - busy)
        assert all(said == tip == title for said, tip, title in found)
        inline = "document.querySelectorAll('[style]:not(#tip),[onclick]').length"
        assert watched.page.evaluate(inline) == 0
        watched.assert_harmless()


def _label(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
