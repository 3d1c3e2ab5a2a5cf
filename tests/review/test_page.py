"""The page in a real browser: it plays, keys decide, what hangs on it changes, nothing is lost."""

from __future__ import annotations

import re
from contextlib import contextmanager
from pathlib import Path

import pytest

from adversary.hostile_names import FIRST, cut, seen
from reviewed import served, write_results
from spklink.decisions.log import Decisions

SIZES = [(1280, "light"), (1280, "dark"), (700, "light"), (700, "dark")]
FOCUS = "((on) => [on.id, String(on.className)])(document.activeElement)"
PAIR = "c/3"  # two calls of the same two people


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    return write_results(tmp_path_factory.mktemp("made"))


@pytest.fixture
def out(made):
    """Results of which nobody has said anything."""
    yield made
    for path in made.glob("review.sqlite*"):
        path.unlink()


@contextmanager
def opened(browser, address, path="", *, width=1280, scheme="light", name=None, styled=False):
    """A page in a browser of its own, of which nothing may go wrong; `styled`: what looks at it has
    a style of its own, which the page's policy refuses."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page, wrong = context.new_page(), []
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request", lambda asked: wrong.append(asked.url) if foreign(asked.url, address) else None
    )
    page.goto(address + path)
    if name is not None:
        with page.expect_navigation():
            page.fill("#reviewer", name)
            page.press("#reviewer", "Enter")
    yield page
    context.close()
    assert [one for one in wrong if not styled or "inline style" not in one] == []


def foreign(url: str, address: str) -> bool:
    return not url.startswith((address, "data:"))


def number(page, what: str) -> float:
    return float(page.inner_text(f"#{what}").split()[0].replace(",", ""))


def until(page, condition: str) -> None:
    """Wait for something; the page's policy lets nobody evaluate text, so from outside."""
    for _ in range(200):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never: {condition}")


def test_it_plays_what_is_asked_for(browser, out):
    with served(out) as server, opened(browser, server.address) as page:
        page.wait_for_selector(".wave[data-ready]")
        assert page.inner_text("main h2") in page.inner_text("#queue a[aria-current]")
        page.keyboard.press("Space")
        until(page, "sound.currentTime > 0.3")
        page.keyboard.press("2")  # that track alone, on from where it was
        until(page, "sound.src.endsWith('/2.wav')")
        assert page.evaluate("sound.currentTime") > 0.3
        until(page, "sound.currentTime > 0.6")
        assert page.get_attribute("[data-solo='2']", "aria-pressed") == "true"
        page.keyboard.press("0")
        assert page.evaluate("sound.src").endswith("/1-2.wav")
        page.keyboard.press("Shift+Digit1")
        assert page.evaluate("sound.src").endswith("/2.wav")
        page.keyboard.press("Space")
        assert page.evaluate("sound.paused")
        page.keyboard.press(".")
        assert page.evaluate("sound.playbackRate") == 1.25


def test_a_region_is_looped(browser, out):
    with served(out) as server, opened(browser, server.address) as page:
        page.wait_for_selector(".wave[data-ready]")
        page.evaluate("sound.currentTime = 1")
        page.keyboard.press("[")
        page.evaluate("sound.currentTime = 1.4")
        page.keyboard.press("]")
        page.keyboard.press("l")
        page.keyboard.press("Space")
        page.evaluate("window.highest = 0")
        page.evaluate("setInterval(() => highest = Math.max(highest, sound.currentTime), 5)")
        page.evaluate(
            "sound.addEventListener('seeked', () => window.turns = (window.turns || 0) + 1)"
        )
        until(page, "window.turns >= 3")
        assert page.evaluate("highest") < 1.7
        page.keyboard.press("Escape")
        until(page, "sound.currentTime > 1.8")


def test_voices_are_heard_against_each_other(browser, out):
    with served(out) as server, opened(browser, server.address, "c/0") as page:
        page.wait_for_selector(".wave[data-ready]")
        page.keyboard.press("1")
        page.keyboard.press("v")
        page.keyboard.press("c")
        page.wait_for_selector("text=now: this conversation, track 1")
        until(page, "!sound.paused && sound.src.endsWith('/0/1.wav')")
        until(page, "!other.paused && other.currentTime > 0")
        row = page.locator(".neighbour.chosen")
        where = row.locator("td").first.inner_text()
        assert (
            page.inner_text("#comparing")
            == f"Comparing, now: {where}, track {row.get_attribute('data-label')}"
        )
        page.keyboard.press("c")
        until(page, "other.paused && sound.paused")
        assert page.is_hidden("#comparing")


