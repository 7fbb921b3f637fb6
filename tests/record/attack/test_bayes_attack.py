"""The best attacker: against brute force, closed forms, limits, and attacks really made."""

import math
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special, stats

from sfumato.core.errors import InvalidParameter
from sfumato.core.randomness import seeded
from sfumato.record.attack.bayes_attack import (
    Found,
    Way,
    _sampled,
    attacker_of,
    bayes_disclosure,
    prior_disclosure,
)
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.published_noise import noise_of
from sfumato.record.vector_noise import CorrelatedNoise, VectorNoise
from tests.oracles.disclosure import (
    Line,
    LineNoise,
    Plane,
    Ring,
    line_best,
    line_disclosure,
    line_noise,
    normal_disclosure,
    plane_disclosure,
    plane_noise,
)
from tests.record.noises import shells, small_batches

Floats = NDArray[np.float64]

INF = math.inf
SLOW = pytest.mark.slow
NAMED = ["uniform", "ball", "gaussian", "laplace"]
RINGS: dict[str, list[Ring]] = {
    "ring": [(0.9, 1.0, 1.0)],
    "thin": [(0.98, 1.0, 1.0)],
    "two": [(0.0, 0.5, 0.3), (0.5, 1.0, 0.7)],
    "heavy": [(0.0, 1.0, 0.97), (5.0, 6.0, 0.03)],
    "three": [(0.0, 0.2, 0.2), (0.2, 0.9, 0.1), (0.9, 1.0, 0.7)],
}
LINES = {
    "normal": Line([1.0], [0.0], [1.0]),
    "limited": Line([1.0], [0.0], [1.0], -0.5, 2.0),
    "mixture": Line([0.3, 0.7], [-2.0, 2.0], [0.5, 1.0]),
    "uneven": Line([0.6, 0.4], [0.0, 1.0], [0.1, 2.0], -1.0, INF),
}


def joint(line: Line) -> JointMixture:
    return JointMixture(
        line.weights,
        [[mean] for mean in line.means],
        [[[deviation**2]] for deviation in line.deviations],
        [[line.low, line.high]],
    )


def flat(plane: Plane) -> JointMixture:
    return JointMixture(plane.weights, plane.means, plane.covariances, plane.domain)


def made(name: str, sigma: Any) -> VectorNoise:
    """Of as many axes as deviations; rings with nothing between them where they leave gaps."""
    if name not in RINGS:
        return noise_of(name, sigma)
    edges, masses = [RINGS[name][0][0]], []
    for inner, outer, mass in RINGS[name]:
        if inner > edges[-1]:
            edges.append(inner)
            masses.append(0.0)
        edges.append(outer)
        masses.append(mass)
    return shells(sigma, edges, masses)


def oracle_of(name: str, sigma: float) -> LineNoise:
    return line_noise("rings", sigma, RINGS[name]) if name in RINGS else line_noise(name, sigma)


def thinned(every: int, *axes: Sequence[Any]) -> list[Any]:
    """All combinations of some axes; one in so many runs every time, the others in test-all.

    Those that run lie on a diagonal: each value of an axis comes up with many of every other.
    """
    cases = []
    for places in product(*(range(len(axis)) for axis in axes)):
        chosen = [axis[place] for axis, place in zip(axes, places, strict=True)]
        values = [part for each in chosen for part in (each if isinstance(each, tuple) else [each])]
        cases.append(pytest.param(*values, marks=[] if sum(places) % every == 0 else SLOW))
    return cases


def best_estimates(prior: JointMixture, noise: VectorNoise, accuracy: Any, rows: Any) -> Floats:
    half = np.full(prior.dimension, 1.0) * accuracy
    return attacker_of(prior, noise, half).boxes(np.array(rows))[-1]


def quick_disclosure(prior: JointMixture, noise: VectorNoise, accuracy: Any) -> Found:
    """For laws that compare one attacker with another, on the same rows."""
    with small_batches():
        return bayes_disclosure(prior, noise, accuracy)


