"""Releasers, honest ones and others, whose outputs all are possible ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import sfumato as sf
from sfumato.core.arrays import Floats, Ints
from sfumato.stream.audit_checks import CheckedBatch
from sfumato.stream.audit_report import AuditReport
from sfumato.stream.coin_test import FairCoins
from sfumato.stream.true_values import Truth

Cheat = Callable[[Floats, Floats, int, np.random.Generator], int]
"""From the fair probabilities of outputs, their losses and an honest draw to what leaves."""
LENGTH = 64
"""Values of a stream; then the next one begins."""


def honest(fair: Floats, losses: Floats, drawn: int, rng: np.random.Generator) -> int:
    """What was drawn leaves."""
    return drawn


def nearest(fair: Floats, losses: Floats, drawn: int, rng: np.random.Generator) -> int:
    """The nearest possible output: the truth whenever the channel can give it."""
    possible = np.flatnonzero(fair > 0)
    return int(possible[np.argmin(losses[possible])])


def nearer_of_two(fair: Floats, losses: Floats, drawn: int, rng: np.random.Generator) -> int:
    """A second draw, if it is nearer."""
    other = int(rng.choice(fair.size, p=fair))
    return min(drawn, other, key=lambda output: float(losses[output]))


def likeliest(fair: Floats, losses: Floats, drawn: int, rng: np.random.Generator) -> int:
    """The likeliest output."""
    return int(np.argmax(fair))


def farthest(fair: Floats, losses: Floats, drawn: int, rng: np.random.Generator) -> int:
    """Never near: that tells where somebody is, too."""
    possible = np.flatnonzero(fair > 0)
    return int(possible[np.argmax(losses[possible])])


def chain(size: int, stay: float) -> sf.MarkovChain:
    """People who stay where they are with a probability, and else go anywhere."""
    matrix = np.full((size, size), (1 - stay) / (size - 1))
    np.fill_diagonal(matrix, stay)
    return sf.MarkovChain.from_matrix(matrix)


def plan(size: int = 4, stay: float = 0.7, epsilon: float = 0.8, **fields: object) -> sf.Plan:
    """The rule that all of them say they follow."""
    model = chain(size, stay)
    loss = sf.loss.absolute(model.alphabet)
    return sf.Plan(model, sf.PerStep(sf.SIP(epsilon)), loss, **fields)  # type: ignore[arg-type]


def places(model: sf.MarkovChain, rows: int, rng: np.random.Generator) -> Ints:
    """Where somebody is."""
    transition = model.transition()
    found, here = np.empty(rows, dtype=np.int64), int(rng.integers(model.size))
    for row in range(rows):
        here = found[row] = int(rng.choice(model.size, p=transition[here]))
    return found


def coins_of(
    rule: sf.Plan,
    cheat: Cheat,
    share: float,
    rows: int,
    rng: np.random.Generator,
    level: float = 1e-4,
    only: Callable[[int, int], bool] = lambda row, place: True,
) -> tuple[FairCoins, AuditReport]:
    """What the test of coins says of a releaser that cheats in a share of the rows.

    Args:
        rule: What it says that it does.
        cheat: What it does instead.
        share: In what part of the rows it would.
        rows: How many there are.
        rng: Its coins.
        level: How often an honest one may be accused.
        only: Of which rows and true places it cheats at all.
    """
    assert isinstance(rule.model, sf.MarkovChain)
    labels, loss = rule.model.alphabet.labels, rule.value_loss
    assert loss is not None
    report = AuditReport()
    test = FairCoins(rule, report, level)
    for row, place in enumerate(places(rule.model, rows, rng).tolist()):
        if row % LENGTH == 0:
            state = rule.begin(f"stream {row // LENGTH}")
        found = rule.prepare(state, 1)
        assert found is not None
        channel = found.design.channel
        symbols = found.patterns[channel.outputs][:, 0]
        fair, losses = channel.probabilities[place], loss.rows([place])[0][symbols]
        output = int(rng.choice(fair.size, p=fair))
        if rng.random() < share and only(row, place):
            output = cheat(fair, losses, output, rng)
        signal = None if rule.sight is None else int(channel.outputs[output])
        seen = rule.observed(state, [labels[symbols[output]]], signal=signal)
        test.see(CheckedBatch.of(state, seen, [Truth(labels[place])], [row + 1]))
        state = seen.following
    test.finish(report)
    return test, report
