"""Options of `compare`."""

from __future__ import annotations

from typing import Annotated, TypedDict

from spklink.options import Option
from spklink.shared_options import (
    BudgetGb,
    BudgetSeconds,
    Cluster,
    EmbeddingKeys,
    File,
    Known,
    ListErrors,
    Method,
    MinSpeech,
    OnBadAudio,
    SafeCsv,
    Seed,
    Sides,
    TableFile,
    Tracks,
    Workers,
)
from spklink.table_options import AudioPattern, Columns, Encoding


class CompareOptions(TypedDict, total=False):
    columns: Columns
    encoding: Encoding
    audio: AudioPattern
    recognizer: Annotated[
        tuple[str, ...],
        Option(
            "A recognizer, or one with a preset (gmm-ubm:paper); again and again.",
            (),
            several=True,
        ),
    ]
    embeddings: Annotated[
        tuple[str, ...],
        Option("A file of vectors of sides, as for link; again and again.", (), several=True),
    ]
    embedding_keys: EmbeddingKeys
    scores: Annotated[
        tuple[str, ...],
        Option("A file of scores between sides, as for link; again and again.", (), several=True),
    ]
    sides: Sides
    tracks: Tracks
    known: Known
    key: Annotated[
        TableFile,
        Option(
            "The truth; without it the runs are held against each other.",
            None,
            file=True,
            memory=True,
        ),
    ]
    background: Annotated[
        File,
        Option("Folder of speech to train on instead of the calls.", None, file=True),
    ]
    on_bad_audio: OnBadAudio
    min_speech: MinSpeech
    cache: Annotated[
        File,
        Option(
            "Folder of the cache that all share (OUT/cache); or s3://bucket/folder.",
            None,
            file=True,
            url=True,
        ),
    ]
    list_errors: ListErrors
    method: Method
    budget_seconds: BudgetSeconds
    budget_gb: BudgetGb
    workers: Workers
    cluster: Cluster
    seed: Seed
    safe_csv: SafeCsv
