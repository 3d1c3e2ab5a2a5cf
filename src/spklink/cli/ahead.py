"""Helpers that are started ahead of their work, where it is plain that there will be some.

A helper takes most of a second to start. This process needs as long to import what links calls, so
those that listen start meanwhile; those that draw the figures start while cliques are solved, which
mostly leaves a core idle.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from spklink.elsewhere import copy_of, url_of
from spklink.memory import limited_to
from spklink.processes import Named, ahead
from spklink.threads import cores

if TYPE_CHECKING:
    from spklink.runs.stages import Stages

LISTEN = Named("spklink.sound.listening", "listen", ("spklink.sound.loaded",), forks=True)
BACKENDS = ("matplotlib.figure", *(f"matplotlib.backends.backend_{one}" for one in ("svg", "pdf")))
DRAW = Named("spklink.report.figures", "draw", BACKENDS)
PAINTERS = 2  # for a handful of figures
LINKING = ("calibrating and linking", "looking for wrong lists")  # stages: at the first that comes
MANY = 64  # rows of a table whose recordings are surely worth helpers
LOOKED_AT = 1 << 18  # bytes of it


def start_listeners(table: Any, out: Path, options: Any) -> None:
    """Where a table of many rows is linked for the first time, on several cores."""
    workers = cores(options["workers"])
    given = any(options[name] is not None for name in ("embeddings", "scores", "cluster"))
    if workers == 1 or given or options["recognizer"] != "gmm-ubm":
        return
    url = url_of(options["cache"] or "")
    cache = copy_of(url) if url else Path(options["cache"] or out / "cache")
    if not (cache / "features").exists() and _has_many_rows(Path(table)):
        with limited_to(options["budget_gb"]):
            ahead(LISTEN, workers)


def _has_many_rows(table: Path) -> bool:
    if not table.is_file():  # what comes through a pipe is read once
        return False
    try:
        with table.open("rb") as file:
            return file.read(LOOKED_AT).count(b"\n") >= MANY
    except OSError:
        return False


def start_painters(stages: Stages, options: Any) -> None:
    """Once everything is heard; nobody waits for them."""
    if not options["report"] or cores(options["workers"]) == 1:
        return
    tell, started = stages.tell, False

    def told(name: str) -> None:
        nonlocal started
        if name in LINKING and not started:
            started = True
            ahead(DRAW, PAINTERS)
        if tell is not None:
            tell(name)

    stages.tell = told
