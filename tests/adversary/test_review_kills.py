"""The page of a review is killed while people decide: nothing is lost, nothing is stored twice.

Two people decide as fast as they can until the server is killed; whatever was not answered is asked
again of the next one, as a browser would. `make torture` kills fifty servers.
"""

from __future__ import annotations

import http.client
import random
import secrets
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

from adversary.tally import TORTURE, count, patience
from reviewed import CALLS, decide, write_results
from spklink.decisions.log import Decisions

KILLS = 50 if TORTURE else 3
SEATS = ("0 1", "1 0", "* 0", "1 -")


class Person(threading.Thread):
    """Decides until nobody answers."""

    def __init__(self, address: str, waiting: list[dict[str, str]], seed: int) -> None:
        super().__init__(daemon=True)
        self.address, self.waiting, self.random = address, waiting, random.Random(seed)
        self.answered: list[str] = []
        self.refused: list[str] = []

    def run(self) -> None:
        while True:
            asked = self.waiting[0] if self.waiting else self._next()
            if not self.waiting:
                self.waiting.append(asked)
            try:
                form = {name: value for name, value in asked.items() if name != "m"}
                answer = decide(self.address, int(asked["m"]), **form)
            except (OSError, http.client.HTTPException):
                return
            if answer.status != 200:
                self.refused.append(answer.text)
                return
            self.waiting.pop()
            self.answered.append(asked["request"])

    def _next(self) -> dict[str, str]:
        return {
            "m": str(self.random.randrange(len(CALLS))),
            "seats": self.random.choice(SEATS),
            "request": secrets.token_hex(16),
        }


def start(out: Path) -> tuple[subprocess.Popen[str], str]:
    words = [sys.executable, "-m", "spklink", "review", str(out), "--reviewer", "somebody"]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8"
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("review: http://127.0.0.1:"), line
    return process, line.removeprefix("review: ").strip()


def test_no_decision_is_lost_or_doubled(tmp_path):
    out = write_results(tmp_path)
    rng = random.Random(1)
    waiting: list[list[dict[str, str]]] = [[], []]
    answered: list[str] = []
    for kill in range(KILLS):
        with patience(120):
            process, address = start(out)
            try:
                people = [Person(address, own, 2 * kill + k) for k, own in enumerate(waiting)]
                for one in people:
                    one.start()
                people[0].join(rng.uniform(0.3, 1.0))
            finally:
                process.kill()
                process.wait()
            for one in people:
                one.join()
        assert [text for one in people for text in one.refused] == []
        answered += [request for one in people for request in one.answered]
    log = Decisions.open(out / "review.sqlite")
    log.verify()
    entries = log.all()
    times = Counter(one.request for one in entries)
    lost = [request for request in answered if not times[request]]
    doubled = [request for request, number in times.items() if number > 1]
    count("kills: page of a review", KILLS, {"other bytes": len(lost) + len(doubled)})
    assert lost == doubled == []
    assert [one.number for one in entries] == list(range(1, len(entries) + 1))
    unanswered = len(entries) - len(set(answered))
    assert 0 <= unanswered <= len(waiting)  # what was stored just before the last kill
    assert len(answered) > KILLS
    log.close()
