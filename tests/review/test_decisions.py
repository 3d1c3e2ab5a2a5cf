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
from hashlib import sha256

import pytest

from spklink.decisions.log import FIRST, Decisions, read_log, verify
from spklink.errors import SpklinkError

WRITER = """
import sys
from spklink.decisions.log import Decisions
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


def with_own_hash(fields, *, spelt=lambda text: text):
    """An entry as some version writes it, in the order of these fields; `spelt` may write its text
    in another way before the hash is computed over it."""
    order = [name for name in fields if name != "hash"]
    text = spelt(json.dumps({name: fields[name] for name in order}, separators=(",", ":")))
    own = f'"hash":"{sha256(text.encode()).hexdigest()}"'
    after = next((name for name in order if name > "hash"), None)
    place = len(text) - 1 if after is None else text.index(f'"{after}":')
    return text[:place] + (f",{own}" if after is None else f"{own},") + text[place:]


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
    changed = with_own_hash(json.loads(text) | {"seats": ["b", "a"]})
    other.execute("update decisions set entry = ? where number = ?", (changed, number))


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


# --- the stored text is what counts ---------------------------------------------------------------


def fails(path, text):
    """Whether a log of this text is refused."""
    path.write_bytes(text)
    try:
        verify(read_log(path), path)
    except SpklinkError:
        return True
    return False


def test_any_changed_byte_is_noticed(log, tmp_path):
    """A bit of each byte of each entry of the log as it is handed over, and each byte left out."""
    log.append(
        reviewer="ann\u00e4",
        conversation='c"hash":"1',
        verdict="heard",
        seats=("=x", None, "*"),
        shown={"hash": "1", "probability": 0.1 + 0.2, "\u00fc": [{}]},
        request="r1",
    )
    log.append(reviewer="bo", conversation="c2", verdict="undo", undoes=1, request="r2")
    whole = "".join(f"{one.text}\n" for one in log.all()).encode()
    path = tmp_path / "log.jsonl"
    assert not fails(path, whole)
    ends = [at for at, byte in enumerate(whole) if byte == 10]
    for at, byte in enumerate(whole):
        if at in ends:  # not part of an entry
            continue
        for instead in (bytes([byte ^ 1 << at % 8]), b""):
            assert fails(path, whole[:at] + instead + whole[at + 1 :]), (at, instead)


def test_any_changed_byte_in_the_database_is_noticed(log):
    for k in range(2):
        heard(log, k, shown={"probability": 1.0, "hash": "no"})
    with sqlite3.connect(log.path, isolation_level=None) as other:
        other.executescript("pragma synchronous = off; drop trigger never_changed")
        for one in log.all():
            stored = one.text.encode()
            for at, byte in enumerate(stored):
                store(other, one.number, stored[:at] + bytes([byte ^ 1]) + stored[at + 1 :])
                with pytest.raises(SpklinkError, match=f"entry {one.number} of the log"):
                    log.verify()
            store(other, one.number, stored)
    log.verify()


def store(other, number, text):
    command = "update decisions set entry = cast(? as text) where number = ?"
    other.execute(command, (text, number))


def test_moving_the_hash_is_noticed(log):
    one = heard(log)
    own = f'"hash":"{one.hash}",'
    rest = one.text.replace(own, "")
    for elsewhere in ("{" + own + rest[1:], f"{rest[:-1]},{own[:-1]}" + "}"):
        assert json.loads(elsewhere) == json.loads(one.text)
        tampered(log, 1, lambda other, n, text=elsewhere: store(other, n, text.encode()))
        with pytest.raises(SpklinkError, match="hash is not in its place"):
            log.verify()
        Decisions.open(log.path).close()  # the triggers, which `tampered` drops again


@pytest.mark.parametrize(
    ("more", "spelt"),
    [
        ({"room": [1, {"hash": None}]}, str),
        ({"zone": "\u00fc"}, str),
        ({"about": None}, str),
        ({}, lambda text: text.replace('"probability":0.5', '"probability":5.0e-1')),
        ({}, lambda text: text.replace('"number":', '"number": ')),
        ({}, lambda text: text.replace("anna", "\\u0061nna")),
    ],
)
@pytest.mark.parametrize("order", [sorted, lambda names: sorted(names, reverse=True)])
def test_entries_of_later_versions_are_verified_as_stored(tmp_path, more, spelt, order):
    """Unknown fields, another spelling and another order of fields survive, and so does the text
    when entries of this version follow."""
    source = Decisions.open(tmp_path / "source.sqlite")
    fields = json.loads(heard(source, shown={"probability": 0.5}).text) | more
    text = with_own_hash({name: fields[name] for name in order(fields)}, spelt=spelt)
    log = Decisions.open(tmp_path / "review.sqlite")
    with sqlite3.connect(log.path) as other:
        other.execute("insert into decisions values (1, 'r1', ?)", (text,))
    first = heard(log, 1)
    assert first.text == text
    assert first.reviewer == "anna"
    second = heard(log, 2)
    assert second.before == json.loads(text)["hash"]
    assert log.verify() == second.hash
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f"{one.text}\r\n" for one in log.all()))  # by way of Windows
    assert verify(read_log(path), path) == second.hash


def test_a_verdict_of_a_later_version_is_refused(log):
    """It might mean anything, so it is not taken for something heard."""
    fields = json.loads(heard(log).text) | {"verdict": "guessed"}
    tampered(log, 1, lambda other, n: store(other, n, with_own_hash(fields).encode()))
    with pytest.raises(SpklinkError, match="verdict 'guessed' is not one of heard, unsure"):
        log.verify()


def test_an_exported_log_can_be_verified(log, tmp_path):
    for k in range(3):
        heard(log, k)
    path = tmp_path / "log.jsonl"
    lines = [one.text for one in log.all()]
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
