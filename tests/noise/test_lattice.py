import itertools
import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.randomness import seeded
from sfumato.noise.lattice import MOST_POINTS, Lattice, Noise
from tests.strategies import Floats

ALPHA = 1e-4
SAMPLES = 20_000
WRONG_BY = 0.3
SECRET = "9151.25"

shapes = pytest.mark.parametrize("noise", list(Noise))


@st.composite
def lattices(draw: st.DrawFn) -> Lattice:
    """Few points, anywhere from very close to the origin to very far from it."""
    scale = draw(st.sampled_from([1e-6, 1.0, 1e9]))
    low = draw(st.floats(-100.0, 100.0))
    width = draw(st.floats(0.1, 1000.0))
    return Lattice(scale * low, scale * (low + width), draw(st.integers(2, 9)))


def tail(noise: Noise, reduced: mpmath.mpf) -> mpmath.mpf:
    """The probability of standard noise up to a point."""
    if noise is Noise.GAUSSIAN:
        return mpmath.erfc(-reduced / mpmath.sqrt(2)) / 2
    small = mpmath.exp(-abs(reduced)) / 2
    return small if reduced < 0 else 1 - small


def cells(lattice: Lattice, noise: Noise, place: int, scale: float) -> list[float]:
    """The probabilities of all cells for one true point, with 400 digits."""
    with mpmath.workdps(400):
        points = [mpmath.mpf(point) for point in lattice.points.tolist()]
        ends = [(a + b) / 2 for a, b in itertools.pairwise(points)]
        reached = [tail(noise, (cut - points[place]) / mpmath.mpf(scale)) for cut in ends]
        steps = [mpmath.mpf(0), *reached, mpmath.mpf(1)]
        return [float(b - a) for a, b in itertools.pairwise(steps)]


# --- places ---


@settings(max_examples=60)
@given(lattices(), st.floats(-0.5, 1.5))
def test_a_value_goes_to_its_nearest_point(lattice: Lattice, part: float) -> None:
    value = lattice.low + part * lattice.width
    place = int(lattice.places(value))
    away = np.abs(lattice.points - value)
    assert away[place] <= away.min() + 1e-12 * (lattice.step + abs(value))


@given(lattices())
def test_points_are_their_own_places_and_span_the_interval(lattice: Lattice) -> None:
    assert lattice.places(lattice.points).tolist() == list(range(lattice.count))
    assert (lattice.points[0], lattice.points[-1]) == (lattice.low, lattice.high)
    assert np.diff(lattice.points) == pytest.approx(np.full(lattice.count - 1, lattice.step))
    assert lattice.edges.size == lattice.count - 1


def test_values_outside_are_clamped_and_counted() -> None:
    lattice = Lattice(0.0, 10.0, 6)
    values = [-1e308, -1e-9, 0.0, 5.0, 10.0, np.nextafter(10.0, 11.0), 1e308]
    assert lattice.places(values).tolist() == [0, 0, 0, 3, 5, 5, 5]
    assert lattice.outside(values) == 4
    assert lattice.outside([]) == 0


def test_an_edge_belongs_to_the_cell_above_and_its_neighbours_to_their_own() -> None:
    lattice = Lattice(0.0, 4.0, 5)
    for place, edge in enumerate(lattice.edges.tolist()):
        assert int(lattice.places(edge)) == place + 1
        assert int(lattice.places(np.nextafter(edge, -1))) == place
        assert int(lattice.places(np.nextafter(edge, 9))) == place + 1


def test_shapes_and_kinds_of_values_are_kept() -> None:
    lattice = Lattice(0, 3, 4)
    assert lattice.places([[0, 1], [2, 3]]).tolist() == [[0, 1], [2, 3]]
    assert lattice.places(2).shape == ()
    assert lattice.places([]).dtype == np.int64
    assert lattice.places(np.array([True, False])).tolist() == [1, 0]


# --- rows ---


