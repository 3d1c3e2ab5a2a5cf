"""The page of a review: how long people wait, at 10,000 conversations and in 8 hours of sound.

python benchmarks/review.py           both tables (five minutes)
python benchmarks/review.py pages     the page, a decision with all that follows from it, memory
python benchmarks/review.py sound     jumps in recordings of 8 hours, by format; in Chromium as well
python benchmarks/review.py all       sound in MP3 and Ogg too, which take ten minutes to make
"""

from __future__ import annotations

import http.client
import re
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import numpy as np
import soundfile

from spklink.runs.assign import assign
from spklink.worlds.simulate import simulate, write_simulation
from spklink.worlds.voices import RATE, call, make_voices
from timing import seconds, show

CALLS, TIMES = 10_000, 40
HOURS, JUMPS = 8, 20
SOUNDS = {
    "WAV, 16 bits": ("x.wav", RATE, {"subtype": "PCM_16"}),
    "WAV, µ-law": ("u.wav", RATE, {"subtype": "ULAW"}),
    "SPH, µ-law": ("x.sph", RATE, {"format": "NIST", "subtype": "ULAW"}),
    "FLAC": ("x.flac", RATE, {}),
    "FLAC, 44.1 kHz": ("y.flac", 44_100, {}),
}
SLOW = {
    "MP3": ("x.mp3", 16_000, {"subtype": "MPEG_LAYER_III"}),
    "Ogg Vorbis": ("x.ogg", 16_000, {"subtype": "VORBIS"}),
}


@contextmanager
def served(out: Path) -> Iterator[tuple[str, int]]:
    """The address of the page and the number of its process."""
    words = [sys.executable, "-m", "spklink", "review", str(out), "--reviewer", "benchmark"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as one:
        assert one.stdout is not None
        yield one.stdout.readline().removeprefix("review: ").strip(), one.pid
        one.terminate()


def ask(address: str, path: str = "", body: dict[str, str] | None = None, most: int = -1) -> bytes:
    """What the page answers; of sound the first bytes."""
    parts = urlsplit(address)
    line = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
    headers = {"HX-Request": "true", "Origin": f"http://{parts.netloc}"}
    if body is None:
        line.request(
            "GET", parts.path + path, headers={} if most < 0 else {"Range": f"bytes={most}-"}
        )
    else:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        line.request("POST", parts.path + path, urlencode(body), headers)
    answer = line.getresponse()
    data = answer.read() if most < 0 else answer.read(8192)
    line.close()
    assert answer.status in (200, 206), (answer.status, data[:200])
    return data


def waited(work: Callable[[int], object], times: int) -> list[float]:
    found = []
    for k in range(times):
        begin = time.perf_counter()
        work(k)
        found.append(time.perf_counter() - begin)
    return found


def median_and_most(found: list[float]) -> str:
    return f"{seconds(statistics.median(found))}, at most {seconds(max(found))}"


def memory(process: int) -> str:
    """The most that a process has had."""
    text = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+)", text)
    return f"{int(found[1]) / 1024:.0f} MB" if found else "–"


def pages(folder: Path) -> None:
    rows = []
    for shape in ("cgn", "network"):
        place = folder / shape
        place.mkdir()
        made = simulate(shape=shape, conversations=CALLS, world="plda", seed=1)
        write_simulation(made, place, npz=True)
        assign(place / "conversations.csv", place / "scores.npz", place / "out")
        begin = time.perf_counter()
        with served(place / "out") as (address, process):
            opened = time.perf_counter() - begin
            cells = [median_and_most(found) for found in look_and_decide(address)]
            rows.append((shape, seconds(opened), *cells, memory(process)))
    columns = ["10,000 conversations", "to start", "a page: median", "a decision: median", "memory"]
    show("The page, through HTTP", columns, rows)


