"""Figures 2, 4, 5 and 6 of LIP: laws of the curves, and which statements about them hold."""

import itertools
import math
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binom

from sfumato.column.notion_relations import ldp_from_lip, ldp_from_lip_closed_form
from sfumato.column.repeated_leakage import repeated_leakage
from sfumato.core.guarantees import LIP
from sfumato.plots.points import Point
from sfumato.solver.closed_form import paper_response
from sfumato.studies.lip.lip_discrete import (
    BUDGETS,
    COMMON,
    EVEN,
    FAILURE,
    LEAST,
    NAMES,
    ORDERS,
    RARE,
    RELEASES,
    SAMPLED_BUDGETS,
    SAMPLES,
    SETS,
    Prior,
    figure_2,
    figure_4,
    figure_5,
    figure_6,
    least_estimate,
    posterior_spread,
    worst_channel,
)
from sfumato.studies.lip.lip_discrete_drawings import draw
from tests.oracles.quotient_program import quotient_program

Curves = dict[tuple[str, str], dict[float, float]]


def curves_of(points: list[Point]) -> Curves:
    curves: Curves = {}
    for point in points:
        curves.setdefault((point.figure, point.curve), {})[point.x] = point.y
    return curves


@pytest.fixture(scope="module")
def implied() -> Curves:
    return curves_of(figure_2())


@pytest.fixture(scope="module")
def binary() -> Curves:
    return curves_of(figure_4())


@pytest.fixture(scope="module")
def repeated() -> Curves:
    return curves_of(figure_5())


@pytest.fixture(scope="module")
def estimated() -> Curves:
    return curves_of(figure_6())


# Figure 2 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [EVEN, RARE], ids=NAMES.__getitem__)
@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.2, 3.0, 5.0])
def test_both_panels_solve_the_programs_of_the_paper(
    implied: Curves, prior: Prior, epsilon: float
) -> None:
    for figure in ("2a", "2b"):
        expected = quotient_program(np.array(prior), epsilon, posterior=figure == "2b")
        found = implied[figure, f"{NAMES[prior]}, exact"][epsilon]
        assert found == pytest.approx(expected, abs=1e-6)


@settings(max_examples=40)
@given(st.floats(0.01, 3.0), st.lists(st.floats(0.02, 1.0), min_size=2, max_size=5))
def test_the_quotient_of_posteriors_solves_the_program(epsilon: float, masses: list[float]) -> None:
    prior = np.array(masses) / sum(masses)
    expected = quotient_program(prior, epsilon, posterior=True)
    assert posterior_spread(prior, epsilon) == pytest.approx(expected, abs=1e-6)


def test_spot_values_of_figure_2(implied: Curves) -> None:
    k = math.exp(5)
    assert implied["2a", "even, exact"][5.0] == pytest.approx(math.log(4 * k - 3))
    assert implied["2a", "one rare, exact"][4.0] == pytest.approx(8.0)
    assert implied["2a", "one rare, exact"][5.0] == pytest.approx(math.log(100 * k - 99))
    assert implied["2b", "one rare, exact"][0.0] == pytest.approx(math.log(33))
    assert implied["2b", "one rare, bound"][5.0] == pytest.approx(10 + math.log(33))


def test_model_free_leakage_lies_between_once_and_twice(implied: Curves) -> None:
    for prior in ("even", "one rare"):
        for epsilon, value in implied["2a", f"{prior}, exact"].items():
            assert epsilon <= value + 1e-12
            assert value <= 2 * epsilon


@given(st.floats(0.01, 8.0), st.lists(st.floats(0.001, 1.0), min_size=3, max_size=7))
def test_the_looser_bound_is_the_maximum_for_three_symbols_or_more(
    epsilon: float, masses: list[float]
) -> None:
    prior = np.array(masses) / sum(masses)
    exact = ldp_from_lip(LIP(epsilon), prior).epsilon
    assert exact == pytest.approx(ldp_from_lip_closed_form(LIP(epsilon), prior).epsilon, rel=1e-9)


def test_skewed_priors_leak_more_model_free_but_not_on_two_symbols(implied: Curves) -> None:
    even, rare = implied["2a", "even, exact"], implied["2a", "one rare, exact"]
    assert all(even[epsilon] <= rare[epsilon] + 1e-12 for epsilon in even)
    pairs = [np.array(pair) for pair in ([0.5, 0.5], [0.2, 0.8], [0.1, 0.9])]
    falling = [quotient_program(pair, 0.5, posterior=False) for pair in pairs]
    assert falling == pytest.approx([0.8318, 0.6770, 0.5748], abs=1e-4)
    told = [ldp_from_lip(LIP(0.5), pair).epsilon for pair in pairs]
    assert told == pytest.approx(falling, abs=1e-7)


