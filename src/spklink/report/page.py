"""The page: one HTML file with everything in it, from the numbers and the figures.

Names come from files that others wrote. They reach the page as escaped text only, each isolated
from the direction of its neighbours, and long ones are cut; the full text is embedded once. The
finished page is never searched or changed: a name could look like whatever is searched for. Should
one break out all the same, the page's policy runs its own script and nothing else.
"""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup

from spklink.report import clique_svg, seats
from spklink.report.figures import for_page
from spklink.words import counted, for_screen, printable, readable

HERE = Path(__file__).parent
LONGEST = 80  # letters of a name that are shown at once
MOST_SAID = 400  # letters of a sentence with names in it
PERCENT = {
    *("EER", "E", "E, paper", "settled at 99 %", "mean probability", "targets above"),
    *("right, low end", "right, high end", "predicted right", "observed right"),
    *("95 % band, low end", "95 % band, high end", "non-targets above", "false alarms", "misses"),
    *("best from", "best to"),
}
DECIMALS = {
    **dict.fromkeys(("bits", "F", "recalibrated", "bits open", "open bits a conversation"), 4),
    **dict.fromkeys(("bits, paper", "F, paper", "recalibrated, paper", "mean size"), 3),
    **dict.fromkeys(("best factor", "best factor, paper", "expected wrong"), 2),
    **dict.fromkeys(("of these expected wrong", "expected wrong cliques", "seconds"), 2),
}  # digits after the point, as the paper prints them
KNOWN_MEASURES = {
    *("conversations", "by_size", "resolvable", "at_least_two", "all"),
    *("expected_clique_errors", "expected_clique_errors_low", "expected_clique_errors_high"),
    *("reliability", "seats"),
}
NOBODY = (-1, -2)  # someone else, and nobody: a track that cannot be used
Numbers = dict[str, Any]
Table = dict[str, Any]


def render(numbers: Numbers, figures: dict[str, str]) -> str:
    """The whole page; `figures` are SVG texts as they go to files."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    names = Names()
    css, js = (own_file("page.css"), own_file("page.js"))
    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=visible,
    )
    environment.globals |= {
        "name": names.show,
        "short": lambda text: shortened(readable(text)),
        "cell": lambda value, column="": (
            names.show(value) if isinstance(value, str) else cell(value, column)
        ),
        "percent": percent,
        "about": about,
        "signed": signed,
        "figure_text": figure_text,
        "plural": counted,
        "left": is_text,
        "cell_class": cell_class,
        "text": names.text,
        "svg_with_text": lambda key, label, caption: with_text(key, figures[key], label, caption),
    }
    return environment.get_template("page.html").render(
        n=numbers,
        svg=figures,
        gallery=gallery(numbers["database"]["drawn"]),
        drawn_table=drawn_table(numbers["database"]["drawn"]),
        reliability_table=reliability_table(numbers["evaluation"]),
        more_measures=more_measures(numbers["evaluation"]),
        measured_seats=seats.measured(numbers["evaluation"]),
        settings_table=settings_table(numbers["provenance"]),
        inputs_table=inputs_table(numbers["provenance"]),
        times_tables=times_tables(numbers["times"]),
        css=css,
        js=js,
        policy=policy(css, js),
        # Called where the template ends: only there is it known which names were cut.
        data=lambda: embedded(data_of(numbers["conversations"], names.long)),
    )


def visible(value: Any) -> Any:
    """Whatever text the template puts out, so that no place can be forgotten."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def own_file(file: str) -> Markup:
    return Markup((HERE / file).read_text(encoding="utf-8").strip())


def policy(css: str, js: str) -> str:
    """What a browser may do with the page: its own style and script, by their hashes."""
    style, script = (
        f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in (css, js)
    )
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


class Names:
    """Names as text, and the full text of those that are cut."""

    def __init__(self) -> None:
        self.long: list[str] = []
        self.place: dict[str, int] = {}

    def text(self, text: str) -> Markup:
        """A sentence with names in it; the whole of a long one is in the file that it is from."""
        return Markup('<bdi class="said">{}</bdi>').format(shortened(for_screen(text), MOST_SAID))

    def show(self, text: str) -> Markup:
        text = readable(text)
        if len(text) <= LONGEST:
            wraps = " wraps" if max(map(len, text.split()), default=0) > 24 else ""
            return Markup('<bdi class="name{}">{}</bdi>').format(wraps, text)
        if text not in self.place:
            self.place[text] = len(self.long)
            self.long.append(text)
        return Markup(
            '<bdi class="name long wraps" tabindex="0" role="button" data-long="{}" '
            'title="{} letters: click to see all">{}</bdi>'
        ).format(self.place[text], f"{len(text):,}", shortened(text))


def shortened(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else text[:longest] + "…"


def embedded(value: Any) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("&", "\\u0026"))


