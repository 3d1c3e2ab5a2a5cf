"""Numbers in sentences."""

from __future__ import annotations


def counted(number: int, noun: str, *, thousands: str = ",") -> str:
    """1 call, 2 calls, 12,345 calls; `thousands` is what stands between groups of digits."""
    return f"{number:{thousands}} {noun}{'' if number == 1 else 's'}"