def test_a_key_decides_and_all_that_hangs_on_it_changes(browser, out):
    with served(out) as server, opened(browser, server.address, PAIR) as page:
        before = {name: number(page, name) for name in ("decided", "inferred", "open", "bits")}
        queued = page.locator("#queue li").count()
        page.keyboard.press("a")
        page.wait_for_selector("#stored")
        assert "1 other conversation changed" in page.inner_text("#stored")
        assert "dan on 1, eve on 2" in page.inner_text("#mine")
        assert number(page, "decided") == before["decided"] + 1
        assert number(page, "inferred") == before["inferred"] + 1  # the other call of the two
        assert number(page, "open") == before["open"] - 2
        assert number(page, "bits") <= before["bits"] - 0.9
        assert page.locator("#queue li").count() == queued - 2
        assert page.locator(".clique .e.decided").count() >= 1
        page.reload()
        assert "dan on 1, eve on 2" in page.inner_text("#mine")
        page.keyboard.press("z")
        page.wait_for_selector("text=Taken back.")
        assert {name: number(page, name) for name in before} == before
        page.keyboard.press("s")
        page.wait_for_selector("#mine")
        assert "eve on 1, dan on 2" in page.inner_text("#mine")
        page.keyboard.press("Enter")
        until(page, "document.querySelector('article').dataset.m !== '3'")
        assert page.url.endswith("/c/" + page.get_attribute("article", "data-m"))
    log = Decisions.open(out / "review.sqlite")
    log.verify()
    assert [one.verdict for one in log.all()] == ["heard", "undo", "heard"]
    assert [one.seats for one in log.all()][::2] == [("dan", "eve"), ("eve", "dan")]
    assert log.all()[0].reviewer == "rita"
    assert log.all()[0].shown["blind"] is False
    log.close()


def test_unsure_someone_else_and_why(browser, out):
    with served(out) as server, opened(browser, server.address, "c/0") as page:
        page.keyboard.press("n")
        page.wait_for_selector("text=first the number of the track")
        assert page.locator("#mine").count() == 0
        page.keyboard.press("2")
        page.keyboard.press("w")
        page.keyboard.type("a child's voice: <b>loud</b>")
        page.keyboard.press("Enter")
        page.keyboard.press("n")
        page.wait_for_selector("#mine")
        assert "someone else on 2" in page.inner_text("#mine")
        assert "a child's voice: <b>loud</b>" in page.inner_text("#mine")
        page.keyboard.press("u")
        page.wait_for_selector("#mine:has-text('unsure')")
        page.click("text=Say it track by track")
        page.select_option("[data-seat='0']", "-")
        page.select_option("[data-seat='1']", label="ann")
        page.click(".seats button")
        page.wait_for_selector("#mine:has-text('ann on 2')")
        assert "on 1" not in page.inner_text("#mine")


def test_two_people_who_disagree(browser, out):
    with (
        served(out) as server,
        opened(browser, server.address, PAIR, name="anna") as one,
        opened(browser, server.address, PAIR, name="bert") as two,
    ):
        one.keyboard.press("a")
        one.wait_for_selector("#mine")
        two.wait_for_selector("#fresh a", timeout=10_000)  # told without asking
        two.keyboard.press("s")
        two.wait_for_selector("text=Two reviewers heard different things")
        assert "anna: dan on 1, eve on 2" in two.inner_text(".decide")
        assert number(two, "decided") == 0
        assert two.locator("#queue a").first.get_attribute("data-m") == "3"
        one.reload()
        one.wait_for_selector("text=Two reviewers heard different things")
        one.keyboard.press("s")
        one.wait_for_selector("#stored")
        assert one.locator(".box.alarm").count() == 0
        assert number(one, "decided") == 1


