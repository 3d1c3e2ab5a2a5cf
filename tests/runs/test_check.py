"""`check`: files that cannot be heard, names of nobody, lists and tracks of any kind in words."""

from __future__ import annotations

import os

import numpy as np
import pytest
import soundfile as sf

from spklink import simulate
from spklink.database.placeholders import is_placeholder
from spklink.runs.check import check
from spklink.sound import headers


def test_files_that_cannot_be_heard(write, tmp_path):
    os.mkfifo(tmp_path / "pipe.wav")
    names = ["gone.wav", "pipe.wav", "n" * 300, "pipe.wav;gone.wav"]
    said = "\n".join(check(recordings(write, *names))["problems"])
    assert (
        "2 audio files are not there: c0 (row 2, gone.wav), c3 channel 2 (row 5, gone.wav)" in said
    )
    assert (
        "2 audio files cannot be used: unreadable: a pipe, not a file: c1 (row 3, pipe.wav), "
        "c3 channel 1 (row 5, pipe.wav)"
    ) in said
    assert (
        "1 audio file cannot be used: unreadable: cannot be read (File name too long): c2" in said
    )


def recordings(write, *names):
    rows = [f"c{k},{name},a;b" for k, name in enumerate(names)]
    return write("t.csv", "\n".join(["conversation,audio,participants", *rows, ""]))


@pytest.fixture
def damaged(write, tmp_path):
    """A table of good recordings and bad ones of every kind that a header tells."""
    noise = np.random.default_rng(0).normal(size=(8000, 3)) * 0.1
    for name, sound in {
        "good.wav": noise[:, :2],
        "mono.wav": noise[:, :1],
        "three.wav": noise,
        "header.wav": noise[:0, :2],
        "blink.wav": noise[:400, :2],
    }.items():
        sf.write(tmp_path / name, sound, 8000)
    (tmp_path / "cut.wav").write_bytes((tmp_path / "good.wav").read_bytes()[:30])
    write("empty.wav", "")
    write("text.wav", "this is not sound\n" * 99)
    names = ["good.wav", "empty.wav", "text.wav", "mono.wav", "three.wav", "header.wav"]
    return recordings(
        write, *names, "blink.wav", "mono.wav;empty.wav", "mono.wav;mono.wav", "cut.wav"
    )


def test_recordings_that_cannot_be_used_are_named_as_link_names_them(damaged, run):
    code, out, _ = run("check", damaged)
    assert code == 1
    told = [line for line in out.splitlines() if "cannot be used" in line]
    assert told == [
        "look at: 2 audio files cannot be used: empty: 0 bytes: c1 (row 3, empty.wav), "
        "c7 channel 2 (row 9, empty.wav)",
        "look at: 1 audio file cannot be used: unreadable: Format not recognised: "
        "c2 (row 4, text.wav)",
        "look at: 1 audio file cannot be used: mono: one channel where two are expected: "
        "c3 (row 5, mono.wav)",
        "look at: 1 audio file cannot be used: channels: 3 channels where 2 expected: "
        "c4 (row 6, three.wav)",
        "look at: 1 audio file cannot be used: empty: 0.000 s of sound: c5 (row 7, header.wav)",
        "look at: 1 audio file cannot be used: empty: 0.050 s of sound: c6 (row 8, blink.wav)",
        "look at: 1 audio file cannot be used: unreadable: Error in WAV file. No 'data' chunk "
        "marker: c9 (row 11, cut.wav)",
    ]
    assert "use --on-bad-audio skip" in out
    code, _, err = run("link", damaged, "-o", damaged.parent / "out", "--cache", damaged.parent)
    assert code == 2
    for cause in ("empty: 0 bytes", "unreadable: Format not recognised", "mono: one channel"):
        assert cause in err
    for cause in ("channels: 3 channels where 2", "empty: 0.000 s", "empty: 0.050 s", "c7 channel"):
        assert cause in err


def test_a_table_of_nothing_but_bad_recordings_is_not_fine(write, run):
    write("empty.wav", "")
    code, out, _ = run("check", recordings(write, "empty.wav", "empty.wav"))
    assert code == 1
    assert "no problems found" not in out
    assert "how long it would take is not known" in out


def test_bad_recordings_are_named_up_to_a_number(write):
    write("empty.wav", "")
    [said, _] = [
        text for text in check(recordings(write, *["empty.wav"] * 25))["problems"] if "use" in text
    ]
    assert "25 audio files cannot be used" in said
    assert "c19 (row 21, empty.wav) and 5 more" in said
    assert "c20" not in said


def test_of_very_many_some_are_opened_and_that_is_said(damaged, run, monkeypatch):
    """Those that are opened are spread over the table; files that are not there are all found."""
    monkeypatch.setattr(headers, "MAX_OPENED", 3)
    table = damaged.with_name("many.csv")
    names = ["good.wav"] * 6 + ["gone.wav"] + ["good.wav"] * 2 + ["empty.wav"]
    rows = [f"c{k},{name},a;p{k}" for k, name in enumerate(names)]
    table.write_text("\n".join(["conversation,audio,participants", *rows, ""]))
    found = check(table)
    assert (found["cost"]["opened"], found["cost"]["recordings"]) == (3, 10)
    code, out, _ = run("check", table)
    assert code == 1
    assert "opened 3 of 10 recordings" in out
    assert "1 audio file is not there: c6 (row 8, gone.wav)" in out
    good = damaged.with_name("good.csv")
    good.write_text(table.read_text().replace("gone", "good").replace("empty", "good"))
    code, out, _ = run("check", good)
    assert code == 0
    assert "no problems found in the 3 of 10 recordings that were opened" in out


def test_diarized_recordings_of_any_number_of_channels_can_be_used(damaged, write, run):
    table = write("d.csv", "conversation,audio,participants\nx,three.wav,a;b\ny,empty.wav,a;b\n")
    spoken = [f"SPEAKER {c} 1 {k}.0 0.3 <NA> <NA> s{k} <NA> <NA>\n" for c in "xy" for k in (0, 1)]
    code, out, _ = run("check", table, "--tracks", write("d.rttm", "".join(spoken)))
    assert code == 1
    assert "1 audio file cannot be used: empty: 0 bytes: y (row 3, empty.wav)" in out
    assert "0.0 hours of recordings" in out  # that of x is known


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