@shapes
@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0, 50.0])
def test_rows_are_the_masses_of_cells_also_in_far_tails(noise: Noise, scale: float) -> None:
    lattice = Lattice(-10.0, 10.0, 17)
    rows = lattice.noisy(noise, scale)
    for place in (0, 5, 8, 16):
        expected = cells(lattice, noise, place, scale)
        kept = [p if p > 1e-290 else 0.0 for p in expected]
        assert rows[place] == pytest.approx(kept, rel=1e-10, abs=1e-290)
    assert scale > 0.3 or rows.min() < 1e-25


@shapes
@pytest.mark.parametrize("scale", [1e5, 1e7])
def test_cells_that_are_tiny_against_the_noise_keep_their_digits(
    noise: Noise, scale: float
) -> None:
    lattice = Lattice(0.0, 1.0, 9)
    found = lattice.noisy(noise, scale)[2]
    assert found == pytest.approx(cells(lattice, noise, 2, scale), rel=1e-7)


@shapes
@settings(max_examples=40, deadline=None)
@given(lattice=lattices(), part=st.floats(-1.5, 3.0))
def test_rows_sum_to_one_and_mirror_each_other(noise: Noise, lattice: Lattice, part: float) -> None:
    rows = lattice.noisy(noise, lattice.step * 10.0**part)
    assert np.all(rows >= 0)
    assert rows.sum(axis=1) == pytest.approx(np.ones(lattice.count), abs=1e-14)
    # Points far from the origin are known to their own last digit only.
    blur = 1e-15 * abs(lattice.high + abs(lattice.low)) / (lattice.step * 10.0**part)
    assert rows[::-1, ::-1] == pytest.approx(rows, rel=1e-9, abs=1e-13 + 4 * blur)


@shapes
def test_scales_of_their_own_are_used_row_by_row(noise: Noise) -> None:
    lattice = Lattice(0.0, 4.0, 5)
    scales = [0.5, 1.0, 2.0, 4.0, 8.0]
    rows = lattice.noisy(noise, scales)
    for place, scale in enumerate(scales):
        assert rows[place].tolist() == lattice.noisy(noise, scale)[place].tolist()
        assert rows[place] == pytest.approx(cells(lattice, noise, place, scale), rel=1e-10)


@shapes
def test_more_noise_spreads_every_row(noise: Noise) -> None:
    lattice = Lattice(-1.0, 1.0, 9)
    kept = [np.diag(lattice.noisy(noise, scale)) for scale in (0.1, 0.5, 2.0, 9.0)]
    inner = np.array(kept)[:, 1:-1]
    assert np.all(np.diff(inner, axis=0) < 0)


@shapes
def test_nothing_is_drawn_so_everything_is_the_same_twice(noise: Noise) -> None:
    first, second = (Lattice(0.0, 1.0, 40).noisy(noise, 0.3) for _ in range(2))
    assert first.tobytes() == second.tobytes()


# --- the sampler ---


@shapes
@pytest.mark.parametrize("place", [0, 7])
def test_outputs_follow_the_true_scale_and_no_other(noise: Noise, place: int) -> None:
    lattice, scale = Lattice(-10.0, 10.0, 21), 3.0
    channel = Channel.from_probabilities(lattice.noisy(noise, scale))
    drawn = channel.draw(np.full(SAMPLES, place), seeded(11 + place).words(SAMPLES))
    counted = np.bincount(drawn, minlength=lattice.count)

    def fits(other: float) -> bool:
        expected = np.array(cells(lattice, noise, place, other)) * SAMPLES
        common = expected >= 5
        seen = np.append(counted[common], counted[~common].sum())
        wanted = np.append(expected[common], expected[~common].sum())
        if wanted[-1] < 5:
            seen, wanted = seen[:-1], wanted[:-1]
            wanted *= seen.sum() / wanted.sum()
        return float(stats.chisquare(seen, wanted).pvalue) > ALPHA

    assert fits(scale)
    assert not fits(scale * (1 + WRONG_BY))
    assert not fits(scale * (1 - WRONG_BY))


