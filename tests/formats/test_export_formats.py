"""Labels in formats of others, each read back by the library that others read it with."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from shutil import which
from urllib.parse import unquote

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from spklink.errors import SpklinkError
from spklink.formats.out.labelled import Labelled, LabelledSide, letter, short
from spklink.formats.out.names import Names
from spklink.formats.out.table import FORMATS, writer
from spklink.formats.turns import read_turns
from spklink.sound.headers import header_of

RATE = 8000
# conversation, files, tracks, mixed; and of each labelled side: track, speaker, times
CALLS = [
    ("call 1", ["stereo.wav"], 2, False),
    ("trio;x", ["a.wav", "b 2.wav", "c.flac"], 3, False),
    ("meet-1", ["mono.wav"], 2, True),
    ("call%20x", ["stereo.wav"], 2, False),
]
SIDES = [
    ("call 1", 0, "Ann Lee", [(0, 1500), (2000, 2025)]),
    ("call 1", 1, "bob", [(1500, 3125)]),
    ("trio;x", 0, 'Ünal "U" <&>\'', [(10, 9990)]),
    ("trio;x", 2, "bob", [(100, 200), (300, 400)]),
    ("meet-1", 0, "bob", [(0, 5000)]),
    ("meet-1", 1, "unknown-meet-1-2", [(4000, 6000)]),
    ("call%20x", 1, "Ann", [(0, 9999)]),
]


def side(conversation, track, speaker, times, probability=0.875) -> LabelledSide:
    return LabelledSide(
        conversation=conversation,
        track=track,
        speaker=speaker,
        listed=not speaker.startswith("unknown-"),
        probability=probability,
        low=0.75,
        high=1.0,
        decision="open",
        origin="inferred",
        times=np.array(times, np.int32),
    )


@pytest.fixture(scope="module")
def labelled(tmp_path_factory) -> Labelled:
    folder = tmp_path_factory.mktemp("sound")
    sound = 0.1 * np.random.default_rng(0).standard_normal((10 * RATE, 2))
    for name in ("a.wav", "b 2.wav", "c.flac", "mono.wav"):
        soundfile.write(folder / name, sound[:, 0], RATE)
    soundfile.write(folder / "stereo.wav", sound, RATE)
    about = {
        name: (tuple(str(folder / file) for file in files), tracks, mixed)
        for name, files, tracks, mixed in CALLS
    }
    sides = [side(*one) for one in SIDES]
    return Labelled(sides, True, about.__getitem__, header_of, Names())


def write(labelled: Labelled, to: str, folder: Path) -> dict[str, str]:
    """Write; and the names as they were, by how they are written."""
    labelled.names.changed.clear()
    writer(to)(labelled, folder)
    return {written: name for _, name, written in labelled.names.rows()}


MIXED = {name: mixed for name, _, _, mixed in CALLS}


def rows(channel=lambda name, track: track + 1):
    """What was written: conversation, channel, speaker, start, end."""
    return sorted(
        (name, channel(name, track), who, start / 1000, end / 1000)
        for name, track, who, times in SIDES
        for start, end in times
    )


def by_letter(name, track):
    return "1" if MIXED[name] else "ABC"[track]


def test_rttm_as_meeteval_reads_it(labelled, tmp_path):
    from meeteval.io import RTTM

    names = write(labelled, "rttm", tmp_path)
    found = RTTM.load(tmp_path / "speakers.rttm")
    told = sorted(
        (
            unquote(line.filename),
            int(line.channel),
            unquote(line.speaker_id),
            float(line.begin_time),
            float(line.begin_time + line.duration),
        )
        for line in found
    )
    assert told == rows(lambda name, track: 1 if MIXED[name] else track + 1)
    assert {line.confidence for line in found} == {"0.875"}
    assert names["Ann%20Lee"] == "Ann Lee"
    assert {
        turn.speaker for one in read_turns(tmp_path / "speakers.rttm").files for turn in one.turns
    }


def test_stm_as_meeteval_reads_it(labelled, tmp_path):
    from meeteval.io import STM

    write(labelled, "stm", tmp_path)
    told = sorted(
        (
            unquote(line.filename),
            line.channel,
            unquote(line.speaker_id),
            float(line.begin_time),
            float(line.end_time),
        )
        for line in STM.load(tmp_path / "speakers.stm")
    )
    assert told == rows(by_letter)
    assert ";; call%201 A Ann%20Lee 0.875" in (tmp_path / "speakers.stm").read_text()


def test_ctm_as_meeteval_and_we_read_it(labelled, tmp_path):
    from meeteval.io import CTM

    write(labelled, "ctm", tmp_path)
    lines = (tmp_path / "speakers.ctm").read_text().splitlines()
    short = tmp_path / "six.ctm"  # meeteval knows no more than six fields
    short.write_text("".join(" ".join(line.split()[:6]) + "\n" for line in lines))
    told = [
        (
            unquote(line.filename),
            line.channel,
            float(line.begin_time),
            float(line.begin_time + line.duration),
        )
        for line in CTM.load(short)
    ]
    assert sorted(told) == sorted((n, c, a, b) for n, c, _, a, b in rows(by_letter))
    assert turns(tmp_path / "speakers.ctm") == rows_of_turns()


def turns(path: Path):
    return sorted(
        (unquote(t.conversation), unquote(t.speaker), t.start, round(t.end, 3))
        for one in read_turns(path).files
        for t in one.turns
    )


def rows_of_turns():
    return sorted((name, who, start, end) for name, _, who, start, end in rows())


def test_textgrids_as_praat_reads_them(labelled, tmp_path):
    import parselmouth
    from parselmouth.praat import call
    from praatio import textgrid

    names = write(labelled, "textgrid", tmp_path)
    told = []
    for path in sorted(tmp_path.glob("*.TextGrid")):
        grid = textgrid.openTextgrid(str(path), includeEmptyIntervals=False)
        assert grid.maxTimestamp == 10.0
        for tier in grid.tiers:
            for start, end, text in tier.entries:
                assert text == f"{tier.name} 0.8750"
                told.append((names.get(path.stem, path.stem), tier.name, start, end))
        praat = parselmouth.read(str(path))
        tiers = call(praat, "Get number of tiers")
        assert [call(praat, "Get tier name", k + 1) for k in range(tiers)] == list(grid.tierNames)
    assert sorted(told) == rows_of_turns()
    again = [(names.get(n, n), who, a, b) for n, who, a, b in turns(tmp_path)]
    assert sorted(again) == rows_of_turns()


def test_elan_as_pympi_reads_it(labelled, tmp_path):
    from pympi import Eaf

    names = write(labelled, "elan", tmp_path)
    told = []
    for path in sorted(tmp_path.glob("*.eaf")):
        document = Eaf(str(path))
        for tier in document.get_tier_names():
            who = document.get_parameters_for_tier(tier)["PARTICIPANT"]
            for start, end, text in document.get_annotation_data_for_tier(tier):
                assert text == f"{who} 0.8750"
                told.append((names.get(path.stem, path.stem), who, start / 1000, end / 1000))
        for media in document.media_descriptors:
            assert Path(unquote(media["MEDIA_URL"].removeprefix("file://"))).exists()
    assert sorted(told) == rows_of_turns()
    again = [(names.get(n, n), who, a, b) for n, who, a, b in turns(tmp_path)]
    assert sorted(again) == rows_of_turns()


def test_lhotse_reads_its_manifests_and_the_sound(labelled, tmp_path):
    pytest.importorskip("lhotse", reason="Lhotse needs torch, which is large: not installed here")
    from lhotse import CutSet, RecordingSet, SupervisionSet
    from lhotse.qa import validate_recordings_and_supervisions

    assert write(labelled, "lhotse", tmp_path) == {}
    recordings = RecordingSet.from_file(tmp_path / "recordings.jsonl.gz")
    spoken = SupervisionSet.from_file(tmp_path / "supervisions.jsonl.gz")
    validate_recordings_and_supervisions(recordings, spoken, read_data=True)
    told = sorted((s.recording_id, s.channel, s.speaker, s.start, s.end) for s in spoken)
    assert told == rows(lambda name, track: 0 if MIXED[name] else track)
    assert {s.custom["probability"] for s in spoken} == {0.875}
    cuts = CutSet.from_manifests(recordings=recordings, supervisions=spoken)
    cut = cuts.trim_to_supervisions(keep_overlapping=False).to_eager()
    assert len(cut) == len(spoken)


def test_lhotse_manifests_line_by_line(labelled, tmp_path):
    """The same without Lhotse."""
    write(labelled, "lhotse", tmp_path)

    def read(name):
        with gzip.open(tmp_path / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    spoken, recordings = read("supervisions"), {one["id"]: one for one in read("recordings")}
    told = [
        (s["recording_id"], s["channel"], s["speaker"], s["start"], s["start"] + s["duration"])
        for s in spoken
    ]
    expected = rows(lambda name, track: 0 if MIXED[name] else track)
    assert [one[:3] for one in sorted(told)] == [one[:3] for one in expected]
    assert np.allclose([one[3:] for one in sorted(told)], [one[3:] for one in expected])
    assert [s["channels"] for s in recordings["trio;x"]["sources"]] == [[0], [1], [2]]
    assert recordings["call 1"]["channel_ids"] == [0, 1]
    assert {one["num_samples"] for one in recordings.values()} == {10 * RATE}


def test_kaldi_as_lhotse_reads_it(labelled, tmp_path):
    pytest.importorskip("lhotse", reason="Lhotse needs torch, which is large: not installed here")
    from lhotse.kaldi import load_kaldi_data_dir

    write(labelled, "kaldi", tmp_path)
    utterances = [line.split()[0] for line in lines(tmp_path / "utt2spk")]
    (tmp_path / "text").write_text("".join(f"{name} x\n" for name in utterances))  # it asks for it
    recordings, spoken, _ = load_kaldi_data_dir(tmp_path, RATE)
    where = dict(line.split(" ", 1) for line in lines(tmp_path / "reco2file_and_channel"))
    told = sorted(
        (*plain(where[s.recording_id]), plain(s.speaker)[0], round(s.start, 3), round(s.end, 3))
        for s in spoken
    )
    assert told == rows(lambda name, track: "A" if MIXED[name] else "ABC"[track])
    if which("sox"):
        for recording in recordings:
            assert recording.load_audio().shape == (1, 10 * RATE)
    probabilities = dict(line.split() for line in lines(tmp_path / "utt2prob"))
    assert set(probabilities) == {s.id for s in spoken}
    assert set(probabilities.values()) == {"0.875"}


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def plain(text: str) -> list[str]:
    """Words as they were before either kind of escape."""
    return [unquote(unquote(word.replace("=", "%"))) for word in text.split(" ")]


@pytest.mark.parametrize(
    "people",
    [["ann", "ann!"], ["a-b", "a", "b"], ["ann", "ann lee", "ann2"], ["x", "x-c-A-0"], ["é", "e"]],
)
def test_kaldi_folders_sort_as_kaldi_wants_it(people, labelled, tmp_path):
    """What its validate_data_dir.sh checks."""
    calls = ["c", "b-c", "c-A-0"]
    sides = [side(c, k % 2, who, [(5, 900)]) for c in calls for k, who in enumerate(people[:2])]
    about = {name: labelled.about("call 1") for name in calls}
    one = Labelled(sides, True, about.__getitem__, header_of, Names())
    writer("kaldi")(one, tmp_path)
    for name in ("wav.scp", "segments", "utt2spk", "spk2utt", "utt2prob", "reco2dur"):
        keys = [line.split(" ")[0].encode() for line in lines(tmp_path / name)]
        assert keys == sorted(set(keys)), name
    pairs = [line.split(" ") for line in lines(tmp_path / "utt2spk")]
    speakers = [who.encode() for _, who in pairs]
    assert speakers == sorted(speakers)
    assert all(utterance.startswith(f"{who}-") for utterance, who in pairs)
    told = [line.split(" ") for line in lines(tmp_path / "spk2utt")]
    assert [(u, who) for who, *every in told for u in every] == [tuple(pair) for pair in pairs]
    assert len(pairs) == len(sides)


def test_sound_without_a_header_that_can_be_read(labelled, tmp_path):
    gone = Labelled(
        [side(*SIDES[0])], False, lambda _: (("/no/x y.wav",), 2, False), header_of, Names()
    )
    writer("kaldi")(gone, tmp_path)
    assert lines(tmp_path / "wav.scp")[0].endswith("sox '/no/x y.wav' -t wav - remix 1 |")
    assert not (tmp_path / "reco2dur").exists()
    with pytest.raises(SpklinkError, match=r"x y.wav: not there.*lhotse needs to know how long"):
        writer("lhotse")(gone, tmp_path)
    far = Labelled(
        [side(*SIDES[0])], False, lambda _: (("s3://b/1.wav",), 2, False), header_of, Names()
    )
    with pytest.raises(SpklinkError, match=r"s3://b/1.wav: Kaldi reads files of this machine"):
        writer("kaldi")(far, tmp_path)
    writer("elan")(far, tmp_path)
    assert 'MEDIA_URL="s3://b/1.wav"' in (tmp_path / "call 1.eaf").read_text()
    unnamed = Labelled([side(*SIDES[0])], False, lambda _: ((), 2, False), header_of, Names())
    with pytest.raises(SpklinkError, match=r"'call 1' names no audio; kaldi needs the recordings"):
        writer("kaldi")(unnamed, tmp_path)
    writer("textgrid")(unnamed, tmp_path)
    assert "xmax = 2.025" in lines(tmp_path / "call 1.TextGrid")


def test_nist_tables(labelled, tmp_path):
    write(labelled, "nist", tmp_path)

    def read(name):
        with (tmp_path / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, delimiter="\t"))

    key = read("segment_key.tsv")
    told = [(unquote(r["segmentid"]), r["side"], unquote(r["subjectid"])) for r in key]
    assert told == [(name, "abc"[track], who) for name, track, who, _ in SIDES]
    models = {r["modelid"]: (r["segmentid"], r["side"]) for r in read("enrollment.tsv")}
    assert models["bob"] == ("meet-1", "a")  # where he speaks most
    assert len(models) == 4
    assert not any("unknown" in name for name in models)
    trials = read("trial_key.tsv")
    assert [{k: v for k, v in r.items() if k != "targettype"} for r in trials] == read("trials.tsv")
    who = {(r["segmentid"], r["side"]): r["subjectid"] for r in key}
    for r in trials:
        same = who[r["segmentid"], r["side"]] == r["modelid"]
        assert r["targettype"] == ("target" if same else "nontarget")
        assert models[r["modelid"]] != (r["segmentid"], r["side"])
    assert sum(r["targettype"] == "target" for r in trials) == 2  # bob's two other sides


def test_parquet_as_pandas_reads_it(labelled, tmp_path):
    import pandas

    assert write(labelled, "parquet", tmp_path) == {}
    found = pandas.read_parquet(tmp_path / "segments.parquet")
    columns = ["conversation", "channel", "speaker", "start", "end"]
    assert sorted(found[columns].itertuples(index=False, name=None)) == rows()
    assert set(found["probability"]) == {0.875}
    assert all(Path(file).exists() for file in found["file"])


NAMES = st.text(min_size=1, max_size=12)


@given(st.lists(NAMES, unique=True, max_size=8))
def test_names_can_be_told_apart_and_read_back(names):
    made = Names()
    words = [made.word("speaker", name) for name in names]
    assert all(len(word.split()) == 1 and not set(word) & set("<>;") for word in words)
    assert [unquote(word) for word in words if "\ufffd" not in word] == [
        name for name, word in zip(names, words, strict=True) if "\ufffd" not in word
    ]
    assert len(set(words)) == len({name.encode(errors="replace") for name in names})
    files = [made.file(name, ".x") for name in names]
    assert len({file.casefold() for file in files}) == len(names)
    assert not any(set(file) & set('/\\:*?"<>|') or file[0] in ". ~" for file in files)


@pytest.mark.parametrize("name", ["con", "NUL.x", "..", "a.", "x" * 300, "ä" * 200, "%41"])
def test_names_of_files_are_fit_for_any_system(name):
    made = Names().file(name, ".eaf")
    assert len(made.encode()) < 150
    assert made.removesuffix(".eaf").casefold() not in ("con", "nul.x", "..", "a.")
    assert Names().file(name, ".eaf") == made


def test_channels_by_letter():
    assert [letter(k) for k in (0, 1, 25, 26, 27, 52)] == ["A", "B", "Z", "AA", "AB", "BA"]
    assert [short(p) for p in (1.0, 0.99999, 0.5)] == ["1.0000", "0.9999", "0.5000"]


def test_every_format_is_tested_here():
    text = Path(__file__).read_text()
    for name in FORMATS:
        assert f'"{name}"' in text
