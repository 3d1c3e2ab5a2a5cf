"""spklink: who is on which channel of every two-channel call, with probabilities one can trust.

The names below load on first use, so that importing the package (and `spklink --help`) is instant.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "SpklinkError": "errors",
    "Conversations": "conversations",
    "read_conversations": "conversations",
    "find_cliques": "cliques",
    "find_links": "links",
    "read_scores": "scores",
    "read_known": "labels",
    "read_key": "labels",
    "build_model": "likelihood",
    "solve": "posterior",
    "Posterior": "posterior",
    "assign": "assignment",
    "link": "linking",
    "evaluate": "evaluation",
    "levels": "entropy",
}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'spklink' has no attribute {name!r}")
    return getattr(importlib.import_module(f"spklink.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
