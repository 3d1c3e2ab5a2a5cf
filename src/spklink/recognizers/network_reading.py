"""What is understood of a network: which input is the sound, what it must be, what comes out.

Later words count more than earlier ones: what is assumed of any network, what is known of its
family (`network_settings`), its metadata, the shapes of its inputs and outputs, and the settings
file beside it. Each setting remembers who said it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from spklink.errors import SpklinkError
from spklink.onnx_files import (
    FLOAT,
    INTEGERS,
    Network,
    Signature,
    Tensor,
    network_hash,
    open_network,
)
from spklink.recognizers.network_settings import (
    Family,
    Settings,
    from_metadata,
    recognised,
    settings_beside,
)
from spklink.sound.embedded import embed
from spklink.sound.network_input import FILTERBANK, WAVEFORM, Wants, pieces_of
from spklink.sound.speech_network import INPUTS as DETECTOR

Singles = NDArray[np.float32]
# What most published networks with filterbanks were trained with.
ASSUMED: Settings = {"window": "hamming", "scale": 32768.0, "normalise": "mean"}
MOST_BINS = 256  # a larger last axis is one of samples
NARROWEST = 16  # numbers a vector; fewer are classes or probabilities
TRIED_SECONDS = 1.0
NO_SPEAKER = "this is no network that makes one vector of a recording"
SHAPES = "(batch, frames, bins), (batch, bins, frames) or (batch, samples)"


@dataclass(frozen=True)
class Understood:
    """A network as it will be used."""

    path: Path
    sha256: str
    signature: Signature
    wants: Wants
    said_by: dict[str, str]  # of each setting: who said so
    family: Family | None

    @property
    def name(self) -> str:
        return self.path.name


def understand(path: Path) -> Understood:
    """Read a network; what cannot be used is an error that says why."""
    sha256, signature = network_hash(path), open_network(path).signature
    known, beside = recognised(sha256, signature), settings_beside(path)
    layers: list[tuple[str, Settings]] = []
    if known is not None:
        layers.append((f"settings of {known.title}", known.settings))
    layers.append(("metadata", from_metadata(signature, path)))
    own = [] if beside is None else [(beside[0].name, beside[1])]
    told: Settings = {}
    for _, some in (*layers, *own):
        told |= some
    shapes = _from_shapes(path, signature, told)
    assumed = ASSUMED if (told | shapes)["input"] == FILTERBANK else {}
    settings: Settings = {}
    said_by: dict[str, str] = {}
    for who, some in (("assumed", assumed), *layers, ("signature", shapes), *own):
        settings |= some
        said_by |= dict.fromkeys(some, who)
    wants = Wants(**settings)
    _check_against(path if beside is None else beside[0], signature, wants)
    said_by = {key: said_by.get(key, "default") for key in asdict(wants)}
    return Understood(path, sha256, signature, wants, said_by, known)


# --- what shapes say ------------------------------------------------------------------------------


def _from_shapes(path: Path, signature: Signature, told: Settings) -> Settings:
    sound, length = _inputs(path, signature, told)
    found: Settings = {"input_name": sound.name, "length_name": length.name if length else ""}
    found["output_name"] = _output(path, signature, told).name
    found |= _layout(path, sound, told)
    if len(sound.shape) > 1 and sound.shape[0] == 1 and found.get("batch", True):
        found["batch"] = False
    if length is not None and length.kind == FLOAT and "length_unit" not in told:
        found["length_unit"] = "share"
    return found


def _inputs(path: Path, signature: Signature, told: Settings) -> tuple[Tensor, Tensor | None]:
    """Which input is the sound, and which its length."""
    by_name = {one.name: one for one in signature.inputs}
    for key in ("input_name", "length_name"):
        if told.get(key) and told[key] not in by_name:
            there = ", ".join(by_name) or "none"
            raise SpklinkError(f"{path}: {key}: there is no input {told[key]!r}; there are {there}")
    sounds = [one for one in signature.inputs if one.kind == FLOAT and len(one.shape) > 1]
    if told.get("input_name"):
        sounds = [by_name[told["input_name"]]]
    if not sounds:
        flat = [one for one in signature.inputs if one.kind == FLOAT and len(one.shape) == 1]
        sounds = flat[:1]
    every = "; ".join(map(str, signature.inputs)) or "nothing"
    if not sounds:
        raise SpklinkError(f"{path}: no input of float numbers that could be sound: {every}")
    sound = sounds[0]
    others = [one for one in signature.inputs if one != sound]
    lengths = [one for one in others if len(one.shape) < 2 and one.kind in (FLOAT, *INTEGERS)]
    if len(others) > 1 or others != lengths:
        if set(by_name) == DETECTOR:
            raise SpklinkError(f"{path}: a speech detector, no speaker network: use --speech")
        raise SpklinkError(
            f"{path}: {NO_SPEAKER}: beside the sound it can take the length of the sound and "
            f"nothing else, and this one takes {every}"
        )
    return sound, lengths[0] if lengths else None


def _output(path: Path, signature: Signature, told: Settings) -> Tensor:
    """The output that is the vector."""
    every = "; ".join(map(str, signature.outputs))
    asked = told.get("output_name")
    if asked:
        for one in signature.outputs:
            if one.name == asked:
                return one
        raise SpklinkError(f"{path}: output_name: there is no output {asked!r}; there are {every}")
    if len(signature.outputs) == 1:
        return signature.outputs[0]
    named = [one for one in signature.outputs if one.name.lower().startswith("emb")]
    if len(named) == 1:
        return named[0]
    raise SpklinkError(
        f"{path}: which output is the vector? There are {every}; say so in "
        f'{path.with_suffix(".toml").name}: output_name = "…"'
    )


def _layout(path: Path, sound: Tensor, told: Settings) -> Settings:
    """Kind, layout, bins and length of the sound, as far as the shape says."""
    shape, rank = sound.shape, len(sound.shape)
    kind = told.get("input")
    if rank == 1:
        return _samples(shape[0], told) | {"batch": False}
    if rank == 3 and shape[1] == 1 and kind != FILTERBANK:
        return _samples(shape[2], told)  # one channel
    if rank == 2:
        last = shape[1]
        if kind == FILTERBANK or (kind is None and last is not None and last <= MOST_BINS):
            size = {} if last is None else {"bins": last}
            return _frames(shape[0], told) | size | {"batch": False}
        return _samples(last, told)
    if rank != 3:
        raise SpklinkError(
            f"{path}: input {sound.name!r} has {rank} axes; a recognizer takes {SHAPES}"
        )
    last, middle = shape[2], shape[1]
    if last is None and middle is None:
        return {"input": FILTERBANK}  # which axis is which, and how many bins, others must say
    turned = last is None or (middle is not None and last > MOST_BINS >= middle)
    bins, frames = (middle, last) if turned else (last, middle)
    layout = "bins, frames" if turned else "frames, bins"
    return _frames(frames, told) | {"bins": bins, "layout": layout}


def _samples(length: int | None, told: Settings) -> Settings:
    found: Settings = {"input": WAVEFORM}
    if length is None:
        return found
    return found | {"fixed_length": True, "piece_seconds": length / told.get("rate", Wants.rate)}


def _frames(frames: int | None, told: Settings) -> Settings:
    found: Settings = {"input": FILTERBANK}
    if frames is None:
        return found
    step, first = told.get("step_ms", Wants.step_ms), told.get("frame_ms", Wants.frame_ms)
    seconds = ((frames - 1) * step + first) / 1000.0
    return found | {"fixed_length": True, "piece_seconds": seconds}


def _check_against(path: Path, signature: Signature, wants: Wants) -> None:
    """Settings that the network itself contradicts."""
    sound = next(one for one in signature.inputs if one.name == wants.input_name)
    if wants.input == FILTERBANK and len(sound.shape) == 3:
        axis = 2 if wants.layout == "frames, bins" else 1
        size = sound.shape[axis]
        if size is not None and size != wants.bins:
            raise SpklinkError(
                f"{path}: bins: {wants.bins} in the layout ({wants.layout}), but input {sound} "
                f"has {size} there"
            )
    if sound.kind != FLOAT:
        raise SpklinkError(f"{path}: input {sound}: only 32-bit float numbers can be given")


# --- trying it ------------------------------------------------------------------------------------


def tried(network: Network, understood: Understood) -> int:
    """The width of its vectors, found by letting it hear a second of two sounds."""
    wants = understood.wants
    found = [vector_of(network, wants, heard) for heard in sounds(wants.rate)]
    width = int(found[0].shape[1])
    if width < NARROWEST:
        raise SpklinkError(
            f"{understood.path}: {NO_SPEAKER}: output {wants.output_name!r} has "
            f"{width} numbers; vectors of voices have {NARROWEST} or more"
        )
    if not all(np.isfinite(one).all() for one in found):
        raise SpklinkError(
            f"{understood.path}: gives no numbers (NaN) for a second of sound; are its settings "
            f"right? `spklink recognizers {understood.path}` lists them"
        )
    if np.abs(found[0] - found[1]).max() <= 1e-6 * np.abs(found[0]).max():
        raise SpklinkError(
            f"{understood.path}: {NO_SPEAKER}: it gives the same numbers for two different sounds"
        )
    return width


def vector_of(network: Network, wants: Wants, heard: Singles) -> Singles:
    """(1, width) of one sound."""
    return embed(network, wants, pieces_of(heard, wants)[:1])


def sounds(rate: int) -> list[Singles]:
    """A second of a low and of a high buzz with the ups and downs of syllables, in some noise."""
    time = np.arange(round(TRIED_SECONDS * rate)) / rate
    made = []
    for pitch in (110.0, 210.0):
        buzz = sum(np.sin(2 * np.pi * k * pitch * time) / k for k in range(1, 12))
        noise = np.random.default_rng(0).standard_normal(len(time))
        sound = (1.1 + np.sin(8 * np.pi * time)) * buzz + 0.05 * noise
        made.append((0.05 * sound).astype(np.float32))
    return made
