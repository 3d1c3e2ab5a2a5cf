"""The front end of networks: what a network makes of the speech of a side, piece by piece.

The network runs where the sound is decoded, so that the cache holds a few vectors a side, not its
samples: a hundred times less, and memory does not grow with the number of calls. The pieces of a
side go through the network together, those of other sides never with them: the vectors of a side
depend on its sound alone, on any number of workers.

A side is told by the hash of its samples, as that of its vectors would differ from machine to
machine.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from spklink.database.segments import Turns
from spklink.errors import SpklinkError
from spklink.onnx_files import Network, Tensor, open_network, unit
from spklink.sound.audio import Problem
from spklink.sound.front_end import Side
from spklink.sound.network_input import FILTERBANK, Wants, pieces_of
from spklink.sound.waveform import Waveform

Singles = NDArray[np.float32]
VERSION = 1  # of the vectors: a change makes cached ones worthless
AT_ONCE = 16  # pieces in one call of the network: a choice that bounds the memory
MEMORY = 60.0  # seconds of sound in one call: the same for long pieces
WIDEN = 10  # frames before and after speech that also belong to it


@dataclass(frozen=True)
class Embedded(Waveform):
    """A front end that asks a network. Make it with `embedded`."""

    network: Path = field(default=Path(), compare=False)
    sha256: str = ""
    wants: Wants = field(default_factory=Wants)
    width: int = 0
    heavy: ClassVar[bool] = True  # worth processes, however few recordings there are

    @property
    def key(self) -> dict[str, Any]:
        plain = Waveform(self.detector, self.rate, self.widen, self.longest)
        return {
            "front_end": "network",
            "version": VERSION,
            "sha256": self.sha256,
            "wants": asdict(self.wants),
            "speech": plain.key,
        }

    def hear(
        self,
        files: tuple[Path, ...],
        tracks: int,
        block_seconds: float = 10.0,
        *,
        turns: Turns | None = None,
    ) -> tuple[list[Side], list[Problem]]:
        sides, problems = super().hear(files, tracks, block_seconds, turns=turns)
        network, heard = open_network(self.network, self.sha256), []
        for k, side in enumerate(sides):
            vectors = self.vectors(side.array, network)
            if not np.isfinite(vectors).all():
                text = f"{self.network.name} gives no numbers for this sound"
                problems.append(Problem("network", text, k))
                vectors = vectors[:0]
            sound = hashlib.sha256(side.array.data).hexdigest() if len(side.array) else ""
            heard.append(replace(side, array=vectors, sound=sound))
        return heard, problems

    def vectors(self, samples: Singles, network: Network) -> Singles:
        """(pieces, width) of length one; none where there is no speech."""
        if not len(samples):
            return np.zeros((0, self.width), np.float32)
        pieces = pieces_of(samples, self.wants)
        found = [embed(network, self.wants, some) for some in _batches(pieces, self.wants)]
        return unit(np.concatenate(found))


def embedded(network: Path, sha256: str, wants: Wants, width: int, speech: Any) -> Embedded:
    """The front end of a network that has been tried."""
    place = network.absolute()  # whoever listens may be in another folder
    return Embedded(speech, wants.rate, WIDEN, wants.longest_seconds, place, sha256, wants, width)


def _batches(pieces: Singles, wants: Wants) -> list[Singles]:
    most = max(1, min(AT_ONCE, int(MEMORY / wants.piece_seconds))) if wants.batch else 1
    return [pieces[at : at + most] for at in range(0, len(pieces), most)]


def embed(network: Network, wants: Wants, pieces: Singles) -> Singles:
    """(pieces, width) what a network says of some pieces."""
    turned = wants.input == FILTERBANK and wants.layout == "bins, frames"
    given = np.swapaxes(pieces, 1, 2) if turned else pieces
    axes = len(_input(network, wants.input_name).shape)
    if axes < given.ndim:
        given = given[0]  # no axis for pieces
    elif axes > given.ndim:
        given = given[:, None]  # one for channels
    feeds: dict[str, NDArray[Any]] = {wants.input_name: np.ascontiguousarray(given)}
    if wants.length_name:
        feeds[wants.length_name] = _lengths(network, wants, pieces)
    [found] = network(feeds, wants.output_name)
    rows = len(pieces)
    if found.size == 0 or found.size % rows or max(found.shape) * rows < found.size:
        raise SpklinkError(
            f"{network.path}: output {wants.output_name!r} has shape {list(found.shape)} for "
            f"{rows} pieces of sound; a speaker network gives one vector each"
        )
    return np.asarray(found, np.float32).reshape(rows, -1)


def _input(network: Network, name: str) -> Tensor:
    return next(one for one in network.signature.inputs if one.name == name)


def _lengths(network: Network, wants: Wants, pieces: Singles) -> NDArray[Any]:
    """(pieces,) how long each is."""
    wanted = _input(network, wants.length_name)
    kind = wanted.kind.removeprefix("tensor(").removesuffix(")").replace("float", "float32")
    length: float = pieces.shape[1]
    if wants.length_unit == "share":
        length = 1.0
    elif wants.length_unit == "samples" and wants.input == FILTERBANK:
        length = round((pieces.shape[1] - 1) * wants.step_ms * wants.rate / 1000.0)
    every = np.full(len(pieces), length, np.dtype(kind))
    return every if len(wanted.shape) else every[0].reshape(())