@pytest.mark.parametrize(("prior", "edge"), [("one rare", 0.708), ("even", math.log(3))])
def test_the_bound_on_posteriors_is_reached_by_small_leakages_only(
    implied: Curves, prior: str, edge: float
) -> None:
    exact, bound = implied["2b", f"{prior}, exact"], implied["2b", f"{prior}, bound"]
    for epsilon in exact:
        gap = bound[epsilon] - exact[epsilon]
        assert gap >= -1e-12
        assert (gap > 1e-9) is (epsilon > edge)


# Figure 4 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("figure", "one"), [("4a", 0.5), ("4b", 0.2)])
def test_the_leakages_of_a_bit_are_those_of_their_definitions(
    binary: Curves, figure: str, one: float
) -> None:
    for flip in (0.01, 0.13, 0.5, 0.88, 0.99):
        q, p = mpmath.mpf(flip), mpmath.mpf(one)
        rows, prior = [[1 - q, q], [q, 1 - q]], [1 - p, p]
        told = [sum(prior[x] * rows[x][y] for x in range(2)) for y in range(2)]
        cells = list(itertools.product(range(2), range(2)))
        logs = {(x, y): mpmath.log(rows[x][y] / told[y]) for x, y in cells}
        expected = {
            "LDP": abs(mpmath.log(q / (1 - q))),
            "LIP": max(abs(log) for log in logs.values()),
            "MIP": sum(prior[x] * rows[x][y] * logs[x, y] for x, y in cells),
            "MIL": mpmath.log(sum(max(rows[0][y], rows[1][y]) for y in range(2))),
        }
        for curve, value in expected.items():
            assert binary[figure, curve][flip] == pytest.approx(float(value), abs=1e-9)
        # Example 1 as printed, and with the logarithm that it lacks.
        printed = max(told[y] / rows[x][y] for x, y in cells)
        assert float(mpmath.log(printed)) == pytest.approx(float(expected["LIP"]), abs=1e-12)
        assert printed >= 1


@pytest.mark.parametrize("figure", ["4a", "4b"])
def test_worst_cases_leak_more_than_averages(binary: Curves, figure: str) -> None:
    for flip in binary[figure, "LIP"]:
        values = [binary[figure, curve][flip] for curve in ("LDP", "LIP", "MIL", "MIP")]
        if flip == 0.5:
            assert values == pytest.approx([0.0] * 4, abs=1e-12)
        else:
            assert values == sorted(values, reverse=True)
            assert len(set(values)) == 4


# Figure 5 ----------------------------------------------------------------------------------------


def printed(masses: list[float], least: float, epsilon: float) -> float:
    """Theorem 4 and its corollaries, as printed."""
    k = math.exp(epsilon)
    total = sum(min(2 * epsilon, math.log((k - 1 + p) / p)) for p in masses)
    return math.log(least + math.exp(total) * (1 - least))


def test_the_bounds_are_those_of_the_paper(repeated: Curves) -> None:
    for epsilon in BUDGETS:
        for prior, count in itertools.product(NAMES, range(1, RELEASES + 1)):
            told = repeated["5a", f"{NAMES[prior]}, ε = {epsilon:g}, bound"][count]
            least = min(prior)
            assert told == pytest.approx(printed([least] * count, least, epsilon), abs=1e-9)
        for priors, count in itertools.product(SETS, range(1, RELEASES + 1)):
            name = " or ".join(NAMES[prior] for prior in priors)
            told = repeated["5b", f"{name}, ε = {epsilon:g}, bound"][count]
            leasts = [min(prior) for prior in priors]
            expected = printed([max(leasts)] * count, min(leasts), epsilon)
            assert told == pytest.approx(expected, abs=1e-9)
        for order, count in itertools.product(ORDERS, (1, 2, 3)):
            name = ", then ".join(NAMES[prior] for prior in order)
            told = repeated["5c", f"{name}; ε = {epsilon:g}, bound"][count]
            leasts = [min(prior) for prior in order[:count]]
            assert told == pytest.approx(printed(leasts, math.prod(leasts), epsilon), abs=1e-9)


def test_exact_leakages_stay_below_the_bounds_and_optimal_channels_below_the_worst(
    repeated: Curves,
) -> None:
    for (figure, curve), line in repeated.items():
        if not curve.endswith("bound"):
            continue
        worst = repeated[figure, curve.replace("bound", "worst")]
        best = repeated.get((figure, curve.replace("bound", "optimal")), worst)
        for count, bound in line.items():
            assert best[count] <= worst[count] + 1e-6
            assert worst[count] < bound
        assert worst[1] == pytest.approx(float(curve.split()[-2].rstrip(",")), abs=1e-7)


