"""Turns in every format, against the libraries that others read and write them with."""

from __future__ import annotations

import gzip
import json

import pytest

from spklink.errors import SpklinkError
from spklink.formats.turns import read_turns
from spklink.tables import read_table

TURNS = [("ann", 0.5, 1.25), ("bob", 1.25, 3.0), ("ann", 3.5, 7.125)]


def told(source) -> list[tuple[str, str, float, float]]:
    found = [turn for one in read_turns(source).files for turn in one.turns]
    return sorted((t.conversation, t.speaker, t.start, t.end) for t in found)


EXPECTED = sorted(("c1", *turn) for turn in TURNS)


def put(path, text: str | bytes):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def textgrid(path, form: str):
    from praatio import textgrid as praat

    grid = praat.Textgrid()
    for who in ("ann", "bob"):
        entries = [(start, end, f'she said ""{who}"" 3 !') for w, start, end in TURNS if w == who]
        grid.addTier(praat.IntervalTier(who, entries, 0, 10))
    grid.addTier(praat.PointTier("events", [(2.0, "click")], 0, 10))
    grid.save(str(path), format=form, includeBlankSpaces=True)
    return path


@pytest.mark.parametrize("form", ["long_textgrid", "short_textgrid"])
@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_textgrids_as_praat_has_them(tmp_path, form, coding):
    path = textgrid(tmp_path / "c1.TextGrid", form)
    path.write_bytes(path.read_text(encoding="utf-8").replace("said", "zéi").encode(coding))
    assert told(path) == EXPECTED


def test_cgn_ort_has_tiers_of_nobody_and_may_be_packed(tmp_path):
    text = textgrid(tmp_path / "grid", "short_textgrid").read_text()
    text = text.replace('"events"', '"COMMENT"')
    extra = '"IntervalTier"\n"BACKGROUND"\n0\n10\n1\n0\n10\n"door"\n'
    text = text.replace("<exists>\n3", "<exists>\n4") + extra
    (tmp_path / "c1.ort.gz").write_bytes(gzip.compress(text.encode("iso-8859-1")))
    assert told(tmp_path / "c1.ort.gz") == EXPECTED


def test_elan(tmp_path):
    from pympi import Eaf

    file = Eaf(author="x")
    file.remove_tier("default")
    file.add_tier("A_ann", part="ann")
    file.add_tier("bob")
    for who, start, end in TURNS:
        tier = "A_ann" if who == "ann" else "bob"
        file.add_annotation(tier, round(1000 * start), round(1000 * end), "hello & <so>")
    file.add_linguistic_type("part", constraints="Time_Subdivision")
    file.add_tier("words of ann", ling="part", parent="A_ann")
    file.add_annotation("words of ann", 500, 1250, "hello")
    file.to_file(str(tmp_path / "c1.eaf"))
    assert told(tmp_path / "c1.eaf") == EXPECTED


def test_elan_expands_nothing(tmp_path):
    bomb = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x "y">]><ANNOTATION_DOCUMENT>&x;'
    with pytest.raises(SpklinkError, match=r"line 1: a document type or entity"):
        read_turns(put(tmp_path / "c1.eaf", bomb))


def test_webvtt(tmp_path):
    import webvtt

    captions = webvtt.WebVTT()
    for who, start, end in TURNS:
        clock = [f"00:00:{at:06.3f}" for at in (start, end)]
        captions.captions.append(webvtt.Caption(*clock, f"<v.loud {who}>hello\nwe: <i>go</i></v>"))
    captions.save(str(tmp_path / "c1.vtt"))
    assert told(tmp_path / "c1.vtt") == EXPECTED


@pytest.mark.parametrize("line", ["{}: hello", "[{}] hello", "- {}: hello\nand more"])
def test_subrip(tmp_path, line):
    import datetime

    import srt

    second = lambda at: datetime.timedelta(seconds=at)  # noqa: E731
    rows = [
        srt.Subtitle(k, second(start), second(end), line.format(who))
        for k, (who, start, end) in enumerate(TURNS, start=1)
    ]
    rows.append(srt.Subtitle(9, second(8), second(9), "(music)"))
    assert told(put(tmp_path / "c1.srt", srt.compose(rows))) == EXPECTED


def test_tables_rttm_and_ctm(tmp_path):
    rows = [{"conversation": "c1", "speaker": w, "start": a, "end": b} for w, a, b in TURNS]
    assert told(rows) == EXPECTED
    table = "conversation,speaker,start,end\n" + "".join(f"c1,{w},{a},{b}\n" for w, a, b in TURNS)
    assert told(put(tmp_path / "turns.csv", table)) == EXPECTED
    rttm = ";; x\n" + "".join(f"SPEAKER c1 1 {a} {b - a} <NA> <NA> {w} <NA>\n" for w, a, b in TURNS)
    assert told(put(tmp_path / "all.txt", rttm)) == EXPECTED
    ctm = "".join(f"c1 1 {a} {b - a} word .9 lex {w}\n" for w, a, b in TURNS)
    assert told(put(tmp_path / "x.ctm", ctm + "c1 1 2 0.5 cough .9 non-lex ann\n")) == EXPECTED
    short = "".join(f"c1 {w} {a} {b - a} word\n" for w, a, b in TURNS)
    assert told(put(tmp_path / "y.ctm", short)) == EXPECTED


