"""Cells of attributes from which an equation may lead to what is wanted of another."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.record.coupling.coupling import FullCoupling, Interval

Floats = NDArray[np.float64]


def reaching(text: str, wanted: Interval, **box: Interval) -> Floats:
    far = (-1e12, 1e12)
    return FullCoupling.equation(text, {"v": far, **box}).reaching({"v": wanted, **box})


def holds(cells: Floats, points: Floats) -> NDArray[np.bool_]:
    """Which points lie in some cell."""
    above = points[:, None, :] >= cells[0] - 1e-12
    below = points[:, None, :] <= cells[1] + 1e-12
    return np.asarray((above & below).all(axis=2).any(axis=1))


def volume(cells: Floats) -> float:
    return float((cells[1] - cells[0]).prod(axis=1).sum())


@pytest.mark.parametrize("written", ["text", "function"])
@settings(max_examples=15, deadline=None)
@given(st.floats(-2000, 2000), st.floats(-2000, 2000), st.floats(0, 1), st.floats(0.01, 0.5))
def test_cells_of_a_plane_hold_all_that_is_wanted_and_little_else(
    written: str, one: float, other: float, where: float, width: float
) -> None:
    box = np.array([[0.0, -1.0], [3.0, 1.0]])
    points = np.random.default_rng(5).uniform(box[0], box[1], (1_000, 2))
    values = points @ [one, other]
    low = values.min() + where * np.ptp(values)
    ends = {"v": (low, low + width * np.ptp(values) + 1e-9), "a": (0.0, 3.0), "b": (-1.0, 1.0)}
    domains = {**ends, "v": (-1e5, 1e5)}
    plane = FullCoupling.equation(f"v = {one!r}*a + {other!r}*b", domains)
    if written == "function":
        plane = FullCoupling.function(
            lambda at: at["v"] - one * at["a"] - other * at["b"], "vab", domains
        )
    cells = plane.reaching(ends)
    inside = (values >= ends["v"][0]) & (values <= ends["v"][1])
    assert holds(cells, points[inside]).all()
    assert volume(cells) <= 6.0 + 1e-9
    if inside.mean() > 0.02:
        assert volume(cells) / 6.0 <= 4 * inside.mean()


def test_cells_do_not_overlap_and_are_in_order() -> None:
    cells = reaching("v = a**2", (1.0, 4.0), a=(-3.0, 3.0))
    assert np.all(np.diff(cells[0, :, 0]) > 0)
    assert np.all(cells[0, 1:, 0] >= cells[1, :-1, 0] - 1e-12)


@pytest.mark.parametrize("slope", [1e3, 1e6, 1e9])
def test_a_steep_line_is_cut_as_small_as_what_is_wanted(slope: float) -> None:
    cells = reaching(f"v = {slope}*a", (3 * slope, 3 * slope + 1), a=(0.0, 10.0))
    assert cells.min() <= 3 <= 3 + 1 / slope <= cells.max()
    assert np.ptp(cells) <= 8 / slope


def test_both_branches_of_a_circle_are_kept_and_nothing_between_them() -> None:
    cells = reaching("v**2 = 25 - a**2", (2.9, 3.1), a=(-9.0, 9.0))
    middles = cells.mean(axis=0)[:, 0]
    assert np.all(np.abs(np.abs(middles) - 4) < 0.5)
    assert {-1.0, 1.0} == set(np.sign(middles))
    assert reaching("v**2 = 25 - a**2", (-1.0, 1.0), a=(-3.0, 3.0)).size == 0


def test_what_has_no_solution_keeps_no_cell() -> None:
    assert reaching("v = sqrt(0 - 1 - a)", (0.0, 1.0), a=(0.0, 1.0)).shape == (2, 0, 1)
