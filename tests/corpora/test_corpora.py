"""Corpora laid out as published become the tables of the calls that they were made of."""

from __future__ import annotations

import json

import pytest

from commands import rows
from made_corpora import (
    make_cgn,
    make_fisher,
    make_harpervalley,
    make_kaldi,
    make_nist,
    make_switchboard,
    name_of,
    truth_of,
    turns_of,
)
from spklink import read_conversations
from spklink.corpora.table import CORPORA, read_corpus
from spklink.database.labels import read_claims
from spklink.errors import SpklinkError
from spklink.formats.turns import read_turns

MAKERS = {
    "kaldi": (make_kaldi, str),
    "switchboard": (make_switchboard, lambda who: str(ord(who))),
    "fisher": (make_fisher, lambda who: str(ord(who))),
    "harpervalley": (make_harpervalley, lambda who: f"hv{ord(who)}"),
}


@pytest.fixture(scope="module")
def truth(calls):
    return truth_of(calls)


@pytest.mark.parametrize("name", MAKERS)
def test_corpora_that_claim_channels(name, truth, tmp_path):
    make, called = MAKERS[name]
    corpus = read_corpus(f"{name}:{make(tmp_path / 'corpus', truth)}")
    files = corpus.write(tmp_path / "tables" / "conversations.csv")
    table = read_conversations(files["conversations"])
    assert len(table) == len(truth.people) == 14
    said = {(m, track): who for m, track, who in rows_of(files["claimed"])}
    order = sorted(range(len(table)), key=lambda m: _number(table.ids[m]))
    for k, m in enumerate(order):
        assert set(table.names(m)) == {called(who) for who in truth.people[k]}
        assert said[table.ids[m], "1"] == called(truth.first[k])
        assert said[table.ids[m], "2"] == called(truth.other(k))
        assert all((table.path.parent / file).is_file() for file in table.audio[m])
    assert read_claims(files["claimed"], table).bits.min() >= 0
    first = table.ids[order[0]]
    turns = [t for t in read_turns(files["turns"]).files[0].turns if t.conversation == first]
    assert {(t.speaker, t.start, t.end) for t in turns} == {
        (called(who), a, b) for who, a, b in turns_of(truth, 0)
    }


def rows_of(path):
    return [(row["conversation"], row["channel"], row["speaker"]) for row in rows(path)]


def _number(name):
    return int("".join(c for c in name if c.isdigit()))


@pytest.mark.parametrize(("recordings", "upper"), [(True, False), (False, False), (True, True)])
def test_cgn(recordings, upper, truth, tmp_path):
    folder = make_cgn(tmp_path / "CGN", truth, recordings=recordings, upper=upper)
    corpus = read_corpus(f"cgn:{folder}", "c")
    assert [set(one.participants) for one in corpus.calls] == [
        {name_of(who) for who in pair} for pair in truth.people
    ]
    assert not corpus.claimed
    assert corpus.background.parent.name == "comp-d"
    assert dict(corpus.speakers)["N01001"] == "male"
    ids = [one.id for one in corpus.calls]
    assert ids[0] == ("FN000000" if upper else "fn000000")
    said = {who for name, who, _, _ in corpus.turns if name == ids[0]}
    assert said == set(corpus.calls[0].participants)
    note = "no recordings.txt: participants follow from the annotations"
    assert corpus.notes == ([] if recordings else [note])


def test_cgn_has_components(truth, tmp_path):
    folder = make_cgn(tmp_path / "CGN", truth)
    with pytest.raises(SpklinkError, match="c or d, or c/vl"):
        read_corpus(f"cgn:{folder}", "a")
    with pytest.raises(SpklinkError, match="no folder audio/wav/comp-c/vl"):
        read_corpus(f"cgn:{folder}", "c/vl")