def ratio_corners(prior: Prior, epsilon: float) -> list[tuple[float, ...]]:
    """Ratios that average to 1, all but one of them at an end of their range."""
    ends, found = (math.exp(-epsilon), math.exp(epsilon)), []
    for free in range(len(prior)):
        for rest in itertools.product(ends, repeat=len(prior) - 1):
            ratios = [*rest[:free], 0.0, *rest[free:]]
            last = (1 - sum(p * r for p, r in zip(prior, ratios, strict=True))) / prior[free]
            if ends[0] - 1e-12 <= last <= ends[1] + 1e-12:
                ratios[free] = last
                found.append(tuple(ratios))
    return found


@pytest.mark.parametrize("prior", list(NAMES), ids=NAMES.__getitem__)
@pytest.mark.parametrize("epsilon", BUDGETS)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_worst_channel_is_the_worst_of_all_sequences_of_extreme_columns(
    repeated: Curves, prior: Prior, epsilon: float, count: int
) -> None:
    """The leakage is quasi-convex in each column, both up and down: no other columns matter."""
    corners = np.array(ratio_corners(prior, epsilon))
    chosen = list(itertools.combinations_with_replacement(range(len(corners)), count))
    columns = np.prod(corners[np.array(chosen)], axis=1)
    leaked = float(np.abs(np.log(columns / (columns @ np.array(prior))[:, None])).max())
    told = repeated["5a", f"{NAMES[prior]}, ε = {epsilon:g}, worst"][count]
    assert told == pytest.approx(leaked, abs=1e-6)


@pytest.mark.parametrize("priors", SETS, ids=lambda pair: " or ".join(NAMES[p] for p in pair))
def test_no_column_found_at_random_leaks_more_under_a_set(
    repeated: Curves, rng: np.random.Generator, priors: tuple[Prior, Prior]
) -> None:
    epsilon, k = 2.0, math.exp(2.0)
    name = " or ".join(NAMES[prior] for prior in priors)
    sides = np.vstack(
        [
            side
            for p in priors
            for side in (np.tile(p, (4, 1)) / k - np.eye(4), np.eye(4) - k * np.tile(p, (4, 1)))
        ]
    )
    for count, low in itertools.product((1, 2, 5), range(4)):
        told = repeated["5b", f"{name}, ε = {epsilon:g}, worst"][count]
        for _ in range(8):
            towards = -rng.exponential(size=4)
            found = linprog(towards, sides, np.zeros(16), np.eye(4)[[low]], [1.0])
            column = found.x**count
            leaked = max(abs(math.log(column[low] / (np.array(p) @ column))) for p in priors)
            assert leaked <= told + 1e-6


def exact_leakage(rows: list[list[int]], prior: Prior, releases: int) -> mpmath.mpf:
    """All output sequences listed, in fractions."""
    parts, worst = [Fraction(p) for p in prior], Fraction(1)
    for told in itertools.product(range(len(rows[0])), repeat=releases):
        column = [Fraction(math.prod(row[y] for y in told)) for row in rows]
        weighted = (p * c for p, c in zip(parts, column, strict=True))
        mean = sum(weighted, Fraction(0)) / sum(parts, Fraction(0))
        worst = max(worst, *(max(c / mean, mean / c) for c in column))
    with mpmath.workdps(40):
        return mpmath.log(mpmath.mpf(worst.numerator) / worst.denominator)


@pytest.mark.parametrize("prior", list(NAMES), ids=NAMES.__getitem__)
def test_the_worst_channel_keeps_its_budget_exactly(repeated: Curves, prior: Prior) -> None:
    for epsilon, count in itertools.product(BUDGETS, (1, 4)):
        channel = worst_channel([prior], epsilon, count)
        assert exact_leakage(channel.weights.tolist(), prior, 1) <= epsilon
        told = repeated_leakage([channel] * count, prior).epsilon
        assert told == repeated["5a", f"{NAMES[prior]}, ε = {epsilon:g}, worst"][count]
        exact = exact_leakage(channel.weights.tolist(), prior, count)
        assert exact <= told <= exact + 1e-12


