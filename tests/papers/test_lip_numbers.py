"""Figures 7 to 10 of LIP: laws of their curves, and where their statements hold and fail."""

import itertools
import math
from collections.abc import Callable
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import optimize, stats

from sfumato.column.noise_scales import paper_laplace_scale, paper_sampling_rate
from sfumato.column.scaled_noise import least_noise_each
from sfumato.noise.lattice import Noise
from sfumato.plots.points import Point
from sfumato.studies.lip.lip_number_noise import (
    DELTA,
    LATTICE,
    MASSES,
    PRIOR,
    THREE,
    THREE_MASSES,
    cut_masses,
    instance_scale,
    instance_scales,
    largest_constant,
    line_scale,
    mixture_deltas,
    value_delta,
)
from sfumato.studies.lip.lip_numbers import (
    DENSITIES,
    NOISE,
    SWITCH,
    VALUES,
    WIDTH,
    figure_7,
    figure_8,
    figure_9,
    figure_10,
)
from sfumato.studies.lip.lip_numbers_drawings import draw
from tests.oracles.mixture_noise import gaussian_deltas

Floats = NDArray[np.float64]
Curves = dict[tuple[str, str], dict[float, float]]

DISTRIBUTIONS = (stats.beta(2, 5), stats.norm(0.5, 0.15), stats.uniform(0, 1))
SPREAD = 5.0


def curves(points: list[Point]) -> Curves:
    found: Curves = {}
    for point in points:
        found.setdefault((point.figure, point.curve), {})[point.x] = point.y
    return found


@pytest.fixture(scope="module")
def sampled() -> Curves:
    return curves(figure_7())


@pytest.fixture(scope="module")
def outages() -> Curves:
    return curves(figure_8())


@pytest.fixture(scope="module")
def gaussian() -> Curves:
    done: list[int] = []
    found = curves(figure_9(done.append, epsilons=(0.5, 3.0)))
    assert done == [1, 2]
    return found


@pytest.fixture(scope="module")
def scales() -> dict[float, Floats]:
    return {epsilon: instance_scales(epsilon) for epsilon in (1.0, 2.0, 3.0)}


@pytest.fixture(scope="module")
def laplace() -> Curves:
    return curves(figure_10(epsilons=(0.25, 1.0, 1.45, SWITCH, 2.0, 4.0)))


# Figure 7: sampling ------------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(3))
def test_differences_and_deviations_are_the_integrals(place: int) -> None:
    density, true = DENSITIES[place], DISTRIBUTIONS[place]
    low, high = true.ppf(1e-14), true.isf(1e-14)
    values, step = np.linspace(low, high, 200_001, retstep=True)
    below = true.cdf(values)
    apart = 2 * below * (1 - below)
    assert density.difference == pytest.approx(np.trapezoid(apart, dx=step), rel=1e-6)
    away = np.abs(values - true.median()) * true.pdf(values)
    assert density.deviation == pytest.approx(np.trapezoid(away, dx=step), rel=1e-6)


@pytest.mark.statistical
@pytest.mark.parametrize("place", range(3))
def test_users_who_sample_have_this_error_and_no_other(
    place: int, sampled: Curves, rng: np.random.Generator
) -> None:
    users, rate = 200_000, math.e**2 * 0.05
    values, fresh = DISTRIBUTIONS[place].rvs((2, users), random_state=rng)
    error = sampled["7b", f"{DENSITIES[place].name}, Prop. 2"][0.05]

    def far(told: float) -> bool:
        errors = np.where(rng.random(users) < told, 0.0, np.abs(values - fresh))
        # Five standard errors: one in two million by chance.
        return bool(abs(errors.mean() - error) > 5 * errors.std() / math.sqrt(users))

    assert not far(rate)
    assert far(0.7 * rate)
    assert far(1.3 * rate)


