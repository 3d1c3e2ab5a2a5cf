"""Where results come from: versions, options, inputs, the command that gives them again; and what
they cost in time.

`command` and `notes` are functions of run.json alone. Paths in run.json are relative to the results
folder, so the command is one to run inside it, wherever the folders have been moved together.
"""

from __future__ import annotations

from shlex import quote
from typing import Any

from spklink.json_files import Each, read_json
from spklink.options import Option, command_words, plain
from spklink.recognizers.table import is_network
from spklink.report.results import Results
from spklink.runs.stages import Stages
from spklink.settings import COMMANDS
from spklink.shared_options import recognizers

Run = dict[str, Any]  # the content of run.json
TIMINGS = {"seconds": Each(float), "peak_memory_bytes": (int, None)}


def provenance(results: Results) -> dict[str, Any]:
    run = results.run
    return {
        "command": command(run),
        "of": run["command"],
        "notes": notes(run),
        "spklink": run["spklink"],
        "versions": run["versions"],
        "seed": run["options"]["seed"],
        "settings": run["options"] | {"weight": run["weight"]},
        "inputs": run["inputs"],
        "report_inputs": results.inputs.as_json(results.folder),
        "scores": run["scores"],
    }


def command(run: Run, *, known: bool = True) -> str:
    """The command that, inside the results folder, gives the results again; `known` False leaves
    out the known channels, for somebody who has others."""
    kind, options = COMMANDS[run["command"]], dict(run["options"])
    for name in {"known", "tracks"} & set(_from_memory(run)):
        options[name] = f"{name}.csv"
    if not known:
        options["known"] = None
    words = ["spklink", run["command"], _file(run, "conversations")]
    if "scores" in run["inputs"]:
        words += ["--scores", _file(run, "scores")]
    return " ".join([*words, "-o", ".", *command_words(kind, options, None)])


def _file(run: Run, name: str) -> str:
    """Where an input is; of a table from memory there is a copy in the folder."""
    path = run["inputs"][name]["file"] or f"{name}.csv"
    return quote(plain(Option("", file=True), path, None))


def _from_memory(run: Run) -> list[str]:
    """Inputs that a program handed over."""
    return [name for name, one in run["inputs"].items() if one["file"] is None]


def notes(run: Run) -> list[str]:
    """What a person must know to get the same results from the command."""
    told = ["Run it inside the folder of the results."]
    memory = _from_memory(run)
    memory += ["scores"] if run["command"] == "assign" and "scores" not in run["inputs"] else []
    if memory:
        told.append(
            f"Not given as files but by a program: {', '.join(memory)}. Tables that the folder has "
            "a copy of are named by that; all else has to be given again."
        )
    return told + (_about_the_recognizer(run) if run["command"] == "link" else [])


def _about_the_recognizer(run: Run) -> list[str]:
    """A recognizer in the cache is used again when calls are added: results depend on its past."""
    made, options, told = run.get("recognizer") or {}, run["options"], []
    trained, recordings = made.get("trained_on") or 0, made.get("recordings") or 0
    name = options.get("recognizer")
    if name not in recognizers() and not is_network(str(name)):
        told.append(
            f"The recognizer ({options.get('recognizer')}) was handed over by a program; the "
            "command line does not know it."
        )
    if trained < recordings:
        # with other speech to train on, the mean of the vectors is still that of the calls
        how = "fitted to" if options.get("background") else "trained on"
        told.append(
            f"The recognizer was {how} {trained} of {recordings} recordings and taken from the "
            "cache; without that cache, or with --retrain, the results differ."
        )
    model = run.get("model")
    if model is not None and model["new"]:
        learned = model["learned_on"]["conversations"]
        told.append(
            f"Voices were compared and probabilities calibrated as model {model['name']} has it, "
            f"learned on {learned:,} conversations by {model['made_by']}; {model['new']:,} came "
            "later. Without the cache that holds it, or with --retrain, the results differ."
        )
    return told


def times(results: Results, stages: Stages) -> dict[str, Any]:
    """Seconds by stage and memory, of the run and of this report."""
    path = results.folder / "timings.json"
    return {
        "run": read_json(path, TIMINGS, "remove it") if path.exists() else {},
        "report": stages.timings(),
    }
