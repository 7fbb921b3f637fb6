"""The whole joint table of true and released sequences, by brute force. Slow and obvious."""

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath

Symbols = tuple[int, ...]
Rows = Sequence[Sequence[float]]
Policy = Callable[[Symbols], tuple[Rows, Sequence[int]]]
"""From the outputs so far to a channel: its rows, and the symbol that each column releases."""

DIGITS = 60


@dataclass(frozen=True)
class JointTable:
    """Probability of every (true sequence, released sequence)."""

    size: int
    length: int
    joint: Mapping[tuple[Symbols, Symbols], float]

    def inputs(self) -> dict[Symbols, float]:
        return _summed((x, p) for (x, _), p in self.joint.items())

    def outputs(self) -> dict[Symbols, float]:
        return _summed((y, p) for (_, y), p in self.joint.items())


def input_probabilities(
    size: int,
    length: int,
    initial: Mapping[Symbols, float],
    transition: Mapping[Symbols, Sequence[float]],
) -> dict[Symbols, float]:
    """Probability of each true sequence of a chain whose order is the length of a context."""
    order = len(next(iter(initial)))
    probabilities = {}
    for path in itertools.product(range(size), repeat=max(length, order)):
        p = initial[path[:order]]
        for t in range(order, length):
            p *= transition[path[t - order : t]][path[t]]
        probabilities[path] = p
    return _summed((path[:length], p) for path, p in probabilities.items())


def joint_table(
    size: int,
    length: int,
    initial: Mapping[Symbols, float],
    transition: Mapping[Symbols, Sequence[float]],
    policy: Policy,
) -> JointTable:
    """Write down everything that can happen in `length` steps."""
    joint: dict[tuple[Symbols, Symbols], float] = {}

    def extend(x: Symbols, y: Symbols, p: float) -> None:
        if len(y) == length:
            joint[x, y] = p
            return
        rows, symbols = policy(y)
        for column, symbol in enumerate(symbols):
            extend(x, (*y, symbol), p * rows[x[len(y)]][column])

    for x, p in input_probabilities(size, length, initial, transition).items():
        extend(x, (), p)
    return JointTable(size, length, joint)


def beliefs(table: JointTable) -> dict[Symbols, list[float]]:
    """For every possible y_1..y_{t-1}: the distribution of x_t."""
    found: dict[Symbols, list[float]] = {}
    for t in range(table.length):
        mass: dict[Symbols, list[float]] = defaultdict(lambda: [0.0] * table.size)
        for (x, y), p in table.joint.items():
            mass[y[:t]][x[t]] += p
        found |= {y: [p / sum(row) for p in row] for y, row in mass.items() if sum(row) > 0}
    return found


def leakage_by_output(table: JointTable) -> dict[Symbols, float]:
    """For every output sequence: the largest |log P(x|y)/P(x)| over all true sequences."""
    told, true = table.outputs(), table.inputs()
    worst: dict[Symbols, float] = defaultdict(float)
    for (x, y), p in table.joint.items():
        if told[y] > 0 and true[x] > 0:
            gain = abs(math.log(p / told[y] / true[x])) if p > 0 else math.inf
            worst[y] = max(worst[y], gain)
    return worst


def sequence_leakage(table: JointTable) -> float:
    """[SIP, Def. 1] over all true and all released sequences."""
    return max(leakage_by_output(table).values())


def mutual_information(table: JointTable) -> float:
    """[SIP, Def. 6] in nats."""
    told, true = table.outputs(), table.inputs()
    return sum(p * math.log(p / told[y] / true[x]) for (x, y), p in table.joint.items() if p > 0)


def local_leakage(table: JointTable) -> float:
    """[SIP, Def. 4] over all pairs of true sequences."""
    true = table.inputs()
    given: dict[Symbols, list[float]] = defaultdict(list)
    for (x, y), p in table.joint.items():
        if true[x] > 0:
            given[y].append(p / true[x])
    return max(_log_quotient(likelihoods) for likelihoods in given.values())


def pufferfish_leakage(table: JointTable) -> float:
    """[SIP, Def. 5] with the secrets "the value at time t is i"."""
    worst = 0.0
    for t in range(table.length):
        mass = _summed((x[t], p) for x, p in table.inputs().items())
        joint = _summed(((x[t], y), p) for (x, y), p in table.joint.items())
        for y in table.outputs():
            given = [joint[i, y] / mass[i] for i in mass if mass[i] > 0]
            worst = max(worst, _log_quotient(given))
    return worst


def exact_leakage(weights: Sequence[Sequence[int]], belief: Sequence[Any]) -> Any:
    """max |log a(y|x)/P(y)| of integer weights under a belief, to 60 digits.

    The belief may be made of floats, fractions or mpmath numbers and need not be normalised.
    """
    with mpmath.workdps(DIGITS):
        shares = [_exact(b) for b in belief]
        worst = mpmath.mpf(0)
        for column in zip(*weights, strict=True):
            whole = [mpmath.mpf(int(w)) for w in column]
            mean = sum(b * w for b, w in zip(shares, whole, strict=True)) / sum(shares)
            for w in whole:
                worst = max(worst, abs(mpmath.log(w / mean)) if w > 0 else mpmath.inf)
        return worst


def exact_local_leakage(weights: Sequence[Sequence[int]]) -> Any:
    """max log a(y|x)/a(y|x') of integer weights, to 60 digits."""
    with mpmath.workdps(DIGITS):
        worst = mpmath.mpf(0)
        for column in zip(*weights, strict=True):
            if min(column) == 0:
                return mpmath.inf
            worst = max(worst, mpmath.log(mpmath.mpf(int(max(column))) / int(min(column))))
        return worst


def exact_step(
    belief: Mapping[Symbols, Any],
    transition: Mapping[Symbols, Sequence[Any]],
    likelihood: Sequence[Any] | None = None,
) -> dict[Symbols, Any]:
    """One step of a chain of order m on the joint of m values, the last one current.

    Condition on an output (if any) and predict; everything in 60 digits, normalised.
    """
    with mpmath.workdps(DIGITS):
        following: dict[Symbols, Any] = defaultdict(lambda: mpmath.mpf(0))
        for context, p in belief.items():
            told = mpmath.mpf(1) if likelihood is None else _exact(likelihood[context[-1]])
            for value, move in enumerate(transition[context]):
                following[(*context[1:], value)] += p * told * _exact(move)
        total = sum(following.values())
        return {context: p / total for context, p in following.items()}


def exact_marginal(belief: Mapping[Symbols, Any], size: int) -> list[Any]:
    """Distribution of the current, that is the last, value."""
    with mpmath.workdps(DIGITS):
        return [sum(p for context, p in belief.items() if context[-1] == i) for i in range(size)]


def _exact(number: Any) -> Any:
    if isinstance(number, Fraction):
        return mpmath.mpf(number.numerator) / number.denominator
    return number if isinstance(number, mpmath.mpf) else mpmath.mpf(number)


def _summed(pairs: Any) -> dict[Any, float]:
    total: dict[Any, float] = defaultdict(float)
    for key, p in pairs:
        total[key] += p
    return dict(total)


def _log_quotient(numbers: Sequence[float]) -> float:
    return math.log(max(numbers) / min(numbers)) if min(numbers) > 0 else math.inf
