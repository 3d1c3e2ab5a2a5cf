"""Words: what the page calls things, and what these and the paper's words mean.

The page ends with the glossary; docs/report.md has the same one, and a test holds the two together.
"""

from __future__ import annotations

# Of decisions in assignments.csv and of the colours of pictures.
DECISION_WORDS = {
    "settled": "sure",
    "likely": "open",
    "leaning": "open",
    "open": "open",
    "unresolvable": "no voice can tell",
    "misfit": "list doubtful",
    "unusable": "not usable",
}

# Headings and names in tables whose own words are those of report.json.
HEADINGS = {
    "conversations a clique": "conversations a group",
    "clique": "group",
    "cliques": "groups",
    "unresolvable cliques": "groups no voice can tell",
    "expected wrong cliques": "expected wrong groups",
    "settled": "sure",
    "settled at 99 %": "sure",
    "known non-targets": "known different people",
    "expected targets": "expected same person",
    "expected non-targets": "expected different people",
    "non-targets by the key": "different people by the key",
    "targets by the key": "same person by the key",
    "targets": "same person",
    "non-targets": "different people",
    "targets above": "same person above",
    "non-targets above": "different people above",
    "sides used": "channels used",
    "sides not used": "channels not used",
    "tracks": "channels",
    "resolvable": "voices can tell",
    "unresolvable": "no voice can tell",
    "misfit": "list doubtful",
    "unusable": "not usable",
    "speakers": "people",
    "so": "true",
    "errors at .5": "errors at 50 %",
}

# Of calibration.json, of `evaluate`: what a value is.
NAMES = {
    "scale": "log-likelihood-ratio a unit of score",
    "offset": "log-likelihood-ratio at score 0",
    "scale_speech": "the first, by speech",
    "offset_speech": "the second, by speech",
    "speech_low": "speech from (log of seconds by 10)",
    "speech_high": "speech to (log of seconds by 10)",
    "floor": "floor of the log-likelihood-ratio",
    "kind": "kind",
    "source": "learned",
    "weight": "weight of a person's pairs",
    "beta": "variance between people by that within",
    "rounds": "rounds",
    "converged": "came to rest",
    "starts": "starts",
    "starts_agree": "all starts came to one end",
    "expected_targets": "expected comparisons of one person",
    "non_targets": "comparisons of different people",
    "implied_clique_errors": "wrong groups that probabilities imply, 95 %",
    "marginals conversations": "conversations that voices can tell",
    "marginals wrong": "of these wrong",
    "marginals expected_wrong": "of these expected wrong",
    "marginals brier": "Brier score",
    "marginals log_score_bits": "log score, bits",
    "labelfree": "without labels",
    "supervised": "with known answers",
}

GLOSSARY = {
    "calibrated": "Of 100 answers that are said to be right with 90 %, about 90 are.",
    "channel": "One voice of a recording: a channel, or what a diarization says one voice spoke. "
    "Also called a track, and a side where it is one of two.",
    "claim": "What somebody says about who is on which channel. It never counts as evidence.",
    "clique": "The paper's word for a group.",
    "contradiction": "What voices speak against: a list, a known channel, a name. In the files: "
    "misfit.",
    "confusion (F)": "Wrong answers a conversation that are still in the running: 2 to the power "
    "of the bits a conversation, minus 1.",
    "configuration": "One way in which all people of a group can be on the channels.",
    "bit": "What one yes-or-no question tells. A call of two people on two channels is one bit.",
    "cross entropy": "Bits by which the truth surprises whoever believes the probabilities.",
    "doubt about other conversations and channels": "Evidence compares a voice with other "
    "conversations. Where it is not sure who is where in those, or on the other channels of this "
    "one, it counts for less, or for more, and this is by how much.",
    "EER": "Equal error rate: the share of comparisons that go wrong at the threshold where as "
    "many pairs of one person are missed as pairs of different people are accepted.",
    "Cllr": "Cost of log-likelihood-ratios, in bits: 0 for a perfect recognizer, 1 for one that "
    "says nothing.",
    "ELUB": "Empirical lower and upper bound: the likelihood ratios beyond which the comparisons "
    "at hand could not have shown that they mislead. Nothing stronger is stated.",
    "evidence": "What speaks for one thing rather than another, as a likelihood ratio.",
    "group": "Conversations that hang together through people they share. In the paper: clique.",
    "known beforehand": "Somebody knew who is on the channel (known.csv).",
    "likelihood ratio": "How many times as probable the evidence is if one thing is so as if the "
    "other is. 1 says nothing.",
    "log10": "The power of ten: +2 is a hundred times for, −2 a hundred times against. Powers of "
    "independent pieces of evidence are added.",
    "no voice can tell": "The same people are in all conversations of the group, so exchanging "
    "them everywhere changes nothing. One known channel settles it. In the files: unresolvable.",
    "odds": "The probability that something is so divided by the probability that it is not.",
    "open": "Not sure: listen, or live with the probability.",
    "probability": "How sure the answer is, all evidence taken together. It is written with one "
    "digit and never as certainty: over 99.9 % is the most that is said.",
    "reliability": "Whether answers are right as often as their probabilities say.",
    "sure": "99 % or more, at the low end where there is an interval. In the files: settled.",
    "target": "A comparison of one person with himself; a non-target is one of two people.",
}
