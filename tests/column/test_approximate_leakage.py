import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.column.approximate_leakage import (
    approximate_leakage,
    deltas,
    leakage_within,
    local_leakage_within,
)
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, LIP
from sfumato.core.information_leakage import information_leakage
from tests.oracles.exact_leakage import exact_information_leakage, exact_local_leakage
from tests.strategies import Floats, stochastic_matrices

WHOLE = 2**62
Rows = list[list[Fraction]]

levels = st.one_of(st.just(0.0), st.floats(1e-9, 1e-3), st.floats(1e-3, 5.0), st.floats(5.0, 40.0))
allowances = st.sampled_from([0.0, 1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.9, 1.0])


@st.composite
def dyadic(draw: st.DrawFn, size: int) -> Floats:
    """Beliefs whose entries sum to 1 exactly, some of them down to 2**-50."""
    exponents = draw(st.lists(st.integers(1, 50), min_size=size - 1, max_size=size - 1))
    small = [Fraction(1, 2**exponent) / size for exponent in exponents]
    rounded = [Fraction(math.floor(mass * 2**52) + 1, 2**52) for mass in small]
    return np.array([float(mass) for mass in [*rounded, 1 - sum(rounded)]])


@st.composite
def rare(draw: st.DrawFn, size: int) -> Floats:
    """Beliefs with masses down to 1e-150."""
    exponents = draw(st.lists(st.floats(-150.0, 0.0), min_size=size, max_size=size))
    masses = np.array([10.0**exponent for exponent in exponents])
    masses[draw(st.integers(0, size - 1))] = 1.0
    return np.asarray(np.maximum(masses / masses.sum(), 1e-150))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Channel, Floats]:
    """A channel, maybe with zeros, maybe nearly or wholly constant, and a belief."""
    rows = draw(stochastic_matrices())
    mixed = draw(st.sampled_from([0.0, 0.0, 0.5, 1 - 1e-9, 1.0]))
    rows = (1 - mixed) * rows + mixed * rows[:1]
    channel = Channel.from_probabilities(rows)
    return channel, draw(st.one_of(dyadic(channel.size), rare(channel.size)))


# --- oracles, in whole numbers ---


def enclosed(epsilon: float) -> tuple[Fraction, Fraction]:
    """Rational numbers just below and just above e^epsilon; both 1 at 0."""
    if epsilon == 0:
        return Fraction(1), Fraction(1)
    with mpmath.workprec(400):
        whole = int(mpmath.floor(mpmath.exp(mpmath.mpf(epsilon)) * mpmath.mpf(2) ** 200))
    return Fraction(whole - 1, 2**200), Fraction(whole + 2, 2**200)


def table(channel: Channel) -> Rows:
    return [[Fraction(int(weight), WHOLE) for weight in row] for row in channel.weights]


def marginal(rows: Rows, belief: Sequence[float] | Floats) -> list[Fraction]:
    share = [Fraction(float(mass)) for mass in belief]
    total = sum(share)
    columns = zip(*rows, strict=True)
    return [
        sum((b * p for b, p in zip(share, column, strict=True)), Fraction(0)) / total
        for column in columns
    ]


def over(first: list[Fraction], second: list[Fraction], factor: Fraction) -> Fraction:
    pairs = zip(first, second, strict=True)
    return sum((max(p - factor * q, Fraction(0)) for p, q in pairs), Fraction(0))


def exact_deltas(channel: Channel, belief: Floats, factor: Fraction) -> list[Fraction]:
    rows = table(channel)
    told = marginal(rows, belief)
    return [max(over(row, told, factor), over(told, row, factor)) for row in rows]


def exact_local(channel: Channel, factor: Fraction) -> Fraction:
    pairs = itertools.permutations(table(channel), 2)
    return max((over(a, b, factor) for a, b in pairs), default=Fraction(0))


# --- the delta at a level ---


