"""Which options belong together, for people who look for one: in `--help` and in the reference.

A name means the same in every command, so it has one group. What is in no group is a command's own
and stands first after what must be given.
"""

from __future__ import annotations

from collections.abc import Iterable

OWN = "Options"
GROUPS: dict[str, tuple[str, ...]] = {
    "What you give": (
        *("columns", "encoding", "audio", "corpus", "component", "known", "claimed", "key"),
        *("tracks", "turns", "level", "speakers", "pairs", "attribute", "cue", "embeddings"),
        *("embedding_keys", "scores", "sides"),
        *("segments", "enrol", "background", "calibration", "fallback"),
    ),
    "What you get": (
        *("out", "folder", "to", "only", "join", "shortest", "all_pairs", "report", "open"),
        *("verbal", "tables", "safe_csv", "npz", "as_json", "floor"),
    ),
    "How it listens": (
        *("recognizer", "preset", "speech", "components", "on_bad_audio", "min_speech", "cache"),
        "retrain",
    ),
    "How it decides": (
        *(
            "unlisted",
            "list_errors",
            "wrong_lists",
            "split_speakers",
            "kind",
            "link_wccn",
            "back_end",
        ),
        *("weight", "beta", "method", "linkage", "threshold", "prior", "sweeps"),
    ),
    "When it looks": ("every", "rest", "once"),
    "Limits": ("budget_seconds", "budget_gb", "workers", "cluster", "seed"),
}
_GROUP = {name: title for title, names in GROUPS.items() for name in names}
_ORDER = {name: place for place, name in enumerate(_GROUP)}


def grouped(names: Iterable[str]) -> dict[str, list[str]]:
    """These options by group, groups and options in the order above; those in no group first."""
    found: dict[str, list[str]] = {title: [] for title in (OWN, *GROUPS)}
    for name in sorted(names, key=lambda name: _ORDER.get(name, 0)):
        found[_GROUP.get(name, OWN)].append(name)
    return {title: every for title, every in found.items() if every}
