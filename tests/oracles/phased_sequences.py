"""What outputs tell under matrices that change with the phase: the whole joint table, in fractions.

Nothing is shared with the package: every sequence of true values is written down.
"""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

Rows = Sequence[Sequence[float]]
Weights = Sequence[Sequence[int]]
Joint = dict[tuple[int, ...], Fraction]


def phased_sequences(
    initial: Sequence[Sequence[float]], transitions: Sequence[Rows], phases: Sequence[int]
) -> Joint:
    """Probability of every sequence of values in these phases.

    Args:
        initial: How streams begin, one row a phase.
        transitions: One matrix a phase: row = value before, column = value in that phase.
        phases: That of each value.
    """
    joint: Joint = {}
    for path in itertools.product(range(len(initial[0])), repeat=len(phases)):
        start = [Fraction(float(entry)) for entry in initial[phases[0]]]
        chance = start[path[0]] / sum(start)
        for (before, after), phase in zip(itertools.pairwise(path), phases[1:], strict=True):
            row = [Fraction(float(entry)) for entry in transitions[phase][before]]
            chance *= row[after] / sum(row)
        joint[path] = chance
    return joint


def told_step_by_step(joint: Joint, steps: Sequence[tuple[Weights, int]]) -> list[float]:
    """For each step, max |log a(y|x) / P(y | outputs before)| over all x and y.

    Args:
        joint: Probability of every sequence of values.
        steps: The integer weights of each channel, and the column that left.
    """
    found = []
    for place, (weights, output) in enumerate(steps):
        total = sum(joint.values(), Fraction(0))
        worst = 0.0
        for column in range(len(weights[0])):
            mean = sum(
                (chance * weights[path[place]][column] for path, chance in joint.items()),
                Fraction(0),
            )
            for row in weights:
                ratio = Fraction(row[column]) * total / mean
                worst = max(worst, abs(math.log(ratio.numerator) - math.log(ratio.denominator)))
        found.append(worst)
        joint = {path: chance * weights[path[place]][output] for path, chance in joint.items()}
    return found


def told_in_all(joint: Joint, steps: Sequence[tuple[Weights, int]]) -> float:
    """How much the probability of any one whole sequence changed: max |log P(x|y) / P(x)|."""
    told = {
        path: Fraction(
            math.prod(weights[x][output] for x, (weights, output) in zip(path, steps, strict=True))
        )
        for path in joint
    }
    mean = sum((joint[path] * told[path] for path in joint), Fraction(0))
    gains = [told[path] / mean for path in joint if joint[path]]
    return max(abs(math.log(one.numerator) - math.log(one.denominator)) for one in gains)
