"""spklink: who is on which channel of every two-channel call, with probabilities one can trust.

The names below load on first use, so that importing the package (and `spklink --help`) is instant.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "SpklinkError": "errors",
    "Conversations": "database.conversations",
    "read_conversations": "database.conversations",
    "find_cliques": "database.cliques",
    "find_links": "database.links",
    "read_scores": "scores.needed",
    "read_known": "database.labels",
    "read_key": "database.labels",
    "build_model": "posterior.likelihood",
    "solve": "posterior.posterior",
    "Posterior": "posterior.posterior",
    "assign": "runs.assign",
    "link": "runs.link",
    "evaluate": "measures.evaluation",
    "levels": "measures.entropy",
    "simulate": "worlds.simulate",
}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'spklink' has no attribute {name!r}")
    return getattr(importlib.import_module(f"spklink.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return __all__