@settings(max_examples=30)
@given(cases(), levels)
def test_the_delta_is_never_below_the_exact_one_and_hardly_above(
    case: tuple[Channel, Floats], epsilon: float
) -> None:
    channel, belief = case
    below, above = enclosed(epsilon)
    found = deltas(channel, belief, epsilon)
    # The exact delta falls with the factor: at the larger factor it is no more than the truth.
    least, most = exact_deltas(channel, belief, above), exact_deltas(channel, belief, below)
    for ours, low, high in zip(found.tolist(), least, most, strict=True):
        assert Fraction(ours) >= low
        assert ours <= float(high) + 1e-12
    guarantee = approximate_leakage(channel, belief, epsilon)
    assert guarantee == LIP(epsilon, float(found.max()))


@settings(max_examples=16)
@given(cases(), st.floats(0.0, 4.0))
def test_it_is_the_largest_excess_over_every_set_of_outputs(
    case: tuple[Channel, Floats], epsilon: float
) -> None:
    channel, belief = case
    rows, k = table(channel), enclosed(epsilon)[0]
    told = marginal(rows, belief)
    lip = ldp = Fraction(0)
    columns = range(len(told))
    subsets = (s for n in columns for s in itertools.combinations(columns, n + 1))
    for chosen in subsets:
        masses = [sum(row[y] for y in chosen) for row in rows]
        overall = sum(told[y] for y in chosen)
        lip = max(lip, max(masses) - k * overall, overall - k * min(masses))
        ldp = max(ldp, max(masses) - k * min(masses))
    ours = approximate_leakage(channel, belief, epsilon).delta
    assert ours == pytest.approx(float(lip), abs=1e-12)
    assert float(exact_local(channel, k)) == pytest.approx(float(ldp), abs=1e-12)


@settings(max_examples=16)
@given(cases(), levels, levels)
def test_the_delta_falls_with_the_level(
    case: tuple[Channel, Floats], one: float, other: float
) -> None:
    channel, belief = case
    less, more = sorted((one, other))
    high, low = (approximate_leakage(channel, belief, level).delta for level in (less, more))
    assert low <= high * (1 + 1e-13) + 1e-300


@settings(max_examples=16)
@given(cases())
def test_at_the_pure_level_nothing_is_left_over(case: tuple[Channel, Floats]) -> None:
    channel, belief = case
    pure = information_leakage(channel, belief).epsilon
    assert approximate_leakage(channel, belief, pure).delta == 0.0


def test_a_channel_that_tells_nothing_needs_no_delta() -> None:
    constant = Channel.from_probabilities([[0.2, 0.3, 0.5]] * 3)
    for channel in (constant, Channel.constant(3, 1)):
        belief = [1e-150, 0.5, 0.5]
        assert deltas(channel, belief, 0.0).tolist() == [0.0] * 3
        assert leakage_within(channel, belief, 0.5) <= LIP(0.0, 0.5)
        assert local_leakage_within(channel, 0.5) <= LDP(0.0, 0.5)


def test_a_channel_that_tells_all_needs_the_mass_of_all_others() -> None:
    honest = Channel.from_probabilities(np.eye(3))
    found = deltas(honest, [0.5, 0.25, 0.25], 0.5)
    expected = [0.5, 0.75, 0.75]
    assert found == pytest.approx(expected, abs=1e-14)
    assert np.all(found >= expected)


def test_infinite_ratios_have_a_delta_at_levels_beyond_any_float_exponential() -> None:
    silent = Channel.from_probabilities([[1.0, 0.0], [0.5, 0.5]])
    assert approximate_leakage(silent, [0.5, 0.5], 800.0).delta == pytest.approx(0.25)


# --- the level at a delta ---


@settings(max_examples=30, deadline=None)
@given(cases(), allowances)
def test_the_level_suffices_and_a_millionth_less_does_not(
    case: tuple[Channel, Floats], delta: float
) -> None:
    channel, belief = case
    found = leakage_within(channel, belief, delta)
    assert found.delta <= delta
    if math.isinf(found.epsilon):
        level = 40.0 if delta else 41.0
        assert max(exact_deltas(channel, belief, enclosed(level)[0])) > Fraction(delta)
        return
    if delta == 0.0:
        pure = exact_information_leakage(channel.weights, belief.tolist())
        assert pure <= found.epsilon <= float(pure) + 1e-12
        return
    assert max(exact_deltas(channel, belief, enclosed(found.epsilon)[1])) <= Fraction(delta)
    if found.epsilon > 1e-6:
        less = max(exact_deltas(channel, belief, enclosed(found.epsilon - 1e-6)[0]))
        assert less > Fraction(delta) - Fraction(1, 10**15)


