import math
from typing import Any
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from sfumato.core.errors import InvalidParameter
from sfumato.record.attack import coupled_attack as coupled
from sfumato.record.attack import paper_rates
from sfumato.record.attack.coupled_attack import (
    Nearby,
    coupled_disclosure,
    prior_cloud_disclosure,
)
from sfumato.record.attack.paper_rates import (
    Rates,
    disclosure_rates,
    equation_estimates,
    gain_bound,
)
from sfumato.record.coupling.coupled_prior import CoupledPrior
from sfumato.record.coupling.coupling import FullCoupling, Interval
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.published_noise import noise_of
from tests.record.noises import shells

Floats = NDArray[np.float64]
SLOW = pytest.mark.slow
REACH = {"gaussian": 5.0, "uniform": math.sqrt(3), "laplace": 8.0, "ball": 2.0}


def tied(names: str, domains: dict[str, Interval], *equations: str) -> CoupledPrior:
    every = [FullCoupling.equation(text, domains) for text in equations]
    return CoupledPrior.of(list(names), every, domains=domains)


def few_rows() -> Any:
    """Of a normal posterior that is the same for everybody, few published rows tell all."""
    return mock.patch.multiple(coupled, _NEARBY=32, _MOST_NEARBY=32)


def density(shape: str, off: Floats, sigma: float) -> Floats:
    reduced = off / sigma
    if shape == "gaussian":
        return np.asarray(np.exp(-0.5 * (reduced**2).sum(-1)) / (2 * math.pi * sigma**2))
    if shape == "laplace":
        return np.asarray(np.exp(-math.sqrt(2) * np.abs(reduced).sum(-1)) / (2 * sigma**2))
    if shape == "uniform":
        return np.asarray((np.abs(reduced).max(-1) <= math.sqrt(3)) / (12 * sigma**2))
    return np.asarray(((reduced**2).sum(-1) <= 4) / (4 * math.pi * sigma**2))


def brute_force(points: Floats, shape: str, sigma: float, half: float, grid: int = 36) -> float:
    """All boxes over points of a curve, integrated over a grid of what may be published."""
    a, b = points.T
    boxes = set()
    for left in a:
        window = np.flatnonzero((a >= left) & (a < left + 2 * half))
        for bottom in b[window]:
            held = window[(b[window] >= bottom) & (b[window] < bottom + 2 * half)]
            boxes.add(held.tobytes())
    members = np.zeros((len(boxes), len(points)))
    for row, held in enumerate(boxes):
        members[row, np.frombuffer(held, dtype=np.int64)] = 1
    reach = REACH[shape] * sigma
    axes = []
    for column in (a, b):
        low, high = column.min() - reach, column.max() + reach
        axes.append(low + (np.arange(grid) + 0.5) * (high - low) / grid)
    told = np.stack([axis.ravel() for axis in np.meshgrid(*axes)], axis=1)
    best, whole = 0.0, 0.0
    for part in np.array_split(told, 16):
        weights = density(shape, part[:, None, :] - points[None], sigma)
        best += float((members @ weights.T).max(axis=0).sum())
        whole += float(weights.sum())
    return best / whole


def middles(low: float, high: float, count: int) -> Floats:
    return low + (high - low) * (np.arange(count) + 0.5) / count


# The best attacker -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "sigma"),
    [
        ("gaussian", 0.5),
        ("uniform", 2.0),
        ("laplace", 2.0),
        ("ball", 0.5),
        pytest.param("gaussian", 2.0, marks=SLOW),
        pytest.param("uniform", 0.5, marks=SLOW),
        pytest.param("laplace", 0.5, marks=SLOW),
        pytest.param("ball", 2.0, marks=SLOW),
    ],
)
def test_a_parabola_agrees_with_all_boxes_on_a_grid(shape: str, sigma: float) -> None:
    prior = tied("ab", {"a": (-2.0, 2.0), "b": (0.0, 4.0)}, "b = a**2")
    a = middles(-2, 2, 360)
    exact = brute_force(np.stack([a, a**2], axis=1), shape, sigma, 0.3)
    found = coupled_disclosure(prior, noise_of(shape, sigma, 2), 0.3)
    assert 0.97 * found.low <= exact <= 1.03 * found.high