def test_cgn_from_discs_to_results(truth, tmp_path, run):
    """The paper's experiment with one command: background, turns, tables that can be edited."""
    folder, out = make_cgn(tmp_path / "CGN", truth), tmp_path / "out"
    words = ("link", "--corpus", f"cgn:{folder}", "--component", "c", "-o", out, "--no-report")
    code, _, err = run(*words, "--recognizer", "none")
    assert code == 0, err
    assert "14 conversations, 14 with participants" in err
    table = read_conversations(out / "tables" / "conversations.csv")
    found = rows(out / "assignments.csv")
    best = {(row["conversation"], row["channel"]): row["speaker"] for row in found}
    assert [best[table.ids[k], "1"] for k in range(14)] == [name_of(who) for who in truth.first]
    options = json.loads((out / "run.json").read_text())["options"]
    assert options["background"].endswith("comp-d/nl")
    assert options["turns"] == "tables/turns.csv"
    code, _, err = run("export", out, "-o", tmp_path / "rttm", "--to", "rttm", "--only", "all")
    assert code == 0, err
    lines = (tmp_path / "rttm" / "speakers.rttm").read_text().splitlines()
    assert {(*line.split()[1:3], line.split()[7]) for line in lines} == {
        (*side, speaker) for side, speaker in best.items()
    }
    (out / "tables" / "turns.csv").write_text("conversation,speaker,start,end\n")
    code, _, err = run(*words, "--recognizer", "none")
    assert code == 2
    assert "turns.csv is not what the corpus says: edited?" in err


def test_kaldi_pipes(truth, tmp_path):
    folder = make_kaldi(tmp_path / "data", truth, pipes=True)
    plain = read_corpus(f"kaldi:{make_kaldi(tmp_path / 'plain', truth)}")
    assert read_corpus(f"kaldi:{folder}").calls == plain.calls
    (folder / "reco2file_and_channel").unlink()
    assert read_corpus(f"kaldi:{folder}").claimed == plain.claimed
    with (folder / "wav.scp").open("a") as file:
        file.write("x wget -O - http://example.org/x.wav |\n")
    with pytest.raises(SpklinkError, match="row 29: a command that is not run here: 'wget"):
        read_corpus(f"kaldi:{folder}")


def test_kaldi_with_a_file_per_channel(truth, tmp_path):
    folder = make_kaldi(tmp_path / "data", truth)
    files = ("wav.scp", "call0-B ", str(truth.folder / "0.wav"), str(truth.folder / "1.wav"))
    lines = (folder / files[0]).read_text().splitlines()
    of_b = [line.replace(*files[2:]) if line.startswith(files[1]) else line for line in lines]
    (folder / files[0]).write_text("\n".join(of_b) + "\n")
    audio = {call.id: call.audio for call in read_corpus(f"kaldi:{folder}").calls}
    assert audio["call0"] == files[2:]
    assert audio["call2"] == (str(truth.folder / "2.wav"),)


def test_kaldi_of_one_channel_is_diarized(truth, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "wav.scp").write_text(f"meeting1 {truth.folder / '0.wav'}\n")
    (folder / "segments").write_text("u1 meeting1 0.5 1.5\nu2 meeting1 2 3\nu3 meeting1 4 5\n")
    (folder / "utt2spk").write_text("u1 anna\nu2 ben\nu3 anna\n")
    corpus = read_corpus(f"kaldi:{folder}")
    assert corpus.tracks == [
        ("meeting1", 1, 0.5, 1.5),
        ("meeting1", 2, 2.0, 3.0),
        ("meeting1", 1, 4.0, 5.0),
    ]
    assert corpus.claimed == [("meeting1", 1, "anna"), ("meeting1", 2, "ben")]


def test_kaldi_as_lhotse_reads_it(truth, tmp_path):
    """The same recordings and segments as the library finds in the folder."""
    kaldi = pytest.importorskip("lhotse.kaldi")
    folder = make_kaldi(tmp_path / "data", truth)
    (folder / "reco2dur").write_text(
        "\n".join(f"call{k}-{s} 10.0" for k in range(14) for s in "AB")
    )
    names = [line.split()[0] for line in (folder / "utt2spk").read_text().splitlines()]
    (folder / "text").write_text("\n".join(f"{name} yes" for name in names))
    recordings, supervisions, _ = kaldi.load_kaldi_data_dir(folder, 8000)
    corpus = read_corpus(f"kaldi:{folder}")
    assert {one.sources[0].source for one in recordings} == {one.audio[0] for one in corpus.calls}
    theirs = {(s.recording_id[:-2], s.speaker, s.start, round(s.end, 6)) for s in supervisions}
    assert theirs == {(name, who, a, b) for name, who, a, b in corpus.turns}