def sound(found: Found) -> None:
    assert math.isfinite(found.delta)
    assert 0 <= found.low <= found.delta <= found.high <= 1


# Brute force --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "prior", "sigma", "eps"),
    thinned(5, NAMED, list(LINES), [(0.05, 0.02), (0.5, 0.1), (1.0, 1.0), (2.0, 0.02), (5.0, 0.3)]),
)
def test_one_attribute_agrees_with_brute_force(
    name: str, prior: str, sigma: float, eps: float
) -> None:
    line = LINES[prior]
    found = bayes_disclosure(joint(line), made(name, [sigma]), eps)
    sound(found)
    assert found.delta == pytest.approx(
        line_disclosure(line, oracle_of(name, sigma), eps), rel=0.01
    )


@pytest.mark.parametrize(
    ("name", "prior", "sigma", "eps"),
    thinned(
        4,
        list(RINGS),
        ["normal", "mixture"],
        [(0.05, 0.01), (1.0, 0.1), (1.0, 0.5), (3.0, 0.02)],
    ),
)
def test_shells_agree_with_brute_force(name: str, prior: str, sigma: float, eps: float) -> None:
    line = LINES[prior]
    found = bayes_disclosure(joint(line), made(name, [sigma]), eps)
    sound(found)
    assert found.delta == pytest.approx(
        line_disclosure(line, oracle_of(name, sigma), eps), rel=0.02
    )


PLANES = {
    "round": Plane([1.0], [[0.0, 0.0]], [[[1.0, 0.0], [0.0, 1.0]]]),
    "correlated": Plane([1.0], [[0.0, 5.0]], [[[1.0, 0.8], [0.8, 1.0]]]),
    "limited": Plane([1.0], [[0.0, 0.0]], [[[1.0, 0.5], [0.5, 1.0]]], [[-0.5, 2.0], [-INF, 0.5]]),
    "mixture": Plane(
        [0.4, 0.6],
        [[-1.0, 0.0], [1.5, 1.0]],
        [[[0.5, 0.2], [0.2, 0.6]], [[0.4, -0.2], [-0.2, 1.0]]],
    ),
}


@pytest.mark.parametrize(
    ("name", "prior", "sigma", "eps"),
    [
        ("uniform", "correlated", (1.0, 1.0), (0.5, 0.5)),
        pytest.param("uniform", "limited", (0.6, 1.5), (0.4, 0.8), marks=SLOW),
        pytest.param("ball", "round", (1.0, 1.0), (0.5, 0.5), marks=SLOW),
        ("ball", "limited", (0.6, 1.5), (0.4, 0.8)),
        ("ball", "mixture", (1.0, 1.0), (0.5, 0.5)),
        pytest.param("gaussian", "limited", (1.0, 1.0), (0.5, 0.5), marks=SLOW),
        ("gaussian", "mixture", (0.6, 1.5), (0.4, 0.8)),
        ("laplace", "correlated", (0.6, 1.5), (0.4, 0.8)),
        pytest.param("ring", "round", (1.0, 1.0), (0.5, 0.5), marks=SLOW),
        ("ring", "correlated", (0.6, 1.5), (0.4, 0.8)),
    ],
)
def test_two_attributes_agree_with_brute_force(
    name: str, prior: str, sigma: tuple[float, float], eps: tuple[float, float]
) -> None:
    plane = PLANES[prior]
    kind = "rings" if name in RINGS else name
    shape = plane_noise(kind, sigma, RINGS.get(name, ()))
    exact = plane_disclosure(plane, shape, eps, cells=110, told=34)
    found = bayes_disclosure(flat(plane), made(name, sigma), eps)
    sound(found)
    assert found.delta == pytest.approx(exact, rel=0.025)