def test_sea(tmp_path):
    rows = [f"{k} {a * 1000:.0f} {b * 1000:.0f} {w} u{k}" for k, (w, a, b) in enumerate(TURNS)]
    text = "\n".join(f"{row}\nORT 1 heel vaak én 3 4\nMAR 1" for row in rows)
    text += "\n9 0 9000 BACKGROUND u9\nORT 1 deur"
    assert told(put(tmp_path / "c1.sea", text.encode("iso-8859-1"))) == EXPECTED


def test_json_of_two_makers(tmp_path):
    whisper = {"segments": [{"start": a, "end": b, "speaker": w, "text": "x"} for w, a, b in TURNS]}
    whisper["segments"].append({"start": 8, "end": 9, "text": "nobody"})
    assert told(put(tmp_path / "c1.json", json.dumps(whisper))) == EXPECTED
    segments = [
        {"start_time": str(a), "end_time": str(b), "speaker_label": w, "items": []}
        for w, a, b in TURNS
    ]
    amazon = {"jobName": "j", "results": {"speaker_labels": {"segments": segments}}}
    assert told(put(tmp_path / "c1.json", json.dumps(amazon))) == EXPECTED


def test_a_folder_of_transcripts(tmp_path):
    textgrid(tmp_path / "c1.TextGrid", "long_textgrid")
    put(tmp_path / "c2.srt", "1\n00:00:01,000 --> 00:00:02,000\ncid: hm\n")
    put(tmp_path / "readme.txt", "not read")
    assert told(tmp_path) == [*EXPECTED, ("c2", "cid", 1.0, 2.0)]
    put(tmp_path / "c2.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n<v cid>hm\n")
    with pytest.raises(SpklinkError, match=r"c2\.vtt: turns of conversation 'c2', which .*c2\.srt"):
        read_turns(tmp_path)


GRID = (
    'File type = "ooTextFile short"\n"TextGrid"\n0\n9\n<exists>\n1\n"IntervalTier"\n"ann"\n0\n9\n'
)
HEAD = "conversation,speaker,start,end\n"
WRONG = [
    ("t.csv", HEAD, "no turn of anybody"),
    ("t.csv", "", "empty"),
    ("t.csv", HEAD + "c1,ann,3,2\n", "row 2: a turn of 'ann' from 3 s ends before, at 2 s"),
    ("t.csv", HEAD + "c1,ann,x,2\n", "row 2: start of a turn of 'ann': not a number"),
    ("t.csv", HEAD + "c1,ann,-1,2\n", "row 2: start"),
    ("t.csv", HEAD + "c1,,1,2\n", "row 2: an empty speaker"),
    ("t.csv", HEAD + "c1,ann,1,2\nc1,ann,1,2\n", "row 3: the same turn of 'ann' as in row 2"),
    ("t.csv", HEAD + "c1,ann,1\n", "row 2: 3 fields"),
    ("t.rttm", "SPEAKER c1 1 x\n", "row 1: not a line of RTTM"),
    ("t.ctm", "c1 A 1 2 word\n", "row 1: no speaker"),
    ("t.TextGrid", GRID + '2\n0\n5\n"a"\n4\n9\n"b"\n', "line 16: tier 'ann': an interval from 4 s"),
    ("t.TextGrid", GRID + '2\n0\n5\n"a"\n4\n', "ends after line 15"),
    ("t.TextGrid", GRID + "x", "ends after"),
    ("t.TextGrid", GRID + '"two"', "line 11: 'two' where a number belongs"),
    ("t.TextGrid", "ooBinaryFile", "binary TextGrid"),
    ("t.TextGrid", "hello", "ends after"),
    ("t.eaf", "<a/>", "not a file of ELAN"),
    ("t.eaf", "<a", "not XML"),
    ("t.json", "{}", "neither `segments`"),
    (
        "t.json",
        '{"segments": [{"start": "x", "end": 2}]}',
        r"segments\[0\].start: 'x' is not a num",
    ),
    ("t.vtt", "WEBVTT\n\n00:01.000 --> soon\n<v a>hm\n", "row 3: not two times"),
    ("t.srt", "1\n00:00:01,000 --> 00:00:02,000\nhm\n", "no turn of anybody"),
    ("t.sea", "1 2 x ann u1\n3 40 x ann u\n", "row 2: not `number start"),
    ("t.vtt", b"WEBVTT\n\xff\xfe\xfa", "not UTF-8"),
    ("t.sea.gz", b"\x1f\x8b\x00", "cannot be unpacked"),
]


@pytest.mark.parametrize(("name", "text", "message"), WRONG)
def test_what_is_wrong_is_named_with_file_and_row(tmp_path, name, text, message):
    with pytest.raises(SpklinkError, match=message) as error:
        read_turns(put(tmp_path / name, text))
    assert name in str(error.value)


def test_a_content_is_read_as_it_was(tmp_path):
    path = put(tmp_path / "turns.csv", HEAD + "c1,ann,1,2\n")
    content = read_table(path)
    put(path, HEAD + "c1,bob,1,2\n")
    assert told(content) == [("c1", "ann", 1.0, 2.0)]
