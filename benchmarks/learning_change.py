"""How soon a release that learns notices a change: `python benchmarks/learning_change.py [DRAWS]`.

Bits that stay with .9 leave by randomised response; after 8,000 values of all streams they stay
with another probability. Counted are values of all streams from the change until the version that
says so. All streams are context-free (nobody has moved), or one in 20 of them is (the others have
moved, and scouts alone are looked at): outputs of streams that have moved are looked at by nobody,
so context-free ones stand for them. A release that has noticed nothing after LAST values is counted
as later than that.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import sfumato as sf
from sfumato.stream import model_versions
from sfumato.stream.learning_rules import LearningRules
from sfumato.stream.version_history import VersionHistory

STAY, CHANGED, LAST = 0.9, 8_000, 136_000
EPSILON, FIRST, SCOUTS = 2.0, 1_000, 20
# What a version is worth decides nothing here, and a forecast takes longer than all the rest.
model_versions._WALKS, model_versions._LENGTH, model_versions._NARROW = 1, 1, 1.0


def noticed(later: float, streams: int, ready: float, seed: int) -> float:
    """Values of all streams from the change until it was noticed; infinite if it was not."""
    bit, rng = sf.Alphabet.of_size(2), np.random.default_rng(seed)
    rules = LearningRules(
        bit, sf.PerStep(sf.SIP(EPSILON)), sf.loss.hamming(bit), FIRST, SCOUTS, ready=ready
    )
    history, names = VersionHistory(rules), [f"s{place}" for place in range(streams)]
    values = rng.integers(0, 2, streams)
    while history.count < LAST:
        left = rng.random(streams) < rules.channel[values, 1]
        for name, symbol in zip(names, left.tolist(), strict=True):
            history.add(name, int(symbol))
        stay = STAY if history.count < CHANGED else later
        values = np.where(rng.random(streams) < stay, values, 1 - values)
        alarms = [version.values for version in history.versions() if version.restarts]
        if alarms:
            return alarms[0] - CHANGED
    return np.inf


def main(draws: int) -> None:
    """Print the table of `docs/guides/drift.md`."""
    print("| stay | streams | context-free | median | slowest of so many draws | before it |")
    print("|" + "---|" * 6, flush=True)
    for looked, ready in (("all", 0.999), ("one in 20", 1e-6)):
        for later in (0.8, 0.7, 0.5):
            for streams in (20, 100, 500):
                begun = time.process_time()
                late = np.array(
                    [noticed(later, streams, ready, 100 + draw) for draw in range(draws)]
                )
                spent = time.process_time() - begun
                told = [f"{np.median(late):,.0f}", f"{late.max():,.0f} of {draws}"]
                told.append(f"{int((late <= 0).sum())}")
                print(
                    f"| {STAY:g} to {later:g} | {streams} | {looked} | {' | '.join(told)} |",
                    flush=True,
                )
                print(f"  ({spent:.0f} s of processor time)", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
