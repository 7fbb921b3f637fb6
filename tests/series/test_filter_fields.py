"""No field of a frozen mechanism can make what it promises untrue.

Every field is replaced by other values, one at a time and one level deep. What comes out is
refused, or promises at least what an account of the draws, made here, finds.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from enum import StrEnum
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy import special

from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import seeded
from sfumato.noise.binomial_noise import BinomialNoise
from sfumato.noise.frequency import KaryResponse, Reporting, SubsetSelection, UnaryEncoding
from sfumato.noise.gaussian_noise import DiscreteGaussianNoise, GaussianNoise
from sfumato.noise.geometric import DiscreteLaplace
from sfumato.noise.laplace_noise import LaplaceNoise
from sfumato.noise.lattice import Lattice
from sfumato.record.round_noise import RoundNoise
from sfumato.record.vector_noise import CorrelatedNoise, Kind, ProductNoise
from sfumato.series.realtime import Realtime
from sfumato.series.rivals.delayed_fourier import DelayedFourier
from sfumato.series.rivals.fast import Control, Fast, Prediction
from sfumato.series.rivals.fourier import Fourier
from sfumato.series.rivals.local_numbers import HybridMechanism, SquareWave
from sfumato.series.rivals.pegasus import Grouper, Pegasus
from sfumato.series.rivals.square_root_tree import SquareRootTree
from sfumato.series.rivals.topl import Topl
from sfumato.series.rivals.tops import ThresholdChoice, Tops
from sfumato.series.rivals.tree import BinaryTree
from sfumato.series.rivals.windowed import BudgetAbsorption, BudgetDistribution, Windowed
from sfumato.series.series_release import Unit

LENIENT = 1 + 1e-9

# Accounts of what is drawn ------------------------------------------------------------------------


def each_step(noise: DiscreteLaplace) -> float:
    """Log of the largest quotient of neighbouring probabilities of the geometric number."""
    table = noise.weights.astype(np.longdouble)
    within = np.log(table[:-1] / table[1:]).max() if table.size > 1 else 0.0
    across = np.log(table[-1] / table[0]) - np.log(np.longdouble(noise.repeat) / 2**62)
    return float(max(within, across))


def apart(noise: Any, distance: float) -> int:
    """How many points of the lattice two numbers that far apart may be apart."""
    places = [math.floor(Fraction(v) / Fraction(noise.step) + Fraction(1, 2)) for v in (0, 0.37)]
    moved = [
        math.floor(Fraction(v) / Fraction(noise.step) + Fraction(1, 2))
        for v in (distance, 0.37 + distance)
    ]
    return max(b - a for a, b in zip(places, moved, strict=True))


def laplace_truth(noise: LaplaceNoise, distance: float) -> float:
    return apart(noise, distance) * each_step(noise.noise)


def table_deviation(noise: Any) -> float:
    """Standard deviation of the integers that are drawn from, in steps."""
    weights = np.diff(noise._cumulative, prepend=np.int64(0)) / 2**62
    places = np.arange(weights.size) - weights.size // 2
    return math.sqrt(float(weights @ places.astype(float) ** 2))


def gaussian_delta(ratio: float, epsilon: float) -> float:
    upper, lower = ratio / 2 - epsilon / ratio, -ratio / 2 - epsilon / ratio
    return float(special.ndtr(upper) - math.exp(epsilon + special.log_ndtr(lower)))


def channel_truth(channel: Channel) -> float:
    rows = [[int(weight) for weight in row] for row in channel.weights]
    quotients = [
        math.inf if min(column) == 0 else max(column) / min(column)
        for column in zip(*rows, strict=True)
    ]
    return math.log(max(quotients))


def frequency_truth(reporting: Reporting) -> float:
    """All reports of all values, in fractions."""
    size, whole = reporting.size, 2**62
    if isinstance(reporting, UnaryEncoding):
        size = min(size, 6)  # bits of symbols that neither of two values is are alike
    chances: list[list[Fraction]] = []
    for value in range(size):
        match reporting:
            case KaryResponse(other=other):
                row = [Fraction(other, whole)] * size
                row[value] = 1 - (size - 1) * Fraction(other, whole)
            case UnaryEncoding(false=false):
                row = []
                for bits in product([0, 1], repeat=size):
                    odds = [
                        Fraction(1, 2) if v == value else Fraction(false, whole)
                        for v in range(size)
                    ]
                    chances_of = [p if b else 1 - p for p, b in zip(odds, bits, strict=True)]
                    row.append(Fraction(math.prod(chances_of)))
            case SubsetSelection(chosen=chosen, kept=kept):
                keep = Fraction(kept, whole)
                row = [
                    keep / math.comb(size - 1, chosen - 1)
                    if value in group
                    else (1 - keep) / math.comb(size - 1, chosen)
                    for group in combinations(range(size), chosen)
                ]
        assert sum(row) == 1
        chances.append(row)
    columns = list(zip(*chances, strict=True))
    assert all(chance >= 0 for column in columns for chance in column)
    return max(math.log(max(column) / min(column)) for column in columns)


class Spy:
    """Counts measurements, with the noise of each."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.drawn: list[list[LaplaceNoise]] = []
        honest = LaplaceNoise.perturb

        def perturb(noise: LaplaceNoise, values: Any, randomness: Any) -> Any:
            self.drawn[-1].extend([noise] * np.size(values))
            return honest(noise, values, randomness)

        monkeypatch.setattr(LaplaceNoise, "perturb", perturb)

    def steps(self, method: Any, series: list[float]) -> list[list[LaplaceNoise]]:
        running = method.begin(seeded(1), purpose=Purpose.SIMULATION)
        self.drawn = []
        for value in series:
            self.drawn.append([])
            running.step(value)
        return self.drawn

    def whole(self, method: Any, series: list[float]) -> list[LaplaceNoise]:
        self.drawn = [[]]
        method.release(series, seeded(1), Purpose.SIMULATION)
        return self.drawn[0]


