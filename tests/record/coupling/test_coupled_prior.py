import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import InvalidParameter
from sfumato.record.coupling.coupled_prior import CoupledPrior, domains_of
from sfumato.record.coupling.coupling import FullCoupling
from sfumato.record.coupling.joint_mixture import JointMixture

SQUARE = {"x": (-5.0, 5.0), "y": (-5.0, 5.0)}


def circle() -> FullCoupling:
    return FullCoupling.equation("x**2 + y**2 = 25", SQUARE)


def prior(text: str, names: str, width: float = 10.0) -> CoupledPrior:
    domains = {name: (0.0, width) for name in names}
    tied = [FullCoupling.equation(part, domains) for part in text.split(";")]
    return CoupledPrior.of(list(names), tied, domains=domains)


# Points ------------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(st.floats(0.05, 20), st.floats(-5, 5), st.floats(0.2, 3))
def test_every_point_satisfies_the_equation_and_lies_in_the_domains(
    slope: float, shift: float, half: float
) -> None:
    domains = {"a": (0.0, 10.0), "b": (-5.0, 30.0)}
    line = FullCoupling.equation(f"b = {slope}*a + {shift}", domains)
    cloud = CoupledPrior.of(["a", "b"], [line]).cloud(np.array([half, half]))
    a, b = cloud.points.T
    np.testing.assert_allclose(b, slope * a + shift, atol=1e-9)
    assert 0 <= a.min() <= a.max() <= 10
    assert -5 <= b.min() <= b.max() <= 30
    assert cloud.weights.sum() == pytest.approx(1)
    assert cloud.weights.min() >= 0


def test_both_solutions_of_a_circle_are_there_with_half_the_weight_each() -> None:
    cloud = CoupledPrior.of(["x", "y"], [circle()]).cloud(np.array([1.0, 1.0]))
    x, y = cloud.points.T
    np.testing.assert_allclose(x**2 + y**2, 25, atol=1e-7)
    assert cloud.weights[x > 0].sum() == pytest.approx(0.5, abs=1e-3)
    # Nothing is known of the free attribute but its domain: it is even on it.
    assert cloud.weights[(y > 0) & (y < 2.5)].sum() == pytest.approx(0.25, abs=0.01)


def test_two_solutions_do_not_make_the_points_a_hundred_times_finer() -> None:
    one = FullCoupling.equation("x = sqrt(25 - y**2)", {"x": (0.0, 5.0), "y": (-5.0, 5.0)})
    half = np.array([0.7, 0.7])
    single = len(CoupledPrior.of(["x", "y"], [one]).cloud(half).points)
    assert len(CoupledPrior.of(["x", "y"], [circle()]).cloud(half).points) <= 4 * single


def test_neighbours_on_a_steep_curve_are_close_against_the_box() -> None:
    domains = {"a": (0.0, 10.0), "b": (0.0, 1e4)}
    steep = FullCoupling.equation("b = 1000*a", domains)
    cloud = CoupledPrior.of(["a", "b"], [steep]).cloud(np.array([0.5, 0.5]))
    assert np.diff(cloud.points[:, 1]).max() <= 0.5 / 4


def test_a_column_in_no_equation_is_even_on_its_domain_and_independent() -> None:
    cloud = prior("b = a", "abc").cloud(np.ones(3))
    a, b, c = cloud.points.T
    np.testing.assert_allclose(a, b)
    assert abs(np.corrcoef(a, c)[0, 1]) < 0.02
    shares = np.histogram(c, bins=10, range=(0, 10), weights=cloud.weights)[0]
    np.testing.assert_allclose(shares, 0.1, atol=0.01)


def test_what_is_known_of_the_free_attribute_weighs_the_points() -> None:
    domains = {"a": (0.0, 10.0), "b": (0.0, 20.0)}
    line = FullCoupling.equation("b = 2*a", domains)
    known = JointMixture.normal([3.0], [[1.0]], [[0.0, 10.0]])
    cloud = CoupledPrior.of(["a", "b"], [line], known=known).cloud(np.array([1.0, 1.0]))
    mean = cloud.weights @ cloud.points
    np.testing.assert_allclose(mean, [3.0, 6.0], atol=0.02)
    spread = cloud.weights @ (cloud.points[:, 0] - mean[0]) ** 2
    assert spread == pytest.approx(1.0, abs=0.03)


def test_two_equations_and_groups_of_three() -> None:
    found = prior("b = a; e = c + d - 5", "abcde")
    assert (found.given, found.free) == (("b", "e"), ("a", "c", "d"))
    points = found.cloud(np.ones(5)).points
    np.testing.assert_allclose(points[:, 4], points[:, 2] + points[:, 3] - 5, atol=1e-9)


def test_the_same_seed_gives_the_same_points_and_another_one_others() -> None:
    found = prior("b = a", "abc")
    first, again, other = (found.cloud(np.ones(3), seed).points for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first[:100], other[:100])


# Refusals ----------------------------------------------------------------------------------------


