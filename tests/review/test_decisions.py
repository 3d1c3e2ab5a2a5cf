"""The log of decisions: nothing is lost, doubled or changed unseen."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

from spklink.errors import SpklinkError
from spklink.review.decisions import FIRST, Decisions, as_line, read_log, verify

WRITER = """
import sys
from spklink.review.decisions import Decisions
log = Decisions.open(sys.argv[1])
for k in range(int(sys.argv[2]), 10**6):
    log.append(reviewer="anna", conversation=f"c{k}", verdict="heard", seats=("a", None),
               request=f"r{k}")
    print(k, flush=True)
"""


@pytest.fixture
def log(tmp_path):
    return Decisions.open(tmp_path / "review.sqlite")


def heard(log, k=1, **words):
    usual = {"reviewer": "anna", "conversation": f"c{k}", "verdict": "heard", "seats": ("a", "b")}
    request = words.pop("request", f"r{k}")
    return log.append(**usual | words, request=request)


def test_entries_follow_one_another(log):
    one = log.append(
        reviewer="anna",
        conversation="ü\n",
        verdict="heard",
        seats=("=x", None, "*"),
        why="a laugh",
        shown={"probability": 0.1 + 0.2, "blind": True},
        request="r1",
    )
    two = heard(log, 2)
    assert (one.number, one.before, two.number, two.before) == (1, FIRST, 2, one.hash)
    again = Decisions.open(log.path)
    assert again.all() == [one, two]
    assert again.all(after=1) == [two]
    assert again.verify() == two.hash
    assert one.time.endswith("+00:00")


def test_the_same_request_is_stored_once(log):
    first = heard(log, 1)
    assert heard(log, 1, reviewer="somebody else") == first
    assert log.last() == 1


@pytest.mark.parametrize("words", [{"verdict": "maybe"}, {"reviewer": " "}, {"why": "x" * 200_000}])
def test_what_is_no_decision_is_not_stored(log, words):
    with pytest.raises(SpklinkError):
        heard(log, **words)
    assert log.all() == []


@pytest.mark.parametrize("change", ["update decisions set entry = ''", "delete from decisions"])
def test_nothing_can_be_changed_by_accident(log, change):
    heard(log)
    with sqlite3.connect(log.path) as other, pytest.raises(sqlite3.IntegrityError, match="never"):
        other.execute(change)


def tampered(log, number, change):
    """What somebody with an editor could do."""
    with sqlite3.connect(log.path) as other:
        other.executescript("drop trigger never_changed; drop trigger never_removed")
        change(other, number)


def rewritten(other, number):
    text = other.execute("select entry from decisions where number = ?", (number,)).fetchone()[0]
    entry = json.loads(text) | {"reviewer": "nobody"}
    other.execute("update decisions set entry = ? where number = ?", (json.dumps(entry), number))


def removed(other, number):
    other.execute("delete from decisions where number = ?", (number,))


def rewritten_with_its_hash(other, number):
    text = other.execute("select entry from decisions where number = ?", (number,)).fetchone()[0]
    one = json.loads(text)
    from spklink.review.decisions import Decision

    entry = Decision(**one | {"seats": ("b", "a")})
    entry = replace(entry, hash=entry.hashed())
    other.execute("update decisions set entry = ? where number = ?", (as_line(entry), number))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (rewritten, "entry 2 of the log was changed"),
        (removed, "entry 2 of the log is missing"),
        (rewritten_with_its_hash, "entry 3 of the log does not follow"),
    ],
)
def test_what_was_tampered_with_is_named(log, change, said):
    for k in range(4):
        heard(log, k)
    tampered(log, 2, change)
    with pytest.raises(SpklinkError, match=said):
        log.verify()


@pytest.mark.parametrize("junk", ["", "{}", "[1]", '{"number": NaN}', "[" * 5000])
def test_junk_in_the_log_is_an_error_in_words(log, junk):
    heard(log)
    tampered(log, 1, lambda other, n: other.execute("update decisions set entry = ?", (junk,)))
    with pytest.raises(SpklinkError, match="entry 1 of the log cannot be read"):
        log.all()


def test_a_file_that_is_no_log(tmp_path):
    (tmp_path / "review.sqlite").write_bytes(b"nothing of the kind" * 100)
    with pytest.raises(SpklinkError, match="cannot be read or stored"):
        Decisions.open(tmp_path / "review.sqlite")


def test_an_exported_log_can_be_verified(log, tmp_path):
    for k in range(3):
        heard(log, k)
    path = tmp_path / "log.jsonl"
    lines = [as_line(one) for one in log.all()]
    path.write_text("\n".join(lines) + "\n")
    assert verify(read_log(path), path) == log.verify()
    path.write_text("\n".join([lines[0], lines[2]]) + "\n")
    with pytest.raises(SpklinkError, match="entry 2 of the log is missing"):
        verify(read_log(path), path)


def test_many_threads_and_two_logs_at_once(log):
    other = Decisions.open(log.path)

    def write(which, k):
        for n in range(10):
            heard(which, reviewer=f"p{k}", request=f"{k}-{n}")

    threads = [threading.Thread(target=write, args=((log, other)[k % 2], k)) for k in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(log.all()) == 40
    log.verify()


def test_kill_9_between_and_during_decisions(tmp_path):
    """Ten writers are killed at any moment; each begins with what the one before had not heard of
    as stored, as a person whose page does not answer would."""
    path, begin, random_moment = tmp_path / "review.sqlite", 0, random.Random(4)
    Decisions.open(path).close()
    for _ in range(10):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, path, str(begin)], stdout=subprocess.PIPE, text=True
        )
        process.stdout.readline()
        process.stdout.readline()  # one at least is new
        time.sleep(random_moment.random() * 0.02)
        process.send_signal(signal.SIGKILL)
        told = process.communicate()[0].split()
        log = Decisions.open(path)
        entries = log.all()
        assert [one.request for one in entries] == [f"r{k}" for k in range(len(entries))]
        assert len(entries) >= max([begin + 1, *(int(k) + 1 for k in told)])  # all that was told
        log.verify()
        log.close()
        begin = len(entries) - 1  # asks once more for the last one
    assert begin >= 10
