"""Artificial voices on the telephone: a small database with a known truth, for the demo.

A voice is a glottal source (a polynomial flow pulse with its own pitch, melody, open quotient,
jitter, shimmer, tilt and breath) behind a vocal tract (four formants, a nasal pole with its zero,
all higher the shorter the tract, and an accent: every sound a little off its usual place). It
speaks babble: random syllables of the sounds in SOUNDS, gathered in phrases with a falling melody,
the formants gliding from one sound to the next. On another day (Session) it is a little off itself
and comes over another line: pitch, tract and tempo move, handset and line colour the spectrum, and
level and noise differ. A call is two such sides that take turns, with faint crosstalk, in the
telephone band, quantised as G.711 mu-law does.

The database (write_database) has the shape of the paper's corpus at about a quarter of its size,
DEMO_CLIQUES, with some 12 s of speech a side.

How the voices were tuned: so that the recognizer errs now and then. Over all pairs of sides of
different calls, trained on the database itself, the `paper` preset has an equal error rate (ROC
convex hull) of 12.1, 10.9, 7.1, 11.4, 7.1, 9.8, 11.4, 9.8, 6.6 and 8.7 % with seeds 0 to 9, and
`default` 12.4 % with seed 0, 9.7 % in the mean. SESSION_SPREAD decides it, how much a tract changes
from call to call: 0.035, 0.040, 0.044 gave means of about 7, 8.7 and 9.5 %. Lines hardly matter
(11.1, 12.0, 6.9 % without their colour): feature warping undoes most of it.

Everything is drawn from the generator given, each voice and each call from a child of its own, and
samples are integers: the same seed gives the same files. On another kind of processor a last bit of
the arithmetic may differ and, rarely, turn a sample to the next level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from pathlib import Path

import numba as nb
import numpy as np
from numpy.typing import NDArray

from spklink.database.sides import speakers_on, two_each
from spklink.errors import SpklinkError
from spklink.tables import replacing
from spklink.worlds.files import write_key, write_table
from spklink.worlds.shapes import as_table, clique_calls

Floats = NDArray[np.float64]
Rng = np.random.Generator
RATE = 8000  # samples a second
FRAME = 16  # samples between two settings of the vocal tract
FRAMES = RATE // FRAME  # a second
BAND = (300.0, 3400.0)  # Hz, of the telephone
# (conversations, speakers, cliques): the paper's Table 2 at about a quarter, one pair unresolvable.
DEMO_CLIQUES = (
    (1, 2, 2), (2, 2, 1), (2, 3, 14), (3, 3, 2), (3, 4, 1), (4, 3, 4), (4, 4, 1), (4, 5, 1),
    (5, 3, 1), (5, 4, 1), (6, 5, 1),
)  # fmt: skip

# A sound is held and then released; either part may be absent. Frequencies in Hz of a neutral
# male tract: three formants and the centre of the hiss. Voice and hiss are amplitudes.
#        F1   F2    F3    hiss  nasal  held: s  voice hiss  released: s  voice hiss
SOUNDS = np.array([
    (280, 2200, 2900, 2500, 0.0, 0.110, 0.8, 0.0, 0.000, 0.0, 0.0),  # i
    (400, 2000, 2550, 2500, 0.0, 0.120, 0.9, 0.0, 0.000, 0.0, 0.0),  # e
    (560, 1750, 2450, 2500, 0.0, 0.120, 1.0, 0.0, 0.000, 0.0, 0.0),  # ɛ
    (740, 1300, 2450, 2500, 0.0, 0.140, 1.0, 0.0, 0.000, 0.0, 0.0),  # a
    (600, 950, 2450, 2500, 0.0, 0.120, 1.0, 0.0, 0.000, 0.0, 0.0),  # ɔ
    (430, 820, 2400, 2500, 0.0, 0.120, 0.9, 0.0, 0.000, 0.0, 0.0),  # o
    (310, 850, 2250, 2500, 0.0, 0.110, 0.8, 0.0, 0.000, 0.0, 0.0),  # u
    (300, 1700, 2150, 2500, 0.0, 0.110, 0.8, 0.0, 0.000, 0.0, 0.0),  # y
    (500, 1450, 2450, 2500, 0.0, 0.080, 0.8, 0.0, 0.000, 0.0, 0.0),  # ə
    (260, 1050, 2200, 2500, 1.0, 0.070, 0.5, 0.0, 0.000, 0.0, 0.0),  # m
    (270, 1550, 2500, 2500, 1.0, 0.070, 0.5, 0.0, 0.000, 0.0, 0.0),  # n
    (380, 1100, 2600, 2500, 0.2, 0.065, 0.6, 0.0, 0.000, 0.0, 0.0),  # l
    (420, 1300, 1750, 2500, 0.0, 0.060, 0.6, 0.0, 0.000, 0.0, 0.0),  # r
    (290, 700, 2200, 2500, 0.0, 0.060, 0.6, 0.0, 0.000, 0.0, 0.0),  # w
    (270, 2150, 2850, 2500, 0.0, 0.060, 0.6, 0.0, 0.000, 0.0, 0.0),  # j
    (320, 1100, 2300, 1900, 0.0, 0.090, 0.0, 0.35, 0.000, 0.0, 0.0),  # f
    (320, 1650, 2500, 3600, 0.0, 0.100, 0.0, 0.90, 0.000, 0.0, 0.0),  # s
    (320, 1800, 2400, 2500, 0.0, 0.100, 0.0, 0.90, 0.000, 0.0, 0.0),  # ʃ
    (420, 1300, 2300, 1300, 0.0, 0.090, 0.0, 0.60, 0.000, 0.0, 0.0),  # x
    (290, 1650, 2500, 3500, 0.0, 0.080, 0.4, 0.40, 0.000, 0.0, 0.0),  # z
    (280, 850, 2200, 1000, 0.0, 0.070, 0.0, 0.0, 0.020, 0.0, 0.60),  # p
    (280, 1700, 2600, 3300, 0.0, 0.060, 0.0, 0.0, 0.025, 0.0, 0.90),  # t
    (280, 1900, 2300, 1900, 0.0, 0.060, 0.0, 0.0, 0.030, 0.0, 0.80),  # k
    (270, 850, 2200, 1000, 0.0, 0.060, 0.15, 0.0, 0.010, 0.3, 0.40),  # b
    (270, 1700, 2600, 3000, 0.0, 0.050, 0.15, 0.0, 0.012, 0.3, 0.50),  # d
    (500, 1450, 2450, 2500, 0.0, 0.000, 0.0, 0.0, 0.000, 0.0, 0.0),  # nothing
    (500, 1450, 2450, 2500, 0.0, 0.300, 0.0, 0.0, 0.000, 0.0, 0.0),  # a pause
])  # fmt: skip
FORMANTS, HISS_AT, NASAL = SOUNDS[:, :3], SOUNDS[:, 3], SOUNDS[:, 4]
LENGTH, VOICING, HISSING = SOUNDS[:, 5::3], SOUNDS[:, 6::3], SOUNDS[:, 7::3]  # held, released
VOWELS, NOTHING, PAUSE = 9, len(SOUNDS) - 2, len(SOUNDS) - 1
FOURTH_FORMANT = 3500.0  # Hz, as the others of a neutral male tract
HIGHEST_FORMANT = 3900.0  # Hz; higher ones would fold back at this rate
HISS_BANDWIDTH = 700.0  # Hz
SHORTEST = 5.0  # seconds of a call
LINE_POINTS = (300.0, 550.0, 900.0, 1350.0, 1900.0, 2600.0, 3400.0)  # Hz, where lines differ


@dataclass(frozen=True)
class Voice:
    """What a speaker keeps from call to call."""

    pitch: float  # Hz, mean
    melody: float  # semitones, spread of the pitch
    jitter: float  # relative, from period to period
    shimmer: float  # relative, from pulse to pulse
    open_quotient: float  # share of the period in which the glottis is open
    tilt: float  # 0..1, pole of the low-pass on the source
    breath: float  # noise through the open glottis
    tract: float  # factor on all formants: below 1 is a longer vocal tract
    bandwidth: float  # factor on all bandwidths
    nasality: float  # 0..1, how much all sounds go through the nose
    nasal_pole: float  # Hz
    hiss: float  # factor on the centre of all fricatives
    tempo: float  # factor on the speaking rate
    accent: Floats  # (sounds, 4) natural log of the factor on every formant


@dataclass(frozen=True)
class Session:
    """What differs from call to call."""

    pitch: float = 1.0  # factor
    tract: float = 1.0  # factor
    tempo: float = 1.0  # factor
    effort: float = 0.0  # added to the tilt
    line: tuple[float, ...] = (0.0,) * len(LINE_POINTS)  # dB at LINE_POINTS
    level: float = -24.0  # dB of speech below full scale
    noise: float = -40.0  # dB of line noise below speech
    crosstalk: float = -42.0  # dB of the other side, below its level


# What decides how well voices can be told apart, in natural logarithms of frequency. The last one
# was tuned: see the top of the file.
TRACT_SPREAD = 0.045  # of the tract within either group of voices
ACCENT_SPREAD = 0.035  # of a voice's formants, and again of every sound
SESSION_SPREAD = 0.044  # of the tract from call to call


def make_voices(count: int, rng: Rng) -> list[Voice]:
    """Voices apart from one another; the first ones are the same whatever the count."""
    return [_voice(child) for child in rng.spawn(count)]


def _voice(rng: Rng) -> Voice:
    high = rng.random() < 0.5  # two groups, as women and men
    own, every = rng.standard_normal(4), rng.standard_normal((len(SOUNDS), 4))
    return Voice(
        pitch=(205.0 if high else 115.0) * rng.lognormal(0.0, 0.13),
        melody=rng.uniform(1.2, 3.0),
        jitter=rng.uniform(0.004, 0.015),
        shimmer=rng.uniform(0.03, 0.10),
        open_quotient=rng.uniform(0.45, 0.75),
        tilt=rng.uniform(0.0, 0.75),
        breath=rng.uniform(0.02, 0.3),
        tract=(1.15 if high else 1.0) * rng.lognormal(0.0, TRACT_SPREAD),
        bandwidth=rng.lognormal(0.0, 0.3),
        nasality=rng.uniform(0.0, 0.4),
        nasal_pole=rng.uniform(800.0, 1300.0),
        hiss=rng.lognormal(0.0, 0.12),
        tempo=rng.lognormal(0.0, 0.10),
        accent=ACCENT_SPREAD * (own + every),
    )


def draw_session(rng: Rng) -> Session:
    """Another day, another line."""
    octaves = np.log2(np.array(LINE_POINTS) / 1000.0)
    line = rng.normal(0.0, 1.0) * octaves + rng.normal(0.0, 2.0, len(octaves))
    return Session(
        pitch=rng.lognormal(0.0, 0.05),
        tract=rng.lognormal(0.0, SESSION_SPREAD),
        tempo=rng.lognormal(0.0, 0.08),
        effort=rng.normal(0.0, 0.08),
        line=tuple(line.tolist()),
        level=rng.uniform(-27.0, -20.0),
        noise=rng.uniform(-46.0, -36.0),
        crosstalk=rng.uniform(-50.0, -38.0),
    )


# --- one voice -----------------------------------------------------------------------------------


def speak(voice: Voice, session: Session, seconds: float, rng: Rng) -> NDArray[np.float32]:
    """Babble of this length, before the telephone; its loudness is the voice's own."""
    frames = max(1, round(seconds * FRAMES))
    sounds, held, pitch = _script(voice, session, frames, rng)

    def track(value: Floats, milliseconds: float) -> Floats:
        both = value if value.ndim == 2 else np.column_stack([value, value])  # held, released
        return _smooth(np.repeat(both.ravel(), held.ravel())[:frames], milliseconds)

    neutral = np.column_stack([FORMANTS, np.full(len(SOUNDS), FOURTH_FORMANT)])
    own = neutral * np.exp(voice.accent) * voice.tract * session.tract
    fade = np.minimum(1.0, np.minimum(np.arange(frames), np.arange(frames)[::-1]) / 15.0)
    pulses = frames * FRAME // 20 + 1  # used again from the first one beyond 400 Hz
    samples = _vocalise(
        track(pitch, 90.0),
        track(VOICING[sounds], 24.0) * fade,
        track(HISSING[sounds], 12.0) * fade,
        *_tract(voice, [track(f, 60.0) for f in own[sounds].T], track(NASAL[sounds], 40.0)),
        _resonator(track(HISS_AT[sounds] * voice.hiss * voice.tract, 20.0), HISS_BANDWIDTH),
        1.0 + voice.jitter * rng.standard_normal(pulses),
        1.0 + voice.shimmer * rng.standard_normal(pulses),
        rng.standard_normal(frames * FRAME),
        *(voice.open_quotient, min(0.9, max(0.0, voice.tilt + session.effort)), voice.breath),
    )
    return np.asarray(samples, np.float32)


