"""What outputs tell somebody with a chain of his own: the whole joint table, in rational numbers.

Nothing is shared with the package: every sequence of true values is written down.
"""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

from tests.oracles import phased_sequences as phased

Rows = Sequence[Sequence[float]]
Weights = Sequence[Sequence[int]]


def told_step_by_step(
    initial: Sequence[float], transition: Rows, steps: Sequence[tuple[Weights, int]]
) -> list[float]:
    """For each step, max |log a(y|x) / P(y | outputs before)| over all x and y.

    Args:
        initial: Of the adversary's chain.
        transition: Of the adversary's chain.
        steps: The integer weights of each channel, and the column that left.
    """
    return phased.told_step_by_step(_sequences(initial, transition, len(steps)), steps)


def largest_gain(
    initial: Sequence[float], transition: Rows, steps: Sequence[tuple[Weights, int]]
) -> float:
    """How much the probability of any one whole sequence changed: max |log P(x|y) / P(x)|."""
    joint = _sequences(initial, transition, len(steps))
    told = {
        path: math.prod(
            weights[x][output] for x, (weights, output) in zip(path, steps, strict=True)
        )
        for path in joint
    }
    whole = sum(joint.values())
    mean = sum((joint[path] * told[path] for path in joint), Fraction(0)) / whole
    gains = [Fraction(told[path]) / mean for path in joint if joint[path]]
    return max(abs(math.log(one.numerator) - math.log(one.denominator)) for one in gains)


def _sequences(
    initial: Sequence[float], transition: Rows, length: int
) -> dict[tuple[int, ...], Fraction]:
    joint = {}
    for path in itertools.product(range(len(initial)), repeat=length):
        chance = Fraction(float(initial[path[0]]))
        for before, after in itertools.pairwise(path):
            row = [Fraction(float(entry)) for entry in transition[before]]
            chance *= row[after] / sum(row)
        joint[path] = chance
    return joint
