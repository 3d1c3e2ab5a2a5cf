"""The page: one HTML file with everything in it, from the numbers and the figures.

Names come from files that others wrote. They reach the page as escaped text only, each isolated
from the direction of its neighbours, and long ones are cut; the full text is embedded once. The
finished page is never searched or changed: a name could look like whatever is searched for. Should
one break out all the same, the page's policy runs its own script and nothing else.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup

from spklink.report import clique_svg, page_tables, seats
from spklink.report.cells import SENTENCES, cell, cell_class, is_text, length, signed, stacks
from spklink.report.figures import for_page
from spklink.report.glossary import DECISION_WORDS, GLOSSARY, HEADINGS
from spklink.report.strength import rounded_to_sum
from spklink.result_tables import ENDINGS, PARQUET
from spklink.words import chance_text, counted, for_screen, printable, readable

HERE = Path(__file__).parent
LONGEST = 80  # letters of a name that are shown at once
MOST_SAID = 400  # letters of a sentence with names in it
LEAST_CERTAIN = 12  # conversations told where lists are doubted
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
            cell(value, column)
            if not isinstance(value, str)
            else (names.text if column in SENTENCES else names.show)(value)
        ),
        "chance": chance_text,
        "signed": signed,
        "heading": lambda text: HEADINGS.get(text, text),
        "decision_word": lambda word: DECISION_WORDS.get(word, word),
        "decision": decision,
        "weighed": weighed,
        "length": length,
        "stacks": stacks,
        "plural": counted,
        "left": is_text,
        "cell_class": cell_class,
        "text": names.text,
        "ending": table_ending(numbers["provenance"]["settings"]),
        "svg_with_text": lambda key, label, caption: with_text(key, figures[key], label, caption),
    }
    return environment.get_template("page.html").render(
        n=numbers,
        svg=figures,
        gallery=gallery(numbers["database"]["drawn"]),
        drawn_table=page_tables.drawn_table(numbers["database"]["drawn"]),
        reliability_table=page_tables.reliability_table(numbers["evaluation"]),
        more_measures=page_tables.more_measures(numbers["evaluation"]),
        measured_seats=seats.measured(numbers["evaluation"]),
        settings_table=page_tables.settings_table(numbers["provenance"]),
        versions_table=page_tables.versions_table(numbers["provenance"]),
        glossary=dict(sorted(GLOSSARY.items(), key=lambda item: item[0].lower())),
        least_certain=LEAST_CERTAIN,
        drawing_text=drawing_text(numbers["database"]["drawn"]),
        inputs_table=page_tables.inputs_table(numbers["provenance"]),
        times_tables=page_tables.times_tables(numbers["times"]),
        css=css,
        js=js,
        policy=policy(css, js),
        # Called where the template ends: only there is it known which names were cut.
        data=lambda: embedded(names.long),
    )


def table_ending(options: Mapping[str, Any]) -> str:
    """Of the files that tables of results are in."""
    return ENDINGS[options.get("tables") == PARQUET]


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


def decision(row: Numbers) -> str:
    """What to do about a conversation, in a word."""
    if row["given"]:
        return "known beforehand"
    kinds = [one["decision"] for one in row.get("tracks", [])]
    for kind in ("misfit", "unusable"):
        if kind in kinds:
            return DECISION_WORDS[kind]
    return DECISION_WORDS[row["kind"]]


def weighed(row: Numbers) -> Numbers:
    """The evidence with the digits that are shown, which add up."""
    pieces = row["evidence"]
    if not pieces:
        return {"rows": []}
    rest = [row["before"], row["others"]]
    values, total = rounded_to_sum([*(one["log10"] for one in pieces), *rest])
    rows = [pair for pair in zip(pieces, values, strict=False) if pair[1]]
    before, others = values[-2:]
    strength = round(total - before - others, 2)
    told = {"rows": rows, "strength": strength, "total": total}
    return told | {"before": before, "others": others}


def with_text(key: str, svg: str, label: str, caption: str) -> Markup:
    """A drawing that says in words what it shows."""
    head = Markup(
        '<svg role="img" aria-labelledby="{0}-title {0}-desc" viewBox={1}'
        '<title id="{0}-title">{2}</title><desc id="{0}-desc">{3}</desc>'
    )
    body = for_page(key, svg).removeprefix("<svg viewBox=")
    box, rest = body.split(">", 1)
    return head.format(key, Markup(box + ">"), label, caption) + Markup(rest)


def drawing_text(drawn: list[Numbers]) -> str:
    """What dots, lines, squares and cells are, of the kinds that there are."""
    told = []
    if any(not one["circles"] for one in drawn):
        hubs = any(one["hubs"] for one in drawn)
        told.append(
            "A dot is a person, a line between two a conversation of the two"
            + (", a square a conversation with lines to the people it lists." if hubs else ".")
        )
    if any(one["circles"] for one in drawn):
        told.append("In a table of people a cell is all conversations of the two.")
    return " ".join(told)


def gallery(drawn: list[Numbers]) -> list[Numbers]:
    """Drawn cliques in groups of one size, the largest first."""
    groups = []
    for size, members in groupby(drawn, key=lambda one: one["conversations"]):
        cliques = list(members)
        note = ""
        if any(node["speakers"] > 1 for one in cliques for node in one["nodes"]):
            note = (
                "Too large for every person: a row is somebody of many conversations with all to "
                "whom he is the nearest; a cell is coloured by its most doubtful hundredth."
            )
        groups.append(
            {
                "title": counted(size, "conversation") + (" a group" if len(cliques) > 1 else ""),
                "note": note,
                "graphs": [clique_svg.graph(one) for one in cliques],
            }
        )
    return groups
