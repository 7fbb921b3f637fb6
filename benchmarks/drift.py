"""How often a test for drift is wrong, and how soon it is right: `python benchmarks/drift.py`.

Streams leave by randomised response. False alarms: they follow the model, and the capital of bets
against it is looked at after every block; how often it ever reached 1/alpha. Delay: from a moment
on they follow another chain; values of all streams until the alarm, beside log(1/alpha) / KL, what
nobody can beat by much on average who knew the other chain and the moment (Wald). Cost: processor
time of the whole test a value, and its ratio to one pass of EM over the same outputs.
"""

from __future__ import annotations

import time

import numpy as np

import sfumato as sf
from sfumato.core.arrays import Floats, Ints
from sfumato.models.drift_bets import bettors
from sfumato.models.drift_capital import DriftCapital, drift_capital
from sfumato.models.emissions import Emissions
from sfumato.models.expectation import Guess, expected, value_scores
from sfumato.models.output_blocks import OutputBlocks

ALPHAS = (0.2, 0.1, 0.05, 0.01)
CHANGES = 20
STREAMS, LENGTH, CHANGED = 100, 250, 50


def ring(size: int, stay: float, forward: float = 0.5) -> Floats:
    """Values that stay, or go to a neighbour: forward, or back."""
    there = np.roll(np.eye(size), 1, axis=1)
    moves = stay * np.eye(size) + (1 - stay) * (forward * there + (1 - forward) * there.T)
    return np.asarray(0.99 * moves + 0.01 / size)


def response(size: int, epsilon: float) -> Floats:
    """Randomised response."""
    whole = np.ones((size, size)) + (np.exp(epsilon) - 1) * np.eye(size)
    return np.asarray(whole / (np.exp(epsilon) + size - 1))


def outputs(
    rng: np.random.Generator, before: Floats, after: Floats, channel: Floats, shape: tuple[int, int]
) -> Ints:
    """Outputs of streams, a row each, that follow another chain from moment `CHANGED` on."""
    streams, length = shape
    value, found = rng.integers(len(channel), size=streams), np.empty(shape, dtype=np.int64)
    for moment in range(length):
        sums = (before if moment < CHANGED else after).cumsum(axis=1)[value]
        if moment:
            value = np.minimum((rng.random((streams, 1)) > sums).sum(axis=1), len(channel) - 1)
        shown = channel.cumsum(axis=1)[value]
        found[:, moment] = (rng.random((streams, 1)) > shown).sum(axis=1)
    return np.minimum(found, len(channel) - 1)


def told(left: Ints, channel: Floats) -> Emissions:
    """What outputs of one channel told."""
    size, places = len(channel), np.arange(0, left.size + 1, left.shape[1])
    ones = np.ones(left.size, dtype=np.int64)
    return Emissions(size, places, size * left.ravel(), ones, channel.T.copy().ravel())


def tested(left: Ints, model: sf.MarkovChain, channel: Floats, block: int) -> DriftCapital:
    """The test, all streams side by side."""
    emissions = told(left, channel)
    blocks = OutputBlocks.of(emissions, np.tile(np.arange(left.shape[1]), len(left)), block)
    scores = blocks.summed(value_scores(_guess(model.transition()), emissions))
    bets = bettors(blocks, model)
    return drift_capital(scores, bets, ALPHAS[-1], np.zeros_like(scores))


def _guess(moves: Floats) -> Guess:
    return Guess(np.full(len(moves), 1 / len(moves)), np.array(moves))


def false_alarms(name: str, moves: Floats, epsilon: float, runs: int) -> None:
    """How often a right model is ever accused."""
    rng, channel = np.random.default_rng(7), response(len(moves), epsilon)
    model = sf.MarkovChain.from_matrix(moves)
    best = []
    for _ in range(runs):
        left = outputs(rng, moves, moves, channel, (20, 100))
        best.append(float(tested(left, model, channel, 50).log_capital.max()))
    shares = [float((np.array(best) >= -np.log(alpha)).mean()) for alpha in ALPHAS]
    print(
        f"| {name} | {epsilon:g} | {runs:,} | "
        + " | ".join(f"{share:.4f}" for share in shares)
        + " |"
    )


def delays(name: str, before: Floats, after: Floats, epsilon: float) -> None:
    """How soon a change is noticed."""
    rng, channel = np.random.default_rng(8), response(len(before), epsilon)
    model = sf.MarkovChain.from_matrix(before)
    many = told(outputs(rng, after, after, channel, (400, 400)), channel)
    gap = value_scores(_guess(after), many) - value_scores(_guess(before), many)
    found = []
    for _ in range(CHANGES):
        left = outputs(rng, before, after, channel, (STREAMS, LENGTH))
        at = tested(left, model, channel, 100).alarm
        found.append(np.inf if at is None else 100 * (at + 1) - STREAMS * CHANGED)
    late = np.array(found)
    print(
        f"| {name} | {epsilon:g} | {gap.mean():.4f} | {np.log(100) / gap.mean():,.0f} "
        f"| {np.median(late):,.0f} | {np.quantile(late, 0.9, method='higher'):,.0f} "
        f"| {(late <= 0).mean():.2f} | {np.isinf(late).mean():.2f} |"
    )


def costs(name: str, moves: Floats) -> None:
    """Processor time a value, and beside one pass of EM."""
    rng, channel = np.random.default_rng(9), response(len(moves), 1.0)
    model = sf.MarkovChain.from_matrix(moves)
    left = outputs(rng, moves, moves, channel, (STREAMS, LENGTH))
    emissions = told(left, channel)
    spent = np.full((4, 2), np.inf)
    for turn in range(4):
        for place in range(2):
            begun = time.process_time()
            if place:
                expected(_guess(moves), emissions)
            else:
                tested(left, model, channel, 100)
            spent[turn, place] = time.process_time() - begun
    whole, once = spent[1:].min(axis=0)
    print(f"| {name} | {1e9 * whole / left.size:,.0f} | {whole / once:.0f} |")


def main() -> None:
    """Print the tables of `docs/guides/drift.md`."""
    print("| chain | nats | runs | " + " | ".join(f"ever over 1/{a:g}" for a in ALPHAS) + " |")
    false_alarms("2 values, stay .9", ring(2, 0.9), 1.0, 2_000)
    false_alarms("ring of 4, stay .8", ring(4, 0.8), 1.0, 2_000)
    false_alarms("ring of 8, stay .5", ring(8, 0.5), 2.0, 400)
    print("| change | nats | KL | Wald | median | 9 of 10 | before it | never |")
    for stay in (0.95, 0.8, 0.7, 0.5):
        delays(f"2 values, stay .9 to {stay:g}", ring(2, 0.9), ring(2, stay), 1.0)
    for stay in (0.9, 0.5):
        delays(f"ring of 4, stay .8 to {stay:g}", ring(4, 0.8), ring(4, stay), 1.0)
    delays("ring of 16, stay .5 to .3", ring(16, 0.5), ring(16, 0.3), 2.0)
    turned = ring(8, 0.6, 0.9)
    delays("ring of 8, forward .5 to .9", ring(8, 0.6), turned, 2.0)
    print("| chain | ns a value | beside a pass of EM |")
    costs("2 values", ring(2, 0.9))
    costs("ring of 4", ring(4, 0.8))
    costs("ring of 16", ring(16, 0.5))


if __name__ == "__main__":
    main()
