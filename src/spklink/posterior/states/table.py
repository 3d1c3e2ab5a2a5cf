"""The methods for networks of several states a node: what each is called and where it lives.

As in `inference/table.py`: the file of a method exports METHOD, which does what
`beliefs.StateMethod` says; a new one, of whatever certainty, is one file and one entry here. The
planner tries them in this order within one kind of certainty.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spklink.posterior.states.beliefs import StateMethod

METHODS = {"enumerate": "enumeration", "trace": "trace", "tree": "tree", "blocks": "blocks"}


def load_all() -> list[StateMethod]:
    """Every method, in the order in which they are tried."""
    return [load(name) for name in METHODS]


def load(name: str) -> StateMethod:
    """The method of this name; its file is imported on first use."""
    method: StateMethod = importlib.import_module(f"{__package__}.{METHODS[name]}").METHOD
    return method
