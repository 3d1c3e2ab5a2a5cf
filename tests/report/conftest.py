"""Reports that several tests look at, and a browser that tells what a page complains about."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from made_reports import HOSTILE, read_table, results_of, write_table
from spklink.report.write import write_report
from spklink.runs.assign import assign
from spklink.runs.link import link
from spklink.worlds.simulate import simulate
from spklink.worlds.voices import RATE, call, make_voices


@pytest.fixture(scope="session")
def keyed(tmp_path_factory) -> Path:
    """The paper's shape with a key, and claims of which every 29th is wrong."""
    folder = tmp_path_factory.mktemp("keyed")
    out = results_of(folder, shape="cgn", world="plda", seed=4)
    people = {
        r["conversation"]: r["participants"] for r in read_table(folder / "conversations.csv")
    }
    claims = []
    for n, row in enumerate(r for r in read_table(folder / "key.csv") if r["channel"] == "1"):
        names = people[row["conversation"]].split(";")
        other = next(name for name in names if name != row["speaker"])
        claims.append((row["conversation"], 1, other if n % 29 == 0 else row["speaker"]))
    write_table(folder / "claimed.csv", [("conversation", "channel", "speaker"), *claims])
    write_report(out, key=folder / "key.csv", claimed=folder / "claimed.csv")
    return out


@pytest.fixture(scope="session")
def network(tmp_path_factory) -> Path:
    """One clique that is too large for every speaker to be drawn."""
    out = results_of(tmp_path_factory.mktemp("net"), shape="network", conversations=1500, seed=1)
    write_report(out)
    return out


@pytest.fixture(scope="session")
def hostile(tmp_path_factory) -> Path:
    """Ids and names that break a careless page; two claims are wrong."""
    folder = tmp_path_factory.mktemp("hostile")
    names = HOSTILE
    pairs = [(names[k], names[(k + 1) % len(names)]) for k in range(len(names))]
    ids = [f"{name} call" for name in names]
    rows = [(i, f"{i}.wav", ";".join(pair)) for i, pair in zip(ids, pairs, strict=True)]
    write_table(folder / "c.csv", [("conversation", "audio", "participants"), *rows])
    sides = [(i, c) for i in ids for c in (1, 2)]
    rng = np.random.default_rng(0)
    scores = [(*a, *b, f"{rng.normal():.3f}") for k, a in enumerate(sides) for b in sides[k + 1 :]]
    header = ("conversation_1", "channel_1", "conversation_2", "channel_2", "score")
    write_table(folder / "scores.csv", [header, *scores])
    found = assign(folder / "c.csv", folder / "scores.csv", folder / "out")
    bits = found.posterior.best.tolist()
    claims = [(i, 1, pair[1 - bit]) for i, pair, bit in zip(ids, pairs, bits, strict=True)]
    write_table(folder / "claimed.csv", [("conversation", "channel", "speaker"), *claims])
    write_report(folder / "out", claimed=folder / "claimed.csv")
    return folder / "out"


@pytest.fixture(scope="session")
def single(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("single")
    write_table(folder / "c.csv", [("conversation", "participants"), ("only", "ann;bo")])
    header = ("conversation_1", "channel_1", "conversation_2", "channel_2", "score")
    write_table(folder / "scores.csv", [header])
    assign(folder / "c.csv", folder / "scores.csv", folder / "out")
    write_report(folder / "out")
    return folder / "out"


@pytest.fixture(scope="session")
def broken(tmp_path_factory) -> Path:
    """Every recording damaged, and linked all the same."""
    folder = tmp_path_factory.mktemp("broken")
    calls = simulate(shape="cgn", seed=2).conversations
    rows = [(name, f"{name}.wav", ";".join(calls.names(m))) for m, name in enumerate(calls.ids)]
    write_table(folder / "c.csv", [("conversation", "audio", "participants"), *rows])
    for name in calls.ids:
        (folder / f"{name}.wav").write_bytes(b"not sound")
    link(folder / "c.csv", folder / "out", on_bad_audio="skip")
    write_report(folder / "out")
    return folder / "out"


@pytest.fixture(scope="session")
def calls(tmp_path_factory) -> Path:
    """Four short calls with artificial voices: enough for `link` to run."""
    folder = tmp_path_factory.mktemp("calls")
    cast = dict(zip("abcd", make_voices(4, np.random.default_rng(1)), strict=True))
    rows = []
    for k, pair in enumerate(["ab", "bc", "ca", "ad"]):
        samples = call(cast[pair[0]], cast[pair[1]], np.random.default_rng(k), 8.0)
        soundfile.write(folder / f"{k}.wav", samples, RATE)
        rows.append((f"c{k}", f"{k}.wav", ";".join(pair)))
    write_table(folder / "conversations.csv", [("conversation", "audio", "participants"), *rows])
    return folder


@pytest.fixture
def open_page(browser):
    """Opens a report and keeps whatever it complains about or asks the network for."""
    contexts = []

    def open_(out: Path, width: int = 1280, scheme: str = "light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.heard = []
        page.on("console", lambda message: page.heard.append(message.text))
        page.on("pageerror", lambda error: page.heard.append(str(error)))
        page.on(
            "request",
            lambda request: (
                None
                if request.url == (out / "report.html").as_uri() or request.url.startswith("data:")
                else page.heard.append(request.url)
            ),
        )
        page.goto((out / "report.html").as_uri())
        return page

    yield open_
    for context in contexts:
        context.close()
