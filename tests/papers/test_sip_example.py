"""Example 1 of SIP against its own formulas where they hold, and against brute force elsewhere."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from sfumato.core.errors import InvalidParameter
from sfumato.studies.sip.sip_example import ExamplePoint, data_correlation, example_points

Rows = dict[tuple[int, int], float]  # (true bit, released bit) -> probability
Rule = Callable[[float, float], Rows]  # (Pr(bit = 1), e^epsilon) -> channel

GRID = [0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0]
ANY_NOISE = 0.5  # a bound that a constant keeps: the last panel is empty and costs no time


# Oracle ------------------------------------------------------------------------------------------


def flipping(up: float, down: float) -> Rows:
    """Probabilities `up` that a 0 becomes a 1 and `down` that a 1 becomes a 0."""
    return {(0, 0): 1 - up, (0, 1): up, (1, 0): down, (1, 1): 1 - down}


def closed_form(one: float, k: float) -> Rows:
    return flipping(one / k, (1 - one) / k)


def brute_force(one: float, k: float) -> Rows:
    """The best channel on two bits: the cheapest corner of the polygon of all that are allowed."""

    def slacks(up: float, down: float) -> list[float]:
        rows = flipping(up, down)
        found = [up, 1 - up, down, 1 - down]
        for x, y in rows:
            told = (1 - one) * rows[0, y] + one * rows[1, y]
            found += [k * rows[x, y] - told, k * told - rows[x, y]]
        return found

    base, right, above = slacks(0, 0), slacks(1, 0), slacks(0, 1)
    lines = [(r - c, a - c, -c) for c, r, a in zip(base, right, above, strict=True)]
    corners = [(0.0, 1.0), (1.0, 0.0)]  # constants first: they win a tie
    for (a, b, e), (c, d, f) in itertools.combinations(lines, 2):
        if abs(a * d - b * c) > 1e-12:
            corners.append(((e * d - b * f) / (a * d - b * c), (a * f - e * c) / (a * d - b * c)))
    allowed = [corner for corner in corners if min(slacks(*corner)) > -1e-12]
    costs = [(1 - one) * up + one * down for up, down in allowed]
    best = next(i for i, cost in enumerate(costs) if cost <= min(costs) + 1e-12)
    return flipping(*allowed[best])


@dataclass(frozen=True)
class Expected:
    noise_correlation: float
    noise_information: float
    first_noise: float
    second_noise: float
    least_belief: float


def enumerate_outcomes(
    first_prior: float, k1: float, k2: float, flip: float, rule: Rule
) -> Expected:
    """All sixteen outcomes (x1, y1, x2, y2), one by one."""
    first = rule(first_prior, k1)
    prior = {1: first_prior, 0: 1 - first_prior}
    flips = {(i, j): 0.0 for i in (0, 1) for j in (0, 1)}
    least = min(prior.values())
    for y1 in (0, 1):
        told = sum(prior[x] * first[x, y1] for x in (0, 1))
        if told == 0:
            continue
        one = sum(prior[x] * first[x, y1] * (flip if x == 0 else 1 - flip) for x in (0, 1)) / told
        least = min(least, one, 1 - one)
        second = rule(one, k2)
        for x1, x2, y2 in itertools.product((0, 1), repeat=3):
            move = flip if x1 != x2 else 1 - flip
            flips[int(x1 != y1), int(x2 != y2)] += prior[x1] * first[x1, y1] * move * second[x2, y2]
    p, q = flips[1, 0] + flips[1, 1], flips[0, 1] + flips[1, 1]
    marginals = {(i, j): (p if i else 1 - p) * (q if j else 1 - q) for i, j in flips}
    return Expected(
        noise_correlation=(flips[1, 1] - p * q) / math.sqrt(p * (1 - p) * q * (1 - q)),
        noise_information=sum(m * math.log(m / marginals[c]) for c, m in flips.items() if m > 0),
        first_noise=p,
        second_noise=q,
        least_belief=least,
    )


def agrees(point: ExamplePoint, expected: Expected) -> None:
    for name in ("first_noise", "second_noise", "noise_correlation", "noise_information"):
        assert getattr(point, name) == pytest.approx(getattr(expected, name), abs=1e-7), name


def appendix_noise(first_prior: float, epsilon1: float, epsilon2: float, flip: float) -> float:
    """Pr(N2 = 1) written out from the parameters printed in the appendix."""
    p, k1, k = first_prior, math.exp(epsilon1), math.exp(epsilon1 + epsilon2)
    up = {
        1: (flip * (1 - p) + (1 - flip) * (k1 - 1 + p)) / k,
        0: (flip * (k1 - p) + (1 - flip) * p) / k,
    }
    down = {
        1: ((1 - flip) * (1 - p) + flip * (k1 - 1 + p)) / k,
        0: ((1 - flip) * (k1 - p) + flip * p) / k,
    }
    first = flipping(p / k1, (1 - p) / k1)
    noise = 0.0
    for x1, y1, x2 in itertools.product((0, 1), repeat=3):
        weight = (p if x1 else 1 - p) * first[x1, y1] * (flip if x1 != x2 else 1 - flip)
        noise += weight * (down[y1] if x2 else up[y1])
    return noise


cases = st.tuples(
    st.sampled_from([0.5, 0.95, 0.3]),
    st.floats(0.1, 2.5),
    st.floats(0.1, 2.5),
    st.floats(0.02, 0.98),
)


@settings(max_examples=60)
@given(cases)
def test_the_published_rule_gives_the_numbers_of_the_appendix(
    case: tuple[float, float, float, float],
) -> None:
    first_prior, epsilon1, epsilon2, flip = case
    [point] = example_points(
        first_prior, epsilon1, epsilon2, [flip], "published", max_noise=ANY_NOISE
    )
    k1, k2 = math.exp(epsilon1), math.exp(epsilon2)
    agrees(point, enumerate_outcomes(first_prior, k1, k2, flip, closed_form))
    assert point.second_noise == pytest.approx(
        appendix_noise(first_prior, epsilon1, epsilon2, flip), abs=1e-12
    )


@settings(max_examples=60)
@given(cases)
def test_the_optimum_is_that_of_brute_force(case: tuple[float, float, float, float]) -> None:
    first_prior, epsilon1, epsilon2, flip = case
    [point] = example_points(first_prior, epsilon1, epsilon2, [flip], max_noise=ANY_NOISE)
    k1, k2 = math.exp(epsilon1), math.exp(epsilon2)
    expected = enumerate_outcomes(first_prior, k1, k2, flip, brute_force)
    agrees(point, expected)
    assert point.first_leakage <= epsilon1
    assert point.second_leakage <= epsilon2


@settings(max_examples=60)
@given(st.floats(0.4, 0.6), st.floats(0.5, 2.5), st.floats(0.5, 2.5), st.floats(0.02, 0.98))
def test_where_no_belief_is_rare_the_optimum_is_the_published_rule(
    first_prior: float, epsilon1: float, epsilon2: float, flip: float
) -> None:
    k1, k2 = math.exp(epsilon1), math.exp(epsilon2)
    expected = enumerate_outcomes(first_prior, k1, k2, flip, closed_form)
    budgets = (first_prior, epsilon1, epsilon2, [flip])
    [best] = example_points(*budgets, max_noise=ANY_NOISE)
    [claim] = example_points(*budgets, "published", max_noise=ANY_NOISE)
    valid = min(first_prior, 1 - first_prior) >= 1 / (k1 + 1) and expected.least_belief >= 1 / (
        min(k1, k2) + 1
    )
    if valid:
        event("formulas hold")
        agrees(best, expected)
    over = claim.second_leakage > epsilon2 * (1 + 1e-9)
    assert not (valid and over)
    if over:
        event("formulas break their bound")


@pytest.mark.parametrize("first_prior", [0.5, 0.95])
@pytest.mark.parametrize("method", ["optimal", "published"])
def test_noise_of_independent_bits_is_independent(first_prior: float, method: str) -> None:
    [point] = example_points(first_prior, 1.0, 0.7, [0.5], method, max_noise=ANY_NOISE)
    assert point.data_correlation == 0.0
    assert point.noise_correlation == pytest.approx(0.0, abs=1e-9)
    assert point.noise_information == pytest.approx(0.0, abs=1e-12)
    assert point.second_noise == pytest.approx(math.exp(-0.7) / 2, abs=1e-9)


@pytest.mark.parametrize("method", ["optimal", "published"])
def test_opposite_bits_are_as_good_as_equal_ones_for_an_even_prior(method: str) -> None:
    there = example_points(0.5, 1.0, 0.7, GRID, method, max_noise=ANY_NOISE)
    back = example_points(0.5, 1.0, 0.7, [1 - flip for flip in GRID], method, max_noise=ANY_NOISE)
    for one, two in zip(there, back, strict=True):
        assert one.data_correlation == pytest.approx(-two.data_correlation, abs=1e-12)
        for name in ("noise_correlation", "noise_information", "first_noise", "second_noise"):
            assert getattr(one, name) == pytest.approx(getattr(two, name), abs=1e-9)


@pytest.mark.parametrize("first_prior", [0.1, 0.5, 0.95])
def test_data_correlation_runs_from_one_to_minus_one(first_prior: float) -> None:
    found = [data_correlation(first_prior, flip) for flip in GRID]
    assert found[0] == pytest.approx(1.0)
    assert found[-1] == pytest.approx(-1.0)
    assert found[len(GRID) // 2] == 0.0
    assert found == sorted(found, reverse=True)


@given(st.floats(0.01, 0.99), st.floats(0.0, 1.0))
def test_data_correlation_is_that_of_the_joint_table(first_prior: float, flip: float) -> None:
    both, second = first_prior * (1 - flip), first_prior * (1 - flip) + (1 - first_prior) * flip
    spread = math.sqrt(first_prior * (1 - first_prior) * second * (1 - second))
    expected = (both - first_prior * second) / spread
    assert data_correlation(first_prior, flip) == pytest.approx(expected, abs=1e-9)


# What the paper says of its figures --------------------------------------------------------------


def rising(points: list[ExamplePoint]) -> list[ExamplePoint]:
    return sorted(points, key=lambda point: abs(point.data_correlation))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_published_noise_falls_as_the_correlation_grows(epsilon: float) -> None:
    flips = [0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.0]
    for first_prior in (0.5, 0.95):
        points = rising(
            example_points(first_prior, epsilon, epsilon, flips, "published", max_noise=ANY_NOISE)
        )
        noises = [point.second_noise for point in points]
        assert noises == sorted(noises, reverse=True)
        correlations = [point.noise_correlation for point in points]
        assert correlations == sorted(correlations)
        # Only at the price of leakage over the budget.
        assert points[-1].second_leakage > 1.2 * epsilon


@pytest.mark.parametrize("first_prior", [0.5, 0.95])
@settings(max_examples=40)
@given(epsilon1=st.floats(0.1, 2.5), epsilon2=st.floats(0.1, 2.5), flip=st.floats(0.0, 1.0))
def test_certified_noise_is_never_above_that_for_independent_bits(
    first_prior: float, epsilon1: float, epsilon2: float, flip: float
) -> None:
    [point] = example_points(first_prior, epsilon1, epsilon2, [flip], max_noise=ANY_NOISE)
    assert point.second_noise <= math.exp(-epsilon2) / 2 + 1e-9


def test_certified_noise_does_not_fall_steadily() -> None:
    flips = [0.5, 0.3, 0.2, 0.1, 0.05]
    noises = [
        point.second_noise for point in example_points(0.5, 0.5, 0.5, flips, max_noise=ANY_NOISE)
    ]
    assert noises[0] > noises[1] > noises[2]
    assert noises[2] < noises[3] < noises[4] < noises[0]


def test_certified_noise_falls_as_long_as_no_belief_is_rare() -> None:
    # For an even prior and equal budgets the beliefs stay above 1/(k+1) up to about flip .15.
    flips = [0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2]
    points = example_points(0.5, 1.0, 1.0, flips, max_noise=ANY_NOISE)
    noises = [point.second_noise for point in points]
    assert noises == sorted(noises, reverse=True)
    correlations = [point.noise_correlation for point in points]
    assert correlations == sorted(correlations)


def test_the_published_rule_can_be_noisier_than_a_constant_and_leak_more() -> None:
    budgets = (0.5, 2.0, 0.5, [0.0625])
    [best] = example_points(*budgets, max_noise=ANY_NOISE)
    [claim] = example_points(*budgets, "published", max_noise=ANY_NOISE)
    assert best.second_leakage == 0.0
    assert claim.second_leakage > 0.7
    assert claim.second_noise > best.second_noise + 0.005


@pytest.mark.parametrize("method", ["optimal", "published"])
def test_a_skewed_prior_makes_noise_of_equal_bits_more_alike(method: str) -> None:
    [even] = example_points(0.5, 1.0, 1.3, [0.0], method, max_noise=ANY_NOISE)
    [skewed] = example_points(0.95, 1.0, 1.3, [0.0], method, max_noise=ANY_NOISE)
    assert skewed.noise_correlation > even.noise_correlation > 0


def test_knowing_the_first_output_lowers_the_least_leakage_for_an_even_prior() -> None:
    for point in example_points(0.5, 1.0, 1.0, [0.05, 0.2, 0.4, 0.5]):
        assert point.independent_leakage == pytest.approx(math.log(5), abs=1e-6)
        assert point.correlated_leakage <= point.independent_leakage + 1e-6
        assert point.independent_leakage <= point.independent_true_leakage + 1e-6
        assert point.correlated_leakage == pytest.approx(point.correlated_mean_leakage, abs=1e-6)
        if point.flip < 0.45:
            assert point.correlated_leakage < point.independent_leakage - 0.01
            assert point.independent_true_leakage > point.independent_leakage + 0.05


def test_it_does_not_for_a_skewed_prior_and_the_rarer_output() -> None:
    # After the unlikely output the belief is nearly even: the same bound on the noise needs more.
    [point] = example_points(0.95, 1.0, 1.0, [0.1], "published")
    assert point.correlated_leakage > point.independent_leakage + 0.05
    assert point.correlated_leakage <= math.log(5) + 1e-6
    # The certified first step says nothing at all: both designs are the same.
    [silent] = example_points(0.95, 1.0, 1.0, [0.1])
    assert silent.first_leakage == 0.0
    assert silent.correlated_leakage == pytest.approx(silent.independent_leakage, abs=1e-6)


def test_the_least_leakage_keeps_the_bound_and_is_least() -> None:
    max_noise, flip = 0.12, 0.2
    [point] = example_points(0.5, 1.0, 1.0, [flip], max_noise=max_noise)
    one = flip / math.e / 2 + (1 - flip) * (1 - 1 / math.e / 2)

    def noise(epsilon: float) -> float:
        rows = brute_force(one, math.exp(epsilon))
        return (1 - one) * rows[0, 1] + one * rows[1, 0]

    assert noise(point.correlated_leakage * (1 + 1e-6)) <= max_noise
    assert noise(point.correlated_leakage * (1 - 1e-4)) > max_noise


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("first_prior", [0.0, 1.0, -0.1])
def test_a_certain_first_bit_is_refused(first_prior: float) -> None:
    with pytest.raises(InvalidParameter, match="first_prior"):
        example_points(first_prior, 1.0, 1.0, [0.5])


@pytest.mark.parametrize("flip", [-0.1, 1.1])
def test_a_flip_that_is_no_probability_is_refused(flip: float) -> None:
    with pytest.raises(InvalidParameter, match="flips must lie in"):
        example_points(0.5, 1.0, 1.0, [flip])
