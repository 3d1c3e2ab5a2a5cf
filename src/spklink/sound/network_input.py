"""What a network is given of a side's speech: a filterbank or the samples, whole or in pieces.

The features of a side are made and normalised once, then cut. A side that is longer than a piece
is cut into pieces of one length, so that they go through the network together: pieces that differ
in length by nothing cost one call, not many. Where the network takes any length they lie side by
side and none is longer than `piece_seconds`; where its length is fixed each begins `hop_seconds`
after the last one, and the last ends with the speech. What is too short is said again until it is
long enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spklink.onnx_files import needed

Singles = NDArray[np.float32]
FILTERBANK, WAVEFORM = "filterbank", "waveform"
NORMALISE = ("none", "mean", "mean and deviation")
LAYOUTS = ("frames, bins", "bins, frames")
WINDOWS = ("povey", "hamming", "hanning", "hann", "rectangular", "blackman", "sine")
MELS = ("htk", "slaney")
LENGTHS = ("frames", "samples", "share")
SHORTEST = 0.5  # seconds; networks of many layers fail on less
SMALL = 1e-5  # added to a deviation, as in NeMo


@dataclass(frozen=True)
class Wants:
    """The settings of a network; the keys of a settings file."""

    input: str = FILTERBANK
    rate: int = 16000  # samples a second
    scale: float = 1.0  # the samples, full scale 1, are multiplied by this
    level: float | None = None  # dB below full scale to which a side is brought; None: as it is
    bins: int = 80
    window: str = "povey"
    frame_ms: float = 25.0
    step_ms: float = 10.0
    preemphasis: float = 0.97
    remove_offset: bool = True  # of every frame
    power_of_two: bool = True  # frames are filled up for the Fourier transform
    lowest_hz: float = 20.0
    highest_hz: float = 0.0  # 0: half the rate; below 0: less than that
    mel: str = "htk"
    feature_scale: float = 1.0  # features are multiplied by this
    normalise: str = "mean"  # over the speech of a side
    layout: str = "frames, bins"
    batch: bool = True  # whether the first axis counts pieces
    fixed_length: bool = False
    piece_seconds: float = 30.0
    hop_seconds: float = 0.0  # 0: as long as a piece
    longest_seconds: float = 120.0  # of speech used of a side, from its beginning
    input_name: str = ""
    length_name: str = ""  # "": there is no such input
    length_unit: str = "frames"
    output_name: str = ""

    def frames(self, seconds: float) -> int:
        """Rows of an input of so many seconds: frames, or samples."""
        if self.input == WAVEFORM:
            return round(seconds * self.rate)
        return max(1, round((1000.0 * seconds - self.frame_ms) / self.step_ms) + 1)

    def advance(self, seconds: float) -> int:
        """Rows that go by in so many seconds."""
        if self.input == WAVEFORM:
            return max(1, round(seconds * self.rate))
        return max(1, round(1000.0 * seconds / self.step_ms))


def pieces_of(samples: Singles, wants: Wants) -> Singles:
    """(pieces, frames, bins) or (pieces, samples): all that the network is given of a side."""
    rows = _rows(_long_enough(samples, wants), wants)
    starts, length = cuts(len(rows), wants)
    return np.stack([rows[at : at + length] for at in starts])


def _long_enough(samples: Singles, wants: Wants) -> Singles:
    seconds = wants.piece_seconds if wants.fixed_length else min(SHORTEST, wants.piece_seconds)
    least = round(seconds * wants.rate)
    return samples if len(samples) >= least else np.resize(samples, least)


def cuts(count: int, wants: Wants) -> tuple[list[int], int]:
    """Where the pieces of so many rows begin, and how long they are."""
    most = wants.frames(wants.piece_seconds)
    if not wants.fixed_length:
        number = -(-count // most)
        return [k * count // number for k in range(number)], count // number
    hop = wants.advance(wants.hop_seconds) if wants.hop_seconds else most
    starts = list(range(0, count - most + 1, hop))
    if starts[-1] + most < count:
        starts.append(count - most)
    return starts, most


def _rows(samples: Singles, wants: Wants) -> Singles:
    samples = (samples * np.float32(_gain(samples, wants))).astype(np.float32)
    if wants.input == WAVEFORM:
        return samples
    return normalised(filterbank(samples, wants), wants.normalise)


def _gain(samples: Singles, wants: Wants) -> float:
    if wants.level is None:
        return wants.scale
    power = float(np.mean(np.square(samples, dtype=np.float64)))
    return float(wants.scale * 10.0 ** (wants.level / 20.0) / max(power**0.5, 1e-9))


def filterbank(samples: Singles, wants: Wants) -> Singles:
    """(frames, bins) logarithms of the energies in mel bands, as Kaldi has them, without dither."""
    kaldi = needed("kaldi_native_fbank")
    options = kaldi.FbankOptions()
    frame, mel = options.frame_opts, options.mel_opts
    frame.samp_freq, frame.dither, frame.snip_edges = float(wants.rate), 0.0, True
    frame.frame_length_ms, frame.frame_shift_ms = wants.frame_ms, wants.step_ms
    frame.window_type, frame.preemph_coeff = wants.window, wants.preemphasis
    frame.remove_dc_offset, frame.round_to_power_of_two = wants.remove_offset, wants.power_of_two
    mel.num_bins, mel.low_freq, mel.high_freq = wants.bins, wants.lowest_hz, wants.highest_hz
    mel.is_librosa = wants.mel == "slaney"
    bank = kaldi.OnlineFbank(options)
    bank.accept_waveform(wants.rate, samples.tolist())
    bank.input_finished()
    found = np.stack([bank.get_frame(t) for t in range(bank.num_frames_ready)])
    return np.asarray(found * np.float32(wants.feature_scale), np.float32)


def normalised(rows: Singles, how: str) -> Singles:
    """Every bin about its mean over the side, and by its deviation where that is wanted."""
    if how == "none":
        return rows
    rows = rows - rows.mean(0, dtype=np.float64).astype(np.float32)
    if how == "mean and deviation":
        rows = rows / (rows.std(0, ddof=1, dtype=np.float64).astype(np.float32) + np.float32(SMALL))
    return np.asarray(rows, np.float32)
