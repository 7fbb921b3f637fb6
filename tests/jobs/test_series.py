"""Methods side by side: each keeps its budget, and equal privacy means what it says."""

import math
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.errors import InvalidParameter
from sfumato.jobs.series import METHODS, Outcome, Setting, compare, matched_epsilon
from sfumato.mechanisms.series_noise import LaplaceNoise
from sfumato.streaming.realtime import Realtime

Floats = NDArray[np.float64]


def counts(length: int = 80) -> Floats:
    return np.asarray(np.rint(200 + 40 * np.sin(np.arange(length) / 9)))


@cache
def compared(match: str, runs: int = 2) -> tuple[list[Outcome], dict[str, Floats]]:
    return compare(counts(), sensitivity=1.0, epsilon=3.0, delta=1e-6, runs=runs, match=match)


@pytest.mark.parametrize("match", ["epsilon", "variance"])
def test_every_method_keeps_its_budget(match: str) -> None:
    outcomes, examples = compared(match)
    pure = 3.0 if match == "epsilon" else matched_epsilon(1.0, 3.0, 1e-6, 80)
    assert {one.method for one in outcomes} == set(METHODS) == set(examples)
    for one in outcomes:
        assert one.delta <= 1e-6
        assert one.epsilon <= (3.0 if one.delta else pure), one.method
        assert one.epsilon > 0
        assert math.isfinite(one.rmse) and one.rmse >= one.mae > 0
    assert [one.rmse for one in outcomes] == sorted(one.rmse for one in outcomes)


@pytest.mark.parametrize("sensitivity", [1 / 3, 5.0])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_keeps_its_budget_for_any_sensitivity(name: str, sensitivity: float) -> None:
    series = counts(30)
    setting = Setting(sensitivity, 1.0, 1e-6, 1.0, 30, 10, series)
    guarantee = METHODS[name].make(setting).guarantee
    assert guarantee.epsilon <= 1.0 and guarantee.delta <= 1e-6


def test_examples_are_releases_of_the_series() -> None:
    _, examples = compared("epsilon")
    for told in examples.values():
        assert told.shape == (80,) and np.isfinite(told).all()


def test_the_same_seed_gives_the_same_result_and_another_one_another() -> None:
    options = {"sensitivity": 1.0, "epsilon": 2.0, "delta": 1e-6, "runs": 2}
    names = ["realtime", "laplace", "bd"]
    first, told = compare(counts(), **options, methods=names, seed=4)  # type: ignore[arg-type]
    again, same = compare(counts(), **options, methods=names, seed=4)  # type: ignore[arg-type]
    other, _ = compare(counts(), **options, methods=names, seed=40)  # type: ignore[arg-type]
    assert first == again != other
    assert all(np.array_equal(told[name], same[name]) for name in names)


def test_errors_are_those_of_the_releases() -> None:
    outcomes, examples = compare(
        counts(), sensitivity=1.0, epsilon=2.0, delta=1e-6, runs=1, methods=["gaussian"]
    )
    errors = examples["gaussian"] - counts()
    assert outcomes[0].rmse == pytest.approx(math.sqrt(np.square(errors).mean()))
    assert outcomes[0].mae == pytest.approx(np.abs(errors).mean())
    relative = math.sqrt(np.square(errors).sum()) / (80 * np.abs(counts()).max())
    assert outcomes[0].relative == pytest.approx(relative)


def test_filtered_noise_is_nearer_than_the_noise_itself() -> None:
    outcomes, _ = compare(
        counts(400),
        sensitivity=1.0,
        epsilon=0.5,
        delta=1e-6,
        runs=3,
        methods=["realtime", "gaussian", "laplace", "laplace-filtered"],
    )
    errors = {one.method: one.rmse for one in outcomes}
    assert errors["realtime"] < errors["gaussian"]
    assert errors["laplace-filtered"] < errors["laplace"]


def test_progress_counts_every_simulation() -> None:
    told: list[int] = []
    compare(
        counts(20),
        sensitivity=1.0,
        epsilon=1.0,
        delta=1e-6,
        runs=3,
        methods=["gaussian", "laplace"],
        progress=told.append,
    )
    assert told == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("sensitivity", [1.0, 0.1, 30.0])
@pytest.mark.parametrize(("epsilon", "length"), [(1.0, 100), (0.2, 1000), (3.0, 50)])
def test_matched_laplace_noise_has_the_variance_of_the_gaussian(
    sensitivity: float, epsilon: float, length: int
) -> None:
    pure = matched_epsilon(sensitivity, epsilon, 1e-6, length)
    gaussian = Realtime.gaussian(sensitivity, epsilon=epsilon, delta=1e-6, length=length)
    laplace = LaplaceNoise.at(sensitivity, pure / length)
    assert laplace.variance == pytest.approx(gaussian.variances[0], rel=0.02)


def test_matched_variance_works_for_a_long_series() -> None:
    """Budgets of single values are small; that their sum is over 40 is no reason to refuse."""
    outcomes, _ = compare(
        counts(1000),
        sensitivity=1.0,
        epsilon=5.0,
        delta=1e-6,
        runs=1,
        methods=["gaussian", "laplace"],
        match="variance",
    )
    first, second = (one.rmse for one in outcomes)
    assert first == pytest.approx(second, rel=0.2)


@pytest.mark.parametrize(
    "options",
    [
        {"methods": ["nobody"]},
        {"match": "luck"},
        {"epsilon": 0.0},
        {"epsilon": -1.0},
        {"epsilon": math.nan},
        {"delta": 0.0},
        {"sensitivity": 0.0},
        {"runs": 0},
        {"window": 0, "methods": ["bd"]},
    ],
)
def test_impossible_wishes_are_refused(options: dict[str, object]) -> None:
    chosen = {"sensitivity": 1.0, "epsilon": 1.0, "delta": 1e-6, "methods": ["gaussian"]} | options
    with pytest.raises(InvalidParameter):
        compare(counts(20), **chosen)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [[], [1.0, math.nan], [[1.0]], ["4711.5x"]])
def test_a_series_that_is_none_is_refused_unquoted(bad: list[object]) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        compare(bad, sensitivity=1.0, epsilon=1.0, delta=1e-6)  # type: ignore[arg-type]
    assert "4711" not in str(refusal.value)


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_short_series_are_compared_by_every_method(length: int) -> None:
    outcomes, _ = compare(counts(length), sensitivity=1.0, epsilon=1.0, delta=1e-6, runs=1)
    assert len(outcomes) == len(METHODS)


@pytest.mark.parametrize("name", [name for name, way in METHODS.items() if way.helped])
def test_methods_that_are_tuned_need_the_true_series(name: str) -> None:
    with pytest.raises(InvalidParameter):
        METHODS[name].make(Setting(1.0, 1.0, 1e-6, 1.0, 50))


@pytest.mark.parametrize("name", [name for name, way in METHODS.items() if not way.helped])
def test_methods_that_are_not_tuned_do_not(name: str) -> None:
    method = METHODS[name].make(Setting(1.0, 1.0, 1e-6, 1.0, 50))
    assert method.guarantee.epsilon <= 1.0
