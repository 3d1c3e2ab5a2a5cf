"""Results with recordings to be reviewed, a page that serves them, and a browser's requests."""

from __future__ import annotations

import csv
import http.client
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np
import soundfile

from spklink.review.server import Server, make_server
from spklink.runs.assign import assign
from spklink.worlds.voices import RATE, call, make_voices

# Three people who all call each other; two who only call each other, so that no voice can tell who
# is who and one listen settles both calls; two who call once.
CALLS = [("ann", "bo"), ("bo", "cy"), ("ann", "cy"), ("dan", "eve"), ("eve", "dan"), ("fay", "gus")]
NAMES = ["c0", "c1", "c2", "d3", "d4", "f5"]


def write_results(
    folder: Path,
    calls: list[tuple[str, str]] = CALLS,
    names: list[str] = NAMES,
    *,
    seconds: float = 6.0,
    strength: float = 1.6,
) -> Path:
    """A results folder. The first of a call is on channel 1; log-likelihood-ratios are plus and
    minus `strength`, with noise."""
    rng = np.random.default_rng(3)
    people = sorted({one for pair in calls for one in pair})
    voices = dict(zip(people, make_voices(len(people), rng), strict=True))
    rows = []
    for k, (pair, name) in enumerate(zip(calls, names, strict=True)):
        sound = call(voices[pair[0]], voices[pair[1]], np.random.default_rng(k), seconds)
        soundfile.write(folder / f"{k}.wav", sound, RATE)
        rows.append((name, f"{k}.wav", ";".join(sorted(pair))))
    write(folder / "conversations.csv", ("conversation", "audio", "participants"), rows)
    sides = [(m, c) for m in range(len(calls)) for c in (0, 1)]
    scores = []
    for a, (m, c) in enumerate(sides):
        for n, d in sides[a + 1 :]:
            value = strength if calls[m][c] == calls[n][d] else -strength
            scores.append((names[m], c + 1, names[n], d + 1, value + 0.2 * rng.normal()))
    header = ("conversation_1", "channel_1", "conversation_2", "channel_2", "score")
    write(folder / "scores.csv", header, scores)
    assign(folder / "conversations.csv", folder / "scores.csv", folder / "out")
    return folder / "out"


def write(path: Path, header: tuple[str, ...], rows: list[tuple[object, ...]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


@contextmanager
def served(out: Path, **options) -> Iterator[Server]:
    """The page of these results, in a thread of this process."""
    server = make_server(out, **{"reviewer": "rita"} | options)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(10)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def ask(
    address: str,
    path: str = "",
    headers: Mapping[str, str] | None = None,
    *,
    method: str = "GET",
    body: bytes | None = None,
    base: str | None = None,
) -> Answer:
    """One request; `path` comes after the address, or after `base` in the place of its path."""
    parts = urlsplit(address)
    line = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    try:
        start = parts.path if base is None else base
        line.putrequest(method, start + path, skip_host=True, skip_accept_encoding=True)
        given = {"Host": parts.netloc} | dict(headers or {})
        if body is not None:
            given.setdefault("Content-Length", str(len(body)))
        for name, value in given.items():
            line.putheader(name, value)
        line.endheaders(body)
        answer = line.getresponse()
        return Answer(answer.status, dict(answer.headers.items()), answer.read())
    finally:
        line.close()


def own_headers(address: str) -> dict[str, str]:
    """What our own page sends along with a decision."""
    return {
        "Origin": f"http://{urlsplit(address).netloc}",
        "HX-Request": "true",
        "Content-Type": "application/x-www-form-urlencoded",
    }


def decide(address: str, m: int, headers: Mapping[str, str] | None = None, **fields: str) -> Answer:
    """A decision as the page sends it."""
    form = {"seats": "0 1", "verdict": "heard", "why": "", "request": secrets.token_hex(16)}
    body = urlencode(form | fields).encode()
    own = own_headers(address) if headers is None else headers
    return ask(address, f"c/{m}/decide", own, method="POST", body=body)
