"""`check` of other evidence: counted, and what is odd named before any run."""

from __future__ import annotations

import numpy as np
import soundfile

from spklink.runs.check import check


def rows(*calls):
    return [
        {"conversation": f"c{k}", "participants": who, "audio": f"{k}.wav"}
        for k, who in enumerate(calls)
    ]


def table(write, *calls):
    lines = [",".join(row.values()) for row in rows(*calls)]
    header = "conversation,participants,audio"
    return write("t.csv", "\n".join([header, *lines, ""]))


def test_turns(run, write, tmp_path):
    people = table(write, "a;b", "a;c", "b;c")
    soundfile.write(tmp_path / "0.wav", np.zeros((8000 * 4, 2)), 8000)
    turns = write(
        "turns.csv",
        "conversation,speaker,start,end\nc0,a,0,1\nc0,b,1,2\nc0,a,8,9\nc1,b,0,1\nc1,a,1,2\n",
    )
    found = check(people, turns=turns)
    assert found["turns"] == {"conversations": 2, "turns": 5, "people": 4}
    said = "\n".join(found["problems"])
    assert "1 conversations have no turns: c2" in said
    assert "1 conversations have turns of only some of their people: c1" in said
    assert "c1: turns: b has turns but is not in the participant list" in said
    assert "c0: turns: 1 of 3 begin after its end at 4.0 s (turns.csv: row 4)" in said
    assert "turns: 5 in 2 of 3 conversations" in run("check", people, "--turns", turns)[1]


def test_what_a_run_would_refuse(write, run):
    people = table(write, "a;b", "a;c")
    turns = write("turns.csv", "conversation,speaker,start,end\nc0,zed,0,1\n")
    found = check(people, turns=turns, attribute="sex")
    assert "turns" not in found
    said = "\n".join(found["problems"])
    assert "a run would stop here" in said
    assert "turns.csv: row 2: turns of 'zed'" in said
    assert "--speakers FILE is missing" in said
    bare = write("bare.csv", "conversation,participants\nc0,a;b\nc1,a;c\n")
    assert run("check", bare, "--turns", turns)[0] == 1
    turns.write_text("conversation,speaker,start,end\nc0,a,0,1\n")
    assert run("check", bare, "--turns", turns)[0] == 0


def test_attributes_and_cues(run, write):
    people = table(write, "a;b", "a;c", "b;c")
    speakers = write("s.csv", "speaker,sex\na,f\nb,m\nz,m\n")
    cue = write("cue.csv", "conversation,log_odds,name\nc0,1,ear\nc2,-1,ear\nc1,2,eye\n")
    found = check(people, speakers=speakers, attribute="sex", cue=cue)
    assert found["attributes"]["sex"] == {"people": {"f": 1, "m": 1}, "unknown": 1, "differ": 1}
    assert found["cues"] == {"ear": 2, "eye": 1}
    assert any("no two values have 5 people each" in text for text in found["problems"])
    asked = "--speakers", speakers, "--attribute", "sex", "--cue", cue
    said = run("check", people, *asked)[1]
    assert "sex: 1 f, 1 m, 1 not told; people differ in 1 of 3 conversations" in said
    assert "cue ear: 2 of 3 conversations" in said