@pytest.mark.parametrize(("slope", "sigma"), [(0.2, 1.0), (8.0, 2.0)])
def test_lines_agree_with_all_boxes_on_a_grid(slope: float, sigma: float) -> None:
    prior = tied("ab", {"a": (0.0, 10.0), "b": (0.0, 10 * slope)}, f"b = {slope}*a")
    a = middles(0, 10, 400)
    exact = brute_force(np.stack([a, slope * a], axis=1), "gaussian", sigma, 1.0)
    found = coupled_disclosure(prior, noise_of("gaussian", sigma, 2), 1.0)
    assert 0.96 * found.low <= exact <= 1.04 * found.high


def test_a_curve_with_two_solutions_agrees_with_all_boxes_on_a_grid() -> None:
    # A small domain of y keeps the points few; x has two solutions at every one of them.
    prior = tied("xy", {"x": (-5.0, 5.0), "y": (-0.5, 0.5)}, "x**2 + y**2 = 1")
    y = middles(-0.5, 0.5, 200)
    x = np.sqrt(1 - y**2)
    points = np.concatenate([np.stack([x, y], axis=1), np.stack([-x, y], axis=1)])
    exact = brute_force(points, "uniform", 0.4, 0.2)
    with mock.patch.multiple(coupled, _ATTACKS=96, _MOST_ATTACKS=96):
        found = coupled_disclosure(prior, noise_of("uniform", 0.4, 2), 0.2)
    assert 0.97 * found.low <= exact <= 1.03 * found.high


@SLOW
def test_a_slope_of_a_thousand_is_not_called_a_disclosure() -> None:
    # What is published of b gives a to a thousandth: the box is that of b alone, 2 * .5 of noise 1.
    prior = tied("ab", {"a": (0.0, 10.0), "b": (0.0, 1e4)}, "b = 1000*a")
    found = coupled_disclosure(prior, noise_of("gaussian", 1.0, 2), 0.5)
    exact = special.erf(0.5 / math.sqrt(2))
    assert found.delta == pytest.approx(exact, rel=0.03)


def test_a_slope_of_a_million_is_not_called_a_disclosure() -> None:
    prior = tied("ab", {"a": (0.0, 10.0), "b": (0.0, 1e7)}, "b = 1000000*a")
    with few_rows():
        found = coupled_disclosure(prior, noise_of("gaussian", 1.0, 2), 0.5)
    assert found.delta == pytest.approx(special.erf(0.5 / math.sqrt(2)), rel=0.03)


def plane(sigma: float, half: float) -> float:
    """Success of one who knows c = a + b and no domain, against normal noise: no attacker who
    knows more has less, whoever the person is."""
    precise = np.array([[2.0, 1.0], [1.0, 2.0]]) / sigma**2
    line = np.linspace(-half, half, 601)
    a, b = np.meshgrid(line, line)
    exponent = precise[0, 0] * a**2 + 2 * precise[0, 1] * a * b + precise[1, 1] * b**2
    height = math.sqrt(np.linalg.det(precise)) / (2 * math.pi)
    held = np.exp(-0.5 * exponent) * (np.abs(a + b) <= half) * height
    return float(np.trapezoid(np.trapezoid(held, line, axis=1), line))


@pytest.mark.parametrize(("sigma", "half"), [(1.0, 0.5), pytest.param(0.2, 0.1, marks=SLOW)])
def test_three_attributes_of_one_equation_are_no_safer_than_without_domains(
    sigma: float, half: float
) -> None:
    domains = {"a": (0.0, 100.0), "b": (0.0, 100.0), "c": (0.0, 200.0)}
    prior = tied("abc", domains, "c = a + b")
    with few_rows():
        found = coupled_disclosure(prior, noise_of("gaussian", sigma, 3), half)
    assert found.high >= 0.99 * plane(sigma, half)
    assert found.delta >= 0.93 * plane(sigma, half)


