"""How an option is described, and what is made of its description.

The options of a command are the fields of a `TypedDict`, each `Annotated[type, Option(...)]`. From
that one text come the command line, the checked keyword arguments of the library, run.json, the
command that gives results again, and the reference. Nothing heavy is imported here.
"""

from __future__ import annotations

import inspect
import math
import os
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from functools import cache
from pathlib import Path
from shlex import quote
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from spklink.elsewhere import url_of
from spklink.errors import SpklinkError

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

REQUIRED = inspect.Parameter.empty  # the default of what must be given


@dataclass(frozen=True)
class Option:
    """What a person is told about one option, and which values it takes."""

    help: str
    default: Any = REQUIRED
    choices: Callable[[], tuple[str, ...]] | tuple[str, ...] = ()
    least: float | None = None
    most: float | None = None
    file: bool = False  # a file or folder; one that also has choices takes these words or a file
    memory: bool = False  # a file that the library also takes from memory, such as a DataFrame
    ending: str = ""  # of its files; all else is the name of an object, which the library takes too
    flags: tuple[str, ...] = ()  # on the command line, where not simply --the-name
    argument: str = ""  # on the command line an argument, shown under this name
    several: bool = False  # may be given again and again: a tuple of values
    url: bool = False  # a folder that may also be elsewhere: s3://bucket/calls
    matters: bool = True  # False: the results are the same whatever it is

    def words(self) -> tuple[str, ...]:
        """The words it may be; none where it is free."""
        return self.choices() if callable(self.choices) else self.choices

    def flags_of(self, name: str) -> tuple[str, ...]:
        """How it is written on the command line, the long form first."""
        return self.flags or (f"--{name.replace('_', '-')}",)

    @property
    def is_path(self) -> bool:
        """Whether its values are paths: a file that cannot also be a word."""
        return self.file and not self.choices

    def is_object(self, value: Any) -> bool:
        """Whether a value is the name of something that a program handed over."""
        free = bool(self.ending) and isinstance(value, str) and value not in self.words()
        return free and not value.lower().endswith(self.ending)

    def about(self) -> str:
        """Its help, with the choices."""
        words = self.words()
        return f"{self.help} One of {', '.join(words)}." if words and not self.file else self.help


Described = tuple[Any, Option]  # the type of the values, None included, and the description


def described_as(hint: Any) -> Described | None:
    """Type and description of an annotation; None where it has no description."""
    for about in getattr(hint, "__metadata__", ()):
        if isinstance(about, Option):
            return get_args(hint)[0], about
    return None


@cache
def options_of(kind: Any) -> dict[str, Described]:
    """All options of a class of options, in the order in which they are written."""
    found = {
        name: described_as(hint) for name, hint in get_type_hints(kind, include_extras=True).items()
    }
    return {name: about for name, about in found.items() if about is not None}


def resolved(kind: type[T], given: Mapping[str, Any]) -> T:
    """All options of `kind`: those given, checked, and the defaults of the others."""
    known = options_of(cast(Any, kind))
    for name in given:
        if name not in known:
            raise SpklinkError(_unknown(name, list(known)))
    values = {
        name: checked(name, hint, option, given.get(name, option.default))
        for name, (hint, option) in known.items()
    }
    return cast(T, values)