@given(epsilon=st.floats(0.0, 8.0), delta=st.floats(0.0, 1.0))
def test_prop_2_is_the_most_that_the_definition_allows(epsilon: float, delta: float) -> None:
    k, rate = math.exp(epsilon), paper_sampling_rate(epsilon, delta)
    # A told value is a point mass of `rate` where the marginal has none; the rest is smaller by
    # `1 - rate` everywhere.
    over = rate / k - delta
    under = 1 - k * (1 - rate) - delta
    assert max(over, under / k) == pytest.approx(0.0, abs=1e-12)


@given(epsilon=st.floats(0.01, 8.0))
def test_the_branches_change_at_one_over_k_plus_one(epsilon: float) -> None:
    k = math.exp(epsilon)
    assert (1 - 1 / k) / (k - 1 / k) == pytest.approx(1 / (k + 1))
    assert paper_sampling_rate(epsilon, 1 / (k + 1)) == pytest.approx(k / (k + 1))


def test_every_distribution_has_the_same_trend(sampled: Curves) -> None:
    for panel, rule in itertools.product(("7a", "7b"), ("Prop. 2", "λ = δ")):
        scaled = [
            [
                error / density.difference
                for error in sampled[panel, f"{density.name}, {rule}"].values()
            ]
            for density in DENSITIES
        ]
        assert scaled[0] == pytest.approx(scaled[1])
        assert scaled[0] == pytest.approx(scaled[2])


def test_utility_grows_with_epsilon_by_def_5_and_not_by_cor_9(sampled: Curves) -> None:
    for density in DENSITIES:
        loose = list(sampled["7a", f"{density.name}, Prop. 2"].values())
        assert all(later < earlier for earlier, later in itertools.pairwise(loose))
        assert len(set(sampled["7a", f"{density.name}, λ = δ"].values())) == 1


def test_utility_grows_fast_with_a_small_delta_and_then_slowly(sampled: Curves) -> None:
    line = sampled["7b", "Unif(0, 1), Prop. 2"]
    slopes = -3 * np.diff(list(line.values())) / np.diff(list(line))
    assert slopes[:23] == pytest.approx(math.e**2)
    assert slopes[24:] == pytest.approx(math.e**-2)
    assert slopes[0] / slopes[-1] == pytest.approx(54.6, abs=0.01)


def test_the_best_constant_beats_sampling_up_to_an_epsilon_over_3(sampled: Curves) -> None:
    for density, end in zip(DENSITIES, (3.34, 3.38, 3.22), strict=True):
        for epsilon, error in sampled["7a", f"{density.name}, Prop. 2"].items():
            assert (error > density.deviation) is (epsilon < end)


# Figure 8: the delta of Gaussian noise -----------------------------------------------------------


def integrated(value: float, noise: float, epsilon: float) -> float:
    """The larger divergence under the normal prior, by adaptive quadrature between crossings."""
    wide, k = mpmath.hypot(SPREAD, noise), mpmath.exp(epsilon)

    def given_value(y: float) -> mpmath.mpf:
        return mpmath.npdf(y, value, noise)

    def overall(y: float) -> mpmath.mpf:
        return mpmath.npdf(y, 0, wide)

    def excess(
        first: Callable[[float], mpmath.mpf], second: Callable[[float], mpmath.mpf]
    ) -> float:
        def gap(y: float) -> mpmath.mpf:
            return first(y) - k * second(y)

        grid = [mpmath.mpf(3 * y) for y in range(-200, 201)]
        ends = [
            mpmath.findroot(gap, (left, right), solver="anderson", tol=1e-30, verify=False)
            for left, right in itertools.pairwise(grid)
            if gap(left) * gap(right) < 0
        ]
        pieces = itertools.pairwise([grid[0], *ends, grid[-1]])
        total = mpmath.mpf(0)
        for left, right in pieces:
            if gap((left + right) / 2) > 0:
                total += mpmath.quad(gap, mpmath.linspace(left, right, 9))
        return float(total)

    return max(excess(given_value, overall), excess(overall, given_value))