def data_of(conversations: list[Numbers], long: list[str]) -> Numbers:
    """What the details need, every name once and as it is shown."""
    place: dict[str, int] = {}

    def at(text: str) -> int:
        return place.setdefault(text, len(place))

    def tracks(row: Numbers) -> list[list[Any]]:
        return [
            [
                one["track"] if one["track"].isdecimal() else at(one["track"]),
                NOBODY[one["decision"] == "unusable"]
                if one["speaker"] is None
                else at(one["speaker"]),
                *(one[key] for key in ("probability", "low", "high", "decision")),
            ]
            for one in row["tracks"]
        ]

    rows = [
        [
            at(row["conversation"]),
            [at(speaker) for speaker in row.get("speakers", [])],
            *(row[key] for key in ("probability", "low", "high", "clique", "kind")),
            int(row["suspicious"]),
            row.get("speech_seconds", 0),
            row.get("marks", 0),
            [[at(e["with"]), at(e["speaker"]), e["bits"]] for e in row["evidence"]],
            tracks(row) if "tracks" in row else 0,
            [
                [
                    at(one["speaker"]),
                    *(one[key] for key in ("status", "probability", "low", "high")),
                ]
                for one in row.get("listed", [])
            ],
            [[at(one["cue"]), one["bits"]] for one in row.get("cues", [])],
        ]
        for row in conversations
    ]
    return {"names": [readable(text) for text in place], "rows": rows, "long": long}


def cell(value: Any, column: str = "") -> str:
    """A value as a person reads it; '–' where there is none."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " to ".join(dict.fromkeys(cell(v, column) for v in value))  # equal ends once
    if isinstance(value, int):
        return f"{value:,}"
    if column in PERCENT:
        return percent(value)
    if column in DECIMALS:
        return f"{value:.{DECIMALS[column]}f}"
    return figure_text(value)


def figure_text(value: float) -> str:
    if value == 0.0:
        return "0"
    if abs(value) >= 1000.0:
        return f"{value:,.1f}"
    return f"{value:.4f}" if abs(value) >= 0.0001 else f"{value:.2g}"


def percent(value: float | None) -> str:
    """Per cent with as many digits as it takes not to say 100 of what is less."""
    if value is None:
        return "–"
    for digits in range(1, 8, 2):
        text = f"{100.0 * value:.{digits}f}"
        if float(text) < 100.0 or value >= 1.0:
            return f"{text} %"
    return "over 99.99999 %"


def about(value: float) -> str:
    """Per cent where a few digits will do."""
    if value > 0.9994:
        return "over 99.9 %"
    return "under 0.1 %" if value < 0.0005 else percent(value)


def signed(bits: float) -> str:
    return f"{'−' if bits < 0 else '+'}{abs(bits):.3g}"


def is_text(table: Table, column: int) -> bool:
    """Whether a column holds words: they stand left, numbers right."""
    return any(isinstance(row[column], str) for row in table["rows"])


def cell_class(table: Table, column: int, printed: tuple[str, ...]) -> Markup:
    if table["columns"][column] in printed:
        return Markup(' class="printed"')
    return Markup(' class="t"') if is_text(table, column) else Markup("")


def with_text(key: str, svg: str, label: str, caption: str) -> Markup:
    """A drawing that says in words what it shows."""
    head = Markup(
        '<svg role="img" aria-labelledby="{0}-title {0}-desc" viewBox={1}'
        '<title id="{0}-title">{2}</title><desc id="{0}-desc">{3}</desc>'
    )
    body = for_page(key, svg).removeprefix("<svg viewBox=")
    box, rest = body.split(">", 1)
    return head.format(key, Markup(box + ">"), label, caption) + Markup(rest)


def gallery(drawn: list[Numbers]) -> list[Numbers]:
    """Drawn cliques in groups of one size, the largest first."""
    groups = []
    for size, members in groupby(drawn, key=lambda one: one["conversations"]):
        cliques = list(members)
        note = ""
        if cliques[0]["circles"]:
            note = (
                "Too large for every speaker: a dot is a speaker of many conversations with all "
                "to whom it is the nearest, a line all conversations between two such circles, "
                "coloured by its most doubtful hundredth."
            )
        groups.append(
            {
                "title": counted(size, "conversation") + (" a clique" if len(cliques) > 1 else ""),
                "note": note,
                "graphs": [clique_svg.graph(one) for one in cliques],
            }
        )
    return groups


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
                rows.append([f"{name} {part}".strip().replace("_", " "), figure])
    return {"columns": ["measure", "value"], "rows": rows}


def holds_rows(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(one, dict | list) for one in value)


def settings_table(provenance: Numbers) -> Table:
    rows: list[list[Any]] = [["spklink", provenance["spklink"]]]
    rows += [[name, value] for name, value in provenance["versions"].items()]
    rows.append(["seed", str(provenance["seed"])])
    for name, value in provenance["settings"].items():
        parts = value.items() if isinstance(value, dict) else [("", value)]
        rows += [[f"{name} {part}".strip().replace("_", " "), plain(v)] for part, v in parts]
    return {"columns": ["", "value"], "rows": rows}


def plain(value: Any) -> str:
    return "–" if value is None else str(value)


def inputs_table(provenance: Numbers) -> Table:
    rows = [
        [name, given["file"], given["sha256"]]
        for part in ("inputs", "report_inputs")
        for name, given in provenance[part].items()
    ]
    return {"columns": ["", "file", "SHA-256"], "rows": rows}


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