def test_lhotse(truth, tmp_path):
    """Manifests that the library writes."""
    lhotse = pytest.importorskip("lhotse")
    recordings, supervisions = [], []
    for k in range(14):
        one = lhotse.Recording.from_file(truth.folder / f"{k}.wav", recording_id=f"call{k}")
        recordings.append(one)
        for n, (who, start, end) in enumerate(turns_of(truth, k)):
            supervisions.append(
                lhotse.SupervisionSegment(
                    f"call{k}-{n}",
                    f"call{k}",
                    start,
                    end - start,
                    channel=truth.channel(k, who) - 1,
                    speaker=who,
                )
            )
    lhotse.RecordingSet.from_recordings(recordings).to_file(tmp_path / "my_recordings.jsonl.gz")
    lhotse.SupervisionSet.from_segments(supervisions).to_file(tmp_path / "my_supervisions.jsonl.gz")
    corpus = read_corpus(f"lhotse:{tmp_path}")
    plain = read_corpus(f"kaldi:{make_kaldi(tmp_path / 'data', truth)}")
    assert corpus.calls == plain.calls
    assert corpus.claimed == plain.claimed
    assert corpus.turns == plain.turns


def test_lhotse_without_the_library(truth, tmp_path):
    source = {"type": "file", "channels": [0, 1], "source": str(truth.folder / "0.wav")}
    recording = {"id": "x", "sources": [source], "sampling_rate": 8000}
    said = {
        "id": "s",
        "recording_id": "x",
        "start": 1.0,
        "duration": 2.0,
        "channel": 1,
        "speaker": "anna",
    }
    (tmp_path / "recordings.jsonl").write_text(json.dumps(recording))
    (tmp_path / "supervisions.jsonl").write_text(json.dumps(said))
    corpus = read_corpus(f"lhotse:{tmp_path}")
    assert corpus.claimed == [("x", 2, "anna")]
    assert corpus.calls[0].participants == ("anna", "?")
    source["type"] = "command"
    (tmp_path / "recordings.jsonl").write_text(json.dumps(recording))
    with pytest.raises(SpklinkError, match="comes from a command, which is not run here"):
        read_corpus(f"lhotse:{tmp_path}")


@pytest.mark.parametrize("header", [False, True])
def test_nist(header, truth, tmp_path):
    corpus = read_corpus(f"nist:{make_nist(tmp_path / 'sre', truth, header=header)}")
    assert len(corpus.calls) == 14
    name: dict[str, str] = {}
    for call, channel, who in corpus.claimed:
        k = ord(call[1]) - 97
        person = truth.first[k] if channel == 1 else truth.other(k)
        assert name.setdefault(person, who) == who
    assert len(set(name.values())) == 8
    assert len(corpus.claimed) == 28


def test_trials_without_a_key(tmp_path):
    (tmp_path / "trials.ndx").write_text("m1 m taaa:a\n")
    with pytest.raises(SpklinkError, match="trials without a key say nothing about people"):
        read_corpus(f"nist:{tmp_path}")


@pytest.mark.parametrize("name", CORPORA)
def test_another_folder_is_refused(name, tmp_path):
    with pytest.raises(SpklinkError, match=str(tmp_path)):
        read_corpus(f"{name}:{tmp_path}")


@pytest.mark.parametrize("given", ["cgn", "cgn:", "timit:/data", "/data"])
def test_names_of_corpora(given):
    with pytest.raises(SpklinkError, match="is not NAME:PATH; the names are cgn, kaldi"):
        read_corpus(given)
