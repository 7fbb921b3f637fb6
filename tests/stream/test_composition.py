r"""The bounds on many steps against exact enumeration, and against the worst adaptive adversary.

Given the true sequence, step k adds a log ratio c with |c| <= epsilon_k and E[e^-c | past] = 1.
"""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sfumato import SIP
from sfumato.core.errors import InvalidParameter
from sfumato.stream import composed
from sfumato.stream.composition import chernoff_tail, paper_composition

Rule = Callable[[list[float], float], SIP]

RULES: dict[str, Rule] = {"published": paper_composition, "composed": composed}
HAIR = 1 + 1e-9  # a sum that only rounding lifts over a bound is not over it

leakages = st.lists(
    st.one_of(st.sampled_from([0.05, 0.3, 1.0]), st.floats(0.01, 2.0)), min_size=1, max_size=12
)
deltas = st.sampled_from([1e-9, 1e-6, 1e-3, 0.05, 0.3, 0.7])


# Exact tails -------------------------------------------------------------------------------------


def rise(down: float, up: float) -> float:
    """Probability of `+up` (else `-down`) with E[e^-c] = 1."""
    return math.expm1(down) / (math.exp(down) - math.exp(-up))


def response_tail(steps: list[float], level: float) -> float:
    """Pr(|sum c| > level) when every step is randomised response, by enumeration."""
    tail = 0.0
    for signs in itertools.product((1, -1), repeat=len(steps)):
        total = sum(sign * step for sign, step in zip(signs, steps, strict=True))
        if abs(total) > level:
            tail += math.prod(
                rise(step, step) if sign > 0 else 1 - rise(step, step)
                for sign, step in zip(signs, steps, strict=True)
            )
    return tail


def drawn_tail(steps: list[float], level: float, draw: np.random.Generator) -> float:
    """The same for an adaptive law: each step's two points are drawn anew for each past."""

    def tail(step: int, total: float) -> float:
        if step == len(steps):
            return float(abs(total) > level)
        down, up = steps[step] * draw.choice([1.0, draw.uniform(0.01, 1)], 2)
        if draw.uniform() < 0.1:  # a step may also stay silent
            return tail(step + 1, total)
        weight = rise(down, up)
        return weight * tail(step + 1, total + up) + (1 - weight) * tail(step + 1, total - down)

    return tail(0, 0.0)


def worst_tail(units: list[int], unit: float, is_out: Callable[[float], bool]) -> float:
    """The largest probability that any adaptive adversary can give to the final sum being out.

    Sums live on multiples of `unit`; step k moves by at most `units[k]` of them. At each sum the
    adversary picks the best two-point law, or none; backwards over the steps.
    """
    reach = sum(units)
    value = {place: float(is_out(place * unit)) for place in range(-reach, reach + 1)}
    for step in reversed(units):
        reach -= step
        laws = [
            (down, up, rise(down * unit, up * unit))
            for down in range(1, step + 1)
            for up in range(1, step + 1)
        ]
        value = {
            place: max(
                [value[place]]
                + [p * value[place + up] + (1 - p) * value[place - down] for down, up, p in laws]
            )
            for place in range(-reach, reach + 1)
        }
    return value[0]


@pytest.mark.parametrize("name", list(RULES))
@settings(max_examples=12)
@given(steps=st.lists(st.floats(0.01, 2.0), min_size=1, max_size=9), delta=deltas)
def test_bounds_hold_for_randomised_response(name: str, steps: list[float], delta: float) -> None:
    level = RULES[name](steps, delta).epsilon
    assert response_tail(steps, level * HAIR) <= delta


@pytest.mark.parametrize("name", list(RULES))
@settings(max_examples=25)
@given(
    steps=st.lists(st.floats(0.05, 1.5), min_size=1, max_size=8),
    delta=deltas,
    seed=st.integers(0, 2**32),
)
def test_bounds_hold_for_adaptive_laws(
    name: str, steps: list[float], delta: float, seed: int
) -> None:
    level = RULES[name](steps, delta).epsilon
    assert drawn_tail(steps, level * HAIR, np.random.default_rng(seed)) <= delta