@pytest.mark.parametrize(("value", "epsilon"), [(0.0, 0.05), (5.0, 1.0), (10.0, 3.0), (0.0, 6.0)])
def test_deltas_are_the_integrals(value: float, epsilon: float, outages: Curves) -> None:
    drawn = outages["8", f"LIP, X = {value:g}"][epsilon]
    assert drawn == pytest.approx(integrated(value, NOISE, epsilon), rel=1e-6)
    assert drawn == pytest.approx(
        float(gaussian_deltas(PRIOR, NOISE, epsilon, [value])[0]), rel=1e-6
    )


def test_deltas_fall_with_epsilon_and_grow_with_the_distance(outages: Curves) -> None:
    for line in outages.values():
        assert all(later <= earlier for earlier, later in itertools.pairwise(line.values()))
    near, middle, far = (outages["8", f"LIP, X = {value:g}"] for value in VALUES)
    assert all(near[epsilon] < middle[epsilon] < far[epsilon] for epsilon in near)


def test_lip_outperforms_ldp_at_the_same_epsilon(outages: Curves) -> None:
    for epsilon, delta in outages["8", "LIP, X = 10"].items():
        assert delta < outages["8", "LDP, ε"][epsilon]


@pytest.mark.parametrize(("value", "end"), [(0.0, 9.0), (5.0, 6.11), (10.0, 2.92)])
def test_lip_does_not_outperform_ldp_at_twice_epsilon(
    value: float, end: float, outages: Curves
) -> None:
    for epsilon, delta in outages["8", f"LIP, X = {value:g}"].items():
        assert (delta < outages["8", "LDP, 2ε"][epsilon]) is (epsilon < end)


def test_what_lip_implies_at_twice_epsilon_is_less_than_ldp_has(outages: Curves) -> None:
    for epsilon, delta in outages["8", "LIP, X = 10"].items():
        assert (math.exp(epsilon) + 1) * delta > outages["8", "LDP, 2ε"][epsilon]


def test_the_classical_bound_says_nothing_where_it_is_proven(outages: Curves) -> None:
    for level in ("ε", "2ε"):
        assert set(outages["8", f"LDP, {level}, classical"].values()) == {1.0}
    assert max(outages["8", "LDP, ε, classical"]) < 1.0
    assert max(outages["8", "LDP, 2ε, classical"]) < 0.5
    for epsilon, bound in outages["8", "LDP, ε, classical, not proven"].items():
        assert (bound >= outages["8", "LDP, ε"][epsilon]) is (epsilon < 7.38)


def test_ldp_is_the_integral_for_the_farthest_values(outages: Curves) -> None:
    outputs, step = np.linspace(-90, 110, 400_001, retstep=True)
    first, second = (stats.norm(mean, NOISE).pdf(outputs) for mean in (0, WIDTH))
    for epsilon in (0.5, 2.0, 5.0):
        over = np.maximum(first - math.exp(epsilon) * second, 0).sum() * step
        assert outages["8", "LDP, ε"][epsilon] == pytest.approx(over, rel=1e-5)


def test_over_all_values_the_delta_is_one() -> None:
    for noise, epsilon in itertools.product((1.0, 10.0, 100.0), (0.5, 4.0)):
        assert value_delta(1e6, noise, epsilon) == pytest.approx(1.0)


# Figure 9: Gaussian noise by value ---------------------------------------------------------------


@pytest.mark.parametrize(("value", "epsilon"), [(0.0, 1.0), (12.0, 0.5), (5.0, 3.0)])
def test_cor_10_is_met_with_equality_and_fails_below(value: float, epsilon: float) -> None:
    scale = instance_scale(value, epsilon)
    assert integrated(value, scale, epsilon) == pytest.approx(DELTA, rel=1e-4)
    assert value_delta(value, 0.99 * scale, epsilon) > DELTA


