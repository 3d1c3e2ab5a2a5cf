"""The values that the paper prints in its three tables, and what is to be said about them.

Table 1 is arithmetic and must agree with ours (`table_1`). Tables 2 and 3 were measured on the CGN
corpus: they are a layout and an anchor, and the differences are explained, not removed.
"""

from __future__ import annotations

from spklink.measures.entropy import Level, levels

CONVERSATIONS, SPEAKERS = 348, 356  # of the corpus
# (level, exact) → bits and confusion as printed; the paper prints II exact and III approximate.
PRINTED_TABLE_1 = {
    ("I", True): (4163.2, 3991.0),
    ("II", True): (3292.7, 704.0),
    ("III", False): (3291.3, 702.0),
    ("IV", True): (348.0, 1.0),
}
# Conversations a clique → cliques, bits a conversation, confusion, clique errors in per cent.
PRINTED_TABLE_2: dict[int | None, tuple[int, float, float, float | None]] = {
    1: (8, 1.0, 1.0, None),
    2: (61, 0.205, 0.153, 3.3),
    3: (13, 0.201, 0.150, 7.7),
    4: (26, 0.032, 0.023, 7.7),
    5: (9, 0.041, 0.029, 22.0),
    6: (5, 0.019, 0.013, 20.0),
    None: (110, 0.078, 0.056, 7.0),  # all resolvable
}
# Conversations a clique → bits before and after, best factor on the scores.
PRINTED_TABLE_3 = {
    2: (0.082, 0.071, 1.48),
    3: (0.201, 0.177, 0.65),
    4: (0.032, 0.029, 1.42),
    5: (0.041, 0.040, 0.77),
    6: (0.019, 0.018, 0.79),
    None: (0.078, 0.076, 1.17),
}
REMARKS = (
    "Table 1: the printed 4163.2 is a rounding slip for 4163.144. The paper prints level II "
    "exactly and level III by its approximation; the exact level III is given beside it.",
    "Table 2: 'all resolvable' is the mean over 110 cliques, each counting once. The printed error "
    "rate of 7.0 % is 8 wrong cliques of 114, which counts the 4 unresolvable pairs; over the 110 "
    "resolvable cliques 8 errors are 7.3 %.",
    "Table 2, two conversations: .205 bits over 61 cliques against .082 over the 57 resolvable "
    "ones implies 1.96 bits a conversation on the four unresolvable pairs, where .5 is attainable: "
    "some were confidently mis-linked. Simulation gives about .12 for this row.",
    "Table 2, larger cliques: the printed errors of 7.7 to 22 % are not what a recognizer with 7 % "
    "equal error rate does in these cliques (see the simulated column); voices of one family or "
    "label errors would explain them.",
    "Table 3: with 5 to 57 cliques a row the best factor is itself uncertain; simulated from "
    "calibrated scores it should be near 1, and its spread shows how far chance takes it. With the "
    "weight 2/n it lies above 1 in large cliques: the average is under-confident there.",
)


def table_1() -> list[tuple[Level, tuple[float, float] | None]]:
    """Every level beside the printed bits and confusion, where the paper prints it."""
    rows = levels(CONVERSATIONS, SPEAKERS)
    return [(row, PRINTED_TABLE_1.get((row.level, row.exact))) for row in rows]
