"""What a network wants, as far as anybody has written it down: settings files, and metadata.

A settings file is TOML with the keys of `Wants`, some of them or all. One lies beside a model and
has its name (`model.toml` beside `model.onnx`); those of well-known models are shipped, and say in
`[[model]]` how such a model is told: by its hash, by the framework that its metadata name, or by
the names of its inputs and outputs and the width of its vectors.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from spklink.errors import SpklinkError, problems_in
from spklink.onnx_files import Signature
from spklink.sound.network_input import (
    FILTERBANK,
    LAYOUTS,
    LENGTHS,
    MELS,
    NORMALISE,
    WAVEFORM,
    WINDOWS,
    Wants,
)

SHIPPED = Path(__file__).parent / "settings"
CHOICES: dict[str, tuple[str, ...]] = {
    "input": (FILTERBANK, WAVEFORM),
    "window": WINDOWS,
    "mel": MELS,
    "normalise": NORMALISE,
    "layout": LAYOUTS,
    "length_unit": LENGTHS,
}
RANGES = {  # least and most
    "rate": (4000, 384_000),
    "scale": (1e-6, 1e6),
    "level": (-100.0, 0.0),
    "bins": (8, 512),
    "frame_ms": (5.0, 200.0),
    "step_ms": (1.0, 100.0),
    "preemphasis": (0.0, 1.0),
    "feature_scale": (1e-6, 1e6),
    "piece_seconds": (0.1, 3600.0),
    "hop_seconds": (0.0, 3600.0),
    "longest_seconds": (0.5, 1e6),
}
ABOUT = ("name", "published", "licence", "tried")  # what shipped files say beside settings
TOLD_BY = ("sha256", "framework", "inputs", "outputs", "width")
OWN = "spklink."  # before the keys of settings in the metadata of a model
SHERPA: dict[
    str, tuple[str, Callable[[str], Any]]
] = {  # keys in the metadata of models that are prepared for sherpa-onnx
    "sample_rate": ("rate", int),
    "feat_dim": ("bins", int),
    "window_type": ("window", str),
    "window_size_ms": ("frame_ms", float),
    "window_stride_ms": ("step_ms", float),
    "normalize_samples": ("scale", lambda text: 1.0 if text == "1" else 32768.0),
    "feature_normalize_type": (
        "normalise",
        lambda text: {"global-mean": "mean", "per_feature": "mean and deviation"}[text],
    ),
}
Settings = dict[str, Any]


@dataclass(frozen=True)
class Family:
    """Settings that are shipped."""

    title: str  # the name of its file
    about: dict[str, str]
    settings: Settings
    models: tuple[dict[str, Any], ...]  # how a model is told


def _told(model: Mapping[str, Any], sha256: str, signature: Signature) -> bool:
    if "sha256" in model:
        return bool(model["sha256"] == sha256)
    widths = {one.shape[-1] for one in signature.outputs if one.shape}
    found = {
        "framework": signature.metadata.get("framework"),
        "inputs": [one.name for one in signature.inputs],
        "outputs": [one.name for one in signature.outputs],
        "width": model.get("width") if model.get("width") in widths else None,
    }
    return all(found[key] == value for key, value in model.items())


@cache
def families() -> tuple[Family, ...]:
    """All settings that are shipped, by name."""
    return tuple(_family(path) for path in sorted(SHIPPED.glob("*.toml")))


def family(title: str, path: Path) -> Family:
    """The shipped settings of this name, which a file asks for."""
    for one in families():
        if one.title == title:
            return one
    there = ", ".join(one.title for one in families())
    raise SpklinkError(f"{path}: like: {title!r} is not one of {there}")


def recognised(sha256: str, signature: Signature) -> Family | None:
    """The family that a model belongs to; its hash, or its own word, counts more than names."""
    for told_by in TOLD_BY:
        for one in families():
            models = tuple(model for model in one.models if told_by in model)
            if any(_told(model, sha256, signature) for model in models):
                return one
    return None


def _family(path: Path) -> Family:
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    about = {key: content.pop(key) for key in ABOUT if key in content}
    models = tuple(content.pop("model", ()))
    return Family(path.stem, about, checked(path, content), models)


def settings_beside(model: Path) -> tuple[Path, Settings] | None:
    """The settings file of a model, and what it says; `like` names shipped settings to begin
    with."""
    path = model.with_suffix(".toml")
    if not path.exists():
        return None
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # a TOML error is a ValueError, as is text in no UTF-8
        raise SpklinkError(f"{path}: cannot be read as TOML: {error}") from None
    like = content.pop("like", None)
    start = {} if like is None else family(str(like), path).settings
    return path, start | checked(path, content)


def from_metadata(signature: Signature, path: Path) -> Settings:
    """What the maker of a model wrote into it, in our words or in those of sherpa-onnx."""
    found: Settings = {}
    for key, (name, convert) in SHERPA.items():
        text = signature.metadata.get(key, "")
        if text:
            try:
                found[name] = convert(text)
            except (ValueError, KeyError):
                raise SpklinkError(f"{path}: metadata {key}: {text!r} is not known") from None
    for key, text in signature.metadata.items():
        if key.startswith(OWN):
            found[key.removeprefix(OWN)] = _value(text)
    return checked(path, found, "metadata ")


def _value(text: str) -> Any:
    """A value as TOML has it; a word needs no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def checked(path: Path, content: Settings, where: str = "") -> Settings:
    """Settings of which every key is known and every value may be; numbers as they are declared."""
    kinds = {one.name: str(one.type) for one in fields(Wants)}
    problems, found = [], {}
    for key, value in content.items():
        if key not in kinds:
            problems.append(f"{where}{key}: no such setting; there are {', '.join(kinds)}")
            continue
        found[key] = _number(kinds[key], value)
        problems += [f"{where}{key}: {why}" for why in _wrong(key, kinds[key], found[key])]
    if problems:
        raise problems_in(path, problems)
    return found


def _number(kind: str, value: Any) -> Any:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if whole and kind.startswith("float") else value


def _wrong(key: str, kind: str, value: Any) -> Iterator[str]:
    names = {"bool": "true or false", "int": "a whole number", "str": "text", "float": "a number"}
    kind = kind.removesuffix(" | None")
    if type(value).__name__ != kind:
        yield f"{value!r} is not {names[kind]}"
    elif key in CHOICES and value not in CHOICES[key]:
        yield f"{value!r} is not one of {', '.join(CHOICES[key])}"
    elif key in RANGES and not RANGES[key][0] <= value <= RANGES[key][1]:
        least, most = RANGES[key]
        yield f"{value!r} is not between {least:g} and {most:g}"