@SLOW
def test_a_column_in_no_equation_multiplies_what_is_disclosed() -> None:
    domains = {name: (0.0, 100.0) for name in "abc"}
    found = coupled_disclosure(tied("abc", domains, "b = a"), noise_of("gaussian", 0.5, 3), 0.25)
    # a from two measurements, c from one; domains only help.
    least = special.erf(0.5 * math.sqrt(2) / math.sqrt(2)) * special.erf(0.5 / math.sqrt(2))
    assert found.high >= 0.99 * least


def test_two_equations_multiply_what_is_disclosed() -> None:
    domains = {name: (0.0, 100.0) for name in "abcd"}
    prior = tied("abcd", domains, "b = a", "d = c")
    with few_rows():
        found = coupled_disclosure(prior, noise_of("gaussian", 0.5, 4), 0.25)
    assert found.high >= 0.99 * special.erf(0.5) ** 2


@SLOW
def test_a_steep_surface_agrees_with_the_one_number_that_it_leaves() -> None:
    # c tells a + b to a thousandth: what is left of a is a normal, cut to where both are possible.
    domains = {"a": (0.0, 10.0), "b": (0.0, 10.0), "c": (0.0, 20_000.0)}
    prior = tied("abc", domains, "c = 1000*a + 1000*b")
    with mock.patch.multiple(coupled, _NEARBY=96, _MOST_NEARBY=96):
        found = coupled_disclosure(prior, noise_of("gaussian", 1.0, 3), 0.5)
    rng = np.random.default_rng(1)
    a, b = rng.uniform(0, 10, (2, 50_000))
    middle = 0.5 * (a + rng.normal(size=a.size) + a - rng.normal(size=a.size))
    low, high = np.maximum(0, a + b - 10), np.minimum(10, a + b)
    half = np.minimum(0.5, 0.5 * (high - low))
    centre = np.clip(middle, low + half, high - half)
    ends = [special.ndtr((end - middle) * math.sqrt(2)) for end in (low, high)]
    box = [special.ndtr((centre + s * half - middle) * math.sqrt(2)) for s in (-1, 1)]
    exact = np.mean((box[1] - box[0]) / (ends[1] - ends[0])) * special.erf(0.5 / math.sqrt(2))
    assert 0.98 * found.low <= exact <= 1.02 * found.high


def test_a_ball_cut_by_a_plane_agrees_with_a_grid() -> None:
    # What is published leaves a disc of the plane, evenly: the best box is one that it holds.
    domains = {"a": (0.0, 60.0), "b": (0.0, 60.0), "c": (-20.0, 150.0)}
    prior = tied("abc", domains, "c = a + b")
    noise, half = noise_of("ball", 4.0, 3), 2.0
    line = np.linspace(-20, 20, 601)
    a, b = (axis.ravel() for axis in np.meshgrid(line, line))
    rng = np.random.default_rng(7)
    centres = np.stack([axis.ravel() for axis in np.meshgrid(*[np.linspace(-4, 4, 17)] * 2)])
    shares, found = [], []
    attacker = Nearby(prior, noise.form(), noise.form().reach, np.full(3, half))
    for row in range(8):
        off = rng.normal(size=3)
        off *= math.sqrt(5) * 4 * rng.uniform() ** (1 / 3) / np.linalg.norm(off)
        inside = (off[0] - a) ** 2 + (off[1] - b) ** 2 + (off[2] - a - b) ** 2 <= 80
        middle = np.array([a[inside].mean(), b[inside].mean()])[:, None] + centres
        held = [
            np.mean(
                (abs(a[inside] - x) <= half)
                & (abs(b[inside] - y) <= half)
                & (abs(a[inside] + b[inside] - x - y) <= half)
            )
            for x, y in middle.T
        ]
        shares.append(max(held))
        found.append(attacker.share(np.array([30.0, 30.0, 60.0]) + off, row))
    np.testing.assert_allclose(np.array(found, dtype=np.float64), shares, rtol=0.06)