def _script(
    voice: Voice, session: Session, frames: int, rng: Rng
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Sounds (n,), frames of their held and released parts (n, 2), and their pitch (n,)."""
    count = frames // (FRAMES // 12) + 4  # syllables, more than fit
    onset = rng.integers(VOWELS, NOTHING + 1, count)
    vowel = rng.integers(0, VOWELS, count)
    coda = np.where(rng.random(count) < 0.35, rng.integers(VOWELS, NOTHING, count), NOTHING)
    last = rng.random(count) < 1.0 / 7.0  # of a phrase
    sounds = np.column_stack([onset, vowel, coda, np.where(last, PAUSE, NOTHING)]).ravel()
    tempo = voice.tempo * session.tempo * np.exp(0.25 * rng.standard_normal((len(sounds), 2)))
    begin = np.maximum.accumulate(np.where(np.roll(last, 1), np.arange(count), 0))
    falling = 1.0 - 0.3 * np.minimum(np.arange(count) - begin, 6)
    semitones = voice.melody * (0.7 * falling + 0.6 * rng.standard_normal(count))
    pitch = voice.pitch * session.pitch * np.exp2(semitones / 12.0)
    held = np.rint(LENGTH[sounds] / tempo * FRAMES).astype(np.int64)
    return sounds, held, np.repeat(pitch, 4)


def _smooth(track: Floats, milliseconds: float) -> Floats:
    """Glide instead of jump: a Hann-weighted mean over this time."""
    half = round(milliseconds * FRAMES / 2000.0)
    window = np.hanning(2 * half + 3)[1:-1]
    return np.convolve(np.pad(track, half, mode="edge"), window / window.sum(), mode="valid")


def _tract(voice: Voice, formants: list[Floats], nasal: Floats) -> tuple[Floats, Floats]:
    """Resonators (frames, 5, 3), the last one nasal, and the zero (frames, 3) that undoes it."""

    def bandwidth(frequency: Floats) -> Floats:
        return voice.bandwidth * (40.0 + frequency / 25.0)

    pole = np.full(len(nasal), voice.nasal_pole)
    zero = pole * (1.0 + 0.4 * np.maximum(nasal, voice.nasality))
    poles = np.column_stack([*formants, pole])
    return _resonator(poles, bandwidth(poles)), _resonator(zero, bandwidth(zero))


def _resonator(frequency: Floats, bandwidth: Floats | float) -> Floats:
    """(..., 3) coefficients of y = a x + b y[-1] + c y[-2], gain 1 at 0 Hz."""
    radius = np.exp(-np.pi / RATE * bandwidth) + np.zeros_like(frequency)
    b = 2.0 * radius * np.cos(2.0 * np.pi / RATE * np.minimum(frequency, HIGHEST_FORMANT))
    return np.stack([1.0 - b + radius**2, b, -(radius**2)], axis=-1)


@nb.njit(cache=True)
def _vocalise(  # type: ignore[no-untyped-def]
    pitch, voicing, hissing, tract, zero, hiss, jitter, shimmer, noise, open_quotient, tilt, breath
):
    """Source and filters, sample by sample; all but the noise is set once a frame.

    The flow of a pulse is u^2 (1 - u) over the open phase; its difference, the mean of the slope
    over a sample, drives the tract, scaled so that the closure is as sharp at any pitch.
    """
    out = np.empty(len(noise))
    resonators = tract.shape[1]
    y1, y2 = np.zeros(resonators), np.zeros(resonators)
    x1 = x2 = h1 = h2 = flow = source = 0.0
    phase, pulse, period = 0.0, 0, RATE / (pitch[0] * jitter[0])
    for n in range(len(noise)):
        t = n // FRAME
        phase += 1.0 / period
        if phase >= 1.0:
            pulse = (pulse + 1) % len(jitter)
            phase -= 1.0
            period = RATE / (pitch[t] * jitter[pulse])
        u = phase / open_quotient
        now = 6.75 * u * u * (1.0 - u) if u < 1.0 else 0.0
        slope = (now - flow) * period * shimmer[pulse]
        flow = now
        excitation = voicing[t] * (slope + breath * noise[n] * (0.3 + now))
        source += (1.0 - tilt) * (excitation - source)
        x = (source - zero[t, 1] * x1 - zero[t, 2] * x2) / zero[t, 0]
        x2, x1 = x1, source
        for r in range(resonators):
            y = tract[t, r, 0] * x + tract[t, r, 1] * y1[r] + tract[t, r, 2] * y2[r]
            y2[r], y1[r] = y1[r], y
            x = y
        h = hissing[t] * noise[n] + hiss[t, 1] * h1 + hiss[t, 2] * h2
        h2, h1 = h1, h
        out[n] = x + h
    return out


# --- a call --------------------------------------------------------------------------------------


def call(voice_1: Voice, voice_2: Voice, rng: Rng, seconds: float = 30.0) -> NDArray[np.int16]:
    """(samples, 2) a call between two voices, the first on channel 1; both of them speak."""
    if seconds < SHORTEST:
        raise SpklinkError(f"a call of {seconds} s: both sides need time, at least {SHORTEST} s")
    voices, sessions = (voice_1, voice_2), (draw_session(rng), draw_session(rng))
    speech = np.zeros((2, round(seconds * RATE)))
    for side, begin, length in _turns(seconds, rng):
        said = speak(voices[side], sessions[side], length, rng)
        part = speech[side, round(begin * RATE) :][: len(said)]
        part += said[: len(part)]
    sent = [send(speech[side], sessions[side]) for side in (0, 1)]
    heard = [receive(sent[side], sent[1 - side], sessions[side], rng) for side in (0, 1)]
    return np.stack([_mu_law_table()[np.rint(x * 32768.0).astype(np.int32)] for x in heard], 1)


def _turns(seconds: float, rng: Rng) -> Iterator[tuple[int, float, float]]:
    """(side, begin, length): one speaks while the other listens, and now and then says a word."""
    side = int(rng.integers(2))
    begin = rng.uniform(0.3, 1.0)
    while begin < seconds - 0.6:
        length = min(rng.gamma(4.0, 0.7) + 0.8, seconds / 4.0, seconds - 0.1 - begin)
        yield side, begin, length
        if length > 2.5 and rng.random() < 0.5:
            yield 1 - side, begin + rng.uniform(0.4, 0.7) * length, 0.35
        begin += length + rng.uniform(-0.1, 0.5)
        side = 1 - side


def send(speech: Floats, session: Session) -> Floats:
    """Through handset and line, at the session's level; full scale is 1."""
    speaking = speech != 0.0
    sent = _band(speech, session.line)
    loudness = np.sqrt(np.mean(sent[speaking] ** 2))
    return np.asarray(sent * (10.0 ** (session.level / 20.0) / loudness))


def receive(own: Floats, other: Floats, session: Session, rng: Rng) -> Floats:
    """With the other side's echo, 10 ms late, and the line's noise; never above full scale."""
    echo = 10.0 ** (session.crosstalk / 20.0) * np.roll(other, RATE // 100)  # a call ends silent
    noise = 10.0 ** ((session.level + session.noise) / 20.0) * rng.standard_normal(len(own))
    heard = own + echo + _band(noise, (0.0,) * len(LINE_POINTS))
    return np.asarray(heard * min(1.0, 0.95 / np.abs(heard).max()))


def _band(signal: Floats, line: tuple[float, ...]) -> Floats:
    """The telephone band with these decibels at LINE_POINTS, which span it."""
    from scipy.signal import firwin2

    points = [0.0, BAND[0] - 50.0, *LINE_POINTS, BAND[1] + 50.0, RATE / 2]
    gains = [0.0, 0.0, *(10.0 ** (decibels / 20.0) for decibels in line), 0.0, 0.0]
    return np.convolve(signal, firwin2(161, points, gains, fs=RATE), mode="same")


@lru_cache(maxsize=1)
def _mu_law_table() -> NDArray[np.int16]:
    """(65536,) the nearest of the 255 levels of G.711 to every 16-bit sample, also negative ones.

    Negative samples index the table from its end, as numpy does.
    """
    chord, step = np.arange(8)[:, None], np.arange(16)
    positive = 4 * ((2 * step + 33) * 2**chord - 33).ravel()
    levels = np.concatenate([-positive[:0:-1], positive])
    sample = np.concatenate([np.arange(32768), np.arange(-32768, 0)])
    return levels[np.searchsorted((levels[1:] + levels[:-1]) / 2.0, sample)].astype(np.int16)


# --- a database ----------------------------------------------------------------------------------


def write_database(
    folder: str | PathLike[str], *, seed: int = 0, seconds: tuple[float, float] = (25.0, 40.0)
) -> list[Path]:
    """conversations.csv, key.csv and audio/*.wav (stereo, mu-law); the paths written."""
    import soundfile

    folder = Path(folder)
    (folder / "audio").mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    table = as_table(demo_calls(rng), rng)
    voices = make_voices(len(table.speakers), rng)
    truth = rng.integers(0, 2, len(table)).astype(np.int8)
    on_channel = two_each(speakers_on(table, truth))
    paths = [folder / "audio" / f"{name}.wav" for name in table.ids]
    for path, (one, two), child in zip(paths, on_channel, rng.spawn(len(table)), strict=True):
        samples = call(voices[one], voices[two], child, child.uniform(*seconds))
        with replacing(path) as file:
            soundfile.write(file, samples, RATE, subtype="ULAW", format="WAV")
    listed = write_table(folder, table, [f"audio/{path.name}" for path in paths])
    on_side = [table.speakers[who] for who in on_channel.ravel().tolist()]
    return [listed, write_key(folder, table, on_side), *paths]


def demo_calls(rng: Rng) -> list[tuple[int, int]]:
    """Who calls whom, clique by clique in random order; speakers numbered apart in every one."""
    plans = [(size, people) for size, people, cliques in DEMO_CLIQUES for _ in range(cliques)]
    return clique_calls(plans, rng)