@pytest.mark.parametrize("name", list(RULES))
@settings(max_examples=20)
@given(
    units=st.lists(st.integers(1, 4), min_size=1, max_size=8),
    unit=st.sampled_from([0.03, 0.1, 0.3]),
    delta=deltas,
)
def test_bounds_hold_for_the_worst_adaptive_adversary(
    name: str, units: list[int], unit: float, delta: float
) -> None:
    level = RULES[name]([count * unit for count in units], delta).epsilon
    assert worst_tail(units, unit, lambda total: abs(total) > level * HAIR) <= delta


@settings(max_examples=20)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=8), st.sampled_from([0.03, 0.1, 0.3]))
def test_the_worst_adversary_is_at_least_as_bad_as_randomised_response(
    units: list[int], unit: float
) -> None:
    steps = [count * unit for count in units]
    level = 0.6 * sum(steps)
    honest = response_tail(steps, level * HAIR)
    assert worst_tail(units, unit, lambda total: abs(total) > level * HAIR) >= honest - 1e-12


@settings(max_examples=20)
@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=8),
    st.sampled_from([0.1, 0.3]),
    st.floats(0.0, 1.0),
)
def test_one_sided_tails_bound_the_worst_adversary_beyond_the_largest_mean(
    units: list[int], unit: float, part: float
) -> None:
    steps = np.array(units) * unit
    mean = float((steps * np.tanh(steps / 2)).sum())
    level = mean + part * (steps.sum() - mean)
    above = worst_tail(units, unit, lambda total: total > level * HAIR)
    below = worst_tail(units, unit, lambda total: -total > level * HAIR)
    assert above <= chernoff_tail(steps, level) * HAIR
    assert below <= chernoff_tail(steps, level, side=-1) * HAIR


@pytest.mark.statistical
@pytest.mark.parametrize("delta", [0.3, 0.05])
def test_bounds_hold_for_long_mixed_releases_by_simulation(delta: float) -> None:
    draw = np.random.default_rng(17)
    steps = draw.uniform(0.02, 0.4, 300)
    weight = 1 / (1 + np.exp(-steps))
    signs = np.where(draw.uniform(size=(40_000, 300)) < weight, 1.0, -1.0)
    totals = np.abs(signs @ steps)
    for rule in RULES.values():
        over = int((totals > rule(steps.tolist(), delta).epsilon).sum())
        # More than delta of the runs beyond the bound would be proof against it.
        assert stats.binomtest(over, len(totals), delta, alternative="greater").pvalue > 1e-6
    # The test can fail: a bound 30 % lower is refuted.
    low = 0.7 * composed(steps.tolist(), delta).epsilon
    over = int((totals > low).sum())
    assert stats.binomtest(over, len(totals), delta, alternative="greater").pvalue < 1e-6


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 500), (0.02, 2_500)])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_bounds_hold_for_many_equal_steps_by_the_binomial_law(
    epsilon: float, count: int, delta: float
) -> None:
    ups = np.arange(count + 1)
    totals = (2 * ups - count) * epsilon
    law = stats.binom.pmf(ups, count, 1 / (1 + math.exp(-epsilon)))
    for rule in RULES.values():
        level = rule([epsilon] * count, delta).epsilon
        assert law[np.abs(totals) > level * HAIR].sum() <= delta
    tight = composed([epsilon] * count, delta).epsilon
    assert law[np.abs(totals) > 0.7 * tight].sum() > delta


# The rules among themselves ----------------------------------------------------------------------


def with_exact_means(steps: list[float], delta: float) -> float:
    """The rule of the paper with the mean of randomised response, the largest a step can have."""
    means = [step * (2 * rise(step, step) - 1) for step in steps]
    return math.fsum(means) + math.sqrt(2 * math.log(2 / delta) * sum(step**2 for step in steps))


@settings(max_examples=40)
@given(leakages, deltas)
def test_the_best_bound_is_below_all_others(steps: list[float], delta: float) -> None:
    best = composed(steps, delta)
    assert best.epsilon <= with_exact_means(steps, delta) * HAIR
    assert best.epsilon <= paper_composition(steps, delta).epsilon
    assert best.epsilon <= math.fsum(steps) * HAIR
    assert best.delta == delta