def test_what_is_known_of_free_attributes_counts_on_a_surface() -> None:
    # Normal columns and normal noise on a plane: a normal posterior, the same for everybody.
    spread = np.array([[4.0, 1.0], [1.0, 2.0]])
    domains = {"a": (-99.0, 99.0), "b": (-99.0, 99.0), "c": (-198.0, 198.0)}
    plane_ = FullCoupling.equation("c = a + b", domains)
    known = JointMixture.normal([0.0, 0.0], spread)
    prior = CoupledPrior.of(list("abc"), [plane_], known=known)
    with few_rows():
        found = coupled_disclosure(prior, noise_of("gaussian", 1.5, 3), 0.6)
    seen = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    posterior = np.linalg.inv(np.linalg.inv(spread) + seen.T @ seen / 1.5**2)
    line = np.linspace(-0.6, 0.6, 401)
    grid = np.stack(np.meshgrid(line, line), axis=-1)
    height = np.exp(-0.5 * np.einsum("xyi,ij,xyj->xy", grid, np.linalg.inv(posterior), grid))
    height *= np.abs(grid.sum(axis=-1)) <= 0.6
    exact = height.sum() * (line[1] - line[0]) ** 2
    exact /= 2 * math.pi * math.sqrt(np.linalg.det(posterior))
    assert found.delta == pytest.approx(exact, rel=0.02)


def test_so_little_that_no_point_explains_it_is_refused() -> None:
    domains = {"a": (0.0, 10.0), "b": (0.0, 10.0), "c": (0.0, 2e9)}
    prior = tied("abc", domains, "c = 1e8*a + 1e8*b")
    few = mock.patch.multiple(coupled, _NEARBY=16, _MOST_NEARBY=16)
    with few, pytest.raises(InvalidParameter, match="coupling must be gentler"):
        coupled_disclosure(prior, noise_of("gaussian", 1.0, 3), 0.5)


@pytest.mark.parametrize(
    ("shape", "sigma"),
    [
        ("uniform", 0.01),
        ("gaussian", 1.0),
        ("uniform", 300.0),
        pytest.param("gaussian", 0.01, marks=SLOW),
        pytest.param("uniform", 1.0, marks=SLOW),
        pytest.param("gaussian", 300.0, marks=SLOW),
    ],
)
def test_it_is_a_probability_between_what_the_values_alone_tell_and_one(
    shape: str, sigma: float
) -> None:
    prior = tied("ab", {"a": (0.0, 10.0), "b": (0.0, 10.0)}, "b = a")
    noise = noise_of(shape, sigma, 2)
    found = coupled_disclosure(prior, noise, 0.5)
    assert 0 <= found.low <= found.delta <= found.high <= 1
    assert found.delta >= noise.largest_box([0.5, 0.5]) * (1 - 1e-9)
    assert found.high >= prior_cloud_disclosure(prior, 0.5) * 0.97


@pytest.mark.parametrize(("half", "share"), [(0.5, 0.1), (2.0, 0.4), (50.0, 1.0)])
def test_a_guess_is_as_good_as_the_box_is_wide(half: float, share: float) -> None:
    prior = tied("ab", {"a": (0.0, 10.0), "b": (0.0, 5.0)}, "b = 0.5*a")
    assert prior_cloud_disclosure(prior, half) == pytest.approx(share, rel=0.01)


# The paper's rates -------------------------------------------------------------------------------


def rates_of(prior: CoupledPrior, told: list[list[float]], sigma: float, half: float) -> Rates:
    with mock.patch.object(paper_rates, "attacked_rows", return_value=np.array(told)):
        return disclosure_rates(prior, noise_of("uniform", sigma, len(prior.names)), half)


