"""Round noise: the paper's ball, rings and shells; boxes everywhere, draws three-sided."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, special, stats

from sfumato.core.errors import InvalidParameter
from sfumato.record.round_noise import RoundNoise
from sfumato.record.vector_noise import Kind, ProductNoise
from tests.oracles.disclosure import share_in_ball
from tests.record import noises
from tests.record.noises import coins

Floats = NDArray[np.float64]

SHELLS = {
    "ball": ([0.0, 1.0], [1.0]),
    "ring": ([0.8, 1.0], [1.0]),
    "falling": ([0.0, 0.5, 1.0, 3.0], [0.5, 0.4, 0.1]),
    "rising": ([0.0, 0.5, 1.0], [0.05, 0.95]),
    "hollow": ([0.0, 0.3, 0.9, 1.0], [0.3, 0.0, 0.7]),
    "heavy": ([0.0, 1.0, 6.0, 8.0], [0.97, 0.0, 0.03]),
}
EXTREME = [0, 2**11 - 1, 2**63 - 1, 2**63, 2**63 + 2**11, 2**64 - 2**11, 2**64 - 1]
DRAWS = 20_000


def volume(dimension: int, radius: float = 1.0) -> float:
    return float(math.pi ** (dimension / 2) / special.gamma(dimension / 2 + 1) * radius**dimension)


def shells(name: str, sigma: Any) -> RoundNoise:
    return noises.shells(sigma, *SHELLS[name])


def density(noise: RoundNoise, offsets: Floats) -> Floats:
    """From edges and masses alone."""
    size = noise.sigma.size
    distance = np.sqrt(((offsets / noise.sigma) ** 2).sum(axis=-1))
    total = np.zeros(distance.shape)
    for inner, outer, mass in zip(noise.edges[:-1], noise.edges[1:], noise.masses, strict=True):
        height = mass / (volume(size, outer) - volume(size, inner)) / float(np.prod(noise.sigma))
        total += np.where((distance >= inner) & (distance < outer), height, 0.0)
    return total


def sample(noise: RoundNoise, rng: np.random.Generator, rows: int) -> Floats:
    """Draws that share no code with the sampler: normal directions, radii by inversion."""
    size = noise.sigma.size
    ways = rng.normal(size=(rows, size))
    ways /= np.linalg.norm(ways, axis=1)[:, None]
    shell = rng.choice(noise.masses.size, size=rows, p=noise.masses)
    inner, outer = noise.edges[shell], noise.edges[shell + 1]
    radii = (inner**size + rng.random(rows) * (outer**size - inner**size)) ** (1 / size)
    return noise.sigma * ways * radii[:, None]


# The ball of the paper, mended --------------------------------------------------------------------


@given(st.floats(0.1, 50), st.floats(0.01, 1.0))
def test_the_disc_discloses_eps_squared_over_pi_sigma_squared(sigma: float, part: float) -> None:
    eps = part * math.sqrt(2) * sigma
    disc = RoundNoise.ball([sigma, sigma])
    found = disc.largest_box(eps)
    assert found == pytest.approx(eps**2 / (math.pi * sigma**2), rel=1e-6)
    square = ProductNoise(Kind.UNIFORM, np.array([sigma, sigma])).largest_box(eps)
    assert square == pytest.approx(eps**2 / (3 * sigma**2), rel=1e-9)
    assert found < square


@pytest.mark.parametrize("dimension", range(1, 17))
@pytest.mark.parametrize("part", [0.1, 0.7, 1.0])
def test_a_ball_discloses_the_volume_of_the_box_while_it_fits(dimension: int, part: float) -> None:
    sigma = 2.5
    radius = sigma * math.sqrt(dimension + 2)
    eps = part * radius / math.sqrt(dimension) * (1 - 1e-12)
    found = RoundNoise.ball(np.full(dimension, sigma)).largest_box(eps)
    assert found == pytest.approx((2 * eps) ** dimension / volume(dimension, radius), rel=1e-6)


@pytest.mark.parametrize("dimension", range(1, 7))
@pytest.mark.parametrize("eps", [0.9, 1.3, 1.8])
def test_beyond_that_it_is_the_share_of_the_box(dimension: int, eps: float) -> None:
    sigma = np.linspace(1.0, 1.6, dimension) if dimension > 1 else np.ones(1)
    half = eps * np.linspace(1.2, 0.8, dimension) if dimension > 1 else np.array([eps])
    noise = RoundNoise.ball(sigma)
    radius = math.sqrt(dimension + 2)
    widths = half / sigma
    exact = share_in_ball(widths.tolist(), radius) * float(np.prod(2 * widths))
    exact = min(exact / volume(dimension, radius), 1.0)
    assert noise.box_mass(half) == pytest.approx(exact, rel=5e-5)
    assert noise.largest_box(half) == pytest.approx(exact, rel=5e-5)


@pytest.mark.parametrize("radius", [1.05, 1.2, 1.6, 1.7])
def test_the_largest_box_in_space_is_rounded_up(radius: float) -> None:
    def slice_at(u: float) -> float:
        level = radius**2 - u * u
        root = math.sqrt(max(level, 0.0))
        if root >= math.sqrt(2):
            return 1.0
        if root <= 1:
            return math.pi * root * root / 4
        flat = math.sqrt(level - 1)
        # a square but for the corner beyond the circle
        return flat + 0.5 * (flat + level * (math.asin(1 / root) - math.asin(flat / root)) - flat)

    kinks = [math.sqrt(radius**2 - k) for k in (1, 2) if 0 < radius**2 - k < 1]
    ends = sorted({0.0, 1.0, *kinks})
    share = sum(
        integrate.quad(slice_at, a, b, epsabs=1e-14, epsrel=1e-13)[0]
        for a, b in itertools.pairwise(ends)
    )
    eps = math.sqrt(5) / radius
    exact = share * (2 * eps) ** 3 / volume(3, math.sqrt(5))
    found = RoundNoise.ball(np.ones(3)).largest_box(eps)
    assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-4)


@pytest.mark.parametrize("dimension", [2, 4, 6])
def test_boxes_agree_with_random_points(dimension: int, rng: np.random.Generator) -> None:
    noise = RoundNoise.ball(np.linspace(0.5, 2.0, dimension))
    half = np.linspace(0.8, 1.6, dimension)
    drawn = sample(noise, rng, 200_000)
    share = float((np.abs(drawn) <= half).all(axis=1).mean())
    error = 4.5 * math.sqrt(share * (1 - share) / len(drawn))
    assert abs(noise.box_mass(half) - share) < error
    assert abs(noise.box_mass(1.1 * half) - share) > error


# Moments and masses -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(SHELLS))
@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_every_axis_has_its_deviation(name: str, dimension: int) -> None:
    sigma = np.linspace(0.5, 3.0, dimension)
    noise = shells(name, sigma)
    for axis in range(dimension):
        reach = float(noise.edges[-1] * sigma[axis])
        cuts = [float(edge * sigma[axis]) for edge in noise.edges]
        squared = 0.0
        for a, b in zip([0.0, *cuts], cuts, strict=False):
            if a < b:
                squared += integrate.quad(
                    lambda t, axis=axis: 4 * t * float(noise.axis_mass(axis, t, np.inf)), a, b
                )[0]
        assert squared == pytest.approx(sigma[axis] ** 2, rel=1e-5)
        assert float(noise.axis_mass(axis, -reach, 0.0)) == pytest.approx(0.5)
        assert float(noise.axis_mass(axis, -np.inf, np.inf)) == pytest.approx(1.0)


@pytest.mark.parametrize("name", list(SHELLS))
@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_an_axis_has_the_mass_of_its_draws(
    name: str, dimension: int, rng: np.random.Generator
) -> None:
    sigma = np.linspace(0.5, 3.0, dimension)
    noise = shells(name, sigma)
    drawn = sample(noise, rng, 40_000)
    for axis in range(dimension):
        edges = np.linspace(-1.0, 1.0, 9) * noise.edges[-1] * sigma[axis]
        masses = noise.axis_mass(axis, edges[:-1], edges[1:])
        counts = np.histogram(drawn[:, axis], edges)[0]
        assert masses.sum() == pytest.approx(1.0)
        kept = masses * len(drawn) > 5
        expected = masses[kept] / masses[kept].sum() * counts[kept].sum()
        assert np.allclose(counts[~kept], 0, atol=30)
        if np.count_nonzero(kept) > 1:
            assert stats.chisquare(counts[kept], expected).pvalue > 1e-5


@pytest.mark.parametrize("name", list(SHELLS))
def test_boxes_in_the_plane_agree_with_a_grid(name: str, rng: np.random.Generator) -> None:
    noise = shells(name, [1.0, 2.0])
    half = np.array([0.6, 0.9])
    centres = rng.normal(size=(12, 2)) * noise.sigma
    steps = (np.arange(500) + 0.5) / 250 - 1
    for centre, found in zip(centres, noise.box_masses(centres, half), strict=True):
        points = np.stack(
            np.meshgrid(centre[0] + half[0] * steps, centre[1] + half[1] * steps, indexing="ij"),
            axis=-1,
        )
        brute = float(density(noise, points).mean() * 4 * half.prod())
        assert found == pytest.approx(brute, rel=0.01, abs=3e-4)


@pytest.mark.parametrize("name", list(SHELLS))
@pytest.mark.parametrize("dimension", [1, 2])
def test_the_box_at_0_is_one_of_the_boxes(name: str, dimension: int) -> None:
    noise = shells(name, np.linspace(1.0, 2.0, dimension))
    half = np.linspace(0.5, 1.4, dimension)
    there = float(noise.box_masses(np.zeros((1, dimension)), half)[0])
    assert noise.box_mass(half) == pytest.approx(there, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "dimension", "eps"),
    [
        *((name, size, eps) for name in SHELLS for size in (1, 2) for eps in (0.05, 0.4, 1.5)),
    ],
)
def test_no_box_anywhere_has_more_and_one_has_nearly_as_much(
    name: str, dimension: int, eps: float, rng: np.random.Generator
) -> None:
    noise = shells(name, np.linspace(1.0, 2.0, dimension))
    half = eps * np.linspace(1.0, 1.5, dimension)
    rows = 4_000
    # Anywhere, on the way to the edges, with sides on edges, and along the axes and diagonals.
    centres = rng.uniform(0, 1.1 * noise.edges[-1], size=(rows, dimension)) * noise.sigma
    ways = np.abs(rng.normal(size=(rows, dimension)))
    ways[: rows // 4] = np.eye(dimension)[rng.integers(0, dimension, rows // 4)]
    ways /= np.linalg.norm(ways, axis=1)[:, None]
    radii = rng.choice(noise.edges, rows) * rng.choice([1.0, 0.97, 1.03], rows)
    on_shells = ways * radii[:, None] * noise.sigma
    moved = np.maximum(on_shells - half * rng.choice([0.0, 1.0], size=(rows, dimension)), 0.0)
    tried = np.concatenate([centres, on_shells, moved, np.zeros((1, dimension))])
    masses = noise.box_masses(tried, half)
    largest = noise.largest_box(half)
    assert masses.max() <= largest * (1 + 1e-12)
    best, spread = tried[np.argsort(masses)[-20:]], 0.1 * half
    top = float(masses.max())
    for _ in range(12):
        near = (best[:, None] + spread * rng.normal(size=(len(best), 40, dimension))).reshape(
            -1, dimension
        )
        found = noise.box_masses(near, half)
        assert found.max() <= largest * (1 + 1e-12)
        top = max(top, float(found.max()))
        best, spread = np.concatenate([best, near])[np.argsort(found)[-20:] + len(best)], spread / 2
    assert largest <= {1: 1.005, 2: 1.02}[dimension] * top


def test_a_ring_is_not_judged_by_the_box_at_0() -> None:
    ring = shells("ring", [1.0, 1.0])
    assert ring.box_mass(0.2) == 0
    assert ring.largest_box(0.2) > 0.03
    assert not ring.falling
    assert shells("falling", [1.0, 1.0]).falling


def test_two_humps_tell_less_than_uniform_noise_unless_eps_is_small() -> None:
    humps, even = shells("ring", [1.0]), RoundNoise.ball([1.0])
    assert even.largest_box(0.9) == pytest.approx(0.9 / math.sqrt(3))
    assert humps.largest_box(0.9) == pytest.approx(0.5, rel=1e-5)  # no interval of 1.8 has both
    assert humps.largest_box(0.9) < even.largest_box(0.9)
    assert humps.largest_box(0.1) > even.largest_box(0.1)


def test_boxes_of_three_axes_elsewhere_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="centres"):
        RoundNoise.ball(np.ones(3)).box_masses(np.array([[0.0, 0.0, 50.0]]), 1.0)


# Samplers -----------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("name", list(SHELLS))
@pytest.mark.parametrize("dimension", [1, 2, 3, 5])
def test_draws_have_radius_and_direction_of_their_law(name: str, dimension: int) -> None:
    noise = shells(name, np.linspace(0.5, 3.0, dimension))
    reduced = noise.draw(coins(noise, DRAWS)) / noise.sigma
    radii = np.linalg.norm(reduced, axis=1)

    def below(r: Floats, edges: Floats) -> Floats:
        grown = np.append(0.0, np.cumsum(noise.masses))
        return np.asarray(np.interp(r**dimension, edges**dimension, grown))

    assert stats.kstest(radii, lambda r: below(r, noise.edges)).pvalue > 1e-4
    for wrong in (0.7, 1.3):
        assert stats.kstest(radii, lambda r, w=wrong: below(r, w * noise.edges)).pvalue < 1e-6
    ways = reduced / radii[:, None]
    if dimension == 1:
        assert stats.binomtest(int((ways > 0).sum()), DRAWS).pvalue > 1e-4
        return
    # One coordinate of a uniform direction, squared, has a beta law.
    squared = stats.beta(0.5, 0.5 * (dimension - 1))
    for axis in range(dimension):
        assert stats.kstest(ways[:, axis] ** 2, squared.cdf).pvalue > 1e-4
    assert np.abs(ways.mean(axis=0)).max() < 4.5 / math.sqrt(DRAWS * dimension)
    # Radius and direction are apart.
    assert abs(np.corrcoef(radii, np.abs(ways[:, 0]))[0, 1]) < 4.5 / math.sqrt(DRAWS)


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["ball", "ring", "heavy"])
def test_draws_have_the_deviations_asked_for(name: str) -> None:
    sigma = np.array([0.5, 3.0, 1.0])
    noise = shells(name, sigma)
    drawn = noise.draw(coins(noise, DRAWS))
    wide = 1.0 if name != "heavy" else 3.0
    assert drawn.std(axis=0) == pytest.approx(sigma, rel=0.04 * wide)
    assert np.abs(drawn.mean(axis=0) / sigma).max() < 4.5 / math.sqrt(DRAWS)
    assert np.abs(np.corrcoef(drawn.T) - np.eye(3)).max() < wide * 5 / math.sqrt(DRAWS)


def test_the_same_words_give_the_same_noise() -> None:
    noise = shells("falling", [1.0, 2.0])
    assert np.array_equal(noise.draw(coins(noise, 40)), noise.draw(coins(noise, 40)))


@pytest.mark.parametrize("word", EXTREME)
@pytest.mark.parametrize("dimension", [1, 2, 16])
@pytest.mark.parametrize("name", ["ball", "hollow"])
def test_extreme_words_stay_within_reach(name: str, dimension: int, word: int) -> None:
    noise = shells(name, np.ones(dimension))
    drawn = noise.draw(np.full((1, noise.words), word, dtype=np.uint64))
    assert np.isfinite(drawn).all()
    assert np.linalg.norm(drawn) <= noise.edges[-1] * (1 + 1e-12)


@given(st.lists(st.sampled_from(EXTREME), min_size=4, max_size=4))
def test_any_mixture_of_extreme_words_gives_a_number(words: list[int]) -> None:
    noise = shells("hollow", [1.0, 2.0])
    assert np.isfinite(noise.draw(np.array([words], dtype=np.uint64))).all()


# Refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "edges",
    [
        [0.0],
        [1.0, 1.0],
        [0.0, 0.0, 1.0],
        [2.0, 1.0],
        [-1.0, 1.0],
        [0.0, math.nan],
        [0.0, math.inf],
        [[0.0, 1.0]],
        ["a", "b"],
        None,
        [0.0, 1.0, 2.0, 3.0],
    ],
)
def test_bad_edges_are_refused_by_name(edges: Any) -> None:
    masses = [1.0] if edges is None or len(edges) < 3 else [0.5, 0.5]
    with pytest.raises(InvalidParameter) as refusal:
        RoundNoise(np.array([1.0]), edges, np.array(masses))
    assert refusal.value.name in ("edges", "masses")


@pytest.mark.parametrize(
    "masses", [[0.5, 0.4], [-0.1, 1.1], [math.nan, 1.0], [], [1.0], [[0.5, 0.5]], ["x", "y"], None]
)
def test_bad_masses_are_refused_by_name(masses: Any) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        RoundNoise(np.array([1.0]), np.array([0.0, 1.0, 2.0]), masses)
    assert refusal.value.name == "masses"


def test_edges_that_give_another_deviation_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="edges"):
        RoundNoise(np.array([1.0, 1.0]), np.array([0.0, 2.1]), np.array([1.0]))
    assert RoundNoise(np.array([1.0, 1.0]), np.array([0.0, 2.0]), np.array([1.0])).words == 4


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, [1.0] * 17, []])
def test_bad_deviations_are_refused_by_name(sigma: Any) -> None:
    with pytest.raises(InvalidParameter, match="sigma"):
        RoundNoise.ball(sigma)


def test_a_ring_of_three_dimensions_says_why_it_cannot_be_judged() -> None:
    with pytest.raises(InvalidParameter, match="masses"):
        shells("ring", np.ones(3)).largest_box(0.5)
