"""Folders laid out as corpora are, with the made calls as their sound."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path

import soundfile

from made_calls import PAIRS


@dataclass(frozen=True)
class Truth:
    """The made calls: who takes part, who is on channel 1, when they speak."""

    folder: Path
    people: list[tuple[str, str]]
    first: list[str]

    def channel(self, k: int, who: str) -> int:
        return 1 if self.first[k] == who else 2

    def other(self, k: int) -> str:
        a, b = self.people[k]
        return b if self.first[k] == a else a


def truth_of(calls: Path) -> Truth:
    with (calls / "key.csv").open(newline="") as file:
        first = [row["speaker"] for row in csv.DictReader(file)]
    return Truth(calls, [tuple(sorted(pair)) for pair in PAIRS], first)


def turns_of(truth: Truth, k: int) -> list[tuple[str, float, float]]:
    """Who is louder in every half second: turns as a transcript would have them."""
    samples, rate = soundfile.read(truth.folder / f"{k}.wav")
    found = []
    for at in range(0, len(samples) - rate // 2, rate // 2):
        levels = (samples[at : at + rate // 2] ** 2).mean(axis=0)
        if levels.max() > 4 * levels.min():
            who = truth.first[k] if levels[0] > levels[1] else truth.other(k)
            found.append((who, at / rate, (at + rate // 2) / rate))
    return found


def name_of(who: str) -> str:
    return f"N0{1001 + ord(who) - ord('a')}"


def make_cgn(folder: Path, truth: Truth, *, recordings: bool = True, upper: bool = False) -> Path:
    """Component c with the made calls, d with two of them once more, as background."""
    data = folder / ("DATA" if upper else "data")
    sound, other = (data / "audio" / "wav" / f"comp-{c}" / "nl" for c in "cd")
    sea, ort = data / "annot/corex/sea/comp-c/nl", data / "annot/text/ort/comp-c/nl"
    meta = data / "meta" / "text"
    for path in (sound, other, sea, ort, meta):
        path.mkdir(parents=True)
    rows = ["recordingID\tname\tspeakerIDs"]
    for k, pair in enumerate(truth.people):
        name = f"fn{k:06d}"
        target = sound / (f"{name.upper()}.WAV" if upper else f"{name}.wav")
        target.write_bytes((truth.folder / f"{k}.wav").read_bytes())
        rows.append(f"{name}\tgesprek caf&eacute;\t{','.join(map(name_of, pair))}")
        (sea / f"{name}.sea").write_text(_sea(truth, k), encoding="iso-8859-1")
    for k in range(2):
        (other / f"fn9{k:05d}.wav").write_bytes((truth.folder / f"{k}.wav").read_bytes())
    if recordings:
        (meta / "recordings.txt").write_text("\n".join(rows) + "\n", encoding="iso-8859-1")
    people = [f"{name_of(who)}\tsex{1 + k % 2}\tZoë" for k, who in enumerate("abcdefgh")]
    table = "\n".join(["ID\tsex\tresidence", *people])
    (meta / "speakers.txt").write_text(table, encoding="iso-8859-1")
    return folder


def _sea(truth: Truth, k: int) -> str:
    lines = []
    for n, (who, start, end) in enumerate(turns_of(truth, k), start=1):
        lines.append(f"{n} {round(start * 1000)} {round(end * 1000)} {name_of(who)} fn{k:06d}.{n}")
        lines.append("ORT één café")
    return "\n".join([*lines, f"{len(lines)} 0 100 BACKGROUND x", ""])


def make_kaldi(folder: Path, truth: Truth, *, pipes: bool = False) -> Path:
    folder.mkdir()
    wav, channel, segments, speakers = [], [], [], []
    for k in range(len(truth.people)):
        for side, letter in ((1, "A"), (2, "B")):
            file = truth.folder / f"{k}.wav"
            command = f"sph2pipe -f wav -p -c {side} {file} |" if pipes else str(file)
            wav.append(f"call{k}-{letter} {command}")
            channel.append(f"call{k}-{letter} call{k} {letter}")
        for n, (who, start, end) in enumerate(turns_of(truth, k)):
            side = "AB"[truth.channel(k, who) - 1]
            segments.append(f"{who}-call{k}-{n:03d} call{k}-{side} {start} {end}")
            speakers.append(f"{who}-call{k}-{n:03d} {who}")
    files = {"wav.scp": wav, "segments": segments, "utt2spk": speakers}
    files |= {"reco2file_and_channel": channel, "spk2gender": [f"{who} m" for who in "abcdefgh"]}
    for name, lines in files.items():
        (folder / name).write_text("\n".join(lines) + "\n")
    return folder


def make_switchboard(folder: Path, truth: Truth) -> Path:
    (folder / "swb1_d1" / "data").mkdir(parents=True)
    (folder / "tables").mkdir()
    rows = []
    for k in range(len(truth.people)):
        path = folder / "swb1_d1" / "data" / f"sw0{2001 + k}.wav"
        path.write_bytes((truth.folder / f"{k}.wav").read_bytes())
        text = folder / "trans" / f"{k}"
        text.mkdir(parents=True)
        for letter, who in (("A", truth.first[k]), ("B", truth.other(k))):
            rows.append(f'{2001 + k}, "{letter}", {ord(who)}, "X", 5.0, 321, "", 1')
            own = [t for t in turns_of(truth, k) if t[0] == who]
            lines = [
                f"sw{2001 + k}{letter}-ms98-a-{n:04d} {a} {b} yes"
                for n, (_, a, b) in enumerate(own)
            ]
            lines.insert(0, f"sw{2001 + k}{letter}-ms98-a-0000 0.0 0.1 [silence]")
            (text / f"sw{2001 + k}{letter}-ms98-a-trans.text").write_text("\n".join(lines))
    (folder / "tables" / "call_con_tab.csv").write_text("\n".join(rows))
    people = [f'{ord(who)}, 1, "N", "MALE", 1960, "SOUTH"' for who in "abcdefgh"]
    (folder / "tables" / "caller_tab.csv").write_text("\n".join(people))
    return folder


def make_fisher(folder: Path, truth: Truth) -> Path:
    (folder / "audio" / "000").mkdir(parents=True)
    (folder / "fe_03_p1_tran" / "doc").mkdir(parents=True)
    (folder / "fe_03_p1_tran" / "data" / "trans" / "000").mkdir(parents=True)
    rows = ["CALL_ID,DATE_TIME,TOPICID,SIG_GRADE,CNV_GRADE,APIN,ASX.DL,BPIN,BSX.DL"]
    for k in range(len(truth.people)):
        name = f"fe_03_{k + 1:05d}"
        path = folder / "audio" / "000" / f"{name}.wav"
        path.write_bytes((truth.folder / f"{k}.wav").read_bytes())
        a, b = truth.first[k], truth.other(k)
        rows.append(f"{k + 1:05d},20021201_09:00:00,ENG01,3,3,{ord(a)},m.a,{ord(b)},f.o")
        lines = [f"# {name}.sph", ""]
        for who, start, end in turns_of(truth, k):
            lines.append(f"{start:.2f} {end:.2f} {'AB'[truth.channel(k, who) - 1]}: yes")
        text = folder / "fe_03_p1_tran" / "data" / "trans" / "000" / f"{name}.txt"
        text.write_text("\n".join(lines))
    (folder / "fe_03_p1_tran" / "doc" / "fe_03_p1_calldata.tbl").write_text("\n".join(rows))
    return folder


def make_harpervalley(folder: Path, truth: Truth) -> Path:
    data = folder / "data"
    for part in ("audio/agent", "audio/caller", "metadata", "transcript"):
        (data / part).mkdir(parents=True)
    for k in range(len(truth.people)):
        samples, rate = soundfile.read(truth.folder / f"{k}.wav")
        soundfile.write(data / "audio" / "agent" / f"sid{k}.wav", samples[:, 0], rate)
        soundfile.write(data / "audio" / "caller" / f"sid{k}.wav", samples[:, 1], rate)
        people = {"agent": truth.first[k], "caller": truth.other(k)}
        meta = {role: {"speaker_id": ord(who)} for role, who in people.items()}
        (data / "metadata" / f"sid{k}.json").write_text(json.dumps(meta | {"sid": f"sid{k}"}))
        role = {who: name for name, who in people.items()}
        turns = [
            {
                "speaker_role": role[who],
                "offset_ms": round(a * 1000),
                "duration_ms": round((b - a) * 1000),
            }
            for who, a, b in turns_of(truth, k)
        ]
        (data / "transcript" / f"sid{k}.json").write_text(json.dumps(turns))
    return folder


def make_nist(folder: Path, truth: Truth, *, header: bool = False) -> Path:
    """Models are made of calls 0 to 6; a key says what calls 7 to 13 are."""
    (folder / "sph").mkdir(parents=True)
    models, key = [], []
    for k in range(len(truth.people)):
        path = folder / "sph" / f"t{chr(97 + k)}aaa.wav"
        path.write_bytes((truth.folder / f"{k}.wav").read_bytes())
        for who, letter in ((truth.first[k], "a"), (truth.other(k), "b")):
            if k < 7:
                models.append(f"m{k}{who} m {path.stem}:{letter}")
            for model, said in [(f"m{j}{w}", w) for j in range(7) for w in truth.people[j]]:
                if k >= 7:
                    target = "target" if said == who else "nontarget"
                    key.append((model, path.stem, letter, target))
    if header:
        rows = ["modelid\tsegmentid\tside\ttargettype", *("\t".join(row) for row in key)]
        (folder / "trials_key.tsv").write_text("\n".join(rows))
        sides = (line.split() for line in models)
        enrol = [f"{m}\t{s.partition(':')[0]}.wav\t{s[-1]}" for m, _, s in sides]
        (folder / "enrollment.tsv").write_text("\n".join(["modelid\tsegmentid\tside", *enrol]))
    else:
        (folder / "short2.trn").write_text("\n".join(models))
        (folder / "trials.key").write_text("\n".join(",".join(row) for row in key))
        trials = (f"{m} m {s}:{c}" for m, s, c, _ in key)
        (folder / "short2-short3.ndx").write_text("\n".join(trials))
    return folder
