"""From functions and descriptions of options to what the parser of the command line reads.

A command is a plain function: its positional parameters are what must be given, `**options` are the
options of its command in `settings`, keyword-only parameters come last in its help. Each of them
carries its description, so nothing is said about an option here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_type_hints

import typer

from spklink.options import Described, Option, checked, described_as, options_of, resolved
from spklink.settings import NoOptions


def options_class(function: Callable[..., Any]) -> type:
    """The class of options that a function takes as **options."""
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            found: type = get_args(get_type_hints(function, include_extras=True)[name])[0]
            return found
    return NoOptions


def parameters_of(function: Callable[..., Any]) -> dict[str, Described]:
    """All that can be given to a command, in the order of its help."""
    own = _own(function)
    last = inspect.Parameter.KEYWORD_ONLY
    kinds = {name: p.kind for name, p in inspect.signature(function).parameters.items()}
    return {
        **{name: about for name, about in own.items() if kinds[name] is not last},
        **options_of(options_class(function)),
        **{name: about for name, about in own.items() if kinds[name] is last},
    }


def _own(function: Callable[..., Any]) -> dict[str, Described]:
    """The parameters that a function names itself."""
    hints = get_type_hints(function, include_extras=True)
    found = {name: described_as(hint) for name, hint in hints.items()}
    return {name: about for name, about in found.items() if about is not None}


def parsed(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as the parser takes it: every option a parameter; values are checked once."""
    own, every, kind = _own(function), parameters_of(function), options_class(function)

    def call(**given: Any) -> Any:
        mine = {name: checked(name, *own[name], given.pop(name)) for name in own}
        return function(**mine, **resolved(kind, given))  # an exit code, or nothing

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    call.__annotations__ = {}
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [_parameter(name, *about) for name, about in every.items()]
    )
    return call


def named(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as a list of commands shows it: what it is called and what it does."""

    def call() -> None:
        raise AssertionError(f"{function.__name__} was not parsed")

    call.__name__, call.__doc__ = function.__name__, function.__doc__
    return call


def _parameter(name: str, hint: Any, option: Option) -> inspect.Parameter:
    if option.argument:
        about: Any = typer.Argument(metavar=option.argument, help=option.help)
    else:
        flags = option.flags_of(name)
        about = typer.Option(*flags, help=option.help, min=option.least)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=option.default,
        annotation=Annotated[_parsed_type(hint, option), about],
    )


def _parsed_type(hint: Any, option: Option) -> Any:
    """Where only some words will do, the parser wants them as an enumeration; a path is a Path."""
    if option.several:
        return list[str]
    if option.is_path:
        return Path | None if option.default is None else Path
    if option.file:
        return str
    if {str, float} <= set(get_args(hint)):
        return str  # a word or a number: whoever uses it tells them apart
    if not option.words() or option.file:
        return hint
    words = StrEnum("Word", [(word, word) for word in option.words()])  # type: ignore[misc]
    return words | None if NoneType in get_args(hint) else words
