"""From decoded audio to warped features: speed on one core, beside librosa and kaldi-native-fbank.

python benchmarks/front_end.py

Everything is measured in this run, as processor time, best of several. Peers get the same
parameters, and their numbers are compared with ours before anything is timed. kaldi-native-fbank
has no deltas, so it is timed without them. With SPKLINK_DATA set to a folder with harpervalley/,
real calls are timed too.
"""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable
from pathlib import Path

from timing import Runs, best_of, ratio, show, use_one_core

use_one_core()

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.special import ndtri

from spklink.sound.features import (
    DEFAULT,
    PRESETS,
    mfcc,
    side_features,
    warp,
)

Sound = NDArray[np.float32]
Floats = NDArray[np.float32]
RATE, STEP, WINDOW, SIZE = 8000, 80, 200, 256
CALLS = 40  # real calls timed


def run() -> None:
    """Print the tables."""
    sound = synthetic(120.0, seed=1, pauses=False)
    compare(sound[: 20 * RATE])
    peers = [*cepstra(sound), warping(mfcc(sound))]
    show("Microseconds a frame", ["step", "peer", "ours", "theirs", "ratio", "demanded"], peers)
    speeds = [*whole("noise, all of it speech", [sound])]
    speeds += whole("noise, 45 % of it speech", [synthetic(120.0, seed=2)])
    if folder := os.environ.get("SPKLINK_DATA"):
        speeds += real(Path(folder, "harpervalley"))
    show("Times real time, a channel", ["audio", "preset", "speed", "demanded"], speeds)


def synthetic(seconds: float, seed: int, pauses: bool = True) -> Sound:
    """Noise through slowly changing resonances: as broad, and as uneven, as speech."""
    rng = np.random.default_rng(seed)
    pieces = []
    for _ in range(round(seconds / 0.2)):
        poles = 0.95 * np.exp(2j * np.pi * rng.uniform(200, 3400, 3) / RATE)
        voice = lfilter([1.0], np.poly([*poles, *poles.conj()]).real, rng.standard_normal(1600))
        loud = rng.uniform(0.3, 1) if not pauses or rng.random() < 0.45 else 1e-4
        pieces.append(0.05 * loud * voice / voice.std() + 1e-5 * rng.standard_normal(1600))
    return np.concatenate(pieces).astype(np.float32)


# ----------------------------------------------------------------------------------- numbers


def compare(sound: Sound) -> None:
    """Stop unless the peers, set to the same parameters, give the same numbers."""
    ours = mfcc(sound)
    kaldi = float(np.abs(ours[:, :20] - kaldi_cepstra(emphasised(sound), 0.0)).max())
    librosa = float(np.abs(ours - librosa_same(sound)).max())
    print(f"largest difference of cepstra to kaldi-native-fbank {kaldi:.1e}")
    print(f"largest difference of cepstra and deltas to librosa {librosa:.1e}\n")
    if not (kaldi < 2e-3 and librosa < 2e-3):
        raise SystemExit("the numbers differ; speeds would mean nothing")


def emphasised(sound: Sound) -> Sound:
    """Both peers begin each frame, or the recording, in another way; so this is done for them."""
    before = np.concatenate([sound[:1], sound[:-1]])
    return sound - np.float32(0.97) * before


def kaldi_cepstra(sound: Sound, emphasis: float, fetch: bool = True) -> Floats:
    import kaldi_native_fbank as knf

    options = knf.MfccOptions()
    frame, mel = options.frame_opts, options.mel_opts
    frame.samp_freq, frame.dither, frame.preemph_coeff = RATE, 0.0, emphasis
    frame.remove_dc_offset, frame.window_type, frame.snip_edges = False, "hamming", True
    mel.num_bins, mel.low_freq, mel.high_freq = DEFAULT.bands, DEFAULT.lowest, DEFAULT.highest
    options.num_ceps, options.use_energy, options.cepstral_lifter = DEFAULT.cepstra, False, 0.0
    computer = knf.OnlineMfcc(options)
    computer.accept_waveform(RATE, sound * np.float32(32768))
    computer.input_finished()
    if not fetch:
        return np.zeros((0, DEFAULT.cepstra), np.float32)
    return np.array([computer.get_frame(t) for t in range(computer.num_frames_ready)])


def librosa_same(sound: Sound) -> Floats:
    """librosa's spectra, DCT and deltas; its mel triangles are straight in Hz, ours in mel."""
    import librosa

    margin = (SIZE - WINDOW) // 2  # librosa puts the window into the middle of the transform
    padded = np.pad(emphasised(sound) * np.float32(32768), (margin, SIZE))
    spectra = librosa.stft(
        padded, n_fft=SIZE, hop_length=STEP, win_length=WINDOW, window=np.hamming(WINDOW),
        center=False,
    )  # fmt: skip
    count = (len(sound) - WINDOW) // STEP + 1
    logs = np.log(np.maximum(mel_weights() @ np.abs(spectra[:, :count]) ** 2, 1.0))
    cepstra = librosa.feature.mfcc(S=logs, n_mfcc=DEFAULT.cepstra)
    deltas = [librosa.feature.delta(cepstra, width=5, mode="nearest")]
    deltas.append(librosa.feature.delta(deltas[0], width=5, mode="nearest"))
    return np.vstack([cepstra, *deltas]).T


