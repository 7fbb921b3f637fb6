"""What a release that starts from nothing loses: `python benchmarks/learning_release.py`.

Streams leave by randomised response, versions are learnt at doubling counts, and streams move when
the rules say so. What is measured is the loss after the last version, of values whose truth is
drawn from the chain: of streams that moved (for every chain that is left), of scouts, of all; and
of releases that knew the chain, step-wise at the same cap on each value and far-sighted. The
context-free outputs are drawn at once by numpy: same channel, same law.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from chains import Case, binary
from learning import drawn

import sfumato as sf
from sfumato.core.arrays import Ints
from sfumato.stream.history_paths import draw_paths
from sfumato.stream.learning_rules import LearningRules
from sfumato.stream.model_versions import ContextFree, ModelVersion, next_version
from sfumato.stream.plan import Plan
from sfumato.stream.simulated_stream import as_simulation, simulated

LIVE, LENGTH, EPSILON = 40, 25, 1.0


def lost(plan: Plan, walks: Sequence[Sequence[int]], seed: int) -> float:
    """Mean loss of a value given its truth: only outputs that lead to later beliefs are drawn."""
    rule, coins, total = as_simulation(plan), sf.seeded(seed), 0.0
    priced = sf.loss.hamming(plan.model.alphabet).matrix
    for place, walk in enumerate(walks):
        for step in simulated(rule, f"s{place}", walk, coins):
            assert step.found is not None
            channel, (value,) = step.found.design.channel, step.places
            left = step.found.patterns[list(channel.outputs), 0]
            total += float((channel.probabilities[value] * priced[value, left]).sum())
    return total / sum(map(len, walks))


def outputs(rules: LearningRules, truth: Ints, seed: int) -> Ints:
    """Context-free outputs, a row a stream."""
    rng, sums = np.random.default_rng(seed), rules.channel.cumsum(axis=1)
    left = (rng.random(truth.shape)[..., None] > sums[truth]).sum(axis=2)
    return np.asarray(np.minimum(left, len(rules.channel) - 1).astype(np.uint8))


def learnt(rules: LearningRules, left: Ints) -> list[ModelVersion]:
    """Versions until streams move, or there are no more values."""
    versions: list[ModelVersion] = []
    names = [f"s{place}" for place in range(len(left))]
    while rules.cut(len(versions) + 1) <= left.size:
        moments = rules.cut(len(versions) + 1) // len(left)
        told = {name: row[:moments].tobytes() for name, row in zip(names, left, strict=True)}
        versions.append(next_version(rules, versions, ContextFree(told)))
        if versions[-1].moves:
            break
    return versions


def measured(case: Case, streams: int, length: int, ready: float, draws: int) -> None:
    """Print a row: means over draws, and their standard errors."""
    epsilon = EPSILON
    chain, found = case.chain, []
    alphabet, budget = chain.alphabet, sf.PerStep(sf.SIP(epsilon))
    priced = sf.loss.hamming(alphabet)
    rules = LearningRules(alphabet, budget, priced, first=streams * length, ready=ready)
    for draw in range(draws):
        truth = drawn(chain, streams, length, 100 + draw)
        version = learnt(rules, outputs(rules, truth, 200 + draw))[-1]
        walks = draw_paths(chain, LENGTH, LIVE, 300 + draw)
        free = float((rules.channel * priced.matrix).sum(axis=1).mean())
        moved, width = free, 1.0
        if version.chains is not None:
            width = version.chains.widest
        if version.moves and version.chains is not None:
            moved = lost(rules.plan(version.chains), walks, draw)
        known = lost(Plan(chain, budget, priced), walks, draw)
        whole = moved + (free - moved) / rules.scouts
        inside = version.chains is not None and version.chains.contains(chain)
        found.append((width, float(version.moves), moved, whole, known, whole / known - 1, inside))
    table = np.array(found, dtype=np.float64)
    mean, error = table.mean(axis=0), table.std(axis=0, ddof=1) / np.sqrt(draws)
    cells = [f"{mean[0]:.3f}", f"{int(table[:, 1].sum())}/{draws}"]
    cells += [f"{mean[place]:.4f} +- {error[place]:.4f}" for place in (2, 3, 4)]
    cells += [f"{mean[5]:+.1%} +- {error[5]:.1%}", f"{int(table[:, 6].sum())}/{draws}"]
    told = " | ".join(cells)
    print(f"| {case.name} | {streams:,} | {length} | {ready:g} | {told} |", flush=True)


def main(draws: int) -> None:
    """Print the table."""
    print(
        "| chain | streams | values each | ready | widest interval | moved | wrong, moved | "
        "wrong, all | wrong, known step-wise | more | truth in the set |"
    )
    print("|" + "---|" * 11, flush=True)
    for streams, length, ready in (
        (1_000, 80, 0.5),
        (5_000, 20, 0.5),
        (5_000, 80, 0.5),
        (20_000, 80, 0.5),
        (75_000, 80, 0.9),
        (160_000, 80, 0.9),
    ):
        measured(binary(), streams, length, ready, draws)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