def look_and_decide(address: str) -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(0)
    ask(address)  # what is compiled is compiled once
    whole = waited(lambda k: ask(address, f"c/{rng.integers(CALLS)}"), TIMES)
    queue = [int(m) for m in re.findall(rb'data-m="(\d+)"', ask(address, "queue"))]
    decided = waited(lambda k: ask(address, f"c/{queue[k]}/decide", decision()), TIMES // 2)
    return whole, decided


def decision() -> dict[str, str]:
    return {"seats": "0 1", "verdict": "heard", "why": "", "request": secrets.token_hex(16)}


def write_long(path: Path, rate: int, hours: float, how: dict[str, str]) -> None:
    """One call over and over."""
    voices = make_voices(2, np.random.default_rng(0))
    part = call(*voices, np.random.default_rng(1), 60.0).repeat(max(1, round(rate / RATE)), axis=0)
    with soundfile.SoundFile(str(path), "w", rate, 2, **how) as file:
        for _ in range(round(hours * 3600 * rate / len(part)) + 1):
            file.write(part)


def write_gsm(folder: Path) -> str:
    """Two files, a channel each; blocks are put in a row, as encoding takes minutes."""
    names = []
    for k in range(2):
        path = folder / f"gsm{k}.wav"
        voices = make_voices(2, np.random.default_rng(0))
        part = call(*voices, np.random.default_rng(1), 64.0)[: 1600 * 320, k]
        soundfile.write(path, part, RATE, subtype="GSM610")
        data = path.read_bytes()
        begin = data.index(b"data") + 8
        blocks = data[begin : begin + 1600 * 65] * round(HOURS * 3600 / 64)
        size = len(blocks).to_bytes(4, "little")
        riff = (begin - 8 + len(blocks)).to_bytes(4, "little")
        path.write_bytes(data[:4] + riff + data[8 : begin - 4] + size + blocks)
        names.append(path.name)
    return ";".join(names)


def sound(folder: Path, kinds: dict[str, tuple[str, int, dict[str, str]]]) -> None:
    table = [("GSM, a file a channel", write_gsm(folder))]
    for kind, (name, rate, how) in kinds.items():
        write_long(folder / name, rate, HOURS, how)
        table.append((kind, name))
    lines = ["conversation,audio,participants"]
    lines += [f"{kind.replace(',', '')},{name},a{k};b{k}" for k, (kind, name) in enumerate(table)]
    (folder / "conversations.csv").write_text("\n".join(lines) + "\n")
    (folder / "scores.csv").write_text("conversation_1,channel_1,conversation_2,channel_2,score\n")
    assign(folder / "conversations.csv", folder / "scores.csv", folder / "out")
    rows = []
    with served(folder / "out") as (address, process):
        for m, (kind, _) in enumerate(table):
            drawn = waited(lambda k, m=m: ask(address, f"outline/{m}"), 1)[0]
            jumps = waited(lambda k, m=m: jump(address, m), JUMPS)
            rows.append((kind, median_and_most(jumps), seconds(drawn), memory(process)))
        rows += in_chromium(address, table)
    columns = ["8 hours", "a jump, to the first sound: median", "drawn, the first time", "memory"]
    show("Sound, through HTTP", columns, rows)


def jump(address: str, m: int) -> None:
    at = int(np.random.default_rng(secrets.randbits(32)).integers(HOURS * 3600 - 60))
    ask(address, f"sound/{m}/all.wav", most=44 + 4 * RATE * at)


def in_chromium(address: str, table: list[tuple[str, str]]) -> list[tuple[str, ...]]:
    """From a jump to sound that can be heard, in the page itself."""
    found = shutil.which("chromium")
    if found is None:
        return []
    from playwright.sync_api import sync_playwright

    jumped = """(at) => new Promise((done) => {
      const begin = performance.now(), waited = () => done((performance.now() - begin) / 1000);
      sound.addEventListener("seeked", waited, {once: true});
      sound.currentTime = at;
    })"""
    rows = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page()
        for m, (kind, _) in enumerate(table):
            page.goto(f"{address}c/{m}")
            page.wait_for_selector(".wave[data-ready]", timeout=120_000)
            rng = np.random.default_rng(m)
            times = [page.evaluate(jumped, float(rng.uniform(60, 28_000))) for _ in range(JUMPS)]
            rows.append((f"{kind}: in Chromium", median_and_most(times), "", ""))
        browser.close()
    return rows


def main() -> None:
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    with tempfile.TemporaryDirectory() as folder:
        if what in ("", "pages"):
            pages(Path(folder))
        if what in ("", "sound", "all"):
            sound(Path(folder), SOUNDS | (SLOW if what == "all" else {}))


if __name__ == "__main__":
    main()
