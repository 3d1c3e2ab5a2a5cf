"""The options that commands share, with their help: one place, so that they read alike."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from spklink.posterior.inference.table import AUTO, names


class WeightName(StrEnum):
    auto = "auto"
    paper = "paper"
    chain = "chain"
    book = "book"


# The names are those of the table of methods, which mypy cannot see through.
MethodName = StrEnum("MethodName", [(name, name) for name in names()])  # type: ignore[misc]
CHOOSE = MethodName(AUTO)


class RecognizerName(StrEnum):
    gmm_ubm = "gmm-ubm"


class PresetName(StrEnum):
    default = "default"
    paper = "paper"


class KindName(StrEnum):
    cmlg = "cmlg"
    lr = "lr"
    lr_floor = "lr-floor"
    lr_dur = "lr-dur"
    pav = "pav"


class BadAudio(StrEnum):
    fail = "fail"
    skip = "skip"


class ShapeName(StrEnum):
    cgn = "cgn"
    pairs = "pairs"
    star = "star"
    network = "network"


class WorldName(StrEnum):
    gaussian = "gaussian"
    plda = "plda"
    t5 = "t5"


Table = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE", help="Table of conversations: conversation,audio,participants."
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")]
WeightOption = Annotated[
    WeightName,
    typer.Option(
        "--weight",
        help="How the pairs of a speaker's calls count; auto: as in the paper, unless known "
        "channels ask for another.",
    ),
]
Scores = Annotated[Path, typer.Option("--scores", help="Scores between sides, .csv or .npz.")]
SidesTable = Annotated[
    Path | None,
    typer.Option("--sides", help="Seconds of speech: conversation,channel,speech_seconds."),
]
Kind = Annotated[
    KindName | None, typer.Option("--kind", help="Form of the calibration; lr is a plain line.")
]
Fallback = Annotated[
    Path | None,
    typer.Option("--fallback", help="Saved calibration for a database that teaches too little."),
]
WrongLists = Annotated[
    float,
    typer.Option("--wrong-lists", help="Share of pairs wrongly listed as one person."),
]
CalibrationOption = Annotated[
    str, typer.Option("--calibration", help="FILE saved by calibrate, or labelfree, or none.")
]
Beta = Annotated[
    float | None,
    typer.Option("--beta", help="Between/within-speaker variance ratio, for --weight book."),
]
Known = Annotated[
    Path | None,
    typer.Option("--known", help="Known channels: conversation,channel,speaker[,probability]."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Seed of all random numbers.")]
World = Annotated[WorldName, typer.Option("--world", help="What the scores are like.")]
Eer = Annotated[float, typer.Option("--eer", help="Equal error rate of the scores, in per cent.")]


Method = Annotated[
    MethodName, typer.Option("--method", help="How to solve large cliques; auto chooses.")
]
Seconds = Annotated[
    float, typer.Option("--budget-seconds", help="Predicted seconds one clique may cost.")
]
Gigabytes = Annotated[
    float, typer.Option("--budget-gb", help="Predicted gigabytes one clique may need.")
]
Workers = Annotated[int, typer.Option("--workers", min=1, help="Cliques solved side by side.")]