@given(leakages)
def test_without_failure_the_sum_is_all_there_is(steps: list[float]) -> None:
    best = composed(steps)
    assert best.delta == 0.0
    assert math.fsum(steps) <= best.epsilon <= math.fsum(steps) * (1 + 1e-12)


@given(st.floats(0.01, 1.0), st.integers(1, 400), deltas)
def test_the_published_theorem_is_corrected(epsilon: float, count: int, delta: float) -> None:
    bound = paper_composition([epsilon] * count, delta).epsilon
    mean = count * epsilon * math.expm1(epsilon)
    spread = math.sqrt(count) * epsilon * math.sqrt(2 * math.log(2 / delta))
    assert bound == pytest.approx(mean + spread, rel=1e-8)
    assert bound >= mean + spread
    # As printed for batches, the spread grows with the number of steps, not with its root ...
    printed = mean + count * epsilon * math.sqrt(2 * math.log(1 / delta))
    if count > 1 + math.log(2) / math.log(1 / delta):
        assert bound < printed
    # ... and for single steps it covers one tail only.
    assert bound > mean + math.sqrt(count) * epsilon * math.sqrt(2 * math.log(1 / delta))


@pytest.mark.parametrize("name", list(RULES))
@settings(max_examples=15)
@given(steps=leakages, delta=deltas, more=st.floats(0.01, 2.0))
def test_one_more_step_never_lowers_a_bound(
    name: str, steps: list[float], delta: float, more: float
) -> None:
    fewer = RULES[name](steps, delta).epsilon
    assert RULES[name]([*steps, more], delta).epsilon >= fewer * (1 - 1e-6)


@pytest.mark.parametrize("name", list(RULES))
@settings(max_examples=15)
@given(steps=leakages, one=st.floats(1e-9, 0.9), two=st.floats(1e-9, 0.9))
def test_a_smaller_failure_probability_never_lowers_a_bound(
    name: str, steps: list[float], one: float, two: float
) -> None:
    strict, lax = sorted((one, two))
    bound = RULES[name](steps, lax).epsilon
    assert RULES[name](steps, strict).epsilon >= bound * (1 - 1e-9)


@settings(max_examples=12)
@given(leakages.flatmap(lambda steps: st.tuples(st.just(steps), st.permutations(steps))), deltas)
def test_the_order_of_the_steps_does_not_matter(
    orders: tuple[list[float], list[float]], delta: float
) -> None:
    one, two = orders
    for rule in RULES.values():
        assert rule(one, delta).epsilon == pytest.approx(rule(two, delta).epsilon, rel=1e-8)


@settings(max_examples=12)
@given(leakages, deltas)
def test_a_silent_step_costs_nothing(steps: list[float], delta: float) -> None:
    for rule in RULES.values():
        padded, plain = rule([*steps, 0.0, 0.0], delta), rule(steps, delta)
        assert padded.epsilon == pytest.approx(plain.epsilon, rel=1e-8)


def test_many_small_steps_cost_far_less_than_their_sum() -> None:
    steps = [0.05] * 1_000
    assert composed(steps, 1e-6).epsilon < 0.25 * sum(steps)
    assert composed(steps, 1e-6).epsilon < 0.95 * with_exact_means(steps, 1e-6)


def test_more_steps_than_are_convolved_are_bounded_too() -> None:
    few, many = composed([0.02] * 2_000, 1e-6), composed([0.02] * 2_001, 1e-6)
    assert few.epsilon < many.epsilon < 0.02 * 2_001


def test_no_steps_leak_nothing() -> None:
    assert composed([]) == SIP(0.0)
    assert composed([], 0.1) == SIP(0.0, 0.1)


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(RULES))
@pytest.mark.parametrize("wrong", [[-0.1], [math.nan], [math.inf], [[0.1]], [0.1, -1e-9]])
def test_what_is_no_list_of_leakages_is_refused(name: str, wrong: list[float]) -> None:
    with pytest.raises(InvalidParameter, match="leakages must be finite numbers of at least 0"):
        RULES[name](wrong, 0.1)


@pytest.mark.parametrize("name", list(RULES))
@pytest.mark.parametrize("delta", [-0.1, 1.0, 1.5, math.nan])
def test_what_is_no_failure_probability_is_refused(name: str, delta: float) -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        RULES[name]([0.1, 0.2], delta)
