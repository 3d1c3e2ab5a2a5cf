"""A small database with a vector a side, for tests of what somebody else computed."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Voices:
    """Calls between people of several towns, who call only each other; who is on which side; and
    vectors."""

    table: list[dict[str, str]]
    key: list[dict[str, str]]
    conversation: list[str]  # (S,)
    channel: list[int]
    vectors: np.ndarray  # (S, d) float32
    seconds: np.ndarray

    def arrays(self, **more):
        names = np.array(self.conversation)
        found = {"conversation": names, "channel": np.array(self.channel)}
        return found | {"embedding": self.vectors} | more

    def write(self, folder: Path) -> Path:
        """conversations.csv, key.csv, vectors.npz."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in (("conversations", self.table), ("key", self.key)):
            with (folder / f"{name}.csv").open("w", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)
        np.savez(folder / "vectors.npz", **self.arrays(seconds=self.seconds))
        return folder


def make_voices(*, towns=20, people=4, calls=6, width=24, noise=0.35, seed=0) -> Voices:
    """`calls` calls in every town between two of its `people`; ids have all the marks of keys."""
    rng = np.random.default_rng(seed)
    table, key, conversation, channel, vectors = [], [], [], [], []
    for town in range(towns):
        own = rng.standard_normal((people, width))
        for k in range(calls):
            a, b = rng.choice(people, 2, replace=False)
            name = f"call_{town:02d}-{k}"
            listed = [f"t{town}p{a}", f"t{town}p{b}"]
            table.append({"conversation": name, "participants": ";".join(listed)})
            on = [a, b] if rng.random() < 0.5 else [b, a]
            for track, who in enumerate(on, start=1):
                conversation.append(name)
                channel.append(track)
                vectors.append(own[who] + noise * rng.standard_normal(width))
                key.append(
                    {"conversation": name, "channel": str(track), "speaker": f"t{town}p{who}"}
                )
    made = 3.0 + np.array(vectors)
    seconds = rng.uniform(5.0, 60.0, len(made)).round(2)
    return Voices(table, key, conversation, channel, made.astype(np.float32), seconds)