def test_rows_within_a_domain_have_its_moments() -> None:
    """Against all draws of the whole plane that happen to lie in the domain."""
    prior = flat(PLANES["limited"])
    even = stats.qmc.Sobol(3, seed=1).random_base2(14)
    rows, weights = prior.draw_within(np.clip(even, 1e-12, 1 - 1e-12))
    drawn = np.random.default_rng(2).multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], 400_000)
    inside = drawn[(drawn[:, 0] > -0.5) & (drawn[:, 0] < 2) & (drawn[:, 1] < 0.5)]
    shares = weights / weights.sum()
    assert np.all((rows >= prior.domain[:, 0]) & (rows <= prior.domain[:, 1]))
    np.testing.assert_allclose(shares @ rows, inside.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(shares @ rows**2, (inside**2).mean(axis=0), rtol=0.02)
    assert weights.mean() == pytest.approx(len(inside) / len(drawn), rel=0.01)
    assert weights.mean() == pytest.approx(prior.mass, rel=0.01)


def test_intervals_hold_the_truth() -> None:
    """Of sampled means whose truth is known: all but about one in a hundred, and not by width."""
    prior = joint(LINES["normal"])
    held = []
    for sigma in np.geomspace(0.3, 3, 8):
        exact = line_disclosure(LINES["normal"], line_noise("uniform", sigma), 0.2)
        found = bayes_disclosure(prior, noise_of("uniform", sigma, 1), 0.2)
        held.append(found.low + 0.003 * found.delta <= exact <= found.high - 0.003 * found.delta)
        assert found.high - found.low <= 0.04 * found.delta
    assert sum(held) >= 7


def test_correlated_noise_agrees_with_brute_force() -> None:
    plane = PLANES["mixture"]
    noise = CorrelatedNoise(np.array([1.0, 0.7]), np.array([[1.0, 0.8], [0.8, 1.0]]))
    shape = plane_noise("gaussian", (1.0, 0.7), rho=0.8)
    exact = plane_disclosure(plane, shape, (0.4, 0.4), cells=110, told=40)
    assert bayes_disclosure(flat(plane), noise, 0.4).delta == pytest.approx(exact, rel=0.02)


# Normal and normal --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rho", "sigma", "eps"),
    [
        (0.6, 1.0, 0.1),
        (0.6, 10.0, 0.1),
        (0.9999, 1.0, 0.1),
        (0.999, 0.01, 0.02),
        *(pytest.param(0.6, *pair, marks=SLOW) for pair in ((0.1, 0.1), (0.01, 0.02))),
        *(
            pytest.param(rho, *pair, marks=SLOW)
            for rho in (0.999, 0.9999)
            for pair in ((1.0, 0.1), (0.1, 0.1), (0.01, 0.02), (10.0, 0.1))
            if (rho, *pair) not in ((0.9999, 1.0, 0.1), (0.999, 0.01, 0.02))
        ),
    ],
)
def test_closed_form_and_sampling_agree(rho: float, sigma: float, eps: float) -> None:
    covariance = [[1.0, rho], [rho, 1.0]]
    prior, noise = JointMixture.normal([3.0, 0.0], covariance), noise_of("gaussian", sigma, 2)
    exact = normal_disclosure(covariance, [sigma, sigma], [eps, eps])
    closed = bayes_disclosure(prior, noise, eps)
    assert closed.way is Way.CLOSED
    assert closed.delta == pytest.approx(exact, rel=1e-6)
    assert closed.low <= exact * (1 + 1e-7)
    assert closed.high >= exact * (1 - 1e-7)
    sampled = _sampled(prior, noise, np.array([eps, eps]), 1e-2)
    assert sampled.way is Way.SAMPLING
    assert sampled.delta == pytest.approx(exact, rel=0.01)
    assert sampled.low <= exact <= sampled.high