def test_a_small_least_probability_does_not_lower_the_bound(repeated: Curves) -> None:
    """The paper: "when P_min is small [...] we observe a decrease"."""
    ordered = sorted(NAMES, key=min, reverse=True)
    assert ordered == [EVEN, COMMON, RARE]
    for epsilon, count in itertools.product(BUDGETS, range(1, RELEASES + 1)):
        bounds = [repeated["5a", f"{NAMES[p]}, ε = {epsilon:g}, bound"][count] for p in ordered]
        assert bounds == sorted(bounds)
        assert bounds[0] < bounds[1]
    last = [repeated["5a", f"{NAMES[p]}, ε = 5, worst"][RELEASES] for p in ordered]
    assert last == pytest.approx([49.66, 56.07, 72.18], abs=0.01)


def test_where_a_rare_symbol_does_lower_the_exact_leakage(repeated: Curves) -> None:
    even, rare = (repeated["5a", f"{name}, ε = 2, worst"] for name in ("even", "one rare"))
    assert [count for count in even if rare[count] < even[count] - 1e-6] == [2, 3]
    even, rare = (repeated["5a", f"{name}, ε = 2, optimal"] for name in ("even", "one rare"))
    assert all(rare[count] < even[count] for count in range(2, RELEASES + 1))


def test_bounds_grow_evenly_and_exact_leakages_only_in_the_end(repeated: Curves) -> None:
    """The paper: "increases linearly"."""
    for (figure, curve), line in repeated.items():
        steps = np.diff([line[count] for count in sorted(line)])
        if figure != "5c" and curve.endswith("bound"):
            assert np.ptp(steps) < 0.013
            assert line[1] < steps[-1]  # not through the origin
    steps = np.diff(list(repeated["5a", "one rare, ε = 2, worst"].values()))
    assert steps[[0, -1]].tolist() == pytest.approx([2.986, 3.988], abs=1e-3)
    for prior, high in ((EVEN, 0.25), (COMMON, 0.1), (RARE, 0.01)):
        slope = ldp_from_lip(LIP(5.0), prior).epsilon
        last = repeated["5a", f"{NAMES[prior]}, ε = 5, worst"][RELEASES]
        assert last == pytest.approx(RELEASES * slope + math.log(high), abs=1e-3)


def test_the_order_of_values_does_not_matter_in_the_end(repeated: Curves) -> None:
    for epsilon, total in zip(BUDGETS, (11.2790, 23.2760), strict=True):
        names = [", then ".join(NAMES[prior] for prior in order) for order in ORDERS]
        bounds = [repeated["5c", f"{name}; ε = {epsilon:g}, bound"] for name in names]
        assert [line[3] for line in bounds] == pytest.approx([total] * 3, abs=1e-4)
        assert max(np.ptp(np.diff(list(line.values()))) for line in bounds) > 0.7
        for name in names:
            exact = repeated["5c", f"{name}; ε = {epsilon:g}, worst"]
            assert [exact[n] / n for n in (1, 2, 3)] == pytest.approx([epsilon] * 3, abs=1e-6)


# Figure 6 ----------------------------------------------------------------------------------------


def response_leakages(estimate: float, epsilon: float) -> tuple[float, float]:
    """Eq. 19 for a bit by hand: leakage under the estimate and under the truth."""
    k = math.exp(epsilon)
    rows = [[1 - (1 - estimate) / k, (1 - estimate) / k], [estimate / k, 1 - estimate / k]]

    def leaked(prior: float) -> float:
        told = [prior * rows[0][y] + (1 - prior) * rows[1][y] for y in range(2)]
        return max(abs(math.log(rows[x][y] / told[y])) for x in range(2) for y in range(2))

    return leaked(estimate), leaked(LEAST)


def exact_quantile(samples: int, epsilon: float, part: float) -> tuple[float, float]:
    """Of the discrepancy: its values where the distribution passes part -+ 4 deviations."""
    counts = np.arange(1, samples)
    apart = [abs(a - b) for a, b in (response_leakages(c / samples, epsilon) for c in counts)]
    order = np.argsort(apart)
    below = np.cumsum(binom.pmf(counts, samples, LEAST)[order])
    deviation = 4 * math.sqrt(part * (1 - part) / 1_000)
    places = np.searchsorted(below, [part - deviation, min(part + deviation, 1 - 1e-5)])
    return apart[order[places[0]]], apart[order[places[1]]]


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", SAMPLED_BUDGETS.values())
def test_sampled_discrepancies_have_the_exact_quantiles(estimated: Curves, epsilon: float) -> None:
    for samples, (name, part) in itertools.product(
        (50, 500, 2_000), (("median", 0.5), ("99 %", 0.99))
    ):
        low, high = exact_quantile(samples, epsilon, part)
        found = estimated["6c", f"ε = {epsilon:g}, {name}"][samples]
        assert low <= found <= high
        if part == 0.5 and samples > 50:
            assert not low <= 1.4 * found <= high
            assert not low <= found / 1.4 <= high


