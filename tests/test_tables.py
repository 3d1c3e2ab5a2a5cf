"""Tables as people have them are read, or refused with the remedy."""

from __future__ import annotations

import re
import shlex

import pytest

from made_tables import Made, made
from spklink import read_conversations
from spklink.errors import SpklinkError
from spklink.runs.inputs import read_inputs, reading
from spklink.tables import open_table, plain_bytes

pytestmark = pytest.mark.usefixtures("either_way")

TABLES = made()


def read(path, columns, table):
    how = reading({"columns": columns, "encoding": table.encoding, "audio": table.audio})
    inputs = read_inputs({"conversations": path}, how=how)
    return inputs, read_conversations(inputs.table("conversations"))


def remedy(path, table):
    """The words of --columns that the refusal prints."""
    with pytest.raises(SpklinkError, match="give --columns") as error:
        read(path, None, table)
    return shlex.split(re.search(r"give (--columns .*)", str(error.value))[1])[1]


def test_there_are_thirty():
    assert len(TABLES) >= 30


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if not table.refused])
def test_tables_are_read(write, name):
    table: Made = TABLES[name]
    path = write(table.name, table.data)
    columns = remedy(path, table) if table.columns == "guess" else table.columns
    inputs, found = read(path, columns, table)
    assert found.ids == ["1", "2"]
    assert tuple(found.names(m) for m in range(2)) == table.people
    assert inputs.said() == ([f"{table.name} read as {table.read_as}"] if table.read_as else [])
    if table.audio is None:
        assert found.audio == [("1.wav",), ("2.wav",)]
    again = read_conversations(write("again.csv", plain_bytes(inputs.table("conversations"))))
    assert (again.ids, again.speakers, again.audio) == (found.ids, found.speakers, found.audio)


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if table.refused])
def test_tables_are_refused_with_the_remedy(write, name):
    table: Made = TABLES[name]
    path = write(table.name, table.data)
    columns = remedy(path, table) if table.columns == "guess" else table.columns
    with pytest.raises(SpklinkError) as error:
        read(path, columns, table)
    assert table.refused in str(error.value)
    assert str(path) in str(error.value) or table.encoding


def test_recordings_by_pattern(write):
    table = TABLES["call records of Asterisk, by pattern"]
    _, found = read(write("t.csv", table.data), table.columns, table)
    assert found.audio[0] == ("4912345678_4987654321_20240301.wav",)
    with pytest.raises(SpklinkError, match=r"no column 'caller'; there are uniqueid, src"):
        read(write("t.csv", table.data), table.columns, Made("", b"", audio="{caller}.wav"))


def test_rows_are_those_of_the_file(write):
    path = write("t.csv", "sep=;\nTitle;;\n\nconversation;audio;participants\n1;;a\n\n2;;b\n")
    with pytest.raises(SpklinkError) as error:
        read_conversations(path)
    assert "row 5: only one participant ('a')" in str(error.value)
    assert "row 7: only one participant ('b')" in str(error.value)


def test_a_decimal_comma_is_one_in_numbers_only(write):
    path = write("k.csv", 'conversation;speaker;status;probability\n1,5;a,b;possible;"0,25"\n')
    with open_table(path) as (_, rows):
        assert [fields for _, fields in rows] == [["1,5", "a,b", "possible", "0.25"]]


def test_columns_that_are_not_there(write):
    path = write("t.csv", "Gespräch;Sprecher A;Sprecher B\n1;a;b\n")
    with pytest.raises(SpklinkError, match="no column 'Gesprch', which --columns names; did you"):
        read(path, "conversation=Gesprch,participants=Sprecher A;Sprecher B", Made("", b""))
    with pytest.raises(SpklinkError, match="columns: 'Gespräch' is not ours=theirs"):
        read(path, "Gespräch", Made("", b""))
    with pytest.raises(SpklinkError, match="is followed by no name"):
        read(path, "conversation=,participants=a", Made("", b""))


def test_names_of_columns_may_have_commas(write):
    path = write("t.csv", "Nr, Jahr;A, links;B, rechts\n1;a;b\n2;b;c\n")
    _, found = read(path, "conversation=Nr, Jahr,participants=A, links;B, rechts", Made("", b""))
    assert found.names(1) == ("b", "c")


def test_one_recording_name_in_two_folders(write):
    path = write("t.csv", "audio,participants\nd1/1.wav,a;b\nd2/1.wav,b;c\n")
    assert read_conversations(path).ids == ["d1/1", "d2/1"]
    path = write("t.csv", "audio,participants\nd1/1_L.wav;d1/1_R.wav,a;b\nd2/2.wav,b;c\n")
    assert read_conversations(path).ids == ["1", "2"]


def test_labels_in_other_words(write, run, tmp_path):
    sim, out = tmp_path / "sim", tmp_path / "out"
    run("simulate", sim, "--conversations", 12, "--shape", "star")
    run("assign", sim / "conversations.csv", "--scores", sim / "scores.csv", "-o", out)
    plain = run("evaluate", out, "--key", sim / "key.csv")
    words = (sim / "key.csv").read_text().replace(",", ";")
    key = write("key.csv", words.replace("conversation;channel;speaker", "Gespräch;Kanal;Sprecher"))
    code, _, err = run("evaluate", out, "--key", key)
    assert code == 2
    said = re.search(r"--columns '(.*)'", err)[1]
    assert said == "conversation=Gespräch,speaker=Sprecher,channel=Kanal"
    assert run("evaluate", out, "--key", key, "--columns", said) == plain


def test_foreign_tables_go_into_the_results(write, run, tmp_path):
    sim, out = tmp_path / "sim", tmp_path / "out"
    run("simulate", sim, "--conversations", 12, "--shape", "star")
    rows = (sim / "conversations.csv").read_text().replace(",", "\t").splitlines()
    assert rows[0] == "conversation\taudio\tparticipants"
    table = write("t.tsv", "\n".join(["Anruf\taudio\tTeilnehmer", *rows[1:]]).encode("utf-16"))
    words = ("--columns", "conversation=Anruf,participants=Teilnehmer", "--scores")
    code, text, _ = run("assign", table, *words, sim / "scores.csv", "-o", out)
    assert code == 0
    assert "note: t.tsv read as tab-separated, UTF-16" in text
    copied, given = (read_conversations(at / "conversations.csv") for at in (out, sim))
    assert (copied.ids, copied.speakers) == (given.ids, given.speakers)
    assert run("evaluate", out, "--key", sim / "key.csv")[0] == 0


def test_the_question_and_its_answers(write, run, monkeypatch):
    path = write("t.csv", "Datei;Sprecher A;Sprecher B\n1.wav;a;b\n2.wav;b;c\n")
    monkeypatch.setattr("spklink.cli.asking._there_is_somebody", lambda: True)
    monkeypatch.setattr("builtins.input", lambda: "")
    code, text, err = run("check", path, "--json")
    assert '"speakers": 3' in text
    assert "participants: Sprecher A and Sprecher B\n" in err
    monkeypatch.setattr("builtins.input", lambda: "audio=Datei,participants=Sprecher B;Sprecher A")
    assert code == run("check", path)[0] == 1  # the recordings are not there
    monkeypatch.setattr("builtins.input", lambda: "what?")
    code, _, err = run("check", path)
    assert code == 2
    assert "'what?' is not ours=theirs" in err
