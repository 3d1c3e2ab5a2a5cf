"""`check`: files that cannot be heard, names of nobody, lists and tracks of any kind in words."""

from __future__ import annotations

import os

import pytest

from spklink import simulate
from spklink.database.placeholders import is_placeholder
from spklink.runs.check import check


def test_files_that_cannot_be_heard(write, tmp_path):
    os.mkfifo(tmp_path / "pipe.wav")
    names = ["gone.wav", "pipe.wav", "n" * 300, "pipe.wav;gone.wav"]
    rows = [f"c{k},{name},a;b" for k, name in enumerate(names)]
    table = write("t.csv", "\n".join(["conversation,audio,participants", *rows, ""]))
    said = "\n".join(check(table)["problems"])
    assert "2 audio files are not there: gone.wav (row 2), gone.wav (row 5)" in said
    assert "2 audio files cannot be used: a pipe, not a file: pipe.wav (row 3), pipe" in said
    assert "1 audio files cannot be used: cannot be read (File name too long): nnn" in said


def lists(*participants, **cells):
    return [
        {"conversation": f"c{k}", "participants": who, **cells}
        for k, who in enumerate(participants)
    ]


def test_names_that_stand_for_nobody():
    said = check(lists("anna;NN", "NN;bob", "carl;N.N.", "dora;SPEAKER_01"))["problems"]
    [found] = [text for text in said if "nobody in particular" in text]
    assert "3 names may stand for" in found
    assert "'NN' (2 conversations), 'N.N.' (1 conversation), 'SPEAKER_01' (1 conv" in found
    assert "write ? for somebody unknown (anna;?)" in found


@pytest.mark.parametrize(
    "name",
    [
        *("NN", "n.n.", "N. N.", "unknown", "<unk>", "Onbekend", "unbekannt", "Inconnu", "n/a"),
        *("none", "NULL", "???", "-", "xxx", "XX", "speaker1", "Speaker A", "agent", "Caller 2"),
        *("SPEAKER_00", "spk0", "Неизвестный", "okänd", "不明"),
    ],
)
def test_placeholders(name):
    assert is_placeholder(name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "anna",
            "Nan Goldin",
            "hv44",
            "s12",
            "X",
            "Xu",
            "Max",
            "N01",
            "speaker-anna",
            "Agent Smith",
        ),
        *("Manning", "Nina", "MEE009", "unknown soldier", "A", "fn000051", "李"),
    ],
)
def test_names_of_people(name):
    assert not is_placeholder(name)


def test_made_databases_have_names_of_people():
    made = simulate(shape="network", conversations=50, seed=1)
    assert not any(map(is_placeholder, made.conversations.speakers))


def test_plain_tables_are_told_as_before():
    found = check(lists("anna;bob", "bob;carl"))
    assert "lists" not in found
    assert found["levels"]


def test_other_lists_are_told_in_words(run, write):
    rows = ["x,a;b;?c;?,3", "y,a;*,2", "z,?;?,2", "w,a;c,2"]
    table = write("t.csv", "\n".join(["conversation,participants,tracks", *rows, ""]))
    found = check(table)
    assert found["lists"] == {
        "tracks": [{"tracks": 2, "conversations": 3}, {"tracks": 3, "conversations": 1}],
        "diarized": False,
        **{"possible": 1, "with_possible": 1, "unknown": 3, "with_unknown": 2},
        **{"open": 1, "without_names": 1},
    }
    assert found["levels"] == []
    code, out, _ = run("check", table)
    assert code == 0
    for part in (
        "3 conversations of 2 tracks; 1 conversation of 3 tracks; 1 possible participant in 1",
        "3 unknown participants in 2 conversations; 1 list open to others; 1 list without a name",
    ):
        assert part in " ".join(out.split())


def test_nobody_has_a_name():
    found = check(lists("?;?"))
    assert found["most_calls"] is None
    assert found["speakers"] == 0


def test_diarized_tracks_are_checked(run, write):
    table = write("t.csv", "conversation,audio,participants\nx,,a;b\n")
    rttm = write("t.rttm", "".join(f"SPEAKER x 1 {k} 1 <NA> <NA> s{k}\n" for k in range(3)))
    code, _, err = run("check", table, "--tracks", rttm)
    assert code == 2
    assert "row 2: only 2 participants for 3 tracks (diarized); add ? for each" in err
    table.write_text("conversation,audio,participants\nx,,a;b;?\n")
    code, out, _ = run("check", table, "--tracks", rttm)
    assert code == 0
    assert "1 conversation of 3 diarized tracks" in out