@pytest.mark.slow
def test_by_cor_10_less_density_requires_more_noise(
    gaussian: Curves, scales: dict[float, Floats]
) -> None:
    for each in scales.values():
        assert np.all(np.diff(each[LATTICE.count // 2 :]) > 0)
        assert np.array_equal(each, each[::-1])
    for value in (0.0, 5.0, 10.0, 12.0):
        drawn = gaussian["9a", f"Cor. 10, X = {value:g}"]
        assert drawn[3.0] == pytest.approx(instance_scale(value, 3.0))


@pytest.mark.parametrize(
    ("epsilon", "cut", "clamped", "share"),
    [(1.0, 0.1937, 0.1818, 1.0), (2.0, 0.0911, 0.0802, 0.97), (3.0, 0.0296, 0.0284, 0.92)],
)
def test_cor_10_does_not_give_its_delta(
    epsilon: float, cut: float, clamped: float, share: float, scales: dict[float, Floats]
) -> None:
    deltas = mixture_deltas(cut_masses(), LATTICE.points, scales[epsilon], epsilon)
    assert deltas.max() == pytest.approx(cut, abs=5e-5)
    assert cut_masses()[deltas > DELTA].sum() == pytest.approx(share, abs=0.01)
    others = mixture_deltas(MASSES, LATTICE.points, scales[epsilon], epsilon)
    assert others.max() == pytest.approx(clamped, abs=5e-5)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.193), (2.0, 0.090), (3.0, 0.029)])
def test_a_coarse_sum_over_the_cut_prior_gives_the_three_known_numbers(
    epsilon: float, delta: float, scales: dict[float, Floats]
) -> None:
    # The end points count in full, half a cell too much each: that is all that differs from the
    # integral above.
    masses = stats.norm(0, SPREAD).pdf(LATTICE.points)
    found = mixture_deltas(masses / masses.sum(), LATTICE.points, scales[epsilon], epsilon)
    assert round(float(found.max()), 3) == delta


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_draws_confirm_that_the_last_value_is_given_away(
    epsilon: float, scales: dict[float, Floats], rng: np.random.Generator
) -> None:
    wide = scales[epsilon][-1]
    outputs = rng.normal(LATTICE.high, wide, 20_000)
    nodes, weights = np.polynomial.legendre.leggauss(80)
    values = LATTICE.high * nodes
    weights = weights * stats.norm(0, SPREAD).pdf(values)
    deviations = np.interp(values, LATTICE.points, scales[epsilon])
    overall = stats.norm(values, deviations).pdf(outputs[:, None]) @ (weights / weights.sum())
    ratio = overall / stats.norm(LATTICE.high, wide).pdf(outputs)
    drawn = np.maximum(1 - math.exp(epsilon) * ratio, 0)
    exact = mixture_deltas(cut_masses(), LATTICE.points, scales[epsilon], epsilon)[-1]
    error = drawn.std() / math.sqrt(drawn.size)
    assert drawn.mean() == pytest.approx(exact, abs=5 * error)
    assert 5 * error < 0.1 * exact
    assert exact > 800 * DELTA


def largest_delta(rows: Floats, masses: Floats, epsilon: float) -> float:
    overall, k = masses @ rows, math.exp(epsilon)
    above = np.maximum(rows - k * overall, 0).sum(axis=1).max()
    return float(max(above, np.maximum(overall - k * rows, 0).sum(axis=1).max()))


def test_clamped_outputs_rescue_the_scales_of_cor_10_at_large_epsilon(
    gaussian: Curves, scales: dict[float, Floats]
) -> None:
    assert gaussian["9b", "Cor. 10, on the lattice"][0.5] > 1000 * DELTA
    assert gaussian["9b", "Cor. 10, on the lattice"][3.0] == 0.0
    for epsilon, leakage in ((1.0, 0.893), (3.0, 1.357)):
        rows = LATTICE.noisy(Noise.GAUSSIAN, scales[epsilon])
        assert np.abs(np.log(rows / (MASSES @ rows))).max() == pytest.approx(leakage, abs=1e-3)
        assert largest_delta(rows, MASSES, epsilon) == 0.0


