"""Every option of spklink, described once: the command line and the library are made from this.

A class lists the options of one command in the order in which they are shown; its fields are
the keyword arguments of the library function of that name. `resolved` checks them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypedDict

from spklink.compare_options import CompareOptions as CompareOptions
from spklink.options import REQUIRED as REQUIRED
from spklink.options import Option
from spklink.options import command_words as command_words
from spklink.options import described as described
from spklink.options import described_as as described_as
from spklink.options import options_json as options_json
from spklink.options import options_of as options_of
from spklink.options import resolved as resolved
from spklink.partition_options import PartitionOptions as PartitionOptions
from spklink.review_options import DecisionsOptions, QueueOptions
from spklink.shared_options import (
    PRESETS,
    Attributes,
    Background,
    Beta,
    Blind,
    BudgetGb,
    BudgetSeconds,
    Cache,
    Claimed,
    Cluster,
    Components,
    Cue,
    EmbeddingKeys,
    Embeddings,
    Enrol,
    Fallback,
    GivenScores,
    Kind,
    Known,
    ListErrors,
    Method,
    MinSpeech,
    OnBadAudio,
    OpenPage,
    Order,
    Port,
    Preset,
    Recognizer,
    Report,
    Retrain,
    Reviewer,
    SafeCsv,
    SavedFile,
    Seed,
    Sides,
    Speakers,
    Speech,
    SplitSpeakers,
    TableFile,
    Tables,
    Tracks,
    TrustedLists,
    TruthIfKnown,
    Turns,
    Unlisted,
    Verbal,
    Weight,
    Workers,
    WrongLists,
)
from spklink.shared_options import File as File
from spklink.table_options import (
    AudioPattern,
    CheckOptions,
    Columns,
    DetectOptions,
    Encoding,
    InitOptions,
)
from spklink.world_options import EntropyOptions, PaperOptions, SimulateOptions

LABELFREE, NONE = "labelfree", "none"


def export_formats() -> tuple[str, ...]:
    from spklink.formats.out.table import names

    return names()


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
Model = Annotated[
    Path | None, Option("A speaker network to try.", None, file=True, argument="[MODEL.onnx]")
]
Results = Annotated[
    Path, Option("Folder written by link, assign or partition.", file=True, argument="OUT")
]
Shell = Annotated[
    str, Option("Which shell.", choices=("bash", "zsh", "fish", "powershell"), argument="SHELL")
]
To = Annotated[str, Option("The format.", choices=export_formats)]
Linked = Annotated[Path, Option("Folder written by link or assign.", file=True, argument="OUT")]
ExportOut = Annotated[Path, Option("A new folder for the files.", file=True, flags=("--out", "-o"))]
Simulation = Annotated[Path, Option("Folder for the files.", file=True, argument="OUTDIR")]
Scores = Annotated[Path, Option("Scores between sides, .csv, .npz or .parquet.", file=True)]
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
WatchedSource = Annotated[
    Path,
    Option(
        "Table of conversations that grows, or folder into which recordings come.",
        file=True,
        argument="TABLE_OR_FOLDER",
    ),
]
Every = Annotated[float, Option("Look for something new so often, in seconds.", 10.0, least=0.1)]
Rest = Annotated[
    float,
    Option("A file is whole when nobody has written to it for so many seconds.", 3.0, least=0.0),
]
Once = Annotated[bool, Option("Link what is there and end: for cron.", False)]
Json = Annotated[bool, Option("Print JSON for machines.", False, flags=("--json",))]

BACK_ENDS = ("auto", "cosine", "wccn", "plda")
CALIBRATION = "FILE saved by calibrate, or labelfree, or none."


class AssignOptions(TypedDict, total=False):
    columns: Columns
    encoding: Encoding
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
    tables: Tables
    safe_csv: SafeCsv


class LinkOptions(TypedDict, total=False):
    columns: Columns
    encoding: Encoding
    audio: AudioPattern
    recognizer: Recognizer
    preset: Preset
    speech: Speech
    background: Background
    components: Components
    embeddings: Embeddings
    embedding_keys: EmbeddingKeys
    scores: GivenScores
    sides: Sides
    tracks: Tracks
    turns: Turns
    speakers: Speakers
    attribute: Attributes
    cue: Cue
    enrol: Enrol
    unlisted: Unlisted
    known: Known
    claimed: Claimed
    key: Annotated[
        TableFile, Option("The truth; only to measure the results.", None, file=True, memory=True)
    ]
    on_bad_audio: OnBadAudio
    min_speech: MinSpeech
    all_pairs: Annotated[bool, Option("Write the scores of all side pairs.", False)]
    cache: Cache
    retrain: Retrain
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
    back_end: Annotated[
        str,
        Option(
            "How voices are compared again: not at all (cosine), divided by how one person's "
            "recordings differ (wccn), or also by how people differ (plda); auto: what measured "
            "best with this recognizer.",
            "auto",
            choices=BACK_ENDS,
        ),
    ]
    weight: Weight
    beta: Beta
    method: Method
    budget_seconds: BudgetSeconds
    budget_gb: BudgetGb
    workers: Workers
    cluster: Cluster
    seed: Seed
    tables: Tables
    safe_csv: SafeCsv
    report: Report


class CalibrateOptions(TypedDict, total=False):
    columns: Columns
    encoding: Encoding
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


class ExportOptions(TypedDict, total=False):
    only: Annotated[
        str,
        Option(
            "What is settled, or all that has a name, with its probability.",
            "settled",
            choices=("settled", "all"),
        ),
    ]
    segments: Annotated[
        TableFile,
        Tables,
        Option(
            "Who speaks when instead of OUT/segments.csv: conversation,channel,start,end.",
            None,
            file=True,
            memory=True,
        ),
    ]
    join: Annotated[
        float, Option("Join segments with a pause of fewer seconds between them.", 0.0, least=0.0)
    ]
    shortest: Annotated[
        float, Option("Leave out segments of fewer seconds (after joining).", 0.0, least=0.0)
    ]


class ReportOptions(TypedDict, total=False):
    columns: Columns
    encoding: Encoding
    key: TruthIfKnown
    claimed: Claimed
    verbal: Verbal
    open: OpenPage
    workers: Workers


class ReviewOptions(TypedDict, total=False):
    port: Port
    blind: Blind
    reviewer: Reviewer
    order: Order
    open: OpenPage
    workers: Workers


class EvaluateOptions(TypedDict, total=False):
    columns: Columns
    encoding: Encoding
    key: Annotated[
        TableFile,
        Tables,
        Option(
            "The truth: conversation,channel,speaker. Without it known channels are hidden "
            "in turn, predicted, and compared.",
            None,
            file=True,
            memory=True,
        ),
    ]
    workers: Workers


class NoOptions(TypedDict, total=False):
    """Of commands that take nothing beside what must be given."""


COMMANDS: dict[str, type] = {
    "init": InitOptions,
    "assign": AssignOptions,
    "link": LinkOptions,
    "watch": LinkOptions,
    "partition": PartitionOptions,
    "compare": CompareOptions,
    "calibrate": CalibrateOptions,
    "detect": DetectOptions,
    "recognizers": NoOptions,
    "demo": DemoOptions,
    "export": ExportOptions,
    "report": ReportOptions,
    "review": ReviewOptions,
    "queue": QueueOptions,
    "decisions": DecisionsOptions,
    "evaluate": EvaluateOptions,
    "entropy": EntropyOptions,
    "simulate": SimulateOptions,
    "paper": PaperOptions,
    "check": CheckOptions,
    "completion": NoOptions,
}
