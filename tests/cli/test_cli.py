"""The command line as a person or a machine calls it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import spklink
from commands import assign, rows
from spklink.cli.commands import whole


@pytest.fixture
def simulated(run, tmp_path) -> Path:
    assert run("simulate", tmp_path / "sim", "--seed", "4")[0] == 0
    return tmp_path / "sim"


def test_from_simulation_to_evaluation(run, simulated, tmp_path):
    out = tmp_path / "out"
    code, text, _ = assign(run, simulated, out)
    assert code == 0
    assert "348 conversations of 356 speakers in 122 cliques" in text
    table = rows(out / "assignments.csv")
    assert list(table[0])[:5] == ["conversation", "channel", "speaker", "probability", "clique"]
    assert [r["conversation"] for r in table[::2]] == [
        r["conversation"] for r in rows(simulated / "conversations.csv")
    ]
    assert [r["channel"] for r in table[:4]] == ["1", "2", "1", "2"]
    cliques = rows(out / "cliques.csv")
    assert len(cliques) == 122
    assert list(cliques[0])[:9] == [
        *("clique", "conversations", "speakers", "configurations", "resolvable"),
        *("entropy_bits", "best_probability", "relative_probability", "method"),
    ]
    code, text, _ = run("evaluate", out, "--key", simulated / "key.csv", "--json")
    result = json.loads(text)
    assert code == 0
    assert result["conversations"]["total"] == 348
    assert set(result["by_size"][0]) == {
        *("conversations", "configurations", "cliques", "unresolvable", "cross_entropy_bits"),
        *("resolvable_bits", "confusion", "perplexity", "clique_errors", "clique_error_rate"),
        *("recalibrated_bits", "scale_ratio"),
    }
    truth = {(r["conversation"], r["channel"]): r["speaker"] for r in rows(simulated / "key.csv")}
    resolvable = {r["clique"]: r["resolvable"] == "true" for r in cliques}
    wrong = sum(
        r["speaker"] != truth[r["conversation"], r["channel"]]
        for r in table[::2]
        if resolvable[r["clique"]]
    )
    assert result["conversations"]["wrong"] == wrong
    code, text, _ = run("evaluate", out, "--key", simulated / "key.csv")
    assert "Table 2" in text
    assert "Table 3" in text


def test_evaluate_reads_only_the_results_folder(run, simulated, tmp_path):
    known = tmp_path / "known.csv"
    known.write_text("conversation,channel,speaker\n" + first_key_rows(simulated))
    out = tmp_path / "out"
    assert assign(run, simulated, out, "--known", known, "--weight", "book", "--beta", "2")[0] == 0
    before = run("evaluate", out, "--key", simulated / "key.csv", "--json")
    for path in (known, simulated / "conversations.csv", simulated / "scores.csv"):
        path.unlink()
    assert run("evaluate", out, "--key", simulated / "key.csv", "--json") == before
    assert json.loads(before[1])["resolvable"]["cliques"] == 122  # a channel is known everywhere


def first_key_rows(simulated: Path) -> str:
    """The true channel 1 of every conversation."""
    return "".join(
        f"{r['conversation']},{r['channel']},{r['speaker']}\n"
        for r in rows(simulated / "key.csv")
        if r["channel"] == "1"
    )


def test_same_input_same_bytes(run, simulated, tmp_path):
    names = ["assignments.csv", "cliques.csv", "conversations.csv", "llrs.npz", "run.json"]
    contents = []
    for folder in ("one", "two"):
        assert assign(run, simulated, tmp_path / folder)[0] == 0
        contents.append([(tmp_path / folder / name).read_bytes() for name in names])
    assert contents[0] == contents[1]


def test_nothing_of_an_earlier_run_survives(run, simulated, tmp_path):
    known = tmp_path / "known.csv"
    known.write_text("conversation,channel,speaker\n" + first_key_rows(simulated))
    out = tmp_path / "out"
    assert assign(run, simulated, out, "--known", known)[0] == 0
    assert (out / "known.csv").exists()
    assert assign(run, simulated, out)[0] == 0
    assert not (out / "known.csv").exists()
    assert not list(out.glob(".*"))  # no temporary files


def test_csv_and_npz_scores_give_the_same_results(run, tmp_path):
    for name, more in (("a", []), ("b", ["--npz"])):
        assert run("simulate", tmp_path / name, "--world", "plda", *more)[0] == 0
    table = tmp_path / "a" / "conversations.csv"
    for name, scores in (("x", "a/scores.csv"), ("y", "b/scores.npz")):
        code, *_ = run("assign", table, "--scores", tmp_path / scores, "-o", tmp_path / name)
        assert code == 0
    for name in ("assignments.csv", "cliques.csv", "llrs.npz"):
        assert (tmp_path / "x" / name).read_bytes() == (tmp_path / "y" / name).read_bytes()


def test_llrs_are_a_scores_file(run, simulated, tmp_path):
    assert assign(run, simulated, tmp_path / "one")[0] == 0
    again = run(
        *("assign", simulated / "conversations.csv"),
        *("--scores", tmp_path / "one" / "llrs.npz", "-o", tmp_path / "two"),
    )
    assert again[0] == 0
    one, two = (tmp_path / n / "assignments.csv" for n in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    with np.load(tmp_path / "one" / "llrs.npz", allow_pickle=False) as arrays:
        assert set(arrays) == {"conversation", "channel", "side_1", "side_2", "score"}


def test_unfinished_results_are_refused(run, simulated, tmp_path):
    out = tmp_path / "out"
    assert assign(run, simulated, out)[0] == 0
    (out / "run.json").unlink()
    code, _, err = run("evaluate", out, "--key", simulated / "key.csv")
    assert code == 2
    assert "run.json is missing" in err


def test_entropy_levels(run, simulated):
    code, text, _ = run("entropy", "--conversations", 348, "--speakers", 356, "--json")
    levels = json.loads(text)["levels"]
    assert code == 0
    assert [round(level["bits"], 3) for level in levels] == [
        *(4163.144, 3292.697, 3389.785, 3291.589, 3291.285, 348.0),
    ]
    assert [level["level"] for level in levels] == ["I", "II", "II", "III", "III", "IV"]
    assert [level["exact"] for level in levels] == [True, True, False, True, False, True]
    from_table = run("entropy", simulated / "conversations.csv", "--json")
    assert json.loads(from_table[1])["levels"] == levels
    assert "approximate" in run("entropy", "--conversations", 9, "--speakers", 4)[1]


def test_check_describes_a_database(run, simulated, write):
    code, text, _ = run("check", simulated / "conversations.csv", "--json")
    found = json.loads(text)
    assert code == 0
    assert (found["conversations"], found["cliques"], found["attainable_bits"]) == (348, 122, 12)
    assert [row["cliques"] for row in found["by_size"]] == [8, 61, 13, 26, 9, 5]
    table = write("c.csv", "conversation,audio,participants\nx,no.wav,Ann;bo\ny,,ann;cy\n")
    text = run("check", table)[1]
    assert "'Ann' and 'ann'" in text
    assert "1 audio file is not there: x (row 2, no.wav)" in text
    assert "share no speaker" in text


def test_paper_prints_three_tables(run):
    code, text, _ = run("paper", "--databases", 3)
    assert code == 0
    assert all(f"Table {n}" in text for n in (1, 2, 3))
    assert "4163.144" in text
    found = json.loads(run("paper", "--databases", 3, "--json")[1])
    assert [row["conversations"] for row in found["tables_2_and_3"]] == [1, 2, 3, 4, 5, 6, None]
    assert found["tables_2_and_3"][-1]["printed"]["bits"] == 0.078


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense"],
        ["assign"],
        ["assign", "none.csv", "--scores", "none.csv", "-o", "out"],
        ["assign", "none.csv", "--scores", "s.csv", "-o", "out", "--weight", "heavy"],
        ["assign", "none.csv", "--scores", "s.csv", "-o", "out", "--weight", "book"],
        ["evaluate", "nowhere", "--key", "k.csv"],
        ["entropy"],
        ["entropy", "--conversations", "3", "--speakers", "9"],
        ["simulate", "sim", "--eer", "99"],
        ["check", "none.csv"],
    ],
)
def test_errors_are_one_line_with_code_2(run, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*words)
    assert code == 2
    assert out == ""
    assert err.startswith("spklink: ")
    assert err.count("\n") == 1


def test_every_command_has_help_with_an_example(run):
    for command in whole().registered_commands:
        code, text, _ = run(command.callback.__name__, "--help")
        assert code == 0
        assert "Example:" in text
    assert run("--help")[0] == 0
    assert run()[1] == run("--help")[1]


HEAVY = ("numpy", "numba", "scipy", "rich", "matplotlib", "pandas", "soundfile", "jinja2")


@pytest.mark.parametrize("words", [["--help"], ["link", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(words):
    """What makes it instant."""
    code = (
        f"import sys; sys.argv = ['spklink', *{words}]\n"
        "from spklink.cli.app import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        f"heavy = set({HEAVY}) & set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_an_interrupt_while_the_parser_is_imported(tmp_path):
    (tmp_path / "typer.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(10)\n"
    )
    words = [sys.executable, "-m", "spklink", "--help"]
    paths = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        words, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}
    )
    assert (done.returncode, done.stderr) == (130, "spklink: stopped\n")


@pytest.mark.skipif(os.name != "posix", reason="signals are ignored by children elsewhere")
def test_interrupts_can_be_tested_in_the_background():
    """`nohup make test &` ignores them, and so would all that it starts."""
    one = f"{__file__}::{test_an_interrupt_while_the_parser_is_imported.__name__}"
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", one]
    ignore = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    done = subprocess.run(words, capture_output=True, text=True, preexec_fn=ignore)
    assert done.returncode == 0, done.stdout


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "spklink", "--version"], capture_output=True)
    assert done.returncode == 0
    assert done.stdout.decode().strip() == spklink.__version__


def test_an_interrupt_says_how_far_the_work_had_come(run, simulated, tmp_path, monkeypatch):
    def interrupted(*_, tell, **__):
        tell(3, 40)
        raise KeyboardInterrupt

    monkeypatch.setattr("spklink.runs.evidence.solve", interrupted)
    code, _, err = assign(run, simulated, tmp_path / "out")
    assert code == 130
    assert err == "spklink: stopped while computing the posterior, 3 of 40 done\n"
    assert not (tmp_path / "out").exists()


def test_an_interrupt_before_any_work(run, monkeypatch):
    monkeypatch.setattr("spklink.measures.entropy.levels", interrupt)
    code, _, err = run("entropy", "--conversations", 5, "--speakers", 4)
    assert (code, err) == (130, "spklink: stopped\n")


def interrupt(*_):
    raise KeyboardInterrupt
