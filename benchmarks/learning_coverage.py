"""Whether sets of a release that learns hold the truth: `python benchmarks/learning_coverage.py`.

Streams follow a chain that is known here, leave by randomised response, and are learnt from at
three doubling counts; counted are draws in which some set of the three lacks the chain, and those
in which the last one lacks what has every probability to stay a third off (less, more). Chains are
made up, and one is fitted: to trips between bike stations, the most frequent stations alone and all
others as one. That one needs data (`--data DIR`, or SFUMATO_DATA, as studies do); without them
made-up trips stand in for them, and the row says so.
"""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path

import numpy as np

import sfumato as sf
from sfumato.core.arrays import Floats, Ints
from sfumato.stream import model_versions
from sfumato.stream.learning_rules import LearningRules
from sfumato.stream.model_versions import ContextFree, ModelVersion, next_version
from sfumato.studies.data.sequence_data import BIKES, people_of
from sfumato.studies.study import Setting

# What a version is worth decides nothing here, and a forecast takes longer than all the rest.
model_versions._WALKS, model_versions._LENGTH = 1, 1


def ring(size: int, stay: float) -> sf.MarkovChain:
    """Values that stay, or go to a neighbour."""
    beside = np.roll(np.eye(size), 1, axis=1) + np.roll(np.eye(size), -1, axis=1)
    return sf.MarkovChain.from_matrix(stay * np.eye(size) + (1 - stay) / 2 * beside, floor=1e-4)


def bikes(folder: Path | None, stations: int) -> tuple[str, sf.MarkovChain]:
    """A chain fitted to trips; how it is called."""
    people, _, made_up = people_of(BIKES, Setting(folder))
    trips = [trip for one in people for trip in one]
    often = [name for name, _ in Counter(s for trip in trips for s in trip).most_common(stations)]
    kept = [[station if station in often else "others" for station in trip] for trip in trips]
    name = f"bikes, {stations} stations and others{' (made up)' if made_up else ''}"
    return name, sf.MarkovChain.fit(kept, floor=1e-4)


def drawn(rows: Floats, places: Ints, rng: np.random.Generator) -> Ints:
    """A draw from the row of each place."""
    found = (rng.random((*places.shape, 1)) > rows.cumsum(axis=1)[places]).sum(axis=-1)
    return np.asarray(np.minimum(found, rows.shape[1] - 1))


def versions(
    rules: LearningRules, chain: sf.MarkovChain, shape: tuple[int, int], seed: int
) -> list[ModelVersion]:
    """What is learnt at each count from streams of a chain."""
    rng, values = np.random.default_rng(seed), np.empty(shape, dtype=np.int64)
    first = np.zeros(shape[0], dtype=np.int64)
    values[:, 0] = drawn(chain.initial.ravel()[None], first, rng)
    for moment in range(1, shape[1]):
        values[:, moment] = drawn(chain.transition(), values[:, moment - 1], rng)
    left, found = drawn(rules.channel, values, rng).astype(np.uint8), list[ModelVersion]()
    for part in (4, 2, 1):
        told = {f"s{place}": row[: shape[1] // part].tobytes() for place, row in enumerate(left)}
        found.append(next_version(rules, found, ContextFree(told)))
    return found


def measured(
    name: str, chain: sf.MarkovChain, epsilon: float, shape: tuple[int, int], draws: int
) -> None:
    """Print a row."""
    budget, loss = sf.PerStep(sf.SIP(epsilon)), sf.loss.hamming(chain.alphabet)
    first = shape[0] * (shape[1] // 4)
    rules = LearningRules(chain.alphabet, budget, loss, first=first, ready=0.999)
    own, missed, off, widths = np.diag(chain.transition()), 0, np.zeros(2, dtype=np.int64), []
    for draw in range(draws):
        sets = [version.chains for version in versions(rules, chain, shape, draw)]
        missed += any(chains is None or not chains.contains(chain) for chains in sets)
        last = sets[-1]
        if last is not None:
            widths.append(last.widest)
            off[0] += bool(np.any(0.7 * own < np.diag(last.low)))
            off[1] += bool(np.any(1.3 * own > np.diag(last.high)))
    print(
        f"| {name} | {epsilon:g} | {shape[0] * shape[1]:,} | {np.mean(widths):.3f} | {missed} of "
        f"{draws} | {off[0]} | {off[1]} |",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    asked = argparse.ArgumentParser(description="Coverage of what a release that learns proves.")
    asked.add_argument("--data", default=os.environ.get("SFUMATO_DATA"))
    asked.add_argument("--draws", type=int, default=40)
    given = asked.parse_args()
    folder = None if given.data is None else Path(given.data)
    print("| chain | nats | values | widest interval | missed | a third less out | more out |")
    print("|" + "---|" * 7, flush=True)
    measured("bits, stay .7", ring(2, 0.7), 1.5, (100, 80), given.draws)
    measured("ring of 4, stay .7", ring(4, 0.7), 3.0, (100, 80), given.draws)
    measured("ring of 16, stay .7", ring(16, 0.7), 6.0, (200, 80), max(given.draws // 4, 1))
    for stations, epsilon in ((7, 5.0), (15, 6.0)):
        name, chain = bikes(folder, stations)
        measured(name, chain, epsilon, (400, 80), max(given.draws // 4, 1))


if __name__ == "__main__":
    main()
