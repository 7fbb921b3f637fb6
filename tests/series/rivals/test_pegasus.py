import itertools
import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import seeded
from sfumato.noise.geometric import DiscreteLaplace
from sfumato.noise.laplace_noise import LaplaceNoise
from sfumato.series.rivals.pegasus import Grouper, Pegasus, Smoothing, deviation
from tests.strategies import Floats

SECRET = 9151.25


def simulated(method: Pegasus, series: Floats, seed: int = 1) -> Floats:
    return method.release(series, seeded(seed), Purpose.SIMULATION)


def groups(series: list[int], threshold: float) -> list[list[int]]:
    """Places of the series by group, without any noise: written from the paper's words."""
    found: list[list[int]] = []
    closed = True
    for place in range(len(series)):
        if closed:
            found.append([place])
            closed = False
            continue
        wider = [series[each] for each in [*found[-1], place]]
        mean = Fraction(sum(wider), len(wider))
        if sum(abs(each - mean) for each in wider) < threshold:
            found[-1].append(place)
        else:
            found.append([place])
            closed = True
    return found


def quiet(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DiscreteLaplace, "draw", lambda self, count, coins: np.zeros(count, int))


# --- grouping ---


@settings(max_examples=60)
@given(
    st.lists(st.integers(-9, 9), min_size=1, max_size=40),
    st.sampled_from([1.0, 4.5, 12.25, 60.0]),
    st.sampled_from(list(Smoothing)),
)
def test_without_noise_groups_are_the_papers_and_smoothed(
    series: list[int], threshold: float, smoothing: Smoothing
) -> None:
    method = Pegasus.at(1.0, 2.0, threshold=threshold, smoothing=smoothing)
    smooth = np.median if smoothing is Smoothing.MEDIAN else np.mean
    expected = [
        smooth([series[each] for each in group[: end + 1]])
        for group in groups(series, threshold)
        for end in range(len(group))
    ]
    # A query is in steps of the lattice, rounded down: thresholds here are whole steps.
    with pytest.MonkeyPatch.context() as patch:
        quiet(patch)
        assert simulated(method, np.array(series, float)) == pytest.approx(expected)


def test_a_constant_series_is_one_group_and_a_jump_ends_it() -> None:
    series = [5] * 30 + [50] * 30
    found = groups(series, 10.0)
    # The value that jumps stands alone; the next begins a group.
    assert [len(each) for each in found] == [30, 1, 29]
    method = Pegasus.at(1.0, 20.0, share=0.5, threshold=10.0, smoothing=Smoothing.MEAN)
    told = simulated(method, np.array(series, float))
    assert told[29] == pytest.approx(5.0, abs=0.2)
    assert told[30] == pytest.approx(50.0, abs=2.0)
    assert told[-1] == pytest.approx(50.0, abs=0.2)


def test_smoothing_lowers_the_error_of_calm_series() -> None:
    series = np.full(600, 20.0)
    method = Pegasus.at(1.0, 1.0, threshold=300.0)
    error = np.sqrt(((simulated(method, series) - 20.0) ** 2).mean())
    assert error < 0.6 * math.sqrt(method.noise.variance)


def test_grouping_without_a_threshold_is_plain_noise() -> None:
    series = np.full(400, 20.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Grouper, "over", lambda self, deviation, limit, coins: True)
        told = simulated(Pegasus.at(1.0, 1.0), series)
    # Groups of one and, the first time only, of two.
    assert told.std() == pytest.approx(math.sqrt(2) / 0.8, rel=0.25)


# --- the deviation ---


@settings(max_examples=150)
@given(
    st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=40),
    st.integers(0, 39),
    st.integers(-64, 64),
)
def test_deviation_is_exact_and_as_sensitive_as_said(
    places: list[int], which: int, moved: int
) -> None:
    def measured(numbers: list[int]) -> int:
        mean = Fraction(sum(numbers), len(numbers))
        assert deviation(numbers) == math.floor(sum(abs(each - mean) for each in numbers))
        return deviation(numbers)

    other = list(places)
    other[which % len(places)] += moved
    assert abs(measured(places) - measured(other)) <= 2 * abs(moved)


# --- the guarantee ---


def steepest(noise: DiscreteLaplace) -> mpmath.mpf:
    table = [int(each) for each in noise.weights]
    inside = [mpmath.mpf(a) / b for a, b in itertools.pairwise(table)]
    return mpmath.log(max([*inside, mpmath.mpf(table[-1]) / table[0] * 2**62 / noise.repeat]))