@pytest.mark.parametrize("size", [3, 5])
def test_closed_form_of_many_attributes_is_a_product_without_correlation(size: int) -> None:
    deviations = np.linspace(0.5, 2.0, size)
    prior = JointMixture.normal(np.zeros(size), np.diag(deviations**2))
    found = bayes_disclosure(prior, noise_of("gaussian", 1.0, size), 0.5)
    spread = deviations / np.sqrt(1 + deviations**2)
    exact = float(np.prod(special.erf(0.5 / (spread * math.sqrt(2)))))
    assert found.delta == pytest.approx(exact, rel=1e-4)


# Laws ---------------------------------------------------------------------------------------------


PAIRS = [(1.0, 0.5), (0.3, 0.3), (3.0, 0.5)]

scales = st.floats(-2, 2).map(lambda e: 10.0**e)


@st.composite
def problems(draw: st.DrawFn) -> tuple[JointMixture, VectorNoise, float]:
    parts = draw(st.integers(1, 3))
    weights = np.array(draw(st.lists(st.floats(0.1, 1), min_size=parts, max_size=parts)))
    means = draw(st.lists(st.floats(-5, 5), min_size=parts, max_size=parts))
    deviations = draw(st.lists(st.floats(0.1, 3), min_size=parts, max_size=parts))
    domain = draw(st.sampled_from([(-INF, INF), (min(means) - 0.5, INF), (-6.0, 6.0)]))
    prior = joint(Line(list(weights / weights.sum()), means, deviations, *domain))
    name = draw(st.sampled_from([*NAMED, *RINGS]))
    return prior, made(name, [draw(scales)]), draw(scales)


@given(problems(), st.floats(1.05, 3))
@example((joint(LINES["normal"]), made("thin", [0.05]), 0.01), 1.1)
@example((joint(LINES["limited"]), made("ring", [0.5]), 0.01), 1.1)
@settings(max_examples=16)
def test_neither_a_prior_nor_an_answer_nor_less_accuracy_ever_hurts(
    problem: tuple[JointMixture, VectorNoise, float], more: float
) -> None:
    prior, noise, eps = problem
    found = quick_disclosure(prior, noise, eps)
    sound(found)
    assert found.delta >= noise.box_mass(eps) * (1 - 1e-9)
    # Moving what was published by a constant needs no prior either.
    assert found.delta >= noise.largest_box(eps) * (1 - 0.01)
    assert found.delta >= prior_disclosure(prior, eps) * (1 - 0.01)
    assert quick_disclosure(prior, noise, more * eps).delta >= found.delta * (1 - 0.01)


@pytest.mark.parametrize(("name", "prior", "eps"), thinned(4, NAMED, list(LINES), [0.05, 0.7]))
def test_noise_without_end_leaves_the_prior(name: str, prior: str, eps: float) -> None:
    known = prior_disclosure(joint(LINES[prior]), eps)
    found = quick_disclosure(joint(LINES[prior]), made(name, [1e4]), eps)
    assert found.delta == pytest.approx(known, rel=0.01)


@pytest.mark.parametrize("prior", list(LINES))
@pytest.mark.parametrize("eps", [0.01, 0.3, 2.0])
def test_a_guess_without_any_answer_is_the_best_interval(prior: str, eps: float) -> None:
    line = LINES[prior]
    centres = np.linspace(-6, 8, 14_001)
    total = np.zeros(centres.size)
    mass = 0.0
    for w, m, d in zip(line.weights, line.means, line.deviations, strict=True):
        ends = [np.clip(centres + s * eps, line.low, line.high) for s in (-1, 1)]
        total += w * (special.ndtr((ends[1] - m) / d) - special.ndtr((ends[0] - m) / d))
        mass += w * (special.ndtr((line.high - m) / d) - special.ndtr((line.low - m) / d))
    assert prior_disclosure(joint(line), eps) == pytest.approx(total.max() / mass, rel=0.005)


