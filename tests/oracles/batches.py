"""Batched releases by brute force: every sequence is written down, in fractions. Slow and obvious.

A `Process` holds the numbers of a chain as the fractions that they are; `chain_of` hands the same
numbers to the package, and is the only thing here that knows it.
"""

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import mpmath
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sfumato import Alphabet, MarkovChain
from sfumato.stream import Belief

Symbols = tuple[int, ...]
Floats = NDArray[np.float64]
Distance = Callable[[Symbols, Symbols], float]

_PARTS = 1 << 20


@dataclass(frozen=True)
class Process:
    """A chain: the joint of its first values, and for each context known row and background."""

    size: int
    order: int
    initial: Mapping[Symbols, Fraction]
    known: Mapping[Symbols, Sequence[Fraction]]
    backoff: Mapping[Symbols, Fraction]
    background: Sequence[Fraction]

    def move(self, context: Symbols, value: int) -> Fraction:
        weight = self.backoff[context]
        return (1 - weight) * self.known[context][value] + weight * self.background[value]

    def chances(self, length: int) -> dict[Symbols, Fraction]:
        """Probability of every sequence of a length, whatever the order."""
        total: dict[Symbols, Fraction] = defaultdict(Fraction)
        for path in itertools.product(range(self.size), repeat=max(length, self.order)):
            chance = self.initial[path[: self.order]]
            for t in range(self.order, length):
                chance *= self.move(path[t - self.order : t], path[t])
            total[path[:length]] += chance
        return dict(total)

    def starting(self, joint: Floats) -> "Process":
        """The same chain from another joint of its first values."""
        paths = itertools.product(range(self.size), repeat=self.order)
        return replace(self, initial={path: Fraction(float(joint[path])) for path in paths})


def random_process(
    size: int, order: int, rng: np.random.Generator, *, sticky: float = 0.0, holes: bool = False
) -> Process:
    """Numbers that floats hold exactly; `holes` leaves some known transitions out."""
    contexts = list(itertools.product(range(size), repeat=order))
    known = {}
    for context in contexts:
        row = rng.dirichlet(np.ones(size))
        if holes:
            row[rng.integers(size)] = 0.0
        row = row / row.sum() + sticky * np.eye(size)[context[-1]]
        known[context] = shares(row / row.sum())
    backoff = {c: Fraction(float(rng.uniform(0.02, 0.2))) for c in contexts}
    initial = dict(zip(contexts, shares(rng.dirichlet(np.full(len(contexts), 2.0))), strict=True))
    return Process(size, order, initial, known, backoff, shares(rng.dirichlet(np.full(size, 3.0))))


def setting(
    size: int, order: int, axis: int, seed: int, rng: np.random.Generator | None = None
) -> tuple[Process, Belief]:
    """A chain, with holes for odd seeds, and a belief with drift 0: it is what it says."""
    rng = np.random.default_rng(seed) if rng is None else rng
    process = random_process(size, order, rng, sticky=float(seed % 3), holes=seed % 2 == 1)
    joint = np.array([float(p) for p in shares(rng.dirichlet(np.full(size**order, 1.5)))])
    belief = Belief(joint.reshape((size,) * order), axis)
    return process.starting(belief.joint), belief


def shares(row: Sequence[float] | Floats) -> list[Fraction]:
    """Fractions with a power of two below that sum to 1; what is 0 stays 0."""
    whole = [max(1, int(part * _PARTS)) if part > 0 else 0 for part in row]
    whole[int(np.argmax(whole))] += _PARTS - sum(whole)
    return [Fraction(part, _PARTS) for part in whole]


def chain_of(
    process: Process, *, thin: bool = False, alphabet: Alphabet | None = None
) -> MarkovChain:
    """The same numbers in the package's form."""
    contexts = list(itertools.product(range(process.size), repeat=process.order))
    known = np.array([[float(p) for p in process.known[c]] for c in contexts])
    initial = np.array([float(process.initial[c]) for c in contexts])
    return MarkovChain(
        alphabet or Alphabet.of_size(process.size),
        process.order,
        initial.reshape((process.size,) * process.order),
        sparse.csr_array(known) if thin else known,
        np.array([float(process.backoff[c]) for c in contexts]),
        np.array([float(p) for p in process.background]),
    )


# Beliefs -----------------------------------------------------------------------------------------


def batch_chances(process: Process, axis: int, width: int, recalled: int = 0) -> list[Fraction]:
    """Probability of each batch that begins at a place of the joint, the first value slowest."""
    chances: dict[Symbols, Fraction] = defaultdict(Fraction)
    for path, chance in process.chances(axis + width).items():
        chances[path[axis - recalled :]] += chance
    return [chances[batch] for batch in sorted(chances)]


