import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.record.coupling.cells import reaching

Floats = NDArray[np.float64]


def holds(cells: Floats, points: Floats) -> NDArray[np.bool_]:
    """Which points lie in some cell."""
    above = points[:, None, :] >= cells[0] - 1e-12
    below = points[:, None, :] <= cells[1] + 1e-12
    return np.asarray((above & below).all(axis=2).any(axis=1))


def volume(cells: Floats) -> float:
    return float((cells[1] - cells[0]).prod(axis=1).sum())


@settings(max_examples=40, deadline=None)
@given(st.floats(-2000, 2000), st.floats(-2000, 2000), st.floats(0, 1), st.floats(0.01, 0.5))
def test_cells_of_a_plane_hold_all_that_is_wanted_and_little_else(
    one: float, other: float, where: float, width: float
) -> None:
    def plane(at: Floats) -> Floats:
        return (one * at[:, 0] + other * at[:, 1])[:, None]

    box = np.array([[0.0, -1.0], [3.0, 1.0]])
    points = np.random.default_rng(5).uniform(box[0], box[1], (4_000, 2))
    values = plane(points)[:, 0]
    low = values.min() + where * np.ptp(values)
    wanted = (low, low + width * np.ptp(values) + 1e-9)
    cells = reaching(plane, box, wanted)
    inside = (values >= wanted[0]) & (values <= wanted[1])
    assert holds(cells, points[inside]).all()
    assert volume(cells) <= 6.0 + 1e-9
    if inside.mean() > 0.02:
        assert volume(cells) / 6.0 <= 4 * inside.mean()


def test_cells_do_not_overlap_and_are_in_order() -> None:
    cells = reaching(lambda at: at**2, np.array([[-3.0], [3.0]]), (1.0, 4.0))
    assert np.all(np.diff(cells[0, :, 0]) > 0)
    assert np.all(cells[0, 1:, 0] >= cells[1, :-1, 0] - 1e-12)


@pytest.mark.parametrize("slope", [1e3, 1e6, 1e9])
def test_a_steep_line_is_cut_as_small_as_what_is_wanted(slope: float) -> None:
    cells = reaching(lambda at: slope * at, np.array([[0.0], [10.0]]), (3 * slope, 3 * slope + 1))
    assert cells.min() <= 3 <= 3 + 1 / slope <= cells.max()
    assert np.ptp(cells) <= 8 / slope


def test_both_branches_of_a_circle_are_kept_and_nothing_between_them() -> None:
    def circle(at: Floats) -> Floats:
        with np.errstate(invalid="ignore"):
            root = np.sqrt(25 - at[:, 0] ** 2)
        return np.stack([-root, root], axis=1)

    cells = reaching(circle, np.array([[-9.0], [9.0]]), (2.9, 3.1))
    middles = cells.mean(axis=0)[:, 0]
    assert np.all(np.abs(np.abs(middles) - 4) < 0.5)
    assert {-1.0, 1.0} == set(np.sign(middles))
    assert reaching(circle, np.array([[-3.0], [3.0]]), (-1.0, 1.0)).size == 0


def test_what_has_no_solution_keeps_no_cell() -> None:
    nothing = reaching(lambda at: np.full((len(at), 1), np.nan), np.array([[0.0], [1.0]]), (0, 1))
    assert nothing.shape == (2, 0, 1)
