"""Options that several commands share; module `settings` says which has which."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Annotated, Any

from spklink.options import Option


def methods() -> tuple[str, ...]:
    from spklink.posterior.inference.table import names

    return names()


def kinds() -> tuple[str, ...]:
    from spklink.calibration.table import KINDS

    return tuple(KINDS)


def recognizers() -> tuple[str, ...]:
    from spklink.recognizers.table import RECOGNIZERS

    return tuple(RECOGNIZERS)


PRESETS = ("default", "paper")
File = str | PathLike[str] | None
SavedFile = str | PathLike[str] | Mapping[str, Any]  # a calibration, or what `calibrate` returned
TableFile = Any  # a file, and in the library also a DataFrame or rows

Recognizer = Annotated[
    str | object,
    Option(
        "What compares the voices: gmm-ubm, or a speaker network (model.onnx).",
        "gmm-ubm",
        choices=recognizers,
        file=True,
        ending=".onnx",
    ),
]
Preset = Annotated[
    str,
    Option("What measured best without labels, or the paper's recipe.", "default", choices=PRESETS),
]
Speech = Annotated[
    str,
    Option(
        "What tells speech from pauses: energy, or a network (Silero's .onnx).",
        "energy",
        choices=("energy",),
        file=True,
    ),
]
Background = Annotated[
    File,
    Option("Folder of speech to train on instead of the calls.", None, file=True),
]
Components = Annotated[
    int | None, Option("Gaussians of the mixture (256 or 1024).", None, least=1, most=65536)
]
Cache = Annotated[
    File,
    Option("Folder of the cache (OUT/cache); or s3://bucket/folder.", None, file=True, url=True),
]
Retrain = Annotated[
    bool, Option("Learn everything anew from the calls as they are now.", False, matters=False)
]
Report = Annotated[
    bool, Option("Write OUT/report.html too.", True, flags=("--report/--no-report",))
]
Kind = Annotated[
    str | None, Option("Form of the calibration; lr is a plain line.", None, choices=kinds)
]
Sides = Annotated[
    TableFile,
    Option("Seconds of speech: conversation,channel,speech_seconds.", None, file=True, memory=True),
]
Embeddings = Annotated[
    TableFile,
    Option(
        "Vectors of sides instead of listening: .npz, .csv, .parquet, Kaldi .ark or .scp.",
        None,
        file=True,
        memory=True,
    ),
]
EmbeddingKeys = Annotated[
    TableFile,
    Option(
        "What the keys of these vectors mean, where they are not conversation-channel: "
        "key,conversation,channel.",
        None,
        file=True,
        memory=True,
    ),
]
GivenScores = Annotated[
    TableFile,
    Option(
        "Scores of sides of any recognizer instead of listening, .csv, .npz or .parquet.",
        None,
        file=True,
        memory=True,
    ),
]
NAME, KEEP = "name", "keep"
Enrol = Annotated[
    TableFile,
    Option(
        "People whose voices are known from elsewhere: speaker,audio[,channel], or a results "
        "folder.",
        None,
        file=True,
        memory=True,
    ),
]
Unlisted = Annotated[
    str,
    Option(
        "Whom no list names (?, *, an empty list): name them after people whose voices are known, "
        "or keep them unknown.",
        NAME,
        choices=(NAME, KEEP),
    ),
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
OnBadAudio = Annotated[
    str,
    Option("Stop at bad recordings, or do without them.", "fail", choices=("fail", "skip")),
]
MinSpeech = Annotated[float, Option("Seconds of speech a side needs to be used.", 2.0)]
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
Speakers = Annotated[
    TableFile,
    Option("What is known of people: speaker,sex and so on.", None, file=True, memory=True),
]
Attributes = Annotated[
    str | None, Option("Columns of --speakers that voices may tell: sex,region.", None)
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
BudgetGb = Annotated[
    float,
    Option(
        "Gigabytes that the whole run may hold, helper processes among them, mapped files of the "
        "cache not. What cannot be held is kept on disk, work side by side becomes less, and what "
        "needs more is refused before it begins. One clique may take half of what is beyond the "
        "libraries. Never more than the machine has.",
        4.0,
    ),
]
ORDERS = ("fewest", "paper", "uncertain", "random")
Order = Annotated[
    str,
    Option(
        "What to listen to first: what needs the fewest listens, the paper's order, the least "
        "certain, or any.",
        "fewest",
        choices=ORDERS,
    ),
]
OpenPage = Annotated[bool, Option("Show the page in a browser.", False)]
Port = Annotated[int, Option("Port on this machine; 0 is any that is free.", 0, least=0)]
Blind = Annotated[
    bool,
    Option(
        "Hide what the system thinks until the person has decided, and count how often the two "
        "agree.",
        False,
    ),
]
Reviewer = Annotated[
    str | None, Option("Who decides; else the name this computer knows you by.", None)
]
Workers = Annotated[
    int | None, Option("Cores to use; all of them by default.", None, least=1, matters=False)
]
Cluster = Annotated[
    str | None,
    Option(
        "Work on several machines: local:N (workers on this one), or where the scheduler of a "
        "Dask cluster is, tcp://HOST:8786 or tls://HOST:8786.",
        None,
        matters=False,
    ),
]
Seed = Annotated[int, Option("Seed of all random numbers.", 0, least=0, most=2**128 - 1)]
SafeCsv = Annotated[
    bool,
    Option("Mark names that a spreadsheet would run (=, +, -, @) with an apostrophe.", False),
]
Tables = Annotated[
    str,
    Option(
        "The tables of results as CSV, as Parquet (typed, a fifth of the size), or both.",
        "csv",
        choices=("csv", "parquet", "both"),
    ),
]
World = Annotated[
    str, Option("What the scores are like.", "gaussian", choices=("gaussian", "plda", "t5"))
]
Eer = Annotated[float, Option("Equal error rate of the scores, in per cent.", 7.0)]
Verbal = Annotated[
    str | None,
    Option(
        "Say in words, too, how strong evidence is: the scale of ENFSI (2015).",
        None,
        choices=("enfsi",),
    ),
]
TruthIfKnown = Annotated[
    TableFile, Option("The truth, to measure the results against.", None, file=True, memory=True)
]
