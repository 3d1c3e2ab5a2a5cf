"""A results folder with people's decisions on it: what holds now, and what to ask next.

What somebody heard is taken for granted, and the clique it belongs to is solved again; nothing else
changes. Several people may use one desk from several threads, and several processes one folder:
`refresh` picks up what others appended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spklink.arrays import ranges
from spklink.database.cliques import Cliques, find_cliques
from spklink.database.conversations import Conversations
from spklink.decisions.fingerprints import SHA256, Fingerprints
from spklink.decisions.log import FILE, HEARD, RESOLVE, UNDO, Decision, Decisions
from spklink.decisions.verdicts import Seats, Verdict, Verdicts
from spklink.errors import SpklinkError
from spklink.posterior.inference.beliefs import CERTIFIED
from spklink.posterior.posterior import SETTLED, Options
from spklink.review.checks import check_words, checked_seats, checked_shown
from spklink.review.progress import Agreement, Progress, agreement_of, hours_of
from spklink.review.views import View, view_of
from spklink.review_options import FEWEST
from spklink.runs.folder import RUN_FILE, load, solving
from spklink.runs.part import Part, clique_of, part_of, solved, with_heard
from spklink.runs.questions import open_question, questions_of
from spklink.runs.queue import CHANGED, DISAGREE, Asked, Board, Question, asked, ordered
from spklink.runs.queue import UNSURE as COULD_NOT_TELL
from spklink.runs.result import Result
from spklink.runs.stages import Stages
from spklink.shared_options import ORDERS
from spklink.tables import sha256

Ints = NDArray[np.int64]
SECONDS = 0.2  # budget of a clique that is solved while somebody waits


@dataclass(frozen=True)
class Change:
    """What a decision did."""

    decision: Decision
    conversations: tuple[int, ...]  # all of its clique
    changed: tuple[int, ...]  # those of which something else is said now, or is settled now or not
    progress: Progress


class Desk:
    """One results folder under review."""

    def __init__(self, folder: Path, result: Result, log: Decisions, **asked_for: Any) -> None:
        self.folder, self.result, self.log = folder, result, log
        self.order: str = asked_for.get("order", FEWEST)
        self.seed: int = asked_for.get("seed", 0)
        self.table: Conversations = result.conversations
        self.cliques: Cliques = find_cliques(self.table)
        self.where = self.table.index()
        self.fingerprints = Fingerprints(result)
        self.verdicts = Verdicts(self.fingerprints.outdated)
        self.questions = questions_of(result)
        self.run_hash = sha256(folder / RUN_FILE)
        self._usable = _usable(result)
        self._rate = result.answer.rate.value
        self._how = _quick(solving(result.options))
        self._parts: dict[int, Part] = {}  # cliques that were looked at, or changed since then
        self._lock = RLock()
        size = self.cliques.size
        self.board = Board(self.cliques.label, size, asked_for.get("certainty", SETTLED))
        self.verdicts.take(self.log.all())
        calls = np.arange(len(self.table))
        self._whole = Part(calls, result.evidence, result.answer, self._usable)
        self._heard_before: Part | None = None  # cliques of which somebody decided earlier
        self.board.take(np.arange(len(size)), self._whole)
        self._take_earlier_decisions()
        self._set_aside(calls)

    @classmethod
    def open(
        cls,
        results: str | Path,
        *,
        order: str = FEWEST,
        certainty: float = SETTLED,
        seed: int = 0,
        workers: int | None = None,
        stages: Stages | None = None,
    ) -> Desk:
        """Read a results folder, take what was decided, solve, and look at what is open."""
        if order not in ORDERS:
            raise SpklinkError(f"order {order!r} is not one of {', '.join(ORDERS)}")
        if not 0.5 < certainty < 1.0:
            raise SpklinkError(f"certainty {certainty:g}: a probability between .5 and 1")
        folder, stages = Path(results), stages or Stages()
        result = load(folder, workers=workers, stages=stages)
        log = Decisions.open(folder / FILE)
        log.verify()
        with stages.stage("looking for what to hear first"):
            return cls(folder, result, log, order=order, certainty=certainty, seed=seed)

    # --- what is asked -------------------------------------------------------------------------

    def queue(self, start: int = 0, count: int = 50, order: str | None = None) -> list[Asked]:
        """What to listen to next, the first one first."""
        with self._lock:
            calls = self._ordered(order or self.order)[start : start + count]
            return [self.asked(m) for m in calls.tolist()]

    def queue_length(self) -> int:
        with self._lock:
            return len(self._ordered(self.order))

    def asked(self, m: int) -> Asked:
        """Why a conversation is, or would be, asked about."""
        with self._lock:
            return asked(self.board, self.table, m, self._question(m))

    def _ordered(self, order: str) -> Ints:
        decided, disagree, unsure = self._masks()
        return ordered(
            self.board,
            order,
            questions={m: [self._question(m)] for m in self._to_hear_again()} | self.questions,
            decided=decided,
            disagree=disagree,
            unsure=unsure,
            seed=self.seed,
        )

    def _masks(self) -> NDArray[np.bool_]:
        """(3, M) decided, in dispute, not to be told."""
        found = np.zeros((3, len(self.table)), np.bool_)
        for name, one in self.verdicts.by_conversation.items():
            if name in self.where:
                found[:, self.where[name]] = one.seats is not None, one.disagree, one.unsure
        return found

    def _to_hear_again(self) -> list[int]:
        """Conversations of which only a changed recording was decided."""
        found = (name for name, one in self.verdicts.by_conversation.items() if one.hear_again)
        return [self.where[name] for name in found if name in self.where]

    def _question(self, m: int) -> Question:
        verdict = self.verdict(m)
        if verdict.disagree:
            said = "; ".join(f"{one.reviewer}: {_spoken(one.seats)}" for one in verdict.heard)
            return Question(DISAGREE, f"people hear different voices ({said})", "Who is right?")
        part, i = self.place_of(m)
        plain = open_question(self.board, self.table, m, part.names(i), part.resolvable(i))
        found = self.questions[m][0] if m in self.questions else plain
        if verdict.hear_again:
            reason = f"the recording has changed since {' and '.join(verdict.held)} decided"
            return Question(CHANGED, reason, found.question)
        if verdict.unsure:
            who = " and ".join(verdict.words)
            reason = f"{who} heard it and could not tell; {found.reason}"
            return Question(COULD_NOT_TELL, reason, found.question)
        return found

    # --- what holds ----------------------------------------------------------------------------

    def verdict(self, m: int) -> Verdict:
        return self.verdicts[self.table.ids[m]]

    def view(self, m: int) -> View:
        """All there is to show about a conversation."""
        with self._lock:
            if not 0 <= m < len(self.table):
                raise SpklinkError(f"there is no conversation {m}")
            k = int(self.cliques.label[m])
            return view_of(self, self.part(k), self._within(k, m))

    def part(self, k: int) -> Part:
        """A clique with what was heard of it, solved."""
        with self._lock:
            if k not in self._parts:
                part, i = self.place_of(int(self.cliques.members(k)[0]))
                self._parts[k] = clique_of(part, int(part.label[i]))
            return self._parts[k]

    def place_of(self, m: int) -> tuple[Part, int]:
        """A part that has a conversation, and where: its clique if that is at hand."""
        k, heard = int(self.cliques.label[m]), self._heard_before
        with self._lock:
            if k in self._parts:
                return self._parts[k], self._within(k, m)
            if heard is not None:
                i = int(np.searchsorted(heard.calls, m))
                if i < len(heard.calls) and heard.calls[i] == m:
                    return heard, i
            return self._whole, m

    def _within(self, k: int, m: int) -> int:
        return int(np.searchsorted(self.part(k).calls, m))

    def _take_earlier_decisions(self) -> None:
        """Solve again, all at once, the cliques of which somebody decided before."""
        heard = np.array(sorted(self._heard(np.arange(len(self.table)))), np.int64)
        if len(heard):
            cliques = np.unique(self.cliques.label[heard]).astype(np.int64)
            calls = np.flatnonzero(np.isin(self.cliques.label, cliques))
            self._heard_before = self._solved_with_decisions(calls, solving(self.result.options))
            self.board.take(cliques, self._heard_before)

    def _solved(self, k: int) -> Part:
        """A clique, solved again with what was heard of it."""
        calls = self.cliques.members(k)
        part, i = self.place_of(int(calls[0]))
        near = not part.answer.binary and part.certainty(i) == CERTIFIED
        start = self.part(k).place if near else None  # close to where the best state is now
        return self._solved_with_decisions(calls, self._how, start)

    def _solved_with_decisions(self, calls: Ints, how: Options, start: Ints | None = None) -> Part:
        """Whole cliques with what was heard of them."""
        sides = self.table.sides
        evidence = with_heard(part_of(self.result.evidence, calls), self._heard(calls))
        usable = self._usable[ranges(sides.start[calls], sides.counts[calls])]
        return solved(evidence, calls, usable, rate=self._rate, how=how, start=start)

    def _heard(self, calls: Ints) -> dict[int, Seats]:
        """What was heard of some conversations, by their place among them."""
        if not self.verdicts.by_conversation:
            return {}
        said = ((i, self.verdict(m).seats) for i, m in enumerate(calls.tolist()))
        return {i: seats for i, seats in said if seats is not None}

    def progress(self) -> Progress:
        with self._lock:
            decided, disagree, unsure = self._masks()
            open_ = self.board.open & ~decided
            hours = hours_of(self.result)
            spared = ~decided & ~open_
            spared[self.table.asked :] = False  # recordings of known people
            low, high = self.board.entropy.sum(axis=1).tolist()
            return Progress(
                conversations=self.table.asked,
                decided=int(decided.sum()),
                settled=int(spared.sum()),
                open=int(open_.sum()),
                disagreements=int(disagree.sum()),
                unsure=int(unsure.sum()),
                held_back=len(self._to_hear_again()),
                bits_left=(low, high),
                listens=(float(self.board.listens[0].sum()), float(self.board.listens[1].sum())),
                listens_exact=bool(self.board.exact.all()),
                hours_decided=None if hours is None else float(hours[decided].sum()),
                hours_saved=None if hours is None else float(hours[spared].sum()),
            )

    def agreement(self) -> Agreement:
        """Of decisions made blind: how often they say what the system would have said."""
        with self._lock:
            return agreement_of(self.verdicts.blind())

    # --- what people do ------------------------------------------------------------------------

    def decide(
        self,
        m: int,
        seats: Iterable[str | None],
        *,
        reviewer: str,
        request: str,
        verdict: str = HEARD,
        why: str = "",
        shown: Mapping[str, Any] | None = None,
    ) -> Change:
        """Store what somebody heard, and solve its clique again."""
        with self._lock:
            self.refresh()
            said = checked_seats(self.table, m, tuple(seats), verdict)
            check_words(reviewer=reviewer, request=request, why=why)
            if verdict == RESOLVE and not self.verdict(m).disagree:
                raise SpklinkError(f"nobody disagrees about {self.table.ids[m]!r}")
            if self.fingerprints.changed(m):
                raise SpklinkError(
                    f"{self.table.ids[m]}: the recording has changed since these results were "
                    "made; make them again, then decide"
                )
            return self._append(
                m,
                reviewer=reviewer,
                verdict=verdict,
                seats=said,
                why=why,
                shown=self._shown(m) | checked_shown(shown),
                request=request,
            )

    def undo(
        self, *, reviewer: str, request: str, number: int | None = None, why: str = ""
    ) -> Change:
        """Take back an entry of one's own: the last one, unless it is said which."""
        with self._lock:
            self.refresh()
            check_words(reviewer=reviewer, request=request, why=why)
            before = next((one for one in self.verdicts.entries if one.request == request), None)
            if before is not None:
                return self._change(before, self._say(self.where[before.conversation]))
            one = self.verdicts.last_of(reviewer) if number is None else self.verdicts.find(number)
            if one is None or not self.verdicts.can_undo(one, reviewer):
                what = "nothing" if number is None else f"decision {number} is not there, or not"
                raise SpklinkError(f"{what} of {reviewer!r} to take back")
            m = self.where[one.conversation]
            return self._append(
                m, reviewer=reviewer, verdict=UNDO, why=why, undoes=one.number, request=request
            )

    def _append(self, m: int, **words: Any) -> Change:
        before = self._say(m)
        entry = self.log.append(conversation=self.table.ids[m], **words)
        self.refresh()
        return self._change(entry, before)

    def _change(self, entry: Decision, before: list[tuple[Any, ...]]) -> Change:
        m = self.where[entry.conversation]
        calls = self.cliques.members(int(self.cliques.label[m])).tolist()
        after = self._say(m)
        changed = [j for j, old, new in zip(calls, before, after, strict=True) if old != new]
        return Change(entry, tuple(calls), tuple(changed), self.progress())

    def _say(self, m: int) -> list[tuple[Any, ...]]:
        """What is said of every conversation of a clique, to be compared."""
        found = []
        for j in self.cliques.members(int(self.cliques.label[m])).tolist():
            part, i = self.place_of(j)
            verdict = self.verdict(j)
            open_ = bool(self.board.open[j])
            found.append((*part.names(i), open_, verdict.seats, verdict.disagree))
        return found

    def refresh(self) -> set[int]:
        """Take what was appended to the log, by whomever; the conversations it is about."""
        with self._lock:
            last = len(self.verdicts.entries)
            fresh = self.log.all(after=last) if self.log.last() > last else []
            touched = {self.where[n] for n in self.verdicts.take(fresh) if n in self.where}
            for k in {int(self.cliques.label[m]) for m in touched}:
                self._parts[k] = part = self._solved(k)
                self.board.take(np.array([k]), part)
                self._set_aside(part.calls)
            return touched

    def _set_aside(self, calls: Ints) -> None:
        """Nothing more is asked of what was decided."""
        names, verdicts = self.table.ids, self.verdicts
        decided = [m for m in calls.tolist() if verdicts[names[m]].seats is not None]
        self.board.set_aside(np.array(decided, np.int64))

    def _shown(self, m: int) -> dict[str, Any]:
        """What the system would say before a decision."""
        part, i = self.place_of(m)
        return {
            "suggestion": list(part.names(i)),
            "probability": float(self.board.chance[m]),
            "order": self.order,
            "results": self.run_hash,
            SHA256: self.fingerprints.heard(m),
        }


def _spoken(seats: Seats) -> str:
    return ", ".join("?" if who is None else who for who in seats)


def _usable(result: Result) -> NDArray[np.bool_]:
    found = result.usable
    return np.ones(len(result.conversations.sides), np.bool_) if found is None else found


def _quick(how: Options) -> Options:
    return replace(how, budget=replace(how.budget, seconds=min(SECONDS, how.budget.seconds)))
