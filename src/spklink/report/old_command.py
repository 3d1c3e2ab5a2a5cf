"""TEMPORARY: the command of a run.json without `options`; goes with the switch in provenance."""

from __future__ import annotations

from shlex import quote
from typing import Any

from spklink.recognizers.gmm_ubm import PRESETS


def command(run: dict[str, Any], *, known: bool = True) -> str:
    """A command line that gives these results again; OUT stands for their folder."""
    inputs, settings = run["inputs"], run["settings"]
    linked = "scores" not in inputs
    words = ["spklink", "link" if linked else "assign", quoted(inputs["conversations"])]
    if "scores" in inputs:
        words += ["--scores", quoted(inputs["scores"])]
    words += ["-o", "OUT"]
    for name in ("known", "claimed"):
        if name in inputs and (known or name != "known"):
            words += [f"--{name}", quoted(inputs[name])]
    return " ".join([*words, *_options(run, settings)])


def _options(run: dict[str, Any], settings: dict[str, Any]) -> list[str]:
    """Options that are not at their default."""
    words: list[str] = []
    linked = "scores" not in run["inputs"]
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
    usual = {"source": "labelfree" if linked else "none", "kind": None}
    if isinstance(preset, dict):
        usual["kind"] = preset.get("calibration")
    words += _calibration(settings.get("calibration"), usual)
    if settings.get("link_wccn") is False:
        words.append("--no-link-wccn")
    if run["seed"]:
        words += ["--seed", str(run["seed"])]
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