def test_nothing_is_given_away_to_a_blind_reviewer(browser, out):
    with served(out, blind=True) as server, opened(browser, server.address, "c/0") as page:
        html = page.content()
        assert (
            page.locator(
                ".evidence, .clique, .asked .question, .asked .odds, .heads .state"
            ).count()
            == 0
        )
        assert "selected" not in page.inner_html(".each")
        assert [one.strip() for one in page.locator(".heads .person").all_inner_texts()] == [
            "1 who?",
            "2 who?",
        ]
        assert not re.search(r"[+−]\d\.\d\d", page.inner_text("main"))
        assert "Accept" not in html
        page.keyboard.press("a")
        page.wait_for_selector("#reveal")
        assert "The system would have said" in page.inner_text("#reveal")
        agreed = "you agree" in page.inner_text("#reveal")
        assert page.inner_text("#agreement") == f"{int(agreed)} of 1"
        assert page.locator(".evidence").count() == 1


def test_a_recording_that_is_gone_or_broken_is_told(browser, tmp_path):
    out = write_results(tmp_path)
    (tmp_path / "0.wav").unlink()
    (tmp_path / "1.wav").write_bytes(b"not sound")
    with served(out) as server:
        for m, words in ((0, "no such file"), (1, "not a sound file")):
            with opened(browser, server.address, f"c/{m}") as page:
                assert words in page.inner_text("#broken")
                assert page.is_disabled("#play")
                page.keyboard.press("Space")
                page.keyboard.press("c")
                page.keyboard.press("a")
                page.wait_for_selector("#mine")


def test_keys_can_be_switched_off(browser, out):
    with served(out) as server, opened(browser, server.address, PAIR) as page:
        page.keyboard.press("?")
        page.uncheck("#keys-on")
        page.keyboard.press("Escape")
        page.keyboard.press("a")
        page.reload()
        page.keyboard.press("a")
        page.wait_for_timeout(300)
        assert page.locator("#mine").count() == 0
        page.click(".choices button.main")
        page.wait_for_selector("#mine")


def test_the_keyboard_alone_reaches_everything(browser, out):
    with served(out) as server, opened(browser, server.address, "c/0") as page:
        page.wait_for_selector(".wave[data-ready]")
        reached = set()
        for _ in range(80):
            page.keyboard.press("Tab")
            reached |= {*page.evaluate(FOCUS)}
        assert {
            "find",
            "play",
            "seek",
            "loop",
            "speed",
            "why",
            "compare",
            "solo",
            "mute",
        } <= reached
        page.focus("#seek")
        page.keyboard.press("End")
        until(page, "sound.currentTime > 5")
        page.keyboard.press("Escape")
        page.keyboard.press("f")
        page.keyboard.type("fay")
        page.wait_for_selector("#found a")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("article[data-m='5']")


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_no_violation_of_accessibility(browser, out, width, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with (
        served(out) as server,
        opened(browser, server.address, "c/0", width=width, scheme=scheme, styled=True) as page,
    ):
        page.wait_for_selector(".wave[data-ready]")
        assert axe_says(axe, page) == []
        page.keyboard.press("1")
        page.keyboard.press("c")
        page.keyboard.press("a")
        page.wait_for_selector("#mine")
        page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
        assert axe_says(axe, page) == []
        page.keyboard.press("?")
        assert axe_says(axe, page) == []
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width


def axe_says(axe, page) -> list[str]:
    found = axe.run(page).response["violations"]
    return [f"{one['id']}: {node['html']}" for one in found for node in one["nodes"]]


def test_hostile_names_are_text(browser, tmp_path):
    names = [one for one in (name.replace(";", ",").strip() for name in FIRST) if one]
    calls = [(name, names[(k + 1) % len(names)]) for k, name in enumerate(names)]
    out = write_results(tmp_path, calls, [f"{name} call" for name in names], seconds=5.0)
    with served(out, reviewer=names[1]) as server, opened(browser, server.address) as page:
        for m, name in enumerate(names):
            page.goto(f"{server.address}c/{m}")
            assert page.inner_text("main h2") == cut(seen(f"{name} call")).replace("  ", " ")
            shown = page.locator(".listed .name").all_inner_texts()
            assert sorted(shown) == sorted(cut(seen(one)).strip() for one in calls[m])
            page.keyboard.press("a")
            page.wait_for_selector("#mine")
            assert page.evaluate("window.hacked") is None
    log = Decisions.open(out / "review.sqlite")
    assert {one.reviewer for one in log.all()} == {names[1]}
    assert [set(one.seats) for one in log.all()] == [set(pair) for pair in calls]
    log.close()
