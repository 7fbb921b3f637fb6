"""Leakage over time as TPL draws it: against brute force, and where the text is wrong."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from sfumato.plots.points import Point
from sfumato.studies.curve_findings import curves_of
from sfumato.studies.study import Claim, Verdict
from sfumato.studies.tpl import leakage_over_time
from sfumato.studies.tpl.leakage_claims import growth_time, leakage_claims
from sfumato.studies.tpl.leakage_over_time import EXAMPLE_4, crossings, piecewise
from sfumato.studies.tpl.smoothed_matrices import Reading, smoothed
from sfumato.temporal import LossFunction
from tests.oracles.temporal import ExactLoss, best_subset, linear_fractional


@pytest.fixture(scope="module")
def points() -> list[Point]:
    found = [*leakage_over_time.figure_3(), *leakage_over_time.figure_4(np.linspace(0.1, 4, 14))]
    return [*found, *leakage_over_time.figure_5(), *leakage_over_time.figure_7()]


def claim(points: list[Point], words: str) -> Claim:
    (found,) = (one for one in leakage_claims(points) if words in one.claimed)
    return found


def changed(points: list[Point], figure: str, curve: str, factor: float) -> list[Point]:
    return [
        replace(point, y=point.y * factor)
        if (point.figure, point.curve) == (figure, curve)
        else point
        for point in points
    ]


def test_leakage_is_that_of_fifty_digits(points: list[Point]) -> None:
    curves = curves_of(points)
    exact = ExactLoss([[0.8, 0.2], [0.0, 1.0]]).accumulated([0.1] * 10)
    told = [point.y for point in curves["3a", "(.8, .2; 0, 1)"]]
    assert told == pytest.approx([float(level) for level in exact], rel=1e-12)
    assert [point.y for point in curves["3b", "(.8, .2; 0, 1)"]] == told[::-1]


@pytest.mark.parametrize("level", [0.3, 0.9, 1.5, 4.0])
def test_the_pieces_of_two_rows_are_their_optimum(level: float) -> None:
    for first, second in itertools.permutations(EXAMPLE_4, 2):
        found = piecewise(first, second).value(level)
        back = piecewise(second, first).value(level)
        assert max(found, back) == pytest.approx(linear_fractional([first, second], level))
    tops = max(piecewise(*pair).value(level) for pair in itertools.permutations(EXAMPLE_4, 2))
    assert tops == pytest.approx(best_subset(EXAMPLE_4, level))


def test_two_pairs_are_equal_where_the_top_changes() -> None:
    loss = LossFunction.of(EXAMPLE_4)
    (level,) = crossings(loss)
    values = sorted(piecewise(*pair).value(level) for pair in itertools.permutations(EXAMPLE_4, 2))
    assert values[-1] == pytest.approx(values[-2], rel=1e-12)
    assert values[-1] == pytest.approx(loss(level), rel=1e-12)


@pytest.mark.parametrize(
    ("reading", "times", "suprema"),
    [(Reading.CELL, (9, 22), (5.696, 0.633)), (Reading.FIFTIETH, (11, 82), (9.749, 6.912))],
)
def test_figure_7_is_not_what_its_equation_says(
    points: list[Point], reading: Reading, times: tuple[int, int], suprema: tuple[float, float]
) -> None:
    curves, curve = curves_of(points), f"{reading}; s = 0.005, n = 50"
    for panel, time, supremum in zip(("7a", "7b"), times, suprema, strict=True):
        (end,) = curves[panel, f"{curve}, supremum"]
        assert end.y == pytest.approx(supremum, abs=5e-4)
        assert growth_time(curves[panel, curve], end.y) == time


def test_readings_agree_where_they_say_the_same() -> None:
    assert np.array_equal(smoothed(50, 0.3, Reading.ROW), smoothed(50, 0.3, Reading.FIFTIETH))
    assert np.allclose(smoothed(7, 0.1, Reading.CELL), smoothed(7, 0.7, Reading.ROW))


def test_verdicts_follow_the_numbers(points: list[Point]) -> None:
    assert claim(points, "BPL grows linearly").verdict is Verdict.AGREES
    other = changed(points, "3a", "identity", 0.9)
    assert claim(other, "BPL grows linearly").verdict is Verdict.PARTLY
    assert claim(points, "FPL is lowest").verdict is Verdict.DIFFERS
    turned = [replace(p, x=11 - p.x) if p.figure == "3b" else p for p in points]
    turned.sort(key=lambda point: (point.figure, point.curve, point.x))
    assert claim(turned, "FPL is lowest").verdict is Verdict.AGREES
    lower = changed(points, "4", "loss function", 0.99)
    assert claim(points, "is the top of those").verdict is Verdict.AGREES
    assert claim(lower, "is the top of those").verdict is Verdict.DIFFERS
    assert claim(points, "no supremum in (a)").verdict is Verdict.AGREES
    assert claim(changed(points, "5c", "supremum", 2.0), "no supremum").verdict is Verdict.PARTLY
    curve = f"{Reading.CELL}; s = 0.005, n = 50, supremum"
    assert claim(points, "not substantially lower").verdict is Verdict.DIFFERS
    higher = changed(points, "7b", curve, 9.0)
    assert claim(higher, "not substantially lower").verdict is Verdict.AGREES
    assert claim(higher, "approximately 80").verdict is Verdict.PARTLY
