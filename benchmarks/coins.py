"""Keyed coins drawn together by compiled loops, and one by one: `python benchmarks/coins.py`.

Each coin is an HMAC-SHA256 of its address and an AES-256 under what comes out. One by one they are
what libraries for one message and one cipher make of them, with the hash of all that addresses
share begun once. Both draw the same coins in turns; figures are processor time, ratios those of one
turn, so that they can be compared on a machine with other work.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from sfumato.core.keyed_words import Draws, Words, by_loops, one_by_one

KEY = bytes(range(7, 39))
# Domain and plan as a release has them: 14 bytes, and a fingerprint of 64 digits.
SHARED = bytes(86)
CASES = ((8, 8), (64, 64), (200, 200), (2_500, 312), (10_000, 100), (10_000, 10_000))
"""How many coins, of how many streams."""


def draws_of(count: int, streams: int) -> Draws:
    """Coins of streams with names of ten letters."""
    names = [f"user-{number:05d}" for number in range(streams)]
    return Draws(SHARED, names, np.arange(count) % streams, np.arange(count) // streams, 1)


def spent(draw: Callable[[bytes, Draws], Words], draws: Draws, least: float) -> float:
    """Microseconds of processor time a coin; repeated until that can be told."""
    rounds, begun = 0, time.process_time()
    while (used := time.process_time() - begun) < least:
        draw(KEY, draws)
        rounds += 1
    return 1e6 * used / rounds / len(draws)


def main() -> None:
    """Print a table of ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--least", type=float, default=0.2, help="seconds of each measurement")
    asked = parser.parse_args()
    print("| coins | streams | one by one, us | together, us | ratio (range) |")
    print("|---|---|---|---|---|")
    for count, streams in CASES:
        draws = draws_of(count, streams)
        assert (by_loops(KEY, draws) == one_by_one(KEY, draws)).all()
        pairs = [
            (spent(one_by_one, draws, asked.least), spent(by_loops, draws, asked.least))
            for _ in range(asked.turns)
        ]
        ratios = sorted(alone / together for alone, together in pairs)
        alone, together = (statistics.median(side) for side in zip(*pairs, strict=True))
        print(
            f"| {count:,} | {streams:,} | {alone:.2f} | {together:.3f} "
            f"| {statistics.median(ratios):.1f} ({ratios[0]:.1f} to {ratios[-1]:.1f}) |"
        )


if __name__ == "__main__":
    main()
