"""The page and its parts as HTML, from what the desk knows.

Names come from files that others wrote: they reach the page as escaped text through the templates
alone, control characters as escapes, each isolated from the direction of its neighbours. In blind
mode nothing of what the system thinks of a conversation is in the page, hidden or not, until the
person has decided.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from spklink import __version__
from spklink.database.sides import TWO
from spklink.decisions.log import HEARD
from spklink.report.page import LONGEST, shortened
from spklink.review.desk import Change, Desk
from spklink.review.drawn import bar, clique, shares
from spklink.review.recordings import Recordings
from spklink.review.views import LINK, EvidenceRow, View
from spklink.words import chance_text, counted, printable, readable

TEMPLATES = Path(__file__).parent / "templates"
QUEUED = 40  # shown at once
FOUND = 20
STRONG = 8  # links that are shown one by one
REMEMBERED = 10_000  # pages of which it is known what they showed


@dataclass(frozen=True)
class Choice:
    """An answer that one key gives."""

    key: str
    verb: str
    seats: str  # as the form sends them: places in the list, `*`, `-`
    said: str  # who is where, in words


class Pages:
    """Makes the page; may be used from several threads."""

    def __init__(self, desk: Desk, recordings: Recordings, base: str, *, blind: bool) -> None:
        self.desk, self.recordings, self.base, self.blind = desk, recordings, base, blind
        self._showed: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._lock = Lock()
        self.environment = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_visible,
        )
        self.environment.globals |= {
            "base": base,
            "blind": blind,
            "name": name,
            "chance": chance_text,
            "plural": counted,
            "signed": signed,
            "hours": hours,
            "span": span,
            "bar": bar,
            "version": __version__,
        }

    def _render(self, template: str, **values: Any) -> str:
        return self.environment.get_template(template).render(**values)

    # --- parts ------------------------------------------------------------------------------------

    def whole(self, m: int | None, reviewer: str, blind: bool, nonce: str) -> str:
        """The page at a conversation; None: at the first of the queue."""
        asked = self.desk.queue(0, QUEUED)
        at = m if m is not None else asked[0].m if asked else None
        inside = None if at is None else self._conversation(at, reviewer)
        return self._render(
            "page.html", nonce=nonce, reviewer=reviewer, inside=inside, **self._around(asked)
        )

    def conversation(self, m: int, reviewer: str, blind: bool) -> str:
        return self._render("conversation.html", inside=self._conversation(m, reviewer))

    def queue(self, start: int) -> str:
        asked = self.desk.queue(start, QUEUED)
        more = start + len(asked)
        return self._render("queue_items.html", asked=asked, more=self._more(more))

    def news(self, since: int, m: int | None) -> str:
        """What changed around conversation m, and whether it did itself, since so many entries."""
        table, label = self.desk.where, self.desk.cliques.label
        names = {one.conversation for one in self.desk.verdicts.entries[since:]}
        touched = {int(label[table[name]]) for name in names if name in table}
        anew = m if m is not None and int(label[m]) in touched else None
        return self._render("news.html", anew=anew, **self._around(self.desk.queue(0, QUEUED)))

    def changed(self, m: int, reviewer: str, blind: bool, change: Change) -> str:
        """The conversation anew, and all around it that a decision changed."""
        inside = self._conversation(m, reviewer, change)
        around = self._around(self.desk.queue(0, QUEUED))
        return self._render("changed.html", inside=inside, **around)

    def found(self, words: str) -> str:
        """Conversations whose id, or one of whose people, has these words in it."""
        sought, table, rows = words.casefold().strip(), self.desk.table, []
        for m in range(len(table) if sought else 0):
            if sought in table.ids[m].casefold() or any(
                sought in one.casefold() for one in table.names(m)
            ):
                rows.append((m, table.ids[m], table.names(m)))
                if len(rows) > FOUND:
                    break
        return self._render("found.html", rows=rows[:FOUND], sought=sought, all=len(rows) <= FOUND)

    # --- what is in them --------------------------------------------------------------------------

    def _around(self, asked: list[Any]) -> dict[str, Any]:
        progress = self.desk.progress()
        return {
            "asked": asked,
            "more": self._more(len(asked)),
            "length": self.desk.queue_length(),
            "progress": progress,
            "shares": shares(progress),
            "agreement": self.desk.agreement() if self.blind else None,
            "state": self.state(),
        }

    def state(self) -> str:
        """Another one whenever something was decided."""
        return str(len(self.desk.verdicts.entries))

    def _more(self, start: int) -> int | None:
        return start if start < self.desk.queue_length() else None

    def _conversation(self, m: int, reviewer: str, change: Change | None = None) -> dict[str, Any]:
        view = self.desk.view(m)
        words = view.verdict.words
        mine = words.get(reviewer)
        hidden = self.blind and mine is None and not view.disagreement
        return {
            "view": view,
            "mine": mine,
            "others": {who: one for who, one in words.items() if who != reviewer},
            "hidden": hidden,
            "relink": bool(view.verdict.held) and self.desk.fingerprints.changed(m),
            "choices": self._choices(view, hidden),
            "request": self._remember(view, hidden),
            "undo": secrets.token_hex(16),
            "change": change,
            "next": self._next(m),
            "problem": self.recordings.why_not(m),
            "ids": self.desk.table.ids,
            "neighbours": _by_person(view),
            "graph": clique(view.graph, m, self.base),
            "said": lambda seats: said(view, seats),
            "reveal": _reveal(view, mine) if self.blind and mine is not None else None,
            "evidence": folded(view.evidence),
            "scale": max((abs(one.log10) for one in view.evidence), default=1.0) or 1.0,
        }

    def _place(self, m: int) -> int | None:
        """Of a conversation in the queue, from 1, if it is among the first."""
        first = [one.m for one in self.desk.queue(0, QUEUED)]
        return first.index(m) + 1 if m in first else None

    def _next(self, m: int) -> int | None:
        """The conversation to go on with."""
        return next((one.m for one in self.desk.queue(0, 2) if one.m != m), None)

    def _choices(self, view: View, hidden: bool) -> list[Choice]:
        """What one key says. In blind mode the order is that of the list, whatever is thought."""
        made: list[Choice] = []
        first = tuple(one.name for one in view.tracks)
        if hidden:
            first = (None,) * len(view.tracks)
            if len(view.tracks) == len(view.listed) == TWO:
                first = tuple(one.name for one in view.listed)
        verbs = ("", "") if hidden else ("Accept", "Swap")
        if any(first):
            made.append(Choice("a", verbs[0], code(view, first), said(view, first)))
        second = exchanged(view, first)
        if second != first:
            made.append(Choice("s", verbs[1], code(view, second), said(view, second)))
        for k in range(len(view.tracks)):
            rest = [None if hidden else one for one in first]
            rest[k] = "*"
            made.append(Choice(f"n{k + 1}", "", code(view, rest), said(view, rest)))
        return made

    def _remember(self, view: View, hidden: bool) -> str:
        """What this page shows, under the name of the request that it will send."""
        asked = secrets.token_hex(16)
        with self._lock:
            self._showed[asked] = {
                "blind": hidden,
                "place": self._place(view.m),
                "entries": len(self.desk.verdicts.entries),
            }
            while len(self._showed) > REMEMBERED:
                self._showed.popitem(last=False)
        return asked

    def shown(self, asked: str) -> dict[str, Any]:
        """What the page showed that sends this request."""
        with self._lock:
            return dict(self._showed.get(asked, {"page": "of another server"}))


def _visible(value: Any) -> Any:
    """Whatever text a template puts out, so that no place can be forgotten."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def name(text: str | None) -> Markup:
    """A person or a conversation; what stands for somebody else in words."""
    if text is None:
        return Markup('<span class="else">nobody says</span>')
    if text == "*":
        return Markup('<span class="else">someone else</span>')
    shown = readable(text)
    if len(shown) <= LONGEST:
        return Markup('<bdi class="name">{}</bdi>').format(shown)
    whole = Markup('<bdi class="name" title="{}">{}</bdi>')
    return whole.format(shortened(shown, 2000), shortened(shown))