def test_scales_found_together_keep_the_budget(gaussian: Curves) -> None:
    for epsilon in (0.5, 3.0):
        assert 0.9 * DELTA < gaussian["9b", "own scales"][epsilon] <= DELTA
    each = least_noise_each(Noise.GAUSSIAN, LATTICE, MASSES, 3.0, DELTA)
    assert each.scales is not None
    rows = LATTICE.noisy(Noise.GAUSSIAN, each.scales)
    assert largest_delta(rows, MASSES, 3.0) == pytest.approx(DELTA, rel=1e-3)
    assert largest_delta(LATTICE.noisy(Noise.GAUSSIAN, 0.99 * each.scales), MASSES, 3.0) > DELTA


def test_one_clamped_scale_is_far_below_what_unclamped_outputs_need(gaussian: Curves) -> None:
    for epsilon in (0.5, 3.0):
        needed = gaussian["9a", "Cor. 10, X = 12"][epsilon]
        assert gaussian["9a", "one scale"][epsilon] < 0.6 * needed
        assert needed < gaussian["9a", "LDP"][epsilon] < 2.1 * needed


def test_the_classical_scale_is_wider_and_marked_where_it_is_not_proven(gaussian: Curves) -> None:
    proven, beyond = (gaussian["9a", f"LDP, classical{status}"] for status in ("", ", not proven"))
    assert (list(proven), list(beyond)) == ([0.5], [3.0])
    assert proven[0.5] > gaussian["9a", "LDP"][0.5]
    assert beyond[3.0] > gaussian["9a", "LDP"][3.0]


def test_errors_on_the_lattice_are_in_order(gaussian: Curves) -> None:
    for epsilon in (0.5, 3.0):
        error = {
            curve: line[epsilon] for (figure, curve), line in gaussian.items() if figure == "9c"
        }
        fair = error["quantile response, δ = 0"]
        assert error["optimal, δ = 0"] < fair < error["own scales, best guess"]
        assert error["own scales"] < error["one scale"] < error["LDP"]
        assert error["say nothing"] < error["own scales"]  # noise alone is worse than silence
        for curve in ("LDP", "one scale", "own scales", "Cor. 10"):
            assert error[f"{curve}, best guess"] <= min(error[curve], error["say nothing"])
        assert error["own scales"] < error["Cor. 10"]
    clamped = np.clip(np.linspace(-40, 40, 80_001), -12, 12)
    weights = stats.norm(0, SPREAD).pdf(np.linspace(-40, 40, 80_001))
    silent = float(np.abs(clamped) @ weights / weights.sum())
    assert error["say nothing"] == pytest.approx(silent, rel=1e-3)


# Figure 10: Laplace noise for three values -------------------------------------------------------


def line_leakage(scale: float) -> float:
    outputs = np.linspace(-4.0, 6.0, 10_001)
    rows = np.exp(-np.abs(THREE.points[:, None] - outputs) / scale)
    return float(np.abs(np.log(rows / (np.array(THREE_MASSES) @ rows))).max())


@settings(max_examples=30)
@given(epsilon=st.floats(0.05, 6.0))
def test_the_least_scale_is_exact_and_the_first_branch_is_always_enough(epsilon: float) -> None:
    least = line_scale(epsilon)
    published = paper_laplace_scale(THREE.width, epsilon, min(THREE_MASSES))
    rarest, k = min(THREE_MASSES), math.exp(epsilon)
    assert published == pytest.approx(THREE.width / math.log((k - rarest) / (1 - rarest)))
    assert line_leakage(least) == pytest.approx(epsilon, rel=1e-6)
    assert line_leakage(published) < epsilon
    assert least < published < THREE.width / epsilon


def test_the_printed_noise_rises_where_the_budget_does(laplace: Curves) -> None:
    printed = laplace["10a", "Eq. 25"]
    assert printed[1.45] < 1.21 < 1.37 < printed[SWITCH]
    assert printed[SWITCH] == laplace["10a", "LDP"][SWITCH]
    errors = laplace["10b", "Eq. 25"]
    assert errors[1.45] < errors[SWITCH] - 0.03