@pytest.mark.parametrize("width", [2.0, 0.7])
@pytest.mark.parametrize(("epsilon", "share"), [(0.1, 0.8), (1.0, 0.5), (2.0, 0.9), (8.0, 0.2)])
def test_the_budget_is_split_and_kept(epsilon: float, share: float, width: float) -> None:
    method = Pegasus.at(width, epsilon, share)
    assert epsilon * (1 - 1e-7) <= method.guarantee.epsilon <= epsilon
    assert method.noise.leakage.epsilon == pytest.approx(share * epsilon)
    assert method.grouper.leakage.epsilon == pytest.approx((1 - share) * epsilon)
    level, query = method.grouper.level, method.grouper.query
    # In sensitivities: the level hides 2, a query 4; half of the budget each.
    exact = 2 * level.steps * steepest(level.noise) + 4 * query.steps * steepest(query.noise)
    exact += method.noise.steps * steepest(method.noise.noise)
    assert exact <= method.guarantee.epsilon <= exact * (1 + 1e-9)
    assert level.steps * level.step >= width
    unit = width / ((1 - share) * epsilon)
    assert math.sqrt(level.variance / 2) == pytest.approx(4 * unit, rel=0.011)
    assert math.sqrt(query.variance / 2) == pytest.approx(8 * unit, rel=0.011)


@cache
def table(noise: DiscreteLaplace, reach: int) -> Floats:
    """Probabilities of the noise from -reach to reach, by adding up."""
    span = np.arange(4 * reach)
    weights = noise.weights.astype(float) / 2.0**62
    repeat = noise.repeat / 2.0**62
    size = weights.size
    one = weights[span % size] * repeat ** (span // size) * (1 - repeat)
    return np.array(
        [
            (one[: 3 * reach] * one[abs(k) : abs(k) + 3 * reach]).sum()
            for k in range(-reach, reach + 1)
        ]
    )


def decisions(grouper: Grouper, series: list[int]) -> dict[tuple[bool, ...], float]:
    """Probabilities of all patterns of one run of the grouper, up to its first end; exact sums."""
    reach = 12 * max(grouper.level.steps, grouper.query.steps)
    level, query = table(grouper.level.noise, reach), table(grouper.query.noise, reach)
    tail = np.concatenate([query[::-1].cumsum()[::-1], [0.0]])  # of noise at least so much
    at = round(grouper.threshold / grouper.level.step)
    found: dict[tuple[bool, ...], float] = {}
    limits = at + np.arange(-reach, reach + 1)
    still = level.copy()
    places = [each * grouper.query.steps for each in series]
    for end in range(2, len(series) + 1):
        mean = Fraction(sum(places[:end]), end)
        deviation = math.floor(sum(abs(each - mean) for each in places[:end]))
        need = np.clip(limits - deviation, -reach, reach + 1)
        over = tail[need + reach]
        found[(False,) * (end - 2) + (True,)] = float((still * over).sum())
        still = still * (1 - over)
    found[(False,) * (len(series) - 1)] = float(still.sum())
    return found


def worst(grouper: Grouper) -> float:
    """The largest log ratio of a run's patterns over neighbours of a few short series."""
    found = 0.0
    for series in ([0, 0, 0, 0], [0, 1, 0, 1], [1, 0, 0, 1], [0, 0, 1, 1]):
        for which, moved in itertools.product(range(4), (-1, 1)):
            other = list(series)
            other[which] += moved
            one, two = decisions(grouper, series), decisions(grouper, other)
            assert sum(one.values()) == pytest.approx(1.0, abs=1e-4)
            # Patterns that hardly occur are left to the proof: tables are cut.
            found = max(
                found, *(abs(math.log(one[key] / two[key])) for key in one if one[key] > 1e-2)
            )
    return found


def test_runs_of_the_grouper_keep_their_budget_and_less_noise_would_not() -> None:
    grouper = Grouper.at(1.0, 4.0, 2.0)
    assert worst(grouper) <= grouper.leakage.epsilon
    # Planted: an eighth of the noise.
    query = LaplaceNoise.at(1.0, 4.0)
    noisy = LaplaceNoise(query.step, query.steps, DiscreteLaplace.at(8.0 / query.steps))
    planted = Grouper(2.0, noisy, query)
    assert worst(planted) > grouper.leakage.epsilon
    assert not planted.leakage <= PureDP(4.0)


def test_lattices_that_do_not_fit_are_refused() -> None:
    fine, coarse = LaplaceNoise.at(1.0, 1.0), LaplaceNoise.at(1.0, 0.1)
    for level, query in ((fine, coarse), (coarse, fine)):
        with pytest.raises(InvalidParameter, match="steps must be the same"):
            Grouper(1.0, level, query)


# --- as a method ---


def test_a_value_too_far_away_is_refused_and_not_quoted() -> None:
    with pytest.raises(InvalidParameter, match="value must be within") as raised:
        simulated(Pegasus.at(1.0, 1.0), np.array([SECRET * 1e9]))
    assert "9151" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("sensitivity", 0.0),
        ("epsilon", 0.0),
        ("epsilon", math.nan),
        ("share", 0.0),
        ("share", 1.0),
        ("threshold", -1.0),
        ("threshold", math.inf),
    ],
)
def test_bad_parameters_are_refused(name: str, wrong: float) -> None:
    with pytest.raises(InvalidParameter, match=name):
        Pegasus.at(**{"sensitivity": 1.0, "epsilon": 1.0, name: wrong})  # type: ignore[arg-type]
