"""TEMPORARY: the signatures that the commands call, on top of runs/ as it is today.

To delete: let `cli/runs.py` and `cli/look.py` import `assign`, `link` from `spklink.runs`, and call
`evaluate` and `write_report` on what `link` returns.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, cast

from spklink.calibration.choice import Choice
from spklink.posterior.inference.plan import Budget
from spklink.posterior.likelihood import Weight
from spklink.posterior.posterior import Options
from spklink.runs import assign as old_assign
from spklink.runs import link as old_link
from spklink.settings import AssignOptions, LinkOptions, described, resolved

if TYPE_CHECKING:
    from spklink.measures.evaluation import Evaluation
    from spklink.runs.assign import PathName, Result, Stages
    from spklink.runs.link import Linked


@described(AssignOptions)
def assign(
    table: PathName,
    scores: PathName,
    out: PathName | None = None,
    *,
    stages: Stages | None = None,
    **options: Unpack[AssignOptions],
) -> Result:
    """Who is on which channel, from scores."""
    asked = resolved(AssignOptions, options)
    return old_assign.assign(
        table,
        scores,
        cast(Path, out),
        calibration=choice_of(asked, asked["calibration"]),
        sides=asked["sides"],
        weight=weight_of(asked),
        known=asked["known"],
        options=_solving(asked),
        stages=stages,
    )


@described(LinkOptions)
def link(
    table: PathName,
    out: PathName | None = None,
    *,
    stages: Stages | None = None,
    **options: Unpack[LinkOptions],
) -> Linked:
    """Listen to all calls and find who is on which channel."""
    asked = resolved(LinkOptions, options)
    settings = old_link.Settings(
        preset=asked["preset"],
        components=asked["components"],
        background=asked["background"],
        calibration=choice_of(asked, asked["calibration"]),
        link_wccn=asked["link_wccn"],
        weight=weight_of(asked),
        min_speech=asked["min_speech"],
        skip_bad_audio=asked["on_bad_audio"] == "skip",
        all_pairs=asked["all_pairs"],
        retrain=asked["retrain"],
        cache=asked["cache"],
    )
    return old_link.link(
        table,
        cast(Path, out),
        settings=settings,
        known=asked["known"],
        claimed=asked["claimed"],
        options=_solving(asked),
        stages=stages,
    )


def choice_of(options: Mapping[str, Any], source: str) -> Choice:
    """How scores become log-likelihood-ratios; `calibrate` needs it too."""
    return Choice(
        source, options["kind"], options.get("fallback"), wrong_lists=options["wrong_lists"]
    )


def weight_of(options: Mapping[str, Any]) -> Weight | None:
    """None leaves the rule to calibration; a beta alone asks for the rule that has one."""
    rule, beta = options["weight"], options["beta"]
    if rule == "auto":
        return None if beta is None else Weight("book", beta)
    return Weight(rule, beta)


def _solving(options: Mapping[str, Any]) -> Options:
    budget = Budget(options["budget_seconds"], options["budget_gb"])
    return Options(options["method"], budget, options["seed"], cores(options["workers"]))


def cores(workers: int | None) -> int:
    return workers or os.cpu_count() or 1


def measured(out: Path, key: Path, workers: int | None, stages: Stages) -> Evaluation:
    """Solves once more; to become `evaluate(found.posterior, read_key(key, table).bits)`."""
    from spklink.database.labels import read_key
    from spklink.measures.evaluation import evaluate
    from spklink.runs.assign import load

    database, options = load(out, workers=cores(workers))
    labels = read_key(key, database.conversations)
    with stages.stage("measuring"):
        return evaluate(
            database.model,
            labels.bits,
            foreign_key_rows=labels.foreign,
            options=options,
            tell=stages.progress,
        )


def page(
    out: Path,
    key: Path | None,
    claimed: Path | None,
    workers: int | None,
    stages: Stages,
    found: Linked | None = None,
    evaluation: Evaluation | None = None,
) -> Path:
    """Solves once more; to become `write_report` on the result and its evaluation."""
    from spklink.report import write_report

    return write_report(out, key=key, claimed=claimed, workers=cores(workers), stages=stages)