@pytest.mark.parametrize("constant", [0.01, 0.1, 1.0])
def test_scales_that_differ_leak_without_limit_on_the_line(constant: float) -> None:
    scales = THREE.width / (constant * np.array(THREE_MASSES) + 1.0)
    outputs = np.array([1e2, 1e4, 1e6])
    logs = -np.abs(outputs[:, None] - THREE.points) / scales - np.log(2 * scales)
    overall = np.logaddexp.reduce(logs + np.log(THREE_MASSES), axis=1)
    leakage = np.abs(logs - overall[:, None]).max(axis=1)
    assert leakage[1] > 5
    assert leakage[2] > 50 * leakage[1]


@pytest.mark.parametrize(("epsilon", "constant"), [(0.25, 0.58), (1.0, 2.08), (4.0, 5.29)])
def test_eq_26_has_a_largest_constant_with_three_outputs(epsilon: float, constant: float) -> None:
    found = largest_constant(epsilon)
    assert found == pytest.approx(constant, abs=0.006)

    def leakage(factor: float) -> float:
        scales = THREE.width / (factor * np.array(THREE_MASSES) + epsilon)
        rows = THREE.noisy(Noise.LAPLACE, scales)
        return float(np.abs(np.log(rows / (np.array(THREE_MASSES) @ rows))).max())

    assert leakage(found) == pytest.approx(epsilon, abs=1e-6)
    for factor in np.linspace(0, 0.99, 12) * found:
        assert leakage(factor) < epsilon
    assert leakage(1.02 * found) > epsilon


def test_errors_for_three_values_are_in_order(laplace: Curves) -> None:
    order = (
        "optimal",
        "own scales",
        "Eq. 26, largest α",
        "least, three outputs",
        "Eq. 25, first branch",
        "LDP",
    )
    for lower, higher in itertools.pairwise(order):
        for epsilon, error in laplace["10b", lower].items():
            assert error < laplace["10b", higher][epsilon]
    assert list(laplace["10b", "say nothing"].values()) == pytest.approx([2 / 3] * 6)


def test_the_optimum_is_that_of_a_linear_program(laplace: Curves) -> None:
    masses = np.array(THREE_MASSES)
    for epsilon, error in laplace["10b", "optimal"].items():
        k, limits = math.exp(epsilon), []
        for x, y in itertools.product(range(3), repeat=2):
            given_x, overall = np.zeros((3, 3)), np.zeros((3, 3))
            given_x[x, y], overall[:, y] = 1, masses
            limits += [(given_x - k * overall).ravel(), (overall - k * given_x).ravel()]
        found = optimize.linprog(
            (masses[:, None] * np.abs(THREE.points[:, None] - THREE.points)).ravel(),
            A_ub=limits,
            b_ub=np.zeros(len(limits)),
            A_eq=np.kron(np.eye(3), np.ones(3)),
            b_eq=np.ones(3),
        )
        assert error == pytest.approx(found.fun, abs=1e-6)


def test_the_most_probable_value_is_not_that_of_least_noise(laplace: Curves) -> None:
    for epsilon in (1.0, 2.0, 4.0):
        common, middle, rare = (laplace["10a", f"own scales, X = {x}"][epsilon] for x in (0, 1, 2))
        assert middle < common < rare


# The picture -------------------------------------------------------------------------------------


def test_every_curve_is_drawn(
    tmp_path: Path, sampled: Curves, outages: Curves, gaussian: Curves, laplace: Curves
) -> None:
    points = [
        Point(figure, curve, x, y)
        for found in (sampled, outages, gaussian, laplace)
        for (figure, curve), line in found.items()
        for x, y in line.items()
    ]
    draw(points, tmp_path / "numbers.png")
    assert (tmp_path / "numbers.png").stat().st_size > 50_000