def said(view: View, seats: tuple[str | None, ...] | list[str | None]) -> Markup:
    """Who is where, in words."""
    parts = [
        Markup("{} on {}").format(name(one), track.track)
        for one, track in zip(seats, view.tracks, strict=False)  # there may be others by now
        if one is not None
    ]
    return Markup(", ").join(parts) if parts else Markup("nothing said")


def exchanged(view: View, seats: tuple[str | None, ...]) -> tuple[str | None, ...]:
    """The same with the two least certain tracks the other way round."""
    if len(seats) < TWO or not all(seats):
        return seats
    one, two = sorted(range(len(seats)), key=lambda k: view.tracks[k].probability)[:TWO]
    turned = [*seats]
    turned[one], turned[two] = seats[two], seats[one]
    return tuple(turned)


def code(view: View, seats: tuple[str | None, ...] | list[str | None]) -> str:
    """The same as a form sends it."""
    places = {one.name: str(k) for k, one in enumerate(view.listed)} | {"*": "*"}
    return " ".join(places.get(one or "", "-") for one in seats)


def _reveal(view: View, mine: Any) -> dict[str, Any] | None:
    """What the system would have said, for one who decided without knowing."""
    before = mine.shown.get("suggestion")
    if not before or mine.verdict != HEARD or not mine.shown.get("blind"):
        return None
    pairs = zip(mine.seats, before, strict=False)
    return {
        "said": said(view, before),
        "agrees": all(heard == thought for heard, thought in pairs if heard is not None),
        "probability": mine.shown.get("probability"),
    }


def _by_person(view: View) -> list[tuple[str, list[Any]]]:
    """Other tracks of the same people, a person at a time."""
    found: dict[str, list[Any]] = {}
    for one in view.neighbours:
        found.setdefault(one.name or "*", []).append(one)
    return [*found.items()]


def folded(rows: Sequence[EvidenceRow]) -> dict[str, Any]:
    """What is shown at once: all that is no link, and the strongest links; the rest as one sum."""
    links = sorted((one for one in rows if one.kind == LINK), key=lambda one: -abs(one.log10))
    weak = links[STRONG:] if len(links) > STRONG + 1 else []
    return {
        "strong": [one for one in rows if one not in weak],
        "weak": weak,
        "together": sum(one.log10 for one in weak),
    }


def signed(value: float) -> str:
    """With two digits, and no sign where they are all 0."""
    text = f"{abs(value):.2f}"
    return text if float(text) == 0.0 else f"{'−' if value < 0 else '+'}{text}"


def span(ends: tuple[float, float], digits: int) -> str:
    """A figure, or both its ends where it is not exact."""
    return " to ".join(dict.fromkeys(f"{end:,.{digits}f}" for end in ends))


def hours(length: float) -> str:
    """A length of time as people say it."""
    if length < 0.025:
        return f"{3600 * length:.0f} s"
    return f"{60 * length:.0f} min" if length < 1.5 else f"{length:.1f} h"