def mel_weights() -> NDArray[np.float64]:
    """(bands, bins) triangles on the mel scale."""
    low, high = (2595 * np.log10(1 + f / 700) for f in (DEFAULT.lowest, DEFAULT.highest))
    edges = np.linspace(low, high, DEFAULT.bands + 2)
    mel = 2595 * np.log10(1 + np.arange(SIZE // 2 + 1) * RATE / SIZE / 700)
    up = (mel - edges[:-2, None]) / np.diff(edges)[:-1, None]
    down = (edges[2:, None] - mel) / np.diff(edges)[1:, None]
    return np.maximum(0.0, np.minimum(up, down))


# ------------------------------------------------------------------------------------ speeds


def best_time(work: Callable[[], object], rounds: int = 5) -> Runs:
    """Seconds of processor time, the first round (compiling, caches) apart."""
    return best_of(work, repeat=rounds, clock=time.process_time)


def row(step: str, peer: str, ours: Runs, theirs: Runs, demanded: str) -> tuple[str, ...]:
    """All in microseconds a frame."""
    return step, peer, shown(ours), shown(theirs), ratio(theirs, ours), demanded


def shown(some: Runs) -> str:
    return f"{some:.2f} ({some.median:.2f}, {some.most:.2f})"


def a_frame(some: Runs, frames: int) -> Runs:
    """Microseconds."""
    return Runs(1e6 * taken / frames for taken in some.every)


def cepstra(sound: Sound) -> list[tuple[str, ...]]:
    count = (len(sound) - WINDOW) // STEP + 1
    ours = a_frame(best_time(lambda: mfcc(sound)), count)
    librosa = a_frame(best_time(lambda: librosa_own(sound)), count)
    kaldi = a_frame(best_time(lambda: kaldi_cepstra(sound, 0.97), 3), count)
    inside = a_frame(best_time(lambda: kaldi_cepstra(sound, 0.97, fetch=False), 3), count)
    step = "cepstra, deltas"
    return [
        row(step, "librosa", ours, librosa, "2"),
        row(step, "kaldi-native-fbank, no deltas", ours, kaldi, "8"),
        row(step, "the same, frames not fetched", ours, inside, ""),
    ]


def librosa_own(sound: Sound) -> Floats:
    """As one would call librosa."""
    import librosa

    cepstra = librosa.feature.mfcc(
        y=librosa.effects.preemphasis(sound, coef=0.97), sr=RATE, n_mfcc=DEFAULT.cepstra,
        n_fft=SIZE, hop_length=STEP, win_length=WINDOW, window="hamming", center=False, htk=True,
        n_mels=DEFAULT.bands, fmin=DEFAULT.lowest, fmax=DEFAULT.highest,
    )  # fmt: skip
    deltas = [librosa.feature.delta(cepstra, width=5, order=order) for order in (1, 2)]
    return np.vstack([cepstra, *deltas])


def warping(features: Floats) -> tuple[str, ...]:
    some = features[:1000]
    if not np.array_equal(sort_warp(some), warp(some.copy())):
        raise SystemExit("warping differs from sorting; speeds would mean nothing")
    ours = a_frame(best_time(lambda: warp(features.copy())), len(features))
    theirs = a_frame(best_time(lambda: sort_warp(some), 2), len(some))
    return row("warping", "numpy, every window sorted", ours, theirs, "50")


def sort_warp(features: Floats, window: int = 401) -> Floats:
    table = ndtri((np.arange(window) + 0.5) / window).astype(np.float32)
    out = np.empty_like(features)
    for t, frame in enumerate(features):
        start = min(max(t - window // 2, 0), len(features) - window)
        ordered = np.sort(features[start : start + window], axis=0)
        out[t] = table[(ordered < frame).sum(axis=0)]
    return out


def whole(what: str, channels: list[Sound]) -> list[tuple[str, ...]]:
    """Decoded audio → warped features."""
    seconds = sum(len(channel) for channel in channels) / RATE
    rows = []
    for name, settings in PRESETS.items():
        taken = best_time(lambda s=settings: [side_features(c, s) for c in channels])
        rows.append((what, name, times_real(seconds, taken), "3000"))
    return rows


def times_real(seconds: float, taken: Runs) -> str:
    """Most, and that of the median and of the slowest run."""
    return f"{seconds / taken:.0f} ({seconds / taken.median:.0f}, {seconds / taken.most:.0f})"


def real(folder: Path) -> list[tuple[str, ...]]:
    import soundfile

    with (folder / "conversations.csv").open() as table:
        files = [(folder / call["audio"],) for call in csv.DictReader(table)][:CALLS]
    sounds = [soundfile.read(file[0], dtype="float32")[0] for file in files]
    channels = [np.ascontiguousarray(sound[:, k]) for sound in sounds for k in range(2)]
    seconds = sum(len(channel) for channel in channels) / RATE
    taken = best_time(lambda: [DEFAULT.hear(file, 2) for file in files], 3)
    from_file = ("the same, from FLAC files", "default", times_real(seconds, taken), "")
    return [*whole(f"{CALLS} real calls", channels), from_file]


if __name__ == "__main__":
    run()
