import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from sfumato.core.errors import InvalidParameter
from sfumato.models.prior_sets import PriorBall, PriorBox, PriorList, PriorSet

Floats = NDArray[np.float64]


def least_by_program(priors: PriorSet, column: Floats) -> float:
    """The least mean, from the definition of each set as it stands on paper."""
    size = column.size
    if isinstance(priors, PriorList):
        return min(math.fsum(prior * column) for prior in priors.priors)
    if isinstance(priors, PriorBox):
        bounds = list(zip(priors.lower, priors.upper, strict=True))
        found = linprog(column, A_eq=np.ones((1, size)), b_eq=[1.0], bounds=bounds)
    else:
        assert isinstance(priors, PriorBall)
        # Every event may differ by the radius at most.
        events = np.array(list(itertools.product((0.0, 1.0), repeat=size)))
        limits = events @ priors.centre + priors.radius
        found = linprog(
            column, A_ub=events, b_ub=limits, A_eq=np.ones((1, size)), b_eq=[1.0], bounds=(0, None)
        )
    assert found.status == 0
    return float(found.fun)


@st.composite
def prior_sets(draw: st.DrawFn) -> PriorSet:
    size = draw(st.integers(2, 5))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    centre = rng.dirichlet(np.ones(size))
    match draw(st.sampled_from(["list", "box", "ball", "near"])):
        case "list":
            return PriorList(rng.dirichlet(np.ones(size), size=draw(st.integers(1, 4))))
        case "box":
            return PriorBox(centre * rng.random(size), centre + (1 - centre) * rng.random(size))
        case "near":
            return PriorBox.near(centre, float(rng.random()))
        case _:
            return PriorBall(centre, float(rng.random()))


@settings(max_examples=16, deadline=None)
@given(priors=prior_sets(), seed=st.integers(0, 2**32 - 1))
def test_the_least_and_the_largest_mean_are_those_of_the_program(
    priors: PriorSet, seed: int
) -> None:
    columns = np.random.default_rng(seed).normal(size=(priors.size, 3))
    for place, (least, most) in enumerate(
        zip(priors.least_means(columns), priors.most_means(columns), strict=True)
    ):
        assert least == pytest.approx(least_by_program(priors, columns[:, place]), abs=1e-7)
        assert most == pytest.approx(-least_by_program(priors, -columns[:, place]), abs=1e-7)


@settings(max_examples=16, deadline=None)
@given(priors=prior_sets())
def test_the_nominal_prior_is_in_the_set(priors: PriorSet) -> None:
    nominal = priors.nominal
    assert nominal.sum() == pytest.approx(1.0)
    for sign in (1, -1):
        columns = sign * np.eye(priors.size)
        assert np.all(priors.least_means(columns) <= nominal @ columns + 1e-12)


@settings(max_examples=16, deadline=None)
@given(priors=prior_sets(), seed=st.integers(0, 2**32 - 1))
def test_the_polytope_has_the_same_least_means(priors: PriorSet, seed: int) -> None:
    shape = priors.polytope()
    column = np.random.default_rng(seed).normal(size=priors.size)
    found = linprog(
        shape.spread.T @ column,
        A_ub=shape.above,
        b_ub=shape.limits,
        A_eq=shape.equal,
        b_eq=shape.targets,
        bounds=(None, None),
    )
    assert found.status == 0
    least = float(found.fun) + math.fsum(shape.offset * column)
    assert least == pytest.approx(float(priors.least_means(column[:, None])[0]), abs=1e-7)


def test_a_ball_of_radius_0_and_a_list_of_one_are_a_prior() -> None:
    prior, columns = np.array([0.2, 0.3, 0.5]), np.arange(6.0).reshape(3, 2)
    for priors in (PriorBall(prior, 0.0), PriorList([prior]), PriorBox(prior, prior)):
        assert priors.least_means(columns) == pytest.approx(prior @ columns)
        assert priors.most_means(columns) == pytest.approx(prior @ columns)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        ([0.6, 0.6], [0.7, 0.7]),
        ([0.0, 0.0], [0.4, 0.4]),
        ([0.5, 0.2], [0.4, 0.9]),
        ([-0.1, 0.2], [0.4, 0.9]),
        ([0.1, 0.2], [0.4, 1.1]),
        ([0.1], [0.4, 0.9]),
        ([], []),
    ],
)
def test_a_box_without_priors_is_refused(lower: list[float], upper: list[float]) -> None:
    with pytest.raises(InvalidParameter, match="lower and upper must"):
        PriorBox(lower, upper)


def test_what_is_no_prior_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="priors row 1 must sum to 1"):
        PriorList([[0.5, 0.5], [0.5, 0.6]])
    with pytest.raises(InvalidParameter, match="centre must sum to 1"):
        PriorBall([0.5, 0.6], 0.1)
    with pytest.raises(InvalidParameter, match="radius must lie in"):
        PriorBall([0.5, 0.5], 1.1)
