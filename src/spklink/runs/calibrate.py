"""A calibration to keep, from scores with a key or without a single label."""

from __future__ import annotations

from os import PathLike
from typing import Any, Unpack

from spklink.calibration.choice import Choice, learn
from spklink.database.conversations import read_conversations
from spklink.database.labels import read_key
from spklink.errors import check_file
from spklink.options import described, resolved
from spklink.posterior.likelihood import Weight, asked_weight
from spklink.posterior.posterior import Options
from spklink.runs.assign import evidence_pairs, read_evidence, read_known_channels
from spklink.runs.inputs import read_inputs, reading
from spklink.runs.stages import Stages
from spklink.settings import CalibrateOptions
from spklink.tables import Table, write_json
from spklink.threads import cores


@described(CalibrateOptions)
def calibrate(
    table: Table,
    scores: Any,
    out: str | PathLike[str] | None = None,
    *,
    stages: Stages | None = None,
    **options: Unpack[CalibrateOptions],
) -> dict[str, Any]:
    """How scores become log-likelihood-ratios: what `assign` takes as `calibration`, as a
    dictionary and, with `out`, as a JSON file. Refused where there is too little to learn from."""
    asked, stages = resolved(CalibrateOptions, options), stages or Stages()
    file = None if out is None else check_file(out)
    weight, choice = asked_weight(asked["weight"], asked["beta"]), Choice.of(asked)
    with stages.stage("reading the table"):
        tables = {"known": asked["known"], "sides": asked["sides"], "key": asked["key"]}
        inputs = read_inputs({"conversations": table, **tables}, how=reading(asked))
        people = read_conversations(inputs.table("conversations"))
        known, key = read_known_channels(inputs, people), inputs.table("key")
    evidence = read_evidence(people, scores, weight or Weight(), known, stages)
    with stages.stage("calibrating"):
        found = learn(
            people,
            evidence_pairs(evidence, inputs.table("sides")),
            choice,
            key=None if key is None else read_key(key, people),
            known=known,
            weight=weight,
            options=Options(seed=asked["seed"], workers=cores(asked["workers"])),
            tell=stages.progress,
        )
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, found)
    return found
