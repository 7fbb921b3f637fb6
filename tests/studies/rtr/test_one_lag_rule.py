"""The published rule for many weights at once: the product's own, and what it is varied by."""

import math

import numpy as np
import pytest

from sfumato.noise.curves import gaussian_epsilon
from sfumato.series.filters import one_lag
from sfumato.studies.rtr.nonlinear_rule import calibrated_releases
from sfumato.studies.rtr.one_lag_rule import Known, Learnt, Rule, mean_squares
from sfumato.studies.rtr.rule_weights import first_order, theorem_error
from sfumato.studies.rtr.series_points import DELTA, Budget

DRAW = np.random.default_rng(5)
VALUES = 50 + np.cumsum(DRAW.normal(size=80))
NORMALS = DRAW.standard_normal((80, 3))


def test_it_is_the_rule_of_the_product() -> None:
    budget = Budget.with_noise(4.0, 80)
    rule = Rule(np.array([[0.1, 0.5, 1.0]]))
    noise = rule.noise(budget.ratio, 80)
    found = rule.released(VALUES, noise, NORMALS)
    seen = VALUES[:, None] + budget.deviation * NORMALS
    for place, weight in enumerate((0.1, 0.5, 1.0)):
        theirs = (
            one_lag().begin(3).update(seen, np.full(80, weight), np.full(80, budget.deviation**2))
        )
        np.testing.assert_allclose(found[:, place], theirs, rtol=1e-9)


def test_all_weights_keep_one_budget() -> None:
    falling = 0.97 ** (np.arange(80)[:, None] / 2) * np.ones((1, 2))
    for weights in (np.array([[0.2, 1.0]]), falling):
        noise = Rule(weights).noise(0.7, 80)
        squares = np.square(np.broadcast_to(weights, (80, 2))).sum(axis=0)
        assert np.sqrt(squares) / noise == pytest.approx([0.7, 0.7])


def test_a_learnt_correlation_exceeds_one_unless_it_is_limited() -> None:
    releases = [0.0, 0.0, 0.0, 0.0, 1.0, 2.0]
    slopes = {}
    for limit in (math.inf, 1.0):
        learnt = Learnt(np.zeros((1, 1)), limit, (1, 1))
        for release in releases:
            learnt.add(np.array([[release]]))
        slopes[limit] = (learnt.estimate()[0, 0] - 0.5) / 1.5
    # Without noise the slope is the correlation: a sum over five squares leaves out the sixth.
    assert slopes[math.inf] == pytest.approx(1 + 1 / 6)
    assert slopes[1.0] == pytest.approx(1.0)


def test_a_small_weight_makes_the_published_rule_run_away() -> None:
    series = first_order(0.9, 300, 40, np.random.default_rng(2))
    normals = np.random.default_rng(3).standard_normal((300, 40))
    errors = {
        limit: mean_squares(
            Rule(np.array([[0.01]]), limit).released(series, np.array([0.01]), normals), series
        ).mean()
        for limit in (math.inf, 1.0)
    }
    assert errors[math.inf] > 3 * errors[1.0]


def test_known_parameters_err_as_the_theorem_says_at_full_weight_only() -> None:
    series = first_order(0.9, 2000, 8, np.random.default_rng(7))
    normals = np.random.default_rng(8).standard_normal((2000, 8))
    rule = Rule(np.array([[0.1, 1.0]]), known=Known(0.0, 1.0, 0.9))
    found = mean_squares(rule.released(series, np.array([0.2, 2.0]), normals), series).mean(axis=1)
    assert math.sqrt(found[1]) == pytest.approx(theorem_error(0.9, 2.0, 1.0).root, rel=0.03)
    # Erratum 13: .577 against .219 in the long run.
    assert found[0] == pytest.approx(0.577, rel=0.1)
    assert theorem_error(0.9, 2.0, 0.1).root ** 2 == pytest.approx(0.219, rel=0.01)


def test_the_root_of_a_count_leaks_more_than_its_weight_says() -> None:
    counts = np.full(60, 900.0)
    budget = Budget.with_noise(100.0, 60)
    draws = np.random.default_rng(4).standard_normal((60, 4))
    _, steps = calibrated_releases(counts, 0.5, budget.ratio, draws, honest=False)
    # One person more or less where there is nobody, with an estimate of 900: .5 + .5 * 30.
    assert steps[1:].mean() == pytest.approx(15.5, rel=0.1)
    told = gaussian_epsilon(budget.ratio * 15.5 / 0.5, DELTA)
    assert told > 30 * budget.epsilon
    honest, same = calibrated_releases(counts, 0.5, budget.ratio, draws, honest=True)
    assert np.std(honest[1:] - counts[1:, None]) > 5 * np.std(draws[1:] * 0.5)
    assert (same >= 0.5).all()


def test_the_sensitivity_of_the_root_is_reached_at_zero() -> None:
    weight, guess = 0.3, 400.0

    def told(count: float) -> float:
        return weight * count + (1 - weight) * math.sqrt(count * guess)

    changes = [told(count + 1) - told(count) for count in range(1000)]
    assert max(changes) == changes[0] == pytest.approx(weight + (1 - weight) * math.sqrt(guess))
