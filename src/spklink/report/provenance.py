"""Where results come from: versions, settings, inputs, the command; and what they cost in time."""

from __future__ import annotations

from shlex import quote
from typing import Any

from spklink.errors import SpklinkError
from spklink.recognizers.gmm_ubm import PRESETS
from spklink.report.results import Results
from spklink.runs.assign import Stages, peak_memory
from spklink.tables import read_json


def provenance(results: Results) -> dict[str, Any]:
    run = results.run
    return {
        "command": command(results),
        "spklink": run["spklink"],
        "versions": run["versions"],
        "seed": run["seed"],
        "settings": run["settings"],
        "inputs": run["inputs"],
        "report_inputs": results.given,
        "scores": run["scores"],
    }


def command(results: Results, *, known: bool = True) -> str:
    """A command line that gives these results again; OUT stands for their folder."""
    inputs, settings = results.run["inputs"], results.run["settings"]
    words = ["spklink", "link" if results.linked else "assign", quoted(inputs["conversations"])]
    if "scores" in inputs:
        words += ["--scores", quoted(inputs["scores"])]
    words += ["-o", "OUT"]
    for name in ("known", "claimed"):
        if name in inputs and (known or name != "known"):
            words += [f"--{name}", quoted(inputs[name])]
    return " ".join([*words, *_options(results, settings)])


def _options(results: Results, settings: dict[str, Any]) -> list[str]:
    """Options that are not at their default."""
    words = []
    preset = settings.get("preset")
    if isinstance(preset, dict):
        published = PRESETS.get(preset["name"])
        if preset["name"] != "default":
            words += ["--preset", preset["name"]]
        if published is None or preset["components"] != published.components:
            words += ["--components", str(preset["components"])]
    defaults: dict[str, Any] = {"weight": "paper", "beta": None, "method": "auto"}
    defaults |= {"background": None, "budget_seconds": 60.0, "budget_gb": 4.0, "min_speech": 2.0}
    for name, default in defaults.items():
        if settings.get(name, default) != default:
            words += [f"--{name.replace('_', '-')}", quoted({"file": f"{settings[name]}"})]
    usual = {"source": "labelfree" if results.linked else "none", "kind": None}
    if isinstance(preset, dict):
        usual["kind"] = preset.get("calibration")
    words += _calibration(settings.get("calibration"), usual)
    if settings.get("link_wccn") is False:
        words.append("--no-link-wccn")
    if results.sides is not None and "bad audio" in results.sides.marks:
        words += ["--on-bad-audio", "skip"]
    if results.run["seed"]:
        words += ["--seed", str(results.run["seed"])]
    return words


def _calibration(choice: Any, usual: dict[str, Any]) -> list[str]:
    """How scores became log-likelihood-ratios, where that was chosen."""
    if not isinstance(choice, dict):
        return []
    defaults = {"fallback": None, "wrong_lists": 0.0} | usual
    names = {"source": "--calibration", "wrong_lists": "--wrong-lists"}
    words = []
    for name, value in choice.items():
        if value != defaults.get(name):
            words += [names.get(name, f"--{name}"), quote(str(value))]
    return words


def quoted(file: dict[str, str]) -> str:
    return quote(file["file"])


def times(results: Results, stages: Stages) -> dict[str, Any]:
    """Seconds by stage and memory, of the run and of this report."""
    path = results.folder / "timings.json"
    try:
        run = read_json(path) if path.exists() else {}
    except SpklinkError:
        run = {}
    return {
        "run": run,
        "report": {"seconds": dict(stages.seconds), "peak_memory_bytes": peak_memory()},
    }