@shapes
def test_released_numbers_are_points_whatever_the_value(noise: Noise) -> None:
    lattice = Lattice(0.0, 1.0, 11)
    channel = Channel.from_probabilities(lattice.noisy(noise, 0.2))
    values = np.random.default_rng(3).normal(0.5, 2.0, 5_000)
    told = lattice.points[channel.draw(lattice.places(values), seeded(4).words(5_000))]
    assert set(told.tolist()) <= set(lattice.points.tolist())


@shapes
@pytest.mark.parametrize("scale", [0.01, 0.05, 0.2, 3.0])
def test_the_outputs_that_can_occur_do_not_depend_on_the_value(noise: Noise, scale: float) -> None:
    """Only where the probability is too small for one part in 2**62 may a weight be 0."""
    lattice = Lattice(0.0, 1.0, 11)
    channel = Channel.from_probabilities(lattice.noisy(noise, scale))
    assert channel.outputs.tolist() == list(range(lattice.count))
    for place in range(lattice.count):
        expected = np.array(cells(lattice, noise, place, scale)) * 2.0**62
        silent = channel.weights[place] == 0
        assert np.all(expected[silent] < 0.51)
        assert np.all(expected[~silent] > 0.49)


@shapes
def test_values_of_one_cell_cannot_be_told_apart(noise: Noise) -> None:
    lattice = Lattice(0.0, 1.0, 5)
    channel = Channel.from_probabilities(lattice.noisy(noise, 0.3))
    words = seeded(6).words(500)
    near = [channel.draw(lattice.places(np.full(500, x)), words) for x in (0.126, 0.25, 0.374)]
    assert near[0].tolist() == near[1].tolist() == near[2].tolist()


# --- errors ---


def test_lattices_that_are_none_are_refused() -> None:
    calls: list[tuple[str, Callable[[], object]]] = [
        ("interval", lambda: Lattice(1.0, 0.0, 5)),
        ("interval", lambda: Lattice(1.0, 1.0, 5)),
        ("interval", lambda: Lattice(math.nan, 1.0, 5)),
        ("interval", lambda: Lattice(0.0, math.inf, 5)),
        ("count", lambda: Lattice(0.0, 1.0, 1)),
        ("count", lambda: Lattice(0.0, 1.0, True)),
        ("count", lambda: Lattice(0.0, 1.0, 2.0)),  # type: ignore[arg-type]
        ("count", lambda: Lattice(0.0, 1.0, MOST_POINTS + 1)),
        ("too close", lambda: Lattice(1.0, 1.0 + 1e-14, 500)),
        ("too close", lambda: Lattice(1e300, np.nextafter(1e300, 2e300), 3)),
    ]
    for name, call in calls:
        with pytest.raises(InvalidParameter, match=name):
            call()
    assert Lattice(0.0, 1.0, MOST_POINTS).count == MOST_POINTS


def test_scales_that_are_none_are_refused() -> None:
    lattice = Lattice(0.0, 1.0, 3)
    wrong: list[float | list[float] | Floats] = [0.0, -1.0, math.nan, math.inf]
    wrong += [[1.0, 2.0], [1.0, 2.0, 0.0], [1.0, math.nan, 1.0], np.ones((3, 1))]
    for scales in wrong:
        with pytest.raises(InvalidParameter, match="scales"):
            lattice.noisy(Noise.LAPLACE, scales)


def test_a_value_that_is_no_number_is_refused_and_no_other_is_quoted() -> None:
    lattice = Lattice(0.0, 1.0, 3)
    for value in (math.nan, math.inf, -math.inf, None):
        with pytest.raises(InvalidParameter) as refusal:
            lattice.places([float(SECRET), value])  # type: ignore[arg-type]
        assert SECRET not in str(refusal.value)


def test_a_value_that_is_text_is_not_quoted() -> None:
    lattice = Lattice(0.0, 1.0, 3)
    calls: list[Callable[[], object]] = [
        lambda: lattice.places(["secret77"]),
        lambda: lattice.outside(["secret77"]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"values|float") as refusal:
            call()
        assert "secret77" not in str(refusal.value)