def _unknown(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    remedy = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return f"there is no option {name!r}; {remedy}"


def checked(name: str, hint: Any, option: Option, value: Any) -> Any:
    """One value as the library uses it: a plain word, a number, a Path; or an error."""
    if value is REQUIRED:
        raise SpklinkError(f"{name}: is missing; {option.help}")
    if option.several:
        return _several(name, option, value)
    kinds, optional = _kinds(hint)
    if option.file:
        kinds = [Path] if option.is_path else [str]
    if value is None and optional and option.default is None:
        return None
    if isinstance(value, Enum):
        value = value.value
    taken = option.memory or option.ending
    if taken and value is not None and not isinstance(value, (str, os.PathLike)):
        return value  # whoever reads it says what is wrong with it
    converted = _converted(kinds, value)
    if converted is None:
        what = " or ".join(NAMES[kind] for kind in kinds)
        raise SpklinkError(f"{name}: {_short(value)} is not {what}")
    _check_choice(name, option, converted)
    if option.least is not None and converted < option.least:
        raise SpklinkError(f"{name}: {_short(value)} is too small; at least {option.least:g}")
    if option.most is not None and converted > option.most:
        raise SpklinkError(f"{name}: {_short(value)} is too large; at most {option.most:g}")
    return converted


def _several(name: str, option: Option, value: Any) -> tuple[Any, ...]:
    """All values of an option that may be given again and again; one alone is one of them."""
    one = isinstance(value, (str, os.PathLike))
    values = () if value is None else (value,) if one else tuple(value)
    for given in values:
        if _str(given) is None:
            raise SpklinkError(f"{name}: {_short(given)} is not text")
    return tuple(str(_str(given)) for given in values)


def _short(value: Any) -> str:
    """A value in a message: an int may have more digits than Python prints."""
    if isinstance(value, int) and abs(value) > 10**20:
        return f"a number of {int(value.bit_length() * math.log10(2)) + 1} digits"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def _check_choice(name: str, option: Option, value: Any) -> None:
    words = option.words()
    free = option.file and not option.is_object(value)
    if words and not free and isinstance(value, str) and value not in words:
        near = get_close_matches(value, words, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        there = ", ".join(words) + (f", nor a file {option.ending}" if option.ending else "")
        raise SpklinkError(f"{name}: {value!r} is not one of {there}{hint}")


def _kinds(hint: Any) -> tuple[list[Any], bool]:
    """The types of a union, and whether None is among them; anything may be None."""
    if hint is Any:
        return [object], True
    union = get_origin(hint) in (Union, types.UnionType)
    parts = get_args(hint) if union else (hint,)
    kinds = [part for part in parts if part is not types.NoneType]
    return kinds, len(kinds) < len(parts)


def _converted(kinds: list[Any], value: Any) -> Any:
    """The value as the first of these types that it can be; None where it can be none of them. A
    word or a number is a number if it can be one."""
    if {str, float} <= set(kinds) and isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    for kind in kinds:
        found = CONVERT[kind](value)
        if found is not None:
            return found
    return None


def _bool(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _int(value: Any) -> int | None:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    return int(value.__index__())


def _float(value: Any) -> float | None:
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        return None
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _str(value: Any) -> str | None:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    return str(value) if isinstance(value, str) else None


def _path(value: Any) -> Path | None:
    return Path(value) if isinstance(value, (str, os.PathLike)) else None


CONVERT: dict[Any, Callable[[Any], Any]] = {
    bool: _bool,
    int: _int,
    float: _float,
    str: _str,
    Path: _path,
    object: lambda value: value,
}
NAMES = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
    object: "an object",
}


def described(kind: type) -> Callable[[F], F]:
    """Let `help` and notebooks show every option that a function takes as **options."""

    def decorate(function: F) -> F:
        plain = inspect.signature(function).parameters.values()
        kept = [p for p in plain if p.kind is not inspect.Parameter.VAR_KEYWORD]
        known = options_of(kind)
        more = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=hint
            )
            for name, (hint, option) in known.items()
        ]
        function.__signature__ = inspect.Signature([*kept, *more])  # type: ignore[attr-defined]
        lines = [f"    {name}: {option.about()}" for name, (_, option) in known.items()]
        about = inspect.cleandoc(function.__doc__ or "")
        function.__doc__ = "\n".join([about, "", "Options:", *lines])
        return function

    return decorate


def command_words(kind: type, options: Mapping[str, Any], base: Path | None) -> list[str]:
    """The words of all options that are not at their default, quoted for a shell.

    Paths are written relative to `base`; without one they are written as they are.
    """
    words: list[str] = []
    for name, (_, option) in options_of(kind).items():
        if option.several:
            for one in options.get(name) or ():
                words += [option.flags_of(name)[0], quote(str(one))]
            continue
        value = plain(option, options.get(name, option.default), base)
        if value != plain(option, option.default, None):
            words += _words(option.flags_of(name), value)
    return words


def _words(flags: tuple[str, ...], value: Any) -> list[str]:
    if isinstance(value, bool):
        on, _, off = flags[0].partition("/")
        return [on if value else off]
    return [flags[0], quote(str(value))]


def options_json(kind: type, options: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """All options that results depend on as values of JSON; paths relative to `base`."""
    return {
        name: plain(option, options.get(name, option.default), base)
        for name, (_, option) in options_of(kind).items()
        if option.matters
    }


def options_from(kind: type, values: Mapping[str, Any], base: Path) -> dict[str, Any]:
    """Options that `options_json` wrote, checked; paths lead where they led from `base`. Those of
    an earlier version may lack some, which are at their defaults."""
    known = {name: about for name, about in options_of(kind).items() if about[1].matters}
    for name in values:
        if name not in known:
            raise SpklinkError(_unknown(name, list(known)))
    found = {}
    for name, (hint, option) in known.items():
        value = values.get(name, option.default)
        elsewhere = option.url and isinstance(value, str) and url_of(value) is not None
        if elsewhere or option.is_object(value):
            found[name] = value
        elif option.file and isinstance(value, str) and value not in option.words():
            found[name] = base / value
        elif object in _kinds(hint)[0] and not option.file:
            found[name] = value  # the name of what a program handed over
        else:
            found[name] = checked(name, hint, option, value)
    return found


def plain(option: Option, value: Any, base: Path | None) -> Any:
    """A value as text or number; a path with `/`, relative to `base` where there is one."""
    if isinstance(value, Enum):
        value = value.value
    if option.several:
        return list(value or ())
    if value is None or not option.file or option.is_object(value) or value in option.words():
        known = value is None or isinstance(value, (bool, int, float, str))
        return value if known else getattr(value, "name", type(value).__name__)
    if not isinstance(value, (str, os.PathLike)):
        # It came from no file: `inputs` of run.json says so.
        return getattr(value, "name", type(value).__name__) if option.ending else option.default
    if option.url and (url := url_of(value)):
        return url
    text = Path(value).as_posix() if base is None else relative(Path(value), base)
    return f"./{text}" if text.startswith("-") or text in option.words() else text


def relative(path: Path, base: Path) -> str:
    """A path as one types it inside `base`."""
    try:
        return Path(os.path.relpath(path.absolute(), base.absolute())).as_posix()
    except ValueError:  # another drive
        return path.absolute().as_posix()
