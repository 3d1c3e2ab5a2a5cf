"""Damaged and odd recordings, drawn by seed: each is heard, or is named as a problem of its own.

A quick set always; some hundreds with `make torture`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf

from adversary.tally import TORTURE, count, patience
from spklink import SpklinkError, read_conversations
from spklink.sound.audio import FATAL, REMARKS
from spklink.sound.features import DEFAULT
from spklink.sound.listening import Sound, hear
from spklink.worlds.voices import RATE, call, make_voices

ROUNDS = 14 if TORTURE else 1  # through all kinds
PATIENCE = 20  # seconds; a recording of six seconds takes some hundredths of one
VOICES = make_voices(4, np.random.default_rng(11))
FORMATS = [
    ("wav", "PCM_16"),
    ("wav", "ULAW"),
    ("flac", "PCM_16"),
    ("ogg", "VORBIS"),
    ("au", "ALAW"),
]
Rng = np.random.Generator
Case = Callable[[Path, Rng], str]


@cache
def spoken(which: int) -> np.ndarray:
    return call(VOICES[which], VOICES[which + 2], np.random.default_rng(which), 6.0) / 32768.0


def talk(rng: Rng) -> np.ndarray:
    """One of two calls, at a level of its own."""
    return rng.uniform(0.5, 1.0) * spoken(int(rng.integers(2)))


def saved(folder: Path, sound: np.ndarray, rng: Rng, form: int | None = None) -> Path:
    suffix, subtype = FORMATS[rng.integers(len(FORMATS)) if form is None else form]
    path = folder / f"odd.{suffix}"
    sf.write(path, sound, RATE, subtype=subtype)
    return path


# --- bytes ----------------------------------------------------------------------------------------


def cut(folder: Path, rng: Rng) -> str:
    path = saved(folder, talk(rng), rng)
    content = path.read_bytes()
    path.write_bytes(content[: rng.integers(len(content))])
    return path.name


def flipped(folder: Path, rng: Rng) -> str:
    path = saved(folder, talk(rng), rng)
    content = bytearray(path.read_bytes())
    for at in rng.integers(0, len(content), int(rng.integers(1, 300))):
        content[at] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)
    return path.name


def edited_header(folder: Path, rng: Rng) -> str:
    path = saved(folder, talk(rng), rng)
    content = bytearray(path.read_bytes())
    for at in rng.integers(0, 64, int(rng.integers(1, 6))):
        content[at] = rng.integers(256)
    path.write_bytes(content)
    return path.name


def one_hertz(folder: Path, rng: Rng) -> str:
    path = saved(folder, talk(rng), rng, form=0)
    content = bytearray(path.read_bytes())
    content[24:28] = int(rng.choice([0, 1, 7, 2**31 - 1])).to_bytes(4, "little")
    path.write_bytes(content)
    return path.name


def empty(folder: Path, _: Rng) -> str:
    (folder / "odd.wav").touch()
    return "odd.wav"


def text(folder: Path, rng: Rng) -> str:
    (folder / "odd.wav").write_text("this is no sound\n" * int(rng.integers(1, 1000)))
    return "odd.wav"


def random_bytes(folder: Path, rng: Rng) -> str:
    (folder / "odd.flac").write_bytes(rng.bytes(int(rng.integers(1, 20000))))
    return "odd.flac"


def wrong_suffix(folder: Path, rng: Rng) -> str:
    name = str(rng.choice(["odd.mp3", "odd.txt", "odd", "odd.raw", "odd.flac.wav"]))
    saved(folder, talk(rng), rng).rename(folder / name)
    return name


# --- what is no file ------------------------------------------------------------------------------


def pipe(folder: Path, _: Rng) -> str:
    os.mkfifo(folder / "odd.wav")
    return "odd.wav"


def directory(folder: Path, _: Rng) -> str:
    (folder / "odd.wav").mkdir()
    return "odd.wav"


def strange_place(_: Path, rng: Rng) -> str:
    return str(
        rng.choice(["/dev/zero", "/dev/null", "/proc/self/mem", "n" * 400, "a/" * 2500, "gone.wav"])
    )


def loop(folder: Path, _: Rng) -> str:
    (folder / "odd.wav").symlink_to(folder / "odd.wav")
    return "odd.wav"


# --- channels -------------------------------------------------------------------------------------


def many_channels(folder: Path, rng: Rng) -> str:
    sound = np.repeat(talk(rng)[:, :1], int(rng.choice([1, 3, 300])), axis=1)
    sf.write(folder / "odd.wav", sound, RATE)
    return "odd.wav"


def dual_mono(folder: Path, rng: Rng) -> str:
    one = talk(rng).sum(axis=1)
    delay = int(rng.integers(0, 400))
    other = np.concatenate([np.zeros(delay), one])[: len(one)]
    other *= rng.choice([-1.0, 1.0]) * rng.uniform(0.05, 1.0)
    sf.write(folder / "odd.wav", np.stack([one, other], 1), RATE)
    return "odd.wav"


def only_one_speaks(folder: Path, rng: Rng) -> str:
    sound = talk(rng)
    sound[:, rng.integers(2)] = 0.0
    return saved(folder, sound, rng).name


# --- sound ----------------------------------------------------------------------------------------


def not_numbers(folder: Path, rng: Rng) -> str:
    sound = talk(rng)
    at = rng.integers(len(sound), size=5), rng.integers(2, size=5)
    sound[at] = rng.choice([np.nan, np.inf, -np.inf, 1e30])
    sf.write(folder / "odd.wav", sound, RATE, subtype="DOUBLE")
    return "odd.wav"


def noise(folder: Path, rng: Rng) -> str:
    sound = talk(rng)
    sound[:, rng.integers(2)] = rng.uniform(0.01, 0.2) * rng.standard_normal(len(sound))
    return saved(folder, sound, rng, form=0).name


def tone(folder: Path, rng: Rng) -> str:
    sound = talk(rng)
    time = np.arange(len(sound)) / RATE
    wave = np.sin(2 * np.pi * rng.uniform(100, 3000) * time) * (time % 1.0 < rng.uniform(0.3, 1))
    sound[:, rng.integers(2)] = rng.uniform(0.05, 0.5) * wave
    return saved(folder, sound, rng, form=0).name


def with_silence(folder: Path, rng: Rng) -> str:
    quiet = np.zeros((round(rng.uniform(20, 60) * RATE), 2))
    parts = [quiet, talk(rng)]
    return saved(folder, np.concatenate(parts[:: rng.choice([-1, 1])]), rng, form=0).name


def clipped(folder: Path, rng: Rng) -> str:
    return saved(folder, np.clip(talk(rng) * 50, -1, 1), rng, form=0).name


def very_soft(folder: Path, rng: Rng) -> str:
    return saved(folder, talk(rng) * 10 ** -rng.uniform(2, 5), rng, form=0).name


def very_short(folder: Path, rng: Rng) -> str:
    return saved(folder, talk(rng)[: rng.integers(0, 1200)], rng, form=0).name


# kind → what it must be called; nothing: it may be anything, or nothing at all
CASES: dict[Case, set[str]] = {
    cut: set(),
    flipped: set(),
    edited_header: set(),
    one_hertz: {"unreadable"},
    empty: {"empty"},
    text: {"unreadable"},
    random_bytes: set(),
    wrong_suffix: set(),
    pipe: {"unreadable"},
    directory: {"unreadable"},
    strange_place: {"unreadable"},
    loop: {"unreadable"},
    many_channels: {"mono", "channels"},
    dual_mono: {"identical"},
    only_one_speaks: {"silent"},
    not_numbers: {"invalid"},
    noise: {"steady"},
    tone: {"steady"},
    with_silence: {"nothing"},
    clipped: {"clipped"},
    very_soft: set(),
    very_short: set(),
}


def kinds_heard(folder: Path, name: str) -> tuple[Sound, set[str]]:
    """A good call and the odd one, in both modes; what the odd one is called."""
    table = folder / "table.csv"
    table.write_text(f"conversation,audio,participants\ngood,../good.wav,a;b\nodd,{name},a;c\n")
    conversations, how = read_conversations(table), {"min_speech": 0.5}
    sound = hear(conversations, DEFAULT, folder / "cache", skip_bad=True, **how)
    assert sound.marks[:2] == ["", ""]
    found = [(fatal, text.split(":")[0]) for _, fatal, text in sound.heard[1].problems]
    if any(fatal for fatal, _ in found):
        with pytest.raises(SpklinkError, match=r"row 3: odd") as caught:
            hear(conversations, DEFAULT, folder / "cache", skip_bad=False, **how)
        assert name[:50] in str(caught.value)
    else:
        hear(conversations, DEFAULT, folder / "cache", skip_bad=False, **how)
    return sound, {kind for _, kind in found}


def torture(folder: Path, rounds: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    sf.write(folder / "good.wav", spoken(0), RATE)
    for seed in range(rounds):
        for case, expected in CASES.items():
            place = folder / f"{case.__name__}-{seed}"
            place.mkdir()
            rng = np.random.default_rng([seed, list(CASES).index(case)])
            try:
                with patience(PATIENCE):
                    sound, kinds = kinds_heard(place, case(place, rng))
            except TimeoutError:
                counts["hangs"] += 1
                continue
            except Exception as error:
                counts["tracebacks"] += 1
                print(f"{place.name}: {type(error).__name__}: {error}")
                continue
            assert kinds <= set(FATAL) | set(REMARKS), place.name
            missed = bool(expected) and not (expected & (kinds or {"nothing"}))
            counts["silent uses" if missed else "named" if kinds else "heard"] += 1
            if missed:
                print(f"{place.name}: {kinds or 'nothing'}, not {expected}; {sound.marks}")
    return counts


def test_every_odd_recording_is_a_problem_of_its_own(tmp_path):
    counts = torture(tmp_path, ROUNDS)
    wrong = {name: counts[name] for name in ("hangs", "tracebacks", "silent uses")}
    count("damaged and odd recordings", counts.total(), wrong)
    assert not any(wrong.values()), counts
    assert counts.total() == ROUNDS * len(CASES)