def belief_after(
    process: Process, axis: int, width: int, told: Mapping[Symbols, Fraction]
) -> dict[Symbols, Fraction]:
    """Joint of the values that the chain looks at once a batch was told, up to a factor.

    `told` is the likelihood of each batch, or of each batch with some values before it.
    """
    back = len(next(iter(told)))
    end = axis + width
    joint: dict[Symbols, Fraction] = defaultdict(Fraction)
    for path, chance in process.chances(max(end + 1, process.order)).items():
        context = path[: process.order] if end < process.order else path[-process.order :]
        joint[context] += chance * told[path[end - back : end]]
    return dict(joint)


def furthest(found: Sequence[float], exact: Sequence[Fraction]) -> float:
    """Least d with |log(found / (c exact))| <= d everywhere, for the best factor c."""
    with mpmath.workdps(50):
        logs = []
        for hat, true in zip(found, exact, strict=True):
            quotient = Fraction(float(hat)) / true
            logs.append(mpmath.log(mpmath.mpf(quotient.numerator) / quotient.denominator))
        return float((max(logs) - min(logs)) / 2)


def assert_bayes(
    after: Belief, process: Process, axis: int, told: Mapping[Symbols, Fraction]
) -> None:
    """A belief is that after a batch whose output was told so likely, within its own drift."""
    width = len(next(iter(told)))
    exact = belief_after(process, axis, width, told)
    contexts = every(process.size, process.order)
    found = [float(after.joint[context]) for context in contexts]
    assert after.axis == min(axis + width, process.order - 1)
    # Drifts are bounds to first order in the unit of rounding.
    assert furthest(found, [exact[context] for context in contexts]) <= after.drift * (1 + 1e-9)
    assert abs(after.joint.sum() - 1) <= 1e-12


# Leakages ----------------------------------------------------------------------------------------


def exact_leakages(
    rows: Sequence[Sequence[int]], chances: Sequence[Fraction]
) -> tuple[float, float]:
    """max |log a(y|o)/P(y)| and max log a(y|o)/a(y|o'), one row of integer weights per batch."""
    common = math.lcm(*(chance.denominator for chance in chances))
    share = [int(chance * common) for chance in chances]
    total, inward, local = sum(share), Fraction(1), Fraction(1)
    for column in zip(*rows, strict=True):
        mean = Fraction(sum(b * int(w) for b, w in zip(share, column, strict=True)), total)
        most, least = int(max(column)), int(min(column))
        if least == 0:
            return math.inf, math.inf
        inward = max(inward, most / mean, mean / least)
        local = max(local, Fraction(most, least))
    return _log(inward), _log(local)


def moved_by(prior: Floats, likelihood: Floats) -> float:
    """max |log Pr(x|y)/Pr(x)| over all true sequences, for one sequence of outputs."""
    ratio = likelihood / (prior @ likelihood / prior.sum())
    return float(np.abs(np.log(ratio)).max())


def codes(batches: Sequence[Symbols], size: int) -> list[int]:
    """The number of each batch among all of its length, the first value slowest."""
    order = {
        batch: n for n, batch in enumerate(itertools.product(range(size), repeat=len(batches[0])))
    }
    return [order[batch] for batch in batches]


# Losses ------------------------------------------------------------------------------------------


def summed(each: Callable[[int, int], float]) -> Distance:
    return lambda true, told: math.fsum(each(x, y) for x, y in zip(true, told, strict=True))


def bars(group: Sequence[int]) -> Distance:
    """Differences of counts, summed over groups."""

    def distance(true: Symbols, told: Symbols) -> float:
        ours, theirs = Counter(group[x] for x in true), Counter(group[y] for y in told)
        return float(sum(abs(ours[bar] - theirs[bar]) for bar in ours.keys() | theirs.keys()))

    return distance


def table(distance: Distance, trues: Sequence[Symbols], told: Sequence[Symbols]) -> Floats:
    return np.array([[distance(o, r) for r in told] for o in trues])


def mean_loss(chances: Sequence[Fraction], rows: Floats, losses: Floats) -> float:
    share = np.array([float(chance) for chance in chances])
    return float(share @ (rows * losses).sum(axis=1) / share.sum())


def every(size: int, width: int) -> list[Symbols]:
    return list(itertools.product(range(size), repeat=width))


def _log(ratio: Fraction) -> float:
    with mpmath.workdps(50):
        exact = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        # Never above the truth: a bound that holds against it holds.
        return math.nextafter(float(exact), -math.inf) if exact else 0.0
