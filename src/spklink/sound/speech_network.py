"""Where someone speaks, told by a network (Silero's): noise and music are not speech to it.

The network hears all tracks of a recording side by side, 32 ms after 32 ms, and remembers what it
heard before. A frame is speech where it says so of the 32 ms that the middle of the frame lies in
and the frame is loud enough for the energy detector, whose settings it has too: a voice that comes
through from the other channel is speech as well, and only faint.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.onnx_files import Network, network_hash, open_network
from spklink.sound.speech import Detector, Framing

Mask = NDArray[np.bool_]
Singles = NDArray[np.float32]
INPUTS, OUTPUTS = {"input", "state", "sr"}, {"output", "stateN"}
BLOCKS = {16000: 512, 8000: 256}  # samples at a time, by rate
BEFORE = 8  # a block also has the end of the one before it: one sample in so many of a block
STATE = (2, 128)
BOTH_RATES = "the detector for 8 and 16 kHz (silero_vad.onnx)"


@dataclass(frozen=True)
class SpeechNetwork(Detector):
    """An energy detector that also asks a network. Make it with `speech_network`."""

    threshold: float = 0.5
    sha256: str = ""
    path: Path = field(default=Path(), compare=False)

    @property
    def key(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "path"}

    def listener(self, tracks: int, framing: Framing) -> Listener:
        return Listener(self, tracks, framing)


def speech_network(path: str | Path) -> SpeechNetwork:
    """The detector in a file; another network is refused."""
    place = Path(path)
    network = open_network(place)
    inputs = {one.name for one in network.signature.inputs}
    outputs = {one.name for one in network.signature.outputs}
    if inputs != INPUTS or outputs != OUTPUTS:
        takes = ", ".join(map(str, network.signature.inputs))
        raise SpklinkError(
            f"{place}: no speech detector that can be used: it takes {takes}; Silero's takes "
            f"{', '.join(sorted(INPUTS))} and gives {', '.join(sorted(OUTPUTS))}"
        )
    return SpeechNetwork(sha256=network_hash(place), path=place.absolute())


def check_rate(detector: Detector, rate: int) -> None:
    """Refuse a detector that cannot hear sound of this rate."""
    if not isinstance(detector, SpeechNetwork):
        return
    if rate not in BLOCKS:
        raise SpklinkError(
            f"{detector.path}: hears 8000 or 16000 samples a second, and the recognizer wants "
            f"{rate}; use --speech energy"
        )
    if rate == 8000 and _one_rate(open_network(detector.path, detector.sha256)):
        raise SpklinkError(
            f"{detector.path}: hears 16 kHz only, and the recognizer 8 kHz; use {BOTH_RATES}, or "
            "--speech energy"
        )


def _one_rate(network: Network) -> bool:
    """Whether it takes no notice of the rate it is told; 16 kHz it hears in any case."""
    found = []
    for rate in BLOCKS:
        try:
            found.append(_heard(network, rate, np.ones((1, 576), np.float32), _nothing(1))[0])
        except SpklinkError:
            return False
    return bool(np.array_equal(found[0], found[1]))


def _nothing(tracks: int) -> Singles:
    return np.zeros((STATE[0], tracks, STATE[1]), np.float32)


def _heard(network: Network, rate: int, sound: Singles, state: Singles) -> tuple[Singles, Singles]:
    """How probable speech is on each track, and what to remember."""
    told: NDArray[Any] = np.array(rate, np.int64)
    feeds: dict[str, NDArray[Any]] = {"input": sound, "state": state, "sr": told}
    found, state = network(feeds, "output", "stateN")
    return found[:, 0], state


class Listener:
    """Hears one recording as it goes by, in pieces of any length."""

    def __init__(self, detector: SpeechNetwork, tracks: int, framing: Framing) -> None:
        self.framing, self.threshold = framing, detector.threshold
        self.network = open_network(detector.path, detector.sha256)
        self.size = BLOCKS[framing.rate]
        self.state = _nothing(tracks)
        self.rest = np.zeros((tracks, self.size // BEFORE), np.float32)
        self.found: list[Singles] = []

    def add(self, sound: Singles) -> None:
        """(tracks, samples) more of it."""
        before = self.size // BEFORE
        sound = np.hstack([self.rest, sound])
        at = 0
        while sound.shape[1] - at >= before + self.size:
            self._take(sound[:, at : at + before + self.size])
            at += self.size
        self.rest = sound[:, at:].copy()

    def _take(self, block: Singles) -> None:
        block = np.ascontiguousarray(block, np.float32)
        said, self.state = _heard(self.network, self.framing.rate, block, self.state)
        self.found.append(said)

    def masks(self, counts: list[int]) -> list[Mask]:
        """Of each track: which of so many frames are speech. Nothing can be added afterwards."""
        left = self.rest.shape[1] - self.size // BEFORE
        if left > 0:
            self._take(np.pad(self.rest, [(0, 0), (0, self.size - left)]))
        if not self.found:
            return [np.zeros(count, np.bool_) for count in counts]
        spoken = np.stack(self.found) > self.threshold
        step, half = self.framing.step, self.framing.window // 2
        masks = []
        for k, count in enumerate(counts):
            block = (np.arange(count) * step + half) // self.size
            masks.append(spoken[np.minimum(block, len(spoken) - 1), k])
        return masks