@pytest.mark.parametrize(
    ("name", "size", "sigma", "eps"),
    [
        *(("uniform", 2, *pair) for pair in PAIRS),
        ("laplace", 2, 1.0, 0.5),
        ("laplace", 2, 3.0, 0.5),
        ("gaussian", 2, 1.0, 0.5),
        ("uniform", 3, 5.0, 1.0),
        pytest.param("laplace", 2, 0.3, 0.3, marks=SLOW),
        pytest.param("uniform", 4, 5.0, 1.0, marks=SLOW),
        pytest.param("laplace", 4, 1.0, 0.5, marks=SLOW),
        pytest.param("uniform", 4, 3.0, 0.5, marks=SLOW),
    ],
)
def test_independent_attributes_are_found_independently(
    name: str, size: int, sigma: float, eps: float
) -> None:
    prior = JointMixture.normal(np.zeros(size), np.eye(size))
    near = 0.01 if size == 2 else 0.03
    found = bayes_disclosure(prior, noise_of(name, sigma, size), eps, precision=near)
    alone = line_disclosure(LINES["normal"], line_noise(name, sigma), eps)
    sound(found)
    assert found.delta == pytest.approx(alone**size, rel=near)
    assert found.high >= alone**size * 0.995
    assert found.low <= alone**size * 1.005


@pytest.mark.parametrize(("name", "unit"), thinned(4, NAMED, [1e-6, 1e6]))
def test_units_change_nothing(name: str, unit: float) -> None:
    plane = PLANES["limited"]
    sigma, eps = np.array([0.8, 1.2]), np.array([0.3, 0.5])
    base = quick_disclosure(flat(plane), made(name, sigma), eps).delta
    times = np.array([unit, 1.0])
    scaled = quick_disclosure(flat(plane).scaled(1 / times), made(name, sigma * times), eps * times)
    assert scaled.delta == pytest.approx(base, rel=2e-3)


@cache
def in_its_own_unit(name: str) -> float:
    return quick_disclosure(joint(LINES["mixture"]), made(name, [0.8]), 0.3).delta


@pytest.mark.parametrize("name", [*NAMED, "two"])
@given(unit=st.floats(-6, 6).map(lambda e: 10.0**e))
@settings(max_examples=2)
def test_units_of_one_attribute_change_nothing(name: str, unit: float) -> None:
    line = LINES["mixture"]
    base = in_its_own_unit(name)
    scaled = quick_disclosure(joint(line).scaled([1 / unit]), made(name, [0.8 * unit]), 0.3 * unit)
    assert scaled.delta == pytest.approx(base, rel=2e-3)


# Extremes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "gap"), thinned(2, NAMED, [100.0, 1e4, 1e6]))
def test_groups_far_apart_are_told_apart(name: str, gap: float) -> None:
    """What was published tells the group, and then it is one normal."""
    prior = JointMixture([0.5, 0.5], [[0.0], [gap]], [[[1.0]], [[1.0]]])
    found = quick_disclosure(prior, made(name, [1.0]), 0.5)
    exact = line_disclosure(LINES["normal"], line_noise(name, 1.0), 0.5)
    assert found.delta == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize(
    ("size", "gap"),
    [(2, 1e3), *(pytest.param(*case, marks=SLOW) for case in ((2, 100.0), (3, 100.0), (3, 1e3)))],
)
def test_groups_far_apart_in_space_are_told_apart(size: int, gap: float) -> None:
    prior = JointMixture([0.5, 0.5], [[0.0] * size, [gap] * size], [np.eye(size)] * 2)
    found = bayes_disclosure(prior, noise_of("gaussian", 1.0, size), 0.5)
    exact = float(special.erf(0.5)) ** size
    assert found.delta == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("wide", [30.0, 1e3, 1e5])