def test_rates_of_uniform_noise_and_a_line_by_hand() -> None:
    prior = tied("ab", {"a": (0.0, 10.0), "b": (0.0, 40.0)}, "b = 2*a")
    reach = math.sqrt(3) * 4.0
    # a within 1 +- reach, so 0 .. 7.93; b within 20 +- reach, so 13.07 .. 26.93.
    a, b = (0.0, 1 + reach), (20 - reach, 20 + reach)
    # The equation: a from 6.54 on, b up to 15.86.
    narrow_a, narrow_b = (b[0] / 2, a[1]), (b[0], 2 * a[1])
    found = rates_of(prior, [[1.0, 20.0]], 4.0, 0.5)
    rate_a = 1.0 / (narrow_a[1] - narrow_a[0])
    rate_b = 1.0 / (narrow_b[1] - narrow_b[0])
    assert found.inferred == ("b",)
    assert rate_a > rate_b
    assert found.gamma == pytest.approx(rate_a, rel=1e-5)
    assert found.gamma_without == pytest.approx(1 / (a[1] - a[0]) / (b[1] - b[0]), rel=1e-6)
    assert found.gain == pytest.approx(found.gamma / found.gamma_without - 1)


def test_an_attribute_in_no_equation_keeps_its_own_rate() -> None:
    domains = {name: (0.0, 10.0) for name in "abc"}
    found = rates_of(tied("abc", domains, "b = a"), [[5.0, 5.0, 5.0]], 100.0, 0.5)
    assert found.gamma == pytest.approx(0.1 * 0.1, rel=1e-6)
    assert found.gamma_without == pytest.approx(0.1**3, rel=1e-6)


def test_rates_never_exceed_one_even_if_the_box_is_wider_than_what_is_left() -> None:
    prior = tied("ab", {"a": (0.0, 10.0), "b": (9.9, 40.0)}, "b = a")
    found = rates_of(prior, [[9.0, 12.0]], 50.0, 3.0)
    assert found.gamma == pytest.approx(1.0)
    assert found.gamma_without <= 1


def test_the_bound_on_the_gain_by_hand() -> None:
    domains = np.array([[0.0, 10.0], [0.0, 40.0], [0.0, 5.0]])
    half = np.array([0.5, 1.0, 0.5])
    assert gain_bound(half, domains, 0) == pytest.approx(0)
    assert gain_bound(half, domains, 1) == pytest.approx(19)
    assert gain_bound(half, domains, 2) == pytest.approx(199)


def test_the_bound_of_the_paper_fails_where_an_equation_narrows_a_domain() -> None:
    # Of ten units of a, one is possible: the rate is ten times what Theorem 3 allows.
    prior = tied("ab", {"a": (0.0, 10.0), "b": (9.0, 19.0)}, "b = a")
    found = rates_of(prior, [[9.5, 9.5]], 200.0, 0.25)
    assert found.gamma == pytest.approx(0.5, rel=1e-4)
    assert found.gain > 5 * found.gain_bound


def test_rates_of_noise_that_peaks_away_from_0_are_the_largest_and_not_the_middle() -> None:
    ring = shells([1.0], [0.0, 0.9, 1.0], [0.05, 0.95])
    prior = CoupledPrior.of(["a"], [], domains={"a": (-100.0, 100.0)})
    with mock.patch.object(paper_rates, "attacked_rows", return_value=np.array([[0.0]])):
        found = disclosure_rates(prior, ring, 0.03)
    best = max(float(ring.axis_mass(0, c - 0.03, c + 0.03)) for c in np.linspace(0, 1.2, 400))
    assert found.gamma == pytest.approx(best, rel=0.02)


# The paper's attacker ----------------------------------------------------------------------------


