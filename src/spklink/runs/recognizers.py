"""Which recognizers there are, and what is understood of a network: it is tried on some sound."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from spklink.recognizers.table import RECOGNIZERS

ABOUT = {
    "gmm-ubm": "Gaussian mixture; needs nothing but the calls",
    "none": "voices are not compared; turns and other evidence stand alone",
}


def known() -> dict[str, Any]:
    """The built-in recognizers, and the families of networks whose settings are shipped."""
    from spklink.recognizers.network_settings import families

    return {
        "recognizers": [{"name": name, "about": ABOUT.get(name, "")} for name in RECOGNIZERS],
        "networks": [
            {"settings": one.title, "tried": "", "published": "", "licence": "", **one.about}
            for one in families()
        ],
    }


@dataclass(frozen=True)
class Tried:
    """A network, read and tried."""

    file: str
    sha256: str
    family: str | None
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    settings: dict[str, Any]
    said_by: dict[str, str]
    width: int
    seconds: float  # for a second of sound

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def try_network(path: str | PathLike[str]) -> Tried:
    """What is understood of a network, and what came of a second of sound."""
    from spklink.onnx_files import open_network
    from spklink.recognizers.network_reading import sounds, tried, understand, vector_of

    understood = understand(Path(path))
    network = open_network(understood.path, understood.sha256)
    width = tried(network, understood)
    begin = time.perf_counter()
    vector_of(network, understood.wants, sounds(understood.wants.rate)[0])
    return Tried(
        str(path),
        understood.sha256,
        None if understood.family is None else understood.family.title,
        tuple(map(str, understood.signature.inputs)),
        tuple(map(str, understood.signature.outputs)),
        asdict(understood.wants),
        understood.said_by,
        width,
        round(time.perf_counter() - begin, 3),
    )