def test_groups_of_very_different_width_agree_with_brute_force(wide: float) -> None:
    line = Line([0.5, 0.5], [0.0, 0.0], [1.0, wide])
    exact = line_disclosure(line, line_noise("gaussian", 1.0), 0.5)
    found = bayes_disclosure(joint(line), noise_of("gaussian", 1.0, 1), 0.5)
    assert found.delta == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize(
    ("name", "size", "deviation", "sigma", "eps"),
    thinned(
        2,
        [*((name, 1) for name in NAMED), ("ball", 2), ("laplace", 2)],
        [(1.0, 1e-3, 0.1), (1e-3, 1.0, 0.1), (1.0, 1e-2, 1.0)],
    ),
)
def test_what_is_sharp_against_the_accuracy_is_found_for_certain(
    name: str, size: int, deviation: float, sigma: float, eps: float
) -> None:
    prior = JointMixture.normal(np.ones(size), deviation**2 * np.eye(size))
    found = quick_disclosure(prior, noise_of(name, sigma, size), eps)
    sound(found)
    assert found.delta == pytest.approx(1.0, rel=0.02)


@pytest.mark.parametrize(("name", "eps"), thinned(2, NAMED, [1e-4, 1e-3]))
def test_noise_that_is_wide_against_the_prior_leaves_it(name: str, eps: float) -> None:
    prior = JointMixture.normal([5.0, 5.0], [[1e-6, 5e-7], [5e-7, 1e-6]])
    found = bayes_disclosure(prior, noise_of(name, 1.0, 2), eps)
    assert found.low * 0.98 <= prior_disclosure(prior, eps) <= found.high * 1.02
    assert found.high <= 1.1 * found.low


@pytest.mark.parametrize("name", ["uniform", pytest.param("laplace", marks=SLOW)])
def test_strong_correlation_leaves_one_number(name: str) -> None:
    """With equal attributes a second answer is a second look at the first."""
    prior = JointMixture.normal([0.0, 0.0], [[1.0, 0.9999], [0.9999, 1.0]])
    found = bayes_disclosure(prior, noise_of(name, 1.0, 2), 0.1)
    sound(found)
    # A point of the diagonal, two looks at it: one line with the product of both noises.
    cells = np.linspace(-6, 6, 1_201)
    step = cells[1] - cells[0]
    density = line_noise(name, 1.0).density
    weights = stats.norm.pdf(cells) * step
    told = np.linspace(-9, 9, 181)
    looks = density(told[:, None] - cells)
    best = 0.0
    window = round(0.2 / step)
    for look in looks:
        both = weights * look * looks
        summed = np.concatenate([np.zeros((told.size, 1)), both.cumsum(axis=1)], axis=1)
        best += float((summed[:, window:] - summed[:, :-window]).max(axis=1).sum())
    # What the two differ by is lost at the ends of the box.
    differ = math.sqrt(2 * (1 - 0.9999)) * math.sqrt(2 / math.pi)
    exact = best * (told[1] - told[0]) ** 2 * (1 - differ / 0.2)
    assert found.delta == pytest.approx(exact, rel=0.04)


@pytest.mark.parametrize("name", thinned(3, ["ball", "uniform", "laplace"]))
def test_a_mirrored_attribute_is_as_hard_to_find(name: str) -> None:
    found = [
        quick_disclosure(
            JointMixture.normal([0.0, 0.0], [[1.0, rho], [rho, 1.0]]), noise_of(name, 1.0, 2), 0.1
        )
        for rho in (0.999, -0.999)
    ]
    assert found[1].delta == pytest.approx(found[0].delta, rel=0.01)
    assert max(each.low for each in found) <= min(each.high for each in found)


@pytest.mark.slow
def test_strongly_correlated_noise_of_many_axes() -> None:
    """Two equal components are one normal, which has a closed form."""
    size = 4
    noise = CorrelatedNoise(np.ones(size), 0.1 * np.eye(size) + 0.9)
    one = JointMixture.normal(np.zeros(size), np.eye(size))
    twice = JointMixture([0.5, 0.5], np.zeros((2, size)), [np.eye(size)] * 2)
    found = bayes_disclosure(twice, noise, 1.0, precision=0.05)
    exact = bayes_disclosure(one, noise, 1.0).delta
    assert found.delta == pytest.approx(exact, rel=0.05)
    assert found.low <= exact <= found.high * 1.02