def fast_truth(method: Fast, spy: Spy) -> float:
    series = [0.0, 1e6] * (method.length // 2) + [0.0] * (method.length % 2)
    stepped = [noise for drawn in spy.steps(method, series) for noise in drawn]
    counts = [stepped, spy.whole(method, series)]
    return max(sum(laplace_truth(n, method.sensitivity) for n in found) for found in counts)


def windowed_truth(method: Windowed, spy: Spy) -> float:
    drawn = spy.steps(method, [1e6, -1e6] * min(method.window, 20) + [0.0] * 5)
    each = [sum(laplace_truth(n, method.sensitivity) for n in found) for found in drawn]
    return max(math.fsum(each[i : i + method.window]) for i in range(len(each)))


def fourier_truth(method: Fourier) -> float:
    numbers = min(2 * method.coefficients - 1, method.length)
    apart_by = math.sqrt(numbers * method.length) * method.sensitivity
    return apart_by / method.spacing * each_step(method.noise)


def root_truth(method: SquareRootTree) -> float:
    """Delta at the stated epsilon, by a change of one value by the stated sensitivity."""
    step = method.noise.step * int(method.coefficients[0])
    moved = round(method.sensitivity / step) * method.coefficients.astype(float)
    return gaussian_delta(
        float(np.linalg.norm(moved)) / table_deviation(method.noise), method.epsilon
    )


def choice_truth(choice: ThresholdChoice) -> float:
    size = choice.candidates.size
    above = [min(3, size - place - 1) for place in range(size)]
    more = [count + (place < size // 2) for place, count in enumerate(above)]
    here, there = choice.weights(above), choice.weights(more)
    first = [Fraction(weight, sum(here)) for weight in here]
    second = [Fraction(weight, sum(there)) for weight in there]
    return max(abs(math.log(a / b)) for a, b in zip(first, second, strict=True))


def grouper_truth(grouper: Grouper, distance: float) -> float:
    level = 2 * apart(grouper.level, distance) * each_step(grouper.level.noise)
    return level + 4 * apart(grouper.query, distance) * each_step(grouper.query.noise)


def realtime_kept(method: Realtime) -> bool:
    """Whether the promise is at least that of the integers that are drawn from."""
    used = [noise for noise in method.noises if noise is not None]
    groups = [used] if method.unit is Unit.USER else [[noise] for noise in set(used)]
    promised = method.guarantee
    for group in groups:
        assert all(noise.sensitivity <= method.sensitivity for noise in group)
        if isinstance(group[0], LaplaceNoise):
            alone = [n for n in group if isinstance(n, LaplaceNoise)]
            found = math.fsum(laplace_truth(n, n.sensitivity) for n in alone)
            if found > promised.epsilon * LENIENT:
                return False
            continue
        ratio = math.sqrt(sum((apart(n, n.sensitivity) / table_deviation(n)) ** 2 for n in group))
        # Binomial noise is normal but for a hair; its own curve is tested elsewhere.
        if gaussian_delta(ratio, promised.epsilon) > promised.delta * 1.05 + 1e-12:
            return False
    return True


def box_kept(noise: Any) -> bool:
    half = 0.5 * np.ones(noise.sigma.size)
    drawn = noise.draw(seeded(3).words(4000 * noise.words).reshape(4000, -1))
    inside = float(np.all(np.abs(drawn) <= half, axis=1).mean())
    spread = np.abs(drawn.std(axis=0) / noise.sigma - 1).max()
    return inside <= noise.largest_box(half) + 0.03 and bool(spread < 0.1)


def lattice_kept(noise: Any) -> bool:
    """Whether a noise of one value says of its integers what they are."""
    steps = apart(noise, noise.sensitivity)
    match noise:
        case LaplaceNoise():
            return laplace_truth(noise, noise.sensitivity) <= noise.leakage.epsilon * LENIENT
        case GaussianNoise():
            return steps / table_deviation(noise) <= noise.ratio * 1.001
        case DiscreteGaussianNoise():
            return 0.5 * (steps / table_deviation(noise)) ** 2 <= noise.charge * 1.001
        case _:
            here = np.diff(noise._cumulative, prepend=np.int64(0)) / 2**62
            pad = np.zeros(steps)
            moved = np.concatenate([pad, here]) - math.exp(0.5) * np.concatenate([here, pad])
            return bool(np.maximum(moved, 0).sum() <= noise.delta(0.5) * LENIENT + 1e-15)


def kept(made: Any, spy: Spy) -> bool:
    """Whether a mechanism promises what the account finds."""
    match made:
        case Realtime():
            return realtime_kept(made)
        case LaplaceNoise() | GaussianNoise() | DiscreteGaussianNoise() | BinomialNoise():
            return lattice_kept(made)
        case DiscreteLaplace():
            return 3 * each_step(made) <= made.leakage(3).epsilon * LENIENT
        case Fast():
            found = fast_truth(made, spy)
        case Windowed():
            found = windowed_truth(made, spy)
        case Fourier():
            found = fourier_truth(made)
        case DelayedFourier():
            whole = made.length // made.delay * fourier_truth(made.block)
            found = whole + (fourier_truth(made.rest) if made.rest else 0.0)
            assert (
                made.delay * (made.length // made.delay) + (made.rest.length if made.rest else 0)
                == made.length
            )
        case BinaryTree():
            found = made.length.bit_length() * laplace_truth(made.noise, made.sensitivity)
        case SquareRootTree():
            return root_truth(made) <= made.guarantee.delta * LENIENT
        case Pegasus():
            distance = made.sensitivity
            found = laplace_truth(made.noise, distance) + grouper_truth(made.grouper, distance)
        case Grouper():
            return grouper_truth(made, made.sensitivity) <= made.leakage.epsilon * LENIENT
        case Tops():
            early = laplace_truth(made.early, 1.0) + choice_truth(made.choice)
            found = max(early, laplace_truth(made.later, 1.0))
        case ThresholdChoice():
            return choice_truth(made) <= made.leakage.epsilon * LENIENT
        case Topl():
            found = max(channel_truth(made.wave.channel), channel_truth(made.hybrid.channel))
            if not math.isfinite(found):
                return False
        case SquareWave() | HybridMechanism():
            made.drawn(0.3, seeded(1))
            return True
        case Reporting():
            return frequency_truth(made) <= made.local.epsilon * LENIENT
        case Lattice():
            return bool(np.all(made.places(made.points) == np.arange(made.count)))
        case _:
            return box_kept(made)
    return bool(found <= made.guarantee.epsilon * LENIENT)


# What is perturbed, and how -----------------------------------------------------------------------

BASE = {
    "fast": Fast.at(1.0, 2.0, 10, process_variance=1.0),
    "fast sampled": Fast.at(1.0, 2.0, 10, process_variance=1.0, samples=3),
    "fourier": Fourier.at(1.0, 1.0, 64, 1),
    "delayed": DelayedFourier.at(1.0, 4.0, 17, 5, 2),
    "distribution": BudgetDistribution(1.0, 1.0, 5),
    "absorption": BudgetAbsorption(1.0, 1.0, 5),
    "tree": BinaryTree.at(1.0, 1.0, 20),
    "root": SquareRootTree.at(1.0, 1.0, 1e-6, 20),
    "pegasus": Pegasus.at(1.0, 1.0),
    "grouper": Grouper.at(1.0, 1.0, 5.0),
    "tops": Tops.at(10.0, 1.0, 5, candidates=8),
    "choice": ThresholdChoice.at([1.0, 2.0, 3.0], [0.0, 0.5, 1.0], 0.5),
    "topl": Topl.at(10.0, 1.0, 5, points=16),
    "wave": SquareWave.at(1.0, 16),
    "hybrid": HybridMechanism.at(1.0, 16),
    "gaussian series": Realtime.gaussian(1.0, epsilon=1.0, delta=1e-6, length=6),
    "event series": Realtime.gaussian(1.0, epsilon=1.0, delta=1e-6, length=6, unit=Unit.EVENT),
    "laplace series": Realtime.laplace(1.0, epsilon=1.0, length=6),
    "laplace": LaplaceNoise.at(3.0, 0.5),
    "gaussian": GaussianNoise.at(3.0, 4.0),
    "discrete gaussian": DiscreteGaussianNoise.at(3.0, 4.0),
    "binomial": BinomialNoise.at(3.0, math.sqrt(20.0)),
    "geometric": DiscreteLaplace.at(0.5),
    "response": KaryResponse.at(5, 1.0),
    "unary": UnaryEncoding.at(5, 1.0),
    "subsets": SubsetSelection.at(5, 1.0),
    "lattice": Lattice(0.0, 10.0, 11),
    "ball": RoundNoise.ball(np.ones(2)),
    "uniform": ProductNoise(Kind.UNIFORM, np.ones(2)),
    "correlated": CorrelatedNoise(np.array([1.0, 2.0]), np.array([[1.0, 0.6], [0.6, 1.0]])),
}

OTHERS: dict[type, list[Any]] = {
    LaplaceNoise: [LaplaceNoise.at(10.0, 1.0), LaplaceNoise.at(0.1, 5.0)],
    DiscreteLaplace: [DiscreteLaplace.at(2.0), DiscreteLaplace.at(0.01)],
    GaussianNoise: [GaussianNoise.at(1.0, 0.5), GaussianNoise.at(9.0, 100.0)],
    Fourier: [Fourier.at(1.0, 1.0, 5, 3), Fourier.at(9.0, 1.0, 5, 1), Fourier.at(1.0, 1.0, 9, 1)],
    Grouper: [Grouper.at(0.1, 1.0, 5.0), Grouper.at(10.0, 3.0, 5.0)],
    ThresholdChoice: [ThresholdChoice.at([5.0, 20.0], [0.0, 1.0], 3.0)],
    Channel: [
        Channel.from_probabilities(np.eye(16)),
        Channel.from_probabilities(np.full((16, 4), 0.25)),
    ],
    SquareWave: [SquareWave.at(3.0, 16), SquareWave.at(0.5, 8)],
    HybridMechanism: [HybridMechanism.at(3.0, 16), HybridMechanism.at(0.5, 8)],
}


def others(value: Any) -> Iterator[Any]:
    """Other values for a field."""
    match value:
        case StrEnum():
            yield from (*type(value), "nothing")
        case bool():
            yield not value
        case int():
            yield from (value + 1, value * 2, value * 10, max(1, value // 2), 1, 0, -1)
        case float():
            yield from (value * 10, value / 10, value * 1.37, 0.0, -value, math.nan, math.inf)
        case None:
            yield Control()
        case np.ndarray():
            yield from (value * 2, value[:-1], value[::-1], -value, np.zeros_like(value))
        case tuple():
            yield from (value[:-1], value + value, ())
            if value and not isinstance(value[0], int):
                yield from ((other, *value[1:]) for other in (None, *OTHERS[LaplaceNoise]))
        case Control():
            yield from (None, replace(value, memory=1))
        case _ if is_dataclass(value):
            yield from OTHERS.get(type(value), [])


def perturbed(method: Any, deep: bool = True) -> Iterator[tuple[str, Callable[[], Any]]]:
    """One field replaced at a time, and one field of a field."""
    for part in fields(method):
        if not part.init or part.name == "estimate":
            continue
        value = getattr(method, part.name)
        for number, other in enumerate(others(value)):
            change = {part.name: other}
            yield f"{part.name} {number}", lambda change=change: replace(method, **change)  # type: ignore[misc]
        if deep and is_dataclass(value) and not isinstance(value, Control):
            for name, make in perturbed(value, deep=False):
                yield (
                    f"{part.name}.{name}",
                    lambda make=make, name=part.name: replace(method, **{name: make()}),  # type: ignore[misc]
                )


@pytest.mark.parametrize("name", BASE)
def test_a_replaced_field_is_refused_or_counted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method, spy = BASE[name], Spy(monkeypatch)
    assert kept(method, spy)
    tried = accepted = 0
    for change, make in perturbed(method):
        tried += 1
        try:
            made = make()
        except InvalidParameter:
            continue
        accepted += 1
        assert kept(made, spy), f"{name} with {change}"
    assert tried > 4 and accepted < tried


def test_the_three_that_lied_are_refused_or_counted() -> None:
    with pytest.raises(InvalidParameter, match="every value is measured"):
        replace(Fast.at(1.0, 2.0, 10, process_variance=1.0, samples=3), control=None)
    assert replace(Fourier.at(1.0, 1.0, 64, 1), coefficients=20).guarantee.epsilon > 5.6
    wide = replace(BudgetDistribution(1.0, 1.0, 5), sensitivity=10.0)
    assert wide.dissimilarity.sensitivity >= 10.0 and wide.guarantee.epsilon <= 1.0


class Forgetful(Fast):
    """FAST that does not remember how often it measured."""

    def correct(self, memory: Prediction, time: int, measurement: float) -> None:
        Fast.correct(self, memory, time, measurement)
        memory.measured = 0


def test_the_account_finds_a_planted_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy(monkeypatch)
    window = BudgetDistribution(1.0, 1.0, 5)
    object.__setattr__(window, "sensitivity", 10.0)
    assert windowed_truth(window, spy) > 5.0 > 1.0 >= window.guarantee.epsilon
    noise = GaussianNoise.at(1.0, 4.0)
    noise.perturb([0.0], seeded(1))  # the table is made
    object.__setattr__(noise, "deviation", 40.0 * noise.deviation)
    assert not lattice_kept(noise)
    fast = Fast.at(1.0, 2.0, 10, process_variance=1.0, samples=3)
    object.__setattr__(fast, "control", None)
    # No more measurements than are paid for, whatever the control says, and none less.
    paid = fast.guarantee.epsilon
    assert 0.999 * paid <= fast_truth(fast, spy) <= paid
    given = (fast.length, fast.measurements, fast.noise, fast.ratio, fast.sanity)
    forgetful = Forgetful(*given, Control())
    object.__setattr__(forgetful, "control", None)
    assert forgetful.guarantee.epsilon == paid and fast_truth(forgetful, spy) > 3 * paid


@pytest.mark.parametrize("epsilon", [0.1, 5.0, 20.0, 30.0, 40.0])
def test_local_reports_keep_any_budget(epsilon: float) -> None:
    method = Topl.at(10.0, epsilon, 5)
    assert 0.99 * epsilon <= method.guarantee.epsilon <= epsilon
    hybrid = method.hybrid
    means = hybrid.channel.probabilities @ hybrid.amounts
    assert np.allclose(means, np.linspace(-1, 1, 128))