@settings(max_examples=30, deadline=None)
@given(cases(), allowances)
def test_the_model_free_level_suffices_and_a_millionth_less_does_not(
    case: tuple[Channel, Floats], delta: float
) -> None:
    channel, _ = case
    found = local_leakage_within(channel, delta)
    assert found.delta <= delta
    if math.isinf(found.epsilon):
        level = 40.0 if delta else 41.0
        assert exact_local(channel, enclosed(level)[0]) >= Fraction(delta) * (
            1 - Fraction(1, 2**40)
        )
        return
    if delta == 0.0:
        pure = exact_local_leakage(channel.weights)
        assert pure <= found.epsilon <= float(pure) + 1e-12
        return
    assert exact_local(channel, enclosed(found.epsilon)[1]) <= Fraction(delta)
    if found.epsilon > 1e-6:
        less = exact_local(channel, enclosed(found.epsilon - 1e-6)[0])
        assert less > Fraction(delta) - Fraction(1, 10**15)


@settings(max_examples=25, deadline=None)
@given(cases(), allowances, allowances)
def test_more_delta_never_needs_a_higher_level(
    case: tuple[Channel, Floats], one: float, other: float
) -> None:
    channel, belief = case
    less, more = sorted((one, other))
    high, low = (leakage_within(channel, belief, delta).epsilon for delta in (less, more))
    assert low <= high * (1 + 1e-12) + 1e-12
    free_high, free_low = (local_leakage_within(channel, delta).epsilon for delta in (less, more))
    assert free_low <= free_high * (1 + 1e-12) + 1e-12


def test_a_finite_pure_level_is_never_made_infinite_by_a_delta() -> None:
    """One part in 2**62: the pure level is 42.98, over what a budget may be."""
    channel = Channel(np.array([[WHOLE - 1, 1], [1, WHOLE - 1]]))
    belief = [1e-150, 1.0]
    pure = leakage_within(channel, belief, 0.0).epsilon
    assert 40 < pure < 43
    assert local_leakage_within(channel, 0.1).epsilon <= pure + 1e-12
    assert leakage_within(channel, belief, 0.1).epsilon <= pure


def test_a_delta_below_a_zero_entry_leaves_the_level_infinite() -> None:
    silent = Channel.from_probabilities([[1.0, 0.0], [0.5, 0.5]])
    assert leakage_within(silent, [0.5, 0.5], 0.0) == LIP(math.inf)
    assert leakage_within(silent, [0.5, 0.5], 0.2).epsilon == math.inf
    assert leakage_within(silent, [0.5, 0.5], 0.26).epsilon < 40
    assert local_leakage_within(silent, 0.49).epsilon == math.inf
    assert local_leakage_within(silent, 0.51).epsilon < 40


def test_a_delta_of_one_promises_nothing_at_level_zero() -> None:
    honest = Channel.from_probabilities(np.eye(2))
    assert leakage_within(honest, [0.5, 0.5], 1.0) == LIP(0.0, 1.0)
    assert local_leakage_within(honest, 1.0) == LDP(0.0, 1.0)


def test_wrong_arguments_are_refused_by_name() -> None:
    channel = Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]])
    for wrong in (-0.1, math.nan):
        with pytest.raises(InvalidParameter, match="epsilon"):
            approximate_leakage(channel, [0.5, 0.5], wrong)
        with pytest.raises(InvalidParameter, match="delta"):
            leakage_within(channel, [0.5, 0.5], wrong)
        with pytest.raises(InvalidParameter, match="delta"):
            local_leakage_within(channel, wrong)
    for belief in ([1.0, 0.0], [0.5, 0.6], [1.0], [0.5, math.nan]):
        with pytest.raises(InvalidParameter, match="belief"):
            deltas(channel, belief, 1.0)
        with pytest.raises(InvalidParameter, match="belief"):
            leakage_within(channel, belief, 0.1)
