"""From a table of calls, and nobody's name, to who is one person: levels I to III of the paper."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from spklink.cache import cache_folder, damage_note
from spklink.calibration.choice import LABELFREE, NONE
from spklink.calibration.curves import Saved
from spklink.cluster import check_address, joined
from spklink.database.conversations import Conversations, read_conversations
from spklink.database.side_names import listed_speakers, read_known_pairs, read_without_lists
from spklink.database.sides import pairs_within
from spklink.errors import SpklinkError, check_folder
from spklink.hands import Hands, Here
from spklink.options import described, resolved
from spklink.partitions.beliefs import NO_BELIEFS, of_graph
from spklink.partitions.graph import link_graph, put_back
from spklink.partitions.items import Ints, make_items, make_problem
from spklink.partitions.prior import PartitionPrior, read_prior
from spklink.partitions.solve import How, solve_partition
from spklink.posterior.likelihood import Weight
from spklink.posterior.posterior import Options
from spklink.recognizers.table import make_recognizer
from spklink.recognizers.training import Trained
from spklink.runs.inputs import Inputs, Passing, read_inputs, reading
from spklink.runs.partition_result import Partition
from spklink.runs.partition_voices import (
    DENSE_SIDES,
    Calibrated,
    calibrate_matrix,
    given_matrix,
    neighbour_graph,
    voice_matrix,
)
from spklink.runs.sources import Source, as_passing, given_embeddings, listened
from spklink.runs.stages import Stages
from spklink.settings import PartitionOptions
from spklink.tables import Table, read_table
from spklink.threads import cores

Floats = NDArray[np.float64]
# Measured on real calls (examples/partitions.py): with the paper's 2/n blocks fall apart.
BETA = 0.1
LARGEST_BLOCK = 1000  # sides up to which the weight of a block is tabulated; beyond it goes as 1/n


@described(PartitionOptions)
def partition(
    table: Table,
    out: str | PathLike[str] | None = None,
    *,
    stages: Stages | None = None,
    **options: Unpack[PartitionOptions],
) -> Partition:
    """Find which sides are one person, where nobody is listed.

    `table` is a file, a DataFrame or rows, with or without participants; `scores` and `embeddings`
    whatever `link` takes. With `out` everything is also written to that folder, and what was heard
    is kept there.
    """
    asked, stages = resolved(PartitionOptions, options), stages or Stages()
    folder = None if out is None else check_folder(out)
    check_address(asked["cluster"])
    plan = Plan.of(asked)
    with stages.stage("reading the table"):
        case = _read(table, asked, plan)
    here = Here(cores(asked["workers"]))
    with (
        cache_folder(asked["cache"], folder) as cache,
        joined(asked["cluster"], cache, here, stages.say) as cluster,
    ):
        how = Options(seed=asked["seed"], workers=here.count, cluster=cluster)
        found = _found(case, plan, cache, asked, stages, how)
    if folder is not None:
        found.save(folder)
    return found


@dataclass(frozen=True)
class Plan:
    """What the options ask for, checked before any listening."""

    weight: Weight
    prior: PartitionPrior
    calibration: Saved

    @classmethod
    def of(cls, asked: PartitionOptions) -> Plan:
        rule, beta = asked["weight"], asked["beta"]
        weight = Weight("book", BETA if beta is None else beta) if rule == "book" else Weight(rule)
        if rule == "paper" and beta is not None:
            raise SpklinkError("--beta belongs to --weight book")
        if asked["scores"] is not None and asked["embeddings"] is not None:
            raise SpklinkError("--embeddings and --scores: give one of the two")
        if not 0.0 <= asked["floor"] <= 1.0:
            raise SpklinkError(f"--floor {asked['floor']:g} is not a probability")
        if asked["level"] == 1 and asked["speakers"] is not None:
            raise SpklinkError("--level 1 knows no number of speakers; use --level 2 or 3")
        if asked["method"] == "exact" and asked["linkage"] != "gain":
            raise SpklinkError("--linkage is about linking; --method exact links nothing")
        source: Any = asked["calibration"]
        if source is None:
            source = NONE if asked["scores"] is not None else LABELFREE
        if isinstance(source, str | PathLike) and source not in (LABELFREE, NONE):
            source = read_table(source)  # read once: what is used is what is hashed
        return cls(weight, read_prior(asked["prior"]), source)


@dataclass(frozen=True)
class _Case:
    inputs: Inputs
    conversations: Conversations
    speakers: int | None
    together: Ints  # of sides
    apart: Ints
    notes: list[str]


def _read(table: Table, asked: PartitionOptions, plan: Plan) -> _Case:
    tables = {"conversations": table, "pairs": asked["pairs"], "sides": asked["sides"]}
    tables |= {"embedding_keys": asked["embedding_keys"], "tracks": asked["tracks"]}
    files = {} if isinstance(plan.calibration, str) else {"calibration_1": plan.calibration}
    inputs = read_inputs(tables, files, how=reading(asked))
    content, tracks = inputs.table("conversations"), inputs.table("tracks")
    people = read_without_lists(content, tracks)
    known = inputs.table("pairs")
    nothing = np.zeros((0, 2), np.int64)
    together, apart = (nothing, nothing) if known is None else read_known_pairs(known, people)
    if asked["level"] == 3:
        apart = np.concatenate([pairs_within(people.sides), apart])
    speakers, notes = asked["speakers"], inputs.said()
    if asked["level"] == 2 and speakers is None:
        try:
            speakers = listed_speakers(read_conversations(content, tracks))
        except SpklinkError as error:
            raise SpklinkError(
                f"--level 2 needs --speakers N, or lists that tell: {error}"
            ) from None
        notes.append(f"{speakers} speakers, as the lists of the table name; else nothing of them")
    return _Case(inputs, people, speakers, together, apart, notes)


def _source(
    case: _Case, cache: Path, asked: PartitionOptions, stages: Stages, how: Options
) -> Source:
    """Recordings that are listened to, or given vectors."""
    like_link: Any = asked  # the options of listening are those of `link`
    if asked["embeddings"] is not None:
        return given_embeddings(case.conversations, case.inputs, how, cache, like_link, stages)
    name = asked["recognizer"]
    own = {"preset": asked["preset"], "components": asked["components"], "speech": asked["speech"]}
    recognizer: Any = make_recognizer(name, **own) if isinstance(name, str) else name
    return listened(case.conversations, recognizer, how, cache, like_link, stages)


def _found(
    case: _Case,
    plan: Plan,
    cache: Path,
    asked: PartitionOptions,
    stages: Stages,
    how: Options,
) -> Partition:
    table = case.conversations
    if asked["scores"] is None:
        source = _source(case, cache, asked, stages, how)
        return _of_voices(case, plan, source, asked, stages, how.hands)
    given = as_passing(asked["scores"])
    with stages.stage("reading the scores"):
        used = np.arange(len(table.sides))
        scores = given_matrix(given, table, within=asked["level"] < 3)
    inputs = case.inputs
    if isinstance(given, Passing):
        inputs = inputs.with_files({"scores": given})
    blank = _blank(case, plan, used, inputs, asked, stages)
    return _dense(blank, scores, plan, asked, stages)


def _of_voices(
    case: _Case,
    plan: Plan,
    source: Source,
    asked: PartitionOptions,
    stages: Stages,
    hands: Hands,
) -> Partition:
    sound, trained = source.sound, source.trained
    if trained is None:
        raise SpklinkError("no side of any recording could be used: there is nothing to partition")
    used = np.flatnonzero(sound.usable)
    notes = [source.note, damage_note(sound.store.damaged)]
    blank = _blank(case, plan, used, case.inputs.with_files(source.files), asked, stages)
    blank = replace(blank, sound=sound, recognizer=source.about())
    if len(used) > DENSE_SIDES:
        found = _sparse(blank, trained, plan, asked, stages, hands)
    else:
        with stages.stage("comparing voices"):
            scores, note = voice_matrix(trained, case.conversations, sound.usable)
        found = _dense(blank, scores[np.ix_(used, used)], plan, asked, stages)
        notes.append(note)
    return replace(found, notes=[*found.notes, *filter(None, notes)])


def _blank(
    case: _Case, plan: Plan, used: Ints, inputs: Inputs, asked: PartitionOptions, stages: Stages
) -> Partition:
    """A result without an answer yet."""
    place = np.full(len(case.conversations.sides), -1)
    place[used] = np.arange(len(used))
    known = [place[pairs][(place[pairs] >= 0).all(axis=1)] for pairs in (case.apart, case.together)]
    return Partition(
        options=asked,
        inputs=inputs,
        conversations=case.conversations,
        used=used,
        beliefs=NO_BELIEFS,
        weight=plan.weight,
        prior=plan.prior,
        speakers=case.speakers,
        apart=known[0],
        together=known[1],
        notes=list(case.notes),
        stages=stages,
    )


def _dense(
    blank: Partition, scores: Floats, plan: Plan, asked: PartitionOptions, stages: Stages
) -> Partition:
    """With all pairs at hand."""
    with stages.stage("calibrating"):
        filled = np.where(np.isnan(scores), 0.0, scores)  # within calls, where no score is needed
        apart = blank.apart if len(blank.apart) and asked["level"] == 3 else None
        calibrated = calibrate_matrix(filled, apart, plan.weight, plan.calibration)
        found = _with_calibration(blank, calibrated, plan)
        llr = calibrated.calibration(filled)
        llr = np.where(np.isnan(scores) | np.eye(len(llr), dtype=bool), 0.0, llr)
        found = replace(found, llr=llr, scores=scores if found.calibration else None)
    with stages.stage("partitioning"):
        beliefs = solve_partition(found.problem(), _how(found, asked), stages.progress)
    return replace(found, beliefs=beliefs)


def _sparse(
    blank: Partition,
    trained: Trained,
    plan: Plan,
    asked: PartitionOptions,
    stages: Stages,
    hands: Hands,
) -> Partition:
    """With the pairs that matter."""
    if asked["method"] not in ("auto", "agglomerative"):
        raise SpklinkError(
            f"{len(blank.used)} sides are too many for --method {asked['method']} (at most "
            f"{DENSE_SIDES}); use --method agglomerative"
        )
    if len(blank.together):
        raise SpklinkError(f"--pairs that must be one person need at most {DENSE_SIDES} sides")
    few = make_problem(make_items(np.zeros((LARGEST_BLOCK,) * 2)), plan.weight, plan.prior)
    tables = few.pair_weight, few.block_prior
    rows = replace(trained, vectors=trained.vectors[trained.row[blank.used]])
    how = _how(blank, asked)
    with stages.stage("looking for pairs that matter"):
        graph, calibrated = neighbour_graph(
            rows,
            blank.apart,
            tables,
            plan.calibration,
            hands=hands,
            seed=how.seed,
            tell=stages.progress,
        )
    with stages.stage("partitioning"):
        label = link_graph(
            graph, *tables, how.linkage, threshold=how.threshold, speakers=how.speakers
        )
        own, pair = put_back(graph, label, *tables)
        beliefs = of_graph(label, own, graph.one, graph.two, pair, how.floor, linkage=how.linkage)
    return replace(_with_calibration(blank, calibrated, plan), beliefs=beliefs)


def _with_calibration(blank: Partition, found: Calibrated, plan: Plan) -> Partition:
    notes = [*blank.notes, *filter(None, [found.note])]
    if plan.calibration == NONE:
        return replace(blank, notes=notes)
    return replace(blank, calibration=found.as_json(plan.weight), notes=notes)


def _how(found: Partition, asked: PartitionOptions) -> How:
    return How(
        method=asked["method"],
        linkage=asked["linkage"],
        threshold=asked["threshold"],
        speakers=found.speakers,
        floor=asked["floor"],
        sweeps=asked["sweeps"],
        seed=asked["seed"],
        threads=cores(asked["workers"]),
    )