# Attacks ------------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "plane"),
    [
        ("ball", "mixture"),
        ("laplace", "correlated"),
        pytest.param("uniform", "correlated", marks=SLOW),
        ("two", "correlated"),
        pytest.param("gaussian", "mixture", marks=SLOW),
    ],
)
def test_an_attack_reaches_the_bound_and_no_other_does_better(
    name: str, plane: str, rng: np.random.Generator
) -> None:
    prior, sigma, eps = flat(PLANES[plane]), np.array([0.8, 1.2]), np.array([0.5, 0.6])
    noise = made(name, sigma)
    rows = 2_500
    people = prior.draw(rng.random((rows, 3)))
    words = seeded(11).words(rows * noise.words).reshape(rows, noise.words)
    told = people + noise.draw(words)
    guesses = best_estimates(prior, noise, eps, told)

    def successes(estimates: Floats) -> Floats:
        return np.asarray((np.abs(estimates - people) <= eps).all(axis=1))

    hits = successes(guesses)
    promised = bayes_disclosure(prior, noise, eps).delta
    error = 4.5 * math.sqrt(promised * (1 - promised) / rows)
    assert abs(hits.mean() - promised) < error
    assert abs(hits.mean() - 1.3 * promised) > error
    assert abs(hits.mean() - 0.7 * promised) > error
    for other in (
        told,
        guesses + 0.3 * eps * rng.normal(size=guesses.shape),
        guesses + 0.4 * eps,
        guesses - [0.5 * eps[0], 0.0],
        0.5 * (guesses + told),
    ):
        gain = successes(other).astype(float) - hits
        assert gain.mean() < 4.5 * gain.std() / math.sqrt(rows) + 1e-9


@pytest.mark.parametrize("name", [*NAMED, "ring", "two"])
def test_estimates_on_a_line_are_the_best_intervals(name: str) -> None:
    line, eps = LINES["mixture"], 0.3
    noise, oracle = made(name, [1.0]), oracle_of(name, 1.0)
    told = np.linspace(-4, 4, 17)
    for place, guess in zip(
        told, best_estimates(joint(line), noise, eps, told[:, None]), strict=True
    ):
        best, _ = line_best(line, oracle, eps, float(place))
        cells = guess[0] - eps + (np.arange(4_000) + 0.5) * eps / 2_000
        reached = float((line.density(cells) * oracle.density(place - cells)).sum() * eps / 2_000)
        assert reached >= 0.98 * best


# Refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, [1.0, 2.0, 3.0], "x"])
def test_bad_accuracies_are_refused_by_name(bad: Any) -> None:
    prior, noise = flat(PLANES["round"]), noise_of("ball", 1.0, 2)
    for ask in (
        lambda: bayes_disclosure(prior, noise, bad),
        lambda: prior_disclosure(prior, bad),
    ):
        with pytest.raises(InvalidParameter, match="accuracy"):
            ask()


def test_noise_of_other_axes_is_refused_by_name() -> None:
    prior, noise = flat(PLANES["round"]), noise_of("ball", 1.0, 3)
    with pytest.raises(InvalidParameter, match="noise"):
        bayes_disclosure(prior, noise, 1.0)


@pytest.mark.parametrize("precision", [0.0, 1.0, -1.0, math.nan])
def test_bad_precisions_are_refused_by_name(precision: float) -> None:
    with pytest.raises(InvalidParameter, match="precision"):
        bayes_disclosure(flat(PLANES["round"]), noise_of("ball", 1.0, 2), 1.0, precision=precision)
