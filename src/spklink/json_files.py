"""JSON from files that anybody may have written: read strictly, and held against a shape.

A shape says what must be there, as a value of Python:
  float, int, str, bool, None   a value of that kind; float takes whole numbers too
  ANYTHING                      whatever it is
  (one, two)                    one of several shapes
  [shape]                       a list of such
  {"name": shape, "more?": …}   an object with these keys, those with a question mark perhaps; it
                                may have others
  Each(shape)                   an object whose every value is such
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spklink.errors import SpklinkError

ANYTHING = ...
SHOWN = 40  # characters of a wrong value in a message
NAMES = {float: "a number", int: "a whole number", str: "text", bool: "true or false", None: "null"}


@dataclass(frozen=True)
class Each:
    """An object with any keys, whose values are all of one shape."""

    shape: Any


def read_json(path: str | os.PathLike[str], shape: Any = ANYTHING, remedy: str = "") -> Any:
    """What is in a file, of this shape; `remedy` says what to do about one that is not."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        more = f"; {remedy}" if remedy else ""
        raise SpklinkError(f"{path}: cannot be read ({error.strerror}){more}") from None
    return json_in(data, path, shape, remedy)


def json_in(
    data: bytes, path: str | os.PathLike[str], shape: Any = ANYTHING, remedy: str = ""
) -> Any:
    """The same of bytes that were read already; `path` is what messages call them."""
    more = f"; {remedy}" if remedy else ""
    try:
        found = parsed(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise SpklinkError(f"{path}: cannot be read as JSON (not UTF-8){more}") from None
    except RecursionError:
        raise SpklinkError(f"{path}: cannot be read as JSON (nested too deep){more}") from None
    except ValueError as error:
        raise SpklinkError(f"{path}: cannot be read as JSON ({error}){more}") from None
    if wrong := misfit(found, shape):
        raise SpklinkError(f"{path}: {wrong}{more}")
    return found


def parsed(text: str) -> Any:
    """JSON as its standard has it: no NaN, no number beyond all bounds, no key twice."""
    return json.loads(
        text,
        parse_constant=_no_number,
        parse_float=_finite,
        parse_int=_whole,
        object_pairs_hook=_without_repeats,
    )


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is not a number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:SHOWN]} is too large")
    return value


def _whole(text: str) -> int:
    _finite(text)  # whoever reads it may want it as a float
    return int(text)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"key {twice[:SHOWN]!r} twice")
    return found


def misfit(value: Any, shape: Any, place: str = "") -> str:
    """What is wrong with a value, and where; empty where it has the shape."""
    if isinstance(shape, tuple):
        wrong = [misfit(value, one, place) for one in shape]
        return "" if not all(wrong) else wrong[0]
    if isinstance(shape, dict | Each):
        return _wrong_object(value, shape, place)
    if isinstance(shape, list):
        if not isinstance(value, list | tuple):
            return _not(value, "a list", place)
        parts = (misfit(one, shape[0], f"{place}[{k}]") for k, one in enumerate(value))
        return next(filter(None, parts), "")
    if shape is ANYTHING or _is(value, shape):
        return ""
    return _not(value, NAMES[shape], place)


def _is(value: Any, kind: Any) -> bool:
    if kind is None:
        return value is None
    if isinstance(value, bool):
        return kind is bool
    if kind is float:
        return isinstance(value, int | float) and math.isfinite(value)
    return isinstance(value, kind)


def _wrong_object(value: Any, shape: dict[str, Any] | Each, place: str) -> str:
    if not isinstance(value, Mapping):
        return _not(value, "an object", place)
    if isinstance(shape, Each):
        parts = (misfit(one, shape.shape, _inside(place, str(key))) for key, one in value.items())
        return next(filter(None, parts), "")
    for key, inner in shape.items():
        name = key.removesuffix("?")
        if name not in value:
            if name == key:
                return f"{_inside(place, name)} is missing"
        elif wrong := misfit(value[name], inner, _inside(place, name)):
            return wrong
    return ""


def _inside(place: str, key: str) -> str:
    key = key[:SHOWN]
    return f"{place}.{key}" if place else key


def _not(value: Any, what: str, place: str) -> str:
    text = repr(value)
    short = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
    return f"{place}: {short} is not {what}" if place else f"{short} is not {what}"
