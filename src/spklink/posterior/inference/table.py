"""The inference methods: what each is called, in `--method` and in results, and where it lives.

The file of a method exports METHOD, which does what `beliefs.Method` says; a new method is one file
and one entry here. The planner tries them in this order within one kind of certainty. Nothing heavy
is imported: `spklink --help` reads the names.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from spklink.errors import SpklinkError

if TYPE_CHECKING:
    from spklink.posterior.inference.beliefs import Method

AUTO = "auto"  # the planner chooses
METHODS = {
    "enumerate": "enumeration",
    "trace": "trace",
    "tree": "tree",
    "blocks": "blocks",
    "certified": "certified",
    "sample": "sampling",
    "bp": "propagation",
}


def names() -> tuple[str, ...]:
    """All that one may ask for."""
    return (AUTO, *METHODS)


def check_name(method: str) -> None:
    if method not in names():
        raise SpklinkError(f"method {method!r} is not one of {', '.join(names())}")


def load_all() -> list[Method]:
    """Every method, in the order in which they are tried."""
    return [load(name) for name in METHODS]


def load(name: str) -> Method:
    """The method of this name; its file is imported on first use."""
    method: Method = importlib.import_module(f"{__package__}.{METHODS[name]}").METHOD
    return method
