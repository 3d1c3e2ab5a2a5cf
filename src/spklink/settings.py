"""Every option of spklink, described once: the command line and the library are made from this.

A class lists the options of one command in the order in which they are shown; its fields are
the keyword arguments of the library function of that name. `resolved` checks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, TypedDict

from spklink.options import REQUIRED as REQUIRED
from spklink.options import Option
from spklink.options import command_words as command_words
from spklink.options import described as described
from spklink.options import options_json as options_json
from spklink.options import options_of as options_of
from spklink.options import resolved as resolved

LABELFREE, NONE = "labelfree", "none"
MOST_SIMULATED = 10**6  # conversations or databases: more take days, and more memory than there is
MOST_COUNTED = 10**9  # conversations whose entropies are computed: floats tell no more apart


def methods() -> tuple[str, ...]:
    from spklink.posterior.inference.table import names

    return names()


def kinds() -> tuple[str, ...]:
    from spklink.calibration.table import KINDS

    return tuple(KINDS)


def recognizers() -> tuple[str, ...]:
    from spklink.recognizers.table import RECOGNIZERS

    return tuple(RECOGNIZERS)


File = str | PathLike[str] | None
SavedFile = str | PathLike[str] | Mapping[str, Any]  # a calibration, or what `calibrate` returned
TableFile = Any  # a file, and in the library also a DataFrame or rows

# What commands take beside the options of the library.

Table = Annotated[
    Path,
    Option("Table of conversations: conversation,audio,participants.", file=True, argument="TABLE"),
]
CountedTable = Annotated[
    Path | None,
    Option(
        "Count the conversations and speakers of this table.",
        None,
        file=True,
        argument="[TABLE]",
    ),
]
Results = Annotated[Path, Option("Folder written by link or assign.", file=True, argument="OUT")]
Simulation = Annotated[Path, Option("Folder for the files.", file=True, argument="OUTDIR")]
Scores = Annotated[Path, Option("Scores between sides, .csv or .npz.", file=True)]
Truth = Annotated[Path, Option("The truth: conversation,channel,speaker.", file=True)]
Out = Annotated[Path, Option("Folder for the results.", file=True, flags=("--out", "-o"))]
OutFile = Annotated[
    Path, Option("File for the calibration (JSON).", file=True, flags=("--out", "-o"))
]
DemoOut = Annotated[
    Path,
    Option(
        "Folder for the recordings and the results.",
        Path("demo-out"),
        file=True,
        flags=("--out", "-o"),
    ),
]
Json = Annotated[bool, Option("Print JSON for machines.", False, flags=("--json",))]

# Options that several commands share.

Kind = Annotated[
    str | None, Option("Form of the calibration; lr is a plain line.", None, choices=kinds)
]
Sides = Annotated[
    TableFile,
    Option("Seconds of speech: conversation,channel,speech_seconds.", None, file=True, memory=True),
]
Fallback = Annotated[
    SavedFile | None,
    Option(
        "Saved calibration for a database that teaches too little.", None, file=True, memory=True
    ),
]
WrongLists = Annotated[float, Option("Share of pairs wrongly listed as one person.", 0.0)]
ListErrors = Annotated[
    str | float,
    Option(
        "How often a listed person is absent: a rate, 0 to take lists at their word, or auto to "
        "estimate it from the voices.",
        "auto",
    ),
]
TrustedLists = Annotated[
    str | float,
    Option(
        "How often a listed person is absent: a rate, 0 to take lists at their word, or auto to "
        "estimate it from the scores.",
        0.0,
    ),
]
SplitSpeakers = Annotated[
    float,
    Option(
        "How often somebody is on two tracks of a conversation, as where a diarizer has split a "
        "voice: a rate, 0 for never.",
        0.0,
    ),
]
Weight = Annotated[
    str,
    Option(
        "How the pairs of a speaker's calls count; auto: as in the paper, unless known "
        "channels ask for another.",
        "auto",
        choices=("auto", "paper", "chain", "book"),
    ),
]
Beta = Annotated[
    float | None,
    Option("Between/within-speaker variance ratio, for --weight book.", None),
]
Known = Annotated[
    TableFile,
    Option(
        "Known channels: conversation,channel,speaker[,probability].", None, file=True, memory=True
    ),
]
Claimed = Annotated[
    TableFile,
    Option("Claims to check: conversation,channel,speaker.", None, file=True, memory=True),
]
Tracks = Annotated[
    TableFile,
    Option(
        "Who speaks when in recordings of one channel: conversation,track,start,end, or RTTM.",
        None,
        file=True,
        memory=True,
    ),
]
Turns = Annotated[
    TableFile,
    Option(
        "Who has the turn when: conversation,speaker,start,end, or transcripts, or a folder.",
        None,
        file=True,
        memory=True,
    ),
]
Cue = Annotated[
    TableFile,
    Option(
        "Other evidence: conversation,log_odds[,name] or conversation,track,speaker,log_odds.",
        None,
        file=True,
        memory=True,
    ),
]
Method = Annotated[
    str, Option("How to solve large cliques; auto chooses.", "auto", choices=methods)
]
BudgetSeconds = Annotated[float, Option("Predicted seconds one clique may cost.", 60.0)]
BudgetGb = Annotated[float, Option("Predicted gigabytes one clique may need.", 4.0)]
Workers = Annotated[
    int | None, Option("Cores to use; all of them by default.", None, least=1, matters=False)
]
Seed = Annotated[int, Option("Seed of all random numbers.", 0, least=0, most=2**128 - 1)]
SafeCsv = Annotated[
    bool,
    Option("Mark names that a spreadsheet would run (=, +, -, @) with an apostrophe.", False),
]
World = Annotated[
    str, Option("What the scores are like.", "gaussian", choices=("gaussian", "plda", "t5"))
]
Eer = Annotated[float, Option("Equal error rate of the scores, in per cent.", 7.0)]

PRESETS = ("default", "paper")
CALIBRATION = "FILE saved by calibrate, or labelfree, or none."


class AssignOptions(TypedDict, total=False):
    calibration: Annotated[
        SavedFile,
        Option(CALIBRATION, NONE, choices=(LABELFREE, NONE), file=True, memory=True),
    ]
    kind: Kind
    sides: Sides
    fallback: Fallback
    wrong_lists: WrongLists
    list_errors: TrustedLists
    split_speakers: SplitSpeakers
    weight: Weight
    beta: Beta
    known: Known
    cue: Cue
    method: Method
    budget_seconds: BudgetSeconds
    budget_gb: BudgetGb
    workers: Workers
    seed: Seed
    safe_csv: SafeCsv


class LinkOptions(TypedDict, total=False):
    recognizer: Annotated[
        str | object, Option("What compares the voices.", "gmm-ubm", choices=recognizers)
    ]
    preset: Annotated[
        str,
        Option(
            "What measured best without labels, or the paper's recipe.", "default", choices=PRESETS
        ),
    ]
    background: Annotated[
        File,
        Option("Folder of speech to train on instead of the calls.", None, file=True),
    ]
    components: Annotated[
        int | None, Option("Gaussians of the mixture (256 or 1024).", None, least=1, most=65536)
    ]
    tracks: Tracks
    turns: Turns
    speakers: Annotated[
        TableFile,
        Option("What is known of people: speaker,sex and so on.", None, file=True, memory=True),
    ]
    attribute: Annotated[
        str | None, Option("Columns of --speakers that voices may tell: sex,region.", None)
    ]
    cue: Cue
    known: Known
    claimed: Claimed
    key: Annotated[
        TableFile, Option("The truth; only to measure the results.", None, file=True, memory=True)
    ]
    on_bad_audio: Annotated[
        str,
        Option("Stop at bad recordings, or do without them.", "fail", choices=("fail", "skip")),
    ]
    min_speech: Annotated[float, Option("Seconds of speech a side needs to be used.", 2.0)]
    all_pairs: Annotated[bool, Option("Write the scores of all side pairs.", False)]
    cache: Annotated[File, Option("Folder of the cache (OUT/cache).", None, file=True)]
    retrain: Annotated[bool, Option("Train anew on the calls as they are now.", False)]
    calibration: Annotated[
        SavedFile,
        Option(CALIBRATION, LABELFREE, choices=(LABELFREE, NONE), file=True, memory=True),
    ]
    kind: Kind
    fallback: Fallback
    wrong_lists: WrongLists
    list_errors: ListErrors
    split_speakers: SplitSpeakers
    link_wccn: Annotated[
        bool,
        Option(
            "Compare voices again as the links teach (default).",
            True,
            flags=("--link-wccn/--no-link-wccn",),
        ),
    ]
    weight: Weight
    beta: Beta
    method: Method
    budget_seconds: BudgetSeconds
    budget_gb: BudgetGb
    workers: Workers
    seed: Seed
    safe_csv: SafeCsv
    report: Annotated[
        bool, Option("Write OUT/report.html too.", True, flags=("--report/--no-report",))
    ]


class CalibrateOptions(TypedDict, total=False):
    key: Annotated[
        TableFile, Option("The truth; without it no label is used.", None, file=True, memory=True)
    ]
    kind: Kind
    sides: Sides
    known: Known
    wrong_lists: WrongLists
    weight: Weight
    beta: Beta
    workers: Workers
    seed: Seed


class DemoOptions(TypedDict, total=False):
    meetings: Annotated[bool, Option("Meetings of three and four people, not calls.", False)]
    preset: Annotated[str, Option("The recognizer's recipe.", "default", choices=PRESETS)]
    seed: Seed


class ReportOptions(TypedDict, total=False):
    key: Annotated[
        TableFile,
        Option("The truth, to measure the results against.", None, file=True, memory=True),
    ]
    claimed: Claimed
    open: Annotated[bool, Option("Show the page in a browser.", False)]
    workers: Workers


class EvaluateOptions(TypedDict, total=False):
    key: Annotated[
        TableFile,
        Option(
            "The truth: conversation,channel,speaker. Without it known channels are hidden "
            "in turn, predicted, and compared.",
            None,
            file=True,
            memory=True,
        ),
    ]
    workers: Workers


class EntropyOptions(TypedDict, total=False):
    conversations: Annotated[
        int | None, Option("Number of two-sided conversations.", None, most=MOST_COUNTED)
    ]
    speakers: Annotated[int | None, Option("Number of speakers.", None, most=2 * MOST_COUNTED)]


class SimulateOptions(TypedDict, total=False):
    shape: Annotated[
        str,
        Option(
            "Who talks to whom.", "cgn", choices=("cgn", "pairs", "star", "network", "meetings")
        ),
    ]
    conversations: Annotated[
        int | None,
        Option("Number of them, else 348 (cgn), 696 (pairs), 100.", None, most=MOST_SIMULATED),
    ]
    people: Annotated[
        int | None, Option("People of all meetings, else 30.", None, least=2, most=MOST_SIMULATED)
    ]
    tracks: Annotated[
        str | None, Option("Tracks a meeting, fewest and most (3-6), or one number.", None)
    ]
    missing: Annotated[float, Option("Share of the people at meetings who are not listed.", 0.0)]
    absent: Annotated[float, Option("Share of names for which one more is listed, not there.", 0.0)]
    placeholders: Annotated[float, Option("Share of the people at meetings listed as ?.", 0.0)]
    split: Annotated[float, Option("Share of the people at meetings who are on two tracks.", 0.0)]
    world: World
    eer: Eer
    seed: Seed
    npz: Annotated[bool, Option("Write scores.npz, not scores.csv.", False)]


class PaperOptions(TypedDict, total=False):
    databases: Annotated[
        int, Option("Simulated databases, one a seed.", 300, least=1, most=MOST_SIMULATED)
    ]
    world: World
    eer: Eer
    seed: Seed


class CheckOptions(TypedDict, total=False):
    tracks: Tracks


class NoOptions(TypedDict, total=False):
    """Of commands that take nothing beside their files: `detect`."""


COMMANDS: dict[str, type] = {
    "assign": AssignOptions,
    "link": LinkOptions,
    "calibrate": CalibrateOptions,
    "detect": NoOptions,
    "demo": DemoOptions,
    "report": ReportOptions,
    "evaluate": EvaluateOptions,
    "entropy": EntropyOptions,
    "simulate": SimulateOptions,
    "paper": PaperOptions,
    "check": CheckOptions,
}