def test_the_papers_attacker_satisfies_the_equation_and_the_domains() -> None:
    prior = tied("ab", {"a": (0.0, 10.0), "b": (0.0, 20.0)}, "b = 2*a")
    rng = np.random.default_rng(2)
    a = rng.uniform(0, 10, 40)
    told = np.stack([a, 2 * a], axis=1) + rng.uniform(-3, 3, (40, 2))
    found = equation_estimates(prior, noise_of("uniform", math.sqrt(3), 2), 0.5, told)
    np.testing.assert_allclose(found[:, 1], 2 * found[:, 0], atol=1e-6)
    assert np.all((found >= 0) & (found <= [10, 20]))


def test_no_paper_attacker_beats_the_best_one() -> None:
    prior = tied("ab", {"a": (0.0, 10.0), "b": (0.0, 10.0)}, "b = a")
    noise = noise_of("uniform", 3.0, 2)
    rng = np.random.default_rng(4)
    a = rng.uniform(0, 10, 300)
    told = np.stack([a, a], axis=1) + math.sqrt(27) * rng.uniform(-1, 1, (300, 2))
    found = equation_estimates(prior, noise, 0.5, told)
    reached = np.mean(np.abs(found - np.stack([a, a], axis=1)).max(axis=1) <= 0.5)
    with mock.patch.multiple(coupled, _MOST_ATTACKS=512):
        best = coupled_disclosure(prior, noise, 0.5)
    assert reached <= best.high + 3 * math.sqrt(0.25 / 300)


def test_noise_and_accuracy_of_another_size_are_refused() -> None:
    prior = tied("ab", {"a": (0.0, 10.0), "b": (0.0, 10.0)}, "b = a")
    with pytest.raises(InvalidParameter, match="noise must have 2 axes"):
        coupled_disclosure(prior, noise_of("ball", 1.0, 3), 1.0)
    with pytest.raises(InvalidParameter, match="accuracy"):
        disclosure_rates(prior, noise_of("ball", 1.0, 2), [1.0, 1.0, 1.0])


# What is known has narrow peaks ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("deviation", "shape"), [(1e-4, "gaussian"), pytest.param(1e-3, "uniform", marks=SLOW)]
)
def test_a_narrow_peak_on_a_curve_is_not_missed(deviation: float, shape: str) -> None:
    known = JointMixture([0.5, 0.5], [[0.0], [50.3]], [[[400.0]], [[deviation**2]]], [[-100, 100]])
    domains = {"a": (-100.0, 100.0), "b": (-100.0, 100.0)}
    line = FullCoupling.equation("b = a", domains)
    prior = CoupledPrior.of(["b", "a"], [line], known=known)
    assert prior_cloud_disclosure(prior, 1.0) == pytest.approx(0.5, rel=0.02)
    with mock.patch.multiple(coupled, _MOST_ATTACKS=256):
        found = coupled_disclosure(prior, noise_of(shape, 10.0, 2), 1.0)
    # A guess has half; what is published tells the rest apart.
    assert found.low >= 0.5
    assert 0.5 < found.delta < 0.7


@pytest.mark.parametrize(
    ("deviation", "share"), [(0.001, 0.5), (0.01, 0.2), pytest.param(0.1, 0.5, marks=SLOW)]
)
def test_a_narrow_peak_on_a_surface_is_not_missed(deviation: float, share: float) -> None:
    spreads = [4 * np.eye(2), deviation**2 * np.eye(2)]
    limits = [[0, 10], [0, 10]]
    known = JointMixture([1 - share, share], [[5.0, 5.0], [6.3, 4.1]], spreads, limits)
    domains = {"a": (0.0, 10.0), "b": (0.0, 10.0), "c": (0.0, 20.0)}
    plane_ = FullCoupling.equation("c = a + b", domains)
    prior = CoupledPrior.of(list("abc"), [plane_], known=known)
    guess = prior_cloud_disclosure(prior, 0.5)
    assert share * 0.98 <= guess <= share + 0.04
    with mock.patch.multiple(coupled, _NEARBY=24, _MOST_NEARBY=24):
        assert coupled_disclosure(prior, noise_of("gaussian", 5.0, 3), 0.5).low >= guess
