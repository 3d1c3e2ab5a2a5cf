#!/bin/sh
# The main job on embedded material: a simulated database, linked and measured, in demo-out/.
set -eu
out=demo-out
echo "== a database of the paper's shape: 348 calls, nobody knows who is on which channel"
spklink simulate "$out/database" --shape cgn --world plda --eer 7 --seed 1
echo
echo "== who is on which channel"
spklink assign "$out/database/conversations.csv" --scores "$out/database/scores.csv" -o "$out/results"
echo
head -n 5 "$out/results/assignments.csv"
echo
echo "== how good that is, held against the truth"
spklink evaluate "$out/results" --key "$out/database/key.csv"
