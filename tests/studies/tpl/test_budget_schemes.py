"""Budgets under correlation: what they leak, what noise they need, and verdicts on both."""

import math
from dataclasses import replace

import pytest

from sfumato.core.randomness import seeded
from sfumato.noise.geometric import DiscreteLaplace
from sfumato.plots.points import MeasuredPoint, Point
from sfumato.studies.curve_findings import curves_of
from sfumato.studies.study import Claim, Verdict
from sfumato.studies.tpl.budget_schemes import (
    ALPHA,
    CONSTANT,
    DRAWN,
    EIGHT,
    LEAST,
    PLAIN,
    SEVEN,
    SHOWN,
    SHOWN_RELEASES,
    Lengths,
    budget_points,
    geometric_noise,
    noise_points,
)
from sfumato.studies.tpl.budget_study import budget_claims
from tests.oracles.temporal import ExactLoss, algorithm_8, exact_event

SMALL = Lengths((3, 5), (0.01, 1.0), 200)


@pytest.fixture(scope="module")
def points() -> list[Point]:
    return budget_points(SMALL, 1)


def claim(points: list[Point], words: str) -> Claim:
    (found,) = (one for one in budget_claims(points) if words in one.claimed)
    return found


def test_no_scheme_leaks_more_than_its_level(points: list[Point]) -> None:
    levels = {"8": 1.0, "9": ALPHA}
    told = [point for point in points if point.figure.endswith("leakage")]
    assert {point.curve for point in told} == {SEVEN, EIGHT, PLAIN, CONSTANT, LEAST}
    assert all(point.y <= levels[point.figure[0]] * (1 + 1e-12) for point in told)


def test_budgets_of_figure_8_keep_the_level_in_fifty_digits(points: list[Point]) -> None:
    losses = [ExactLoss(rows) for rows in SHOWN]
    curves = curves_of(points)
    for curve in (SEVEN, EIGHT, CONSTANT, LEAST):
        budgets = [point.y for point in curves["8", curve]]
        assert float(exact_event(budgets, *losses)) <= 1.0
    told = [point.y for point in curves["8", EIGHT]]
    assert told == pytest.approx(algorithm_8(*SHOWN, 1.0, SHOWN_RELEASES), rel=1e-6)


def test_least_noise_is_least(points: list[Point]) -> None:
    for (figure, curve), line in curves_of(points).items():
        if curve == LEAST and figure in ("8, noise", "9a, printed", "9b, printed"):
            rivals = [curves_of(points)[figure, name] for name in (SEVEN, PLAIN, CONSTANT)]
            for place, point in enumerate(line):
                # Of least variance; mean absolute noise may be a little more.
                assert point.y <= 1.01 * min(rival[place].y for rival in rivals)


def test_a_rule_without_matrices_beats_both_algorithms(points: list[Point]) -> None:
    at = {p.curve: p.y for p in points if p.figure == "9a, printed" and p.x == 5}
    assert at[SEVEN] == pytest.approx(31.35, abs=0.01)
    assert at[EIGHT] == pytest.approx(19.20, abs=0.01)
    assert at[PLAIN] == 2.5
    assert at[LEAST] < 2.4


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_mean_geometric_noise_is_a_sum_over_whole_numbers(epsilon: float) -> None:
    ratio = math.exp(-epsilon)
    whole = sum(abs(k) * ratio ** abs(k) for k in range(-400, 401)) * (1 - ratio) / (1 + ratio)
    assert geometric_noise(DiscreteLaplace.at(epsilon)) == pytest.approx(whole, rel=1e-9)


def test_noise_as_drawn_is_noise_as_computed() -> None:
    found = {p.curve: p for p in noise_points("9a", 5, 0.01, 5, "printed", 4000, seeded(3))}
    drawn, exact = found[DRAWN], found["least noise, geometric"].y
    assert isinstance(drawn, MeasuredPoint)
    assert abs(drawn.y - exact) < 4 * drawn.error
    assert abs(drawn.y - 1.3 * exact) > 4 * drawn.error


def test_verdicts_follow_the_numbers(points: list[Point]) -> None:
    def changed(figure: str, curve: str, factor: float) -> list[Point]:
        return [
            replace(p, y=p.y * factor) if (p.figure, p.curve) == (figure, curve) else p
            for p in points
        ]

    assert claim(points, "exactly the level").verdict is Verdict.AGREES
    assert claim(changed("8, leakage", EIGHT, 0.9), "exactly the").verdict is Verdict.DIFFERS
    assert claim(points, "better because").verdict is Verdict.DIFFERS
    assert claim(changed("8, noise", CONSTANT, 2.0), "better because").verdict is Verdict.AGREES
    assert claim(points, "outperforms").verdict is Verdict.AGREES
    assert "less noise than both up to T = 5" in claim(points, "outperforms").reason
    assert claim(changed("9a, printed", EIGHT, 9.0), "outperforms").verdict is Verdict.DIFFERS
    assert claim(points, "as printed").verdict is Verdict.AGREES
    fine = changed("9b, printed", LEAST, 0.01)
    assert claim(fine, "as printed").verdict is Verdict.PARTLY


def test_the_same_seed_gives_the_same_points() -> None:
    tiny = Lengths((2,), (0.01,), 5)
    assert budget_points(tiny, 3) == budget_points(tiny, 3)
    assert budget_points(tiny, 3) != budget_points(tiny, 4)
