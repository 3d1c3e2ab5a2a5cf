"""Scores of several runs, measured on two halves of the speakers: choose on one, report the other.

    python examples/halves.py conversations.csv key.csv OUT [OUT …]

Each OUT was written by `spklink link … --all-pairs`. Speakers in order of their names go into the
two halves in turn; a pair of sides counts in a half where both speakers are of that half.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from spklink.cli.show import number, percent, table
from spklink.database.conversations import read_conversations
from spklink.database.labels import read_key
from spklink.database.links import find_links
from spklink.database.sides import speakers_on
from spklink.measures.detection import measure
from spklink.scores.files import read_all_scores


def scores_of(out: Path, conversations) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both sides and the score of every pair."""
    parts = []
    links = find_links(conversations)
    read_all_scores(out / "scores.npz", conversations, links, lambda *some: parts.append(some))
    one, two, score = (np.concatenate(list(part)) for part in zip(*parts, strict=True))
    return one, two, score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path)
    parser.add_argument("key", type=Path)
    parser.add_argument("out", type=Path, nargs="+")
    given = parser.parse_args()
    conversations = read_conversations(given.table)
    people = speakers_on(conversations, read_key(given.key, conversations).bits)
    half = np.argsort(np.argsort(conversations.speakers))[people] % 2
    rows = []
    for out in given.out:
        one, two, score = scores_of(out, conversations)
        same, row = people[one] == people[two], [out.name]
        for k in (0, 1):
            here = (half[one] == k) & (half[two] == k)
            found = measure(score[here & same], score[here & ~same])
            row += [percent(found.eer, 2), number(found.min_cllr, 4)]
        rows.append(row)
    columns = ["run", "EER, first half", "least Cllr", "EER, second half", "least Cllr"]
    table(columns, rows, title="All pairs of sides")


if __name__ == "__main__":
    main()
