"""How soon a release that learns notices a change: `python benchmarks/learning_change.py [DRAWS]`.

Bits that stay with .9 leave by randomised response; after 8,000 values of all streams they stay
with another probability. Counted are values of all streams from the change until the version that
says so: at a look, of which there are four between a version and the next (the first ones 2,000
values apart). Nobody has moved, so that all outputs tell; or all but scouts have, one stream in 20,
and only theirs do. Outputs of streams that moved are looked at by nobody: context-free ones stand
for them. What is not noticed LAST values after the change counts as later than that.
"""

from __future__ import annotations

import sys

import numpy as np

import sfumato as sf
from sfumato.stream import model_versions
from sfumato.stream.learning_rules import LearningRules
from sfumato.stream.version_history import VersionHistory

STAY, CHANGED, LAST = 0.9, 8_000, 128_000
EPSILON, FIRST, SCOUTS = 2.0, 1_000, 20
# What a version is worth decides only whether streams move, and that is given here.
model_versions._WALKS, model_versions._LENGTH, model_versions._NARROW = 1, 4, 1.0


def noticed(later: float, streams: int, ready: float, seed: int) -> float:
    """Values of all streams from the change until it was noticed; infinite if it was not."""
    bit, rng = sf.Alphabet.of_size(2), np.random.default_rng(seed)
    rules = LearningRules(
        bit, sf.PerStep(sf.SIP(EPSILON)), sf.loss.hamming(bit), FIRST, SCOUTS, ready=ready
    )
    history, names = VersionHistory(rules), [f"s{place}" for place in range(streams)]
    values = rng.integers(0, 2, streams)
    while history.count < CHANGED + LAST:
        left = rng.random(streams) < rules.channel[values, 1]
        for name, symbol in zip(names, left.tolist(), strict=True):
            history.add(name, int(symbol))
        stay = STAY if history.count < CHANGED else later
        values = np.where(rng.random(streams) < stay, values, 1 - values)
        if history.restarts:
            found = next(version for version in history.versions() if version.restarts)
            return found.values - CHANGED
        assert history.count != CHANGED or moving(history) == (ready < 0.5)
    return np.inf


def moving(history: VersionHistory) -> bool:
    """Whether streams have moved."""
    return history.versions()[-1].moves


def told(values: float) -> str:
    """A number of values, for people."""
    return f"{values:,.0f}" if np.isfinite(values) else f"over {LAST:,}"


def main(draws: int) -> None:
    """Print the table of `docs/guides/drift.md`."""
    print(f"| stay | streams | look at | median | slowest of {draws} | before it came |")
    print("|" + "---|" * 6, flush=True)
    for who, ready, changes in (
        ("all", 0.999, (0.8, 0.7, 0.5, 0.3)),
        ("one in 20", 1e-6, (0.7, 0.5, 0.3)),
    ):
        for later in changes:
            for streams in (100, 400, 1_000):
                late = np.array([noticed(later, streams, ready, seed) for seed in range(draws)])
                cells = [told(float(np.median(late))), told(float(late.max()))]
                cells.append(f"{int((late <= 0).sum())}")
                row = f"| {STAY:g} to {later:g} | {streams:,} | {who} | {' | '.join(cells)} |"
                print(row, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