def test_equations_that_share_an_attribute_are_refused_by_name() -> None:
    with pytest.raises(InvalidParameter, match="share no attribute"):
        prior("b = a; c = a", "abc")


def test_an_equation_of_an_attribute_that_is_not_there_is_refused() -> None:
    domains = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
    line = FullCoupling.equation("b = a", domains)
    with pytest.raises(InvalidParameter, match="'b'"):
        CoupledPrior.of(["a"], [line])


def test_an_attribute_without_a_domain_is_refused_by_name() -> None:
    domains = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
    with pytest.raises(InvalidParameter, match="'c'"):
        CoupledPrior.of(["a", "b", "c"], [FullCoupling.equation("b = a", domains)])


def test_an_equation_that_cannot_be_solved_in_the_domains_is_refused() -> None:
    domains = {"a": (0.0, 1.0), "b": (5.0, 6.0)}
    with pytest.raises(InvalidParameter, match="solution for 'b'"):
        CoupledPrior.of(["a", "b"], [FullCoupling.equation("b = a", domains)])


@pytest.mark.parametrize("ends", [(5.0, 5.0), (9.0, 5.0), (np.nan, 5.0), (-np.inf, np.inf)])
def test_an_empty_or_endless_domain_of_a_free_column_is_refused(ends: tuple[float, float]) -> None:
    with pytest.raises(InvalidParameter, match="domain"):
        CoupledPrior.of(["a"], [], domains={"a": ends}).cloud(np.ones(1))


def test_a_density_of_another_size_is_refused() -> None:
    known = JointMixture.normal([0.0, 0.0], np.eye(2))
    domains = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
    with pytest.raises(InvalidParameter, match="be a density of a"):
        CoupledPrior.of(["a", "b"], [FullCoupling.equation("b = a", domains)], known=known)


def test_a_constant_column_has_no_domain_and_its_value_is_not_said() -> None:
    assert domains_of({"a": np.array([3.0, 1.0, 2.0])}) == {"a": (1.0, 3.0)}
    with pytest.raises(InvalidParameter, match="a must be a column that varies") as problem:
        domains_of({"a": np.full(4, 8675309.0)})
    assert "8675309" not in str(problem.value)


# Points near a place -----------------------------------------------------------------------------


def shares(count: int, free: int) -> np.ndarray:
    return np.random.default_rng(3).random((count, free + 1))


@pytest.mark.parametrize(
    ("low", "high", "mass"),
    [
        ([0.0, 0.0, 0.0], [10.0, 10.0, 10.0], 50.0),  # a + b <= 10: half of the square
        ([2.0, 3.0, 0.0], [4.0, 4.0, 10.0], 2.0),
        ([0.0, 0.0, 4.0], [10.0, 10.0, 6.0], 10.0),  # a strip between two diagonals
        ([4.0, 4.0, 0.0], [5.0, 5.0, 1.0], 0.0),
    ],
)
def test_the_weights_near_a_place_are_its_mass(
    low: list[float], high: list[float], mass: float
) -> None:
    found = prior("c = a + b", "abc")
    cloud = found.near(np.array(low), np.array(high), shares(20_000, 2))
    assert cloud.weights.sum() == pytest.approx(mass, rel=0.03, abs=1e-9)
    np.testing.assert_allclose(cloud.points[:, 2], cloud.points[:, :2].sum(axis=1))
    assert np.all((cloud.points >= low) & (cloud.points <= high))


def test_a_density_weighs_points_near_a_place() -> None:
    domains = {"a": (0.0, 10.0), "b": (0.0, 20.0)}
    line = FullCoupling.equation("b = 2*a", domains)
    known = JointMixture.normal([3.0], [[1.0]], [[0.0, 10.0]])
    found = CoupledPrior.of(["a", "b"], [line], known=known)
    cloud = found.near(np.array([2.0, 0.0]), np.array([9.0, 8.0]), shares(5_000, 1))
    assert cloud.weights.sum() == pytest.approx(0.6827, rel=0.03)


def test_columns_in_no_equation_fill_their_interval() -> None:
    cloud = prior("b = a", "abc").near(
        np.array([1.0, 0.0, 5.0]), np.array([3.0, 2.5, 9.0]), shares(20_000, 2)
    )
    assert cloud.weights.sum() == pytest.approx(1.5 * 4, rel=0.03)
    assert np.ptp(cloud.points[:, 2]) == pytest.approx(4, abs=0.01)


def test_a_line_too_steep_for_even_points_is_no_curve() -> None:
    half = np.array([0.5, 0.5])
    for slope, fine in ((1e3, True), (1e6, False)):
        domains = {"a": (0.0, 10.0), "b": (0.0, 10 * slope)}
        line = FullCoupling.equation(f"b = {slope}*a", domains)
        found = CoupledPrior.of(["a", "b"], [line])
        assert (found.curve(half) is not None) is fine
    assert prior("b = a", "abc").curve(np.ones(3)) is None


def test_an_equation_that_every_value_solves_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="at most 64 solutions"):
        prior("a - a = b - b", "ab")