def test_the_bounds_of_figure_6_are_those_of_the_paper(estimated: Curves) -> None:
    for samples in SAMPLES:
        apart = math.sqrt(2 / samples * (2 - math.log(FAILURE))) / 2
        least = LEAST - apart
        assert least_estimate(samples) == pytest.approx(least)
        gap = math.log(1 + apart / least)
        assert estimated["6c", "bound"][samples] == pytest.approx(gap)
        assert estimated["6c", "c = P_min"][samples] == pytest.approx(math.log(1 + apart / LEAST))
        for figure, epsilon in SAMPLED_BUDGETS.items():
            free = math.log((math.exp(epsilon) - 1 + least) / least)
            assert estimated[figure, "η + ε"][samples] == pytest.approx(gap + epsilon)
            assert estimated[figure, "ln((e^ε - 1 + p)/p)"][samples] == pytest.approx(free)
            assert estimated[figure, "2ε"][samples] == 2 * epsilon


def test_discrepancies_fall_to_nothing_below_their_bound(estimated: Curves) -> None:
    for epsilon in SAMPLED_BUDGETS.values():
        rare = estimated["6c", f"ε = {epsilon:g}, 99 %"]
        middle = estimated["6c", f"ε = {epsilon:g}, median"]
        for line in (rare, middle):
            values = [line[samples] for samples in SAMPLES]
            assert values == sorted(values, reverse=True)
        assert all(rare[samples] < estimated["6c", "bound"][samples] for samples in SAMPLES)
        assert rare[SAMPLES[-1]] < 0.004


@pytest.mark.parametrize("epsilon", [0.3, 0.5, 0.84, 0.855, 1.0, 2.0])
def test_the_published_response_exceeds_its_claim_where_a_value_is_rare(epsilon: float) -> None:
    leaked = paper_response([LEAST, 1 - LEAST], 1 - np.eye(2), epsilon).sip.epsilon
    assert leaked == pytest.approx(response_leakages(LEAST, epsilon)[0])
    assert (leaked > epsilon + 1e-9) is (1 / (math.exp(epsilon) + 1) > LEAST)


def test_the_published_response_breaks_the_bound_on_its_transfer(estimated: Curves) -> None:
    leaked, bound = estimated["6a", "Eq. 19, median"], estimated["6a", "η + ε"]
    assert [samples for samples in SAMPLES if leaked[samples] > bound[samples]] == [
        samples for samples in SAMPLES if samples >= 2_000
    ]
    assert leaked[SAMPLES[-1]] == pytest.approx(0.651, abs=1e-3)
    kept, roof = estimated["6b", "Eq. 19, 99 %"], estimated["6b", "η + ε"]
    assert all(kept[samples] < roof[samples] for samples in SAMPLES)


def test_the_least_true_probability_is_not_enough_for_the_corollary() -> None:
    """With c = P_min it fails too often; with the least of both, as it is stated, it holds."""
    samples, epsilon = 50, 4.0
    apart = math.sqrt(2 / samples * (2 - math.log(FAILURE))) / 2
    short = stated = 0.0
    for count in range(1, samples):
        estimate = count / samples
        here, there = response_leakages(estimate, epsilon)
        chance = float(binom.pmf(count, samples, LEAST))
        short += chance * (abs(here - there) > math.log(1 + apart / LEAST))
        least = min(LEAST, estimate, 1 - estimate)
        stated += chance * (abs(here - there) > math.log(1 + apart / least))
    assert short == pytest.approx(0.01825, abs=1e-4)
    assert short > FAILURE > stated


def test_a_seed_fixes_every_point_and_another_moves_the_samples() -> None:
    first, again, other = (figure_6(seed, 40) for seed in (1, 1, 2))
    assert first == again
    moved = {a.curve for a, b in zip(first, other, strict=True) if a != b}
    assert "ε = 2, median" in moved
    assert moved.isdisjoint({"bound", "2ε", "η + ε"})


# The picture -------------------------------------------------------------------------------------


def test_the_picture_is_drawn(
    implied: Curves, binary: Curves, repeated: Curves, estimated: Curves, tmp_path: Path
) -> None:
    points = [
        Point(figure, curve, x, y)
        for curves in (implied, binary, repeated, estimated)
        for (figure, curve), line in curves.items()
        for x, y in line.items()
    ]
    draw(points, tmp_path / "all.png")
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")
