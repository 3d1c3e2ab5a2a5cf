"""Options of `partition`: who is who when no list says who takes part."""

from __future__ import annotations

from typing import Annotated, TypedDict

from spklink.options import Option
from spklink.shared_options import (
    Background,
    Beta,
    Cache,
    Cluster,
    Components,
    EmbeddingKeys,
    Embeddings,
    GivenScores,
    MinSpeech,
    OnBadAudio,
    Preset,
    Recognizer,
    Report,
    Retrain,
    SafeCsv,
    SavedFile,
    Seed,
    Sides,
    Speech,
    TableFile,
    Tables,
    Tracks,
    Workers,
)
from spklink.table_options import AudioPattern, Columns, Encoding

METHODS = ("auto", "exact", "agglomerative", "sample")
LINKAGES = ("gain", "average", "complete", "single")


class PartitionOptions(TypedDict, total=False):
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
    level: Annotated[
        int,
        Option(
            "What is known: 1 nothing, 2 the number of speakers, 3 that the sides of a call are "
            "different people (and the number, where --speakers gives it).",
            3,
            least=1,
            most=3,
        ),
    ]
    speakers: Annotated[
        int | None,
        Option("How many speakers there are in all; else level 2 counts the lists.", None, least=1),
    ]
    pairs: Annotated[
        TableFile,
        Tables,
        Option(
            "Known pairs: conversation_1,channel_1,conversation_2,channel_2,same (yes or no).",
            None,
            file=True,
            memory=True,
        ),
    ]
    method: Annotated[
        str,
        Option(
            "All partitions (exact), chains (sample) or linking alone (agglomerative); auto: the "
            "first that can be afforded.",
            "auto",
            choices=METHODS,
        ),
    ]
    linkage: Annotated[
        str,
        Option(
            "What linking goes by: what the likelihood gains, or the average, least or greatest "
            "log-likelihood-ratio.",
            "gain",
            choices=LINKAGES,
        ),
    ]
    threshold: Annotated[float, Option("Where linking stops.", 0.0)]
    prior: Annotated[
        str,
        Option("Before listening: uniform, crp:ALPHA or pitman-yor:ALPHA,D.", "uniform"),
    ]
    weight: Annotated[
        str,
        Option(
            "How the pairs of a speaker's sides count: book with --beta 0.1, or as in the paper.",
            "book",
            choices=("book", "paper"),
        ),
    ]
    beta: Beta
    calibration: Annotated[
        SavedFile | None,
        Option(
            "FILE saved by calibrate or partition, or labelfree, or none (none where scores are "
            "given, else labelfree).",
            None,
            choices=("labelfree", "none"),
            file=True,
            memory=True,
        ),
    ]
    floor: Annotated[float, Option("Pairs less probable are left out of pairs.csv.", 0.01)]
    sweeps: Annotated[int, Option("Rounds of every chain.", 1000, least=8, most=10**7)]
    on_bad_audio: OnBadAudio
    min_speech: MinSpeech
    cache: Cache
    retrain: Retrain
    workers: Workers
    cluster: Cluster
    seed: Seed
    tables: Tables
    safe_csv: SafeCsv
    report: Report
