"""Tables of the page that are made for it alone, from the numbers of the report."""

from __future__ import annotations

from typing import Any

from spklink.report.glossary import NAMES
from spklink.settings import COMMANDS, options_of

KNOWN_MEASURES = {
    *("conversations", "by_size", "resolvable", "at_least_two", "all"),
    *("expected_clique_errors", "expected_clique_errors_low", "expected_clique_errors_high"),
    *("reliability", "seats"),
}
Numbers = dict[str, Any]
Table = dict[str, Any]


def drawn_table(drawn: list[Numbers]) -> Table:
    named = {"bits": "bits open"}
    keys = [*("clique", "conversations", "speakers", "settled", "bits", "resolvable")]
    if all(one["bits"] is None for one in drawn):
        keys.remove("bits")
    return {
        "columns": [named.get(key, key) for key in keys],
        "rows": [[one[key] for key in keys] for one in drawn],
    }


def reliability_table(evaluation: Numbers | None) -> Table:
    keys = ("predicted", "observed", "observed_low", "observed_high")
    columns = ["of", "from", "to", "count", "predicted right", "observed right"]
    measured = evaluation or {}
    kinds = [("cliques", measured), ("conversations", measured.get("marginals", {}))]
    return {
        "columns": [*columns, "95 % band, low end", "95 % band, high end"],
        "rows": [
            [kind, row["low"], row["high"], row[kind], *(row[key] for key in keys)]
            for kind, part in kinds
            for row in part.get("reliability", [])
        ],
    }


def more_measures(evaluation: Numbers | None) -> Table:
    """Whatever else `evaluate` measures, one level deep."""
    rows = []
    for name, value in (evaluation or {}).items():
        if name in KNOWN_MEASURES:
            continue
        parts = value.items() if isinstance(value, dict) else [("", value)]
        for part, figure in parts:
            if not isinstance(figure, dict) and not holds_rows(figure):
                rows.append([_named(f"{name} {part}".strip()), figure])
    return {"columns": ["measure", "value"], "rows": rows}


def _named(key: str) -> str:
    return NAMES.get(key, key.replace("_", " "))


def holds_rows(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(one, dict | list) for one in value)


def settings_table(provenance: Numbers) -> Table:
    """Every option as the command line has it, and what it is for."""
    options = options_of(COMMANDS[provenance["of"]])
    rows: list[list[Any]] = []
    for name, value in provenance["settings"].items():
        if name == "weight":  # the rule that was used, whatever was asked for
            value = " ".join(plain(one) for one in value.values() if one is not None)
        about = options[name][1].about() if name in options else ""
        rows.append([f"--{name.replace('_', '-')}", plain(value), about])
    return {"columns": ["option", "value", "what it is"], "rows": rows}


def versions_table(provenance: Numbers) -> Table:
    rows = [["spklink", provenance["spklink"]], *map(list, provenance["versions"].items())]
    return {"columns": ["program", "version"], "rows": rows}


def plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None else str(value)


def inputs_table(provenance: Numbers) -> Table:
    rows = [
        [name, given["file"], given["sha256"]]
        for part in ("inputs", "report_inputs")
        for name, given in provenance[part].items()
    ]
    return {"columns": ["input", "file", "SHA-256"], "rows": rows}


def times_tables(times: Numbers) -> list[Table]:
    parts = [("The run", times["run"]), ("This report", times["report"])]
    tables = []
    for title, part in parts:
        if part:
            rows = [[stage, seconds] for stage, seconds in part["seconds"].items()]
            if part["peak_memory_bytes"] is not None:
                rows.append(["peak memory, MB", round(part["peak_memory_bytes"] / 1e6, 1)])
            tables.append({"title": title, "columns": ["stage", "seconds"], "rows": rows})
    return tables
