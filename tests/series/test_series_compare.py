"""Methods side by side: each keeps its budget, and equal privacy means what it says."""

import math
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special

from sfumato.core.errors import InvalidParameter
from sfumato.noise.laplace_noise import LaplaceNoise
from sfumato.noise.registry import Registry
from sfumato.series.paper_rule import paper_weight
from sfumato.series.realtime import Realtime
from sfumato.series.series_compare import Comparison, compare
from sfumato.series.series_methods import METHODS, Trait
from sfumato.series.series_spec import Match, SeriesSpec, matched_epsilon

Floats = NDArray[np.float64]


def counts(length: int = 80) -> Floats:
    return np.asarray(np.rint(200 + 40 * np.sin(np.arange(length) / 9)))


@cache
def compared(match: str, runs: int = 2) -> Comparison:
    return compare(counts(), sensitivity=1.0, epsilon=3.0, delta=1e-6, runs=runs, match=match)


WHOLE = "event level, whole value"
SPANS = {"user level": 80, "w-event level": 10, "event level": 1, WHOLE: 1}


@pytest.mark.parametrize("match", ["epsilon", "variance"])
def test_every_method_keeps_its_budget(match: str) -> None:
    found = compared(match)
    assert {one.method for one in found.outcomes} == set(METHODS) == set(found.examples)
    assert found.refused == {}
    for one in found.outcomes:
        if one.method == "silence":
            assert (one.epsilon, one.delta, one.unit, one.kind) == (0.0, 0.0, "any", "pure")
            continue
        pure = 3.0 if match == "epsilon" else matched_epsilon(1.0, 3.0, 1e-6, SPANS[one.unit])
        assert one.delta <= 1e-6
        assert 0 < one.epsilon <= (3.0 if one.delta else pure), one.method
        assert one.kind == ("approximate" if one.delta else "pure")
        assert math.isfinite(one.rmse) and one.rmse >= one.mae > 0


def test_outcomes_stand_in_groups_by_unit_and_kind() -> None:
    """Errors of different units are not comparable: no ranking goes across them."""
    outcomes = compared("epsilon").outcomes
    groups = [(one.unit, one.kind) for one in outcomes]
    assert len(set(groups)) == 7
    assert [g for i, g in enumerate(groups) if i == 0 or groups[i - 1] != g] == [
        ("any", "pure"),
        ("user level", "pure"),
        ("user level", "approximate"),
        ("w-event level", "pure"),
        ("event level", "pure"),
        ("event level", "approximate"),
        (WHOLE, "pure"),
    ]
    for group in set(groups):
        errors = [one.rmse for one in outcomes if (one.unit, one.kind) == group]
        assert errors == sorted(errors)


@pytest.mark.parametrize("sensitivity", [1 / 3, 5.0])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_keeps_its_budget_for_any_sensitivity(name: str, sensitivity: float) -> None:
    series = counts(30)
    setting = SeriesSpec(sensitivity, 1.0, 1e-6, 30, truth=series)
    guarantee = METHODS[name].make(setting).guarantee
    assert guarantee.epsilon <= 1.0 and guarantee.delta <= 1e-6


def test_examples_are_releases_of_the_series() -> None:
    for told in compared("epsilon").examples.values():
        assert told.shape == (80,) and np.isfinite(told).all()


def test_the_same_seed_gives_the_same_result_and_another_one_another() -> None:
    options = {"sensitivity": 1.0, "epsilon": 2.0, "delta": 1e-6, "runs": 2}
    names = ["realtime", "laplace", "bd"]
    first = compare(counts(), **options, methods=names, seed=4)  # type: ignore[arg-type]
    again = compare(counts(), **options, methods=names, seed=4)  # type: ignore[arg-type]
    other = compare(counts(), **options, methods=names, seed=40)  # type: ignore[arg-type]
    assert first.outcomes == again.outcomes != other.outcomes
    assert all(np.array_equal(first.examples[name], again.examples[name]) for name in names)


def test_errors_are_those_of_the_releases() -> None:
    found = compare(
        counts(), sensitivity=1.0, epsilon=2.0, delta=1e-6, runs=1, methods=["gaussian"]
    )
    errors = found.examples["gaussian"] - counts()
    (one,) = found.outcomes
    assert one.rmse == pytest.approx(math.sqrt(np.square(errors).mean()))
    assert one.mae == pytest.approx(np.abs(errors).mean())
    assert one.rmse_error is None and one.mae_error is None
    assert one.relative == pytest.approx(one.rmse / np.abs(counts()).max())
    assert one.of_silence == pytest.approx(one.rmse / counts().std())
    assert found.silence == pytest.approx(counts().std())


def test_a_share_of_the_series_does_not_fall_with_its_length() -> None:
    """The paper divides by the length where its root is meant: sqrt(n) too small."""
    each = {"sensitivity": 1.0, "epsilon": 1.0, "delta": 1e-6, "methods": ["event-laplace"]}
    short = compare(counts(100), **each, runs=4).outcomes[0]  # type: ignore[arg-type]
    long = compare(counts(1600), **each, runs=4).outcomes[0]  # type: ignore[arg-type]
    assert short.relative == pytest.approx(long.relative, rel=0.2)


def test_standard_errors_are_those_of_the_mean_over_runs() -> None:
    runs = 12
    found = compare(
        counts(), sensitivity=1.0, epsilon=2.0, delta=1e-6, runs=runs, methods=["event-gaussian"]
    )
    each = [
        compare(
            counts(),
            sensitivity=1.0,
            epsilon=2.0,
            delta=1e-6,
            runs=1,
            methods=["event-gaussian"],
            seed=run,
        ).outcomes[0]
        for run in range(runs)
    ]
    squares, sizes = np.array([o.rmse**2 for o in each]), np.array([o.mae for o in each])
    (one,) = found.outcomes
    assert one.mae_error == pytest.approx(sizes.std(ddof=1) / math.sqrt(runs))
    spread = squares.std(ddof=1) / math.sqrt(runs)
    assert one.rmse_error == pytest.approx(spread / (2 * math.sqrt(squares.mean())))


def test_silence_is_the_best_constant_and_what_it_beats_is_called_useless() -> None:
    found = compare(
        counts(),
        sensitivity=30.0,
        epsilon=0.5,
        delta=1e-6,
        runs=2,
        methods=["silence", "gaussian", "event-laplace"],
    )
    assert np.all(found.examples["silence"] == counts().mean())
    assert found.outcomes[0].method == "silence" and found.outcomes[0].of_silence == 1.0
    assert found.useless == ["gaussian", "event-laplace"]
    calm = compare(np.full(20, 7.0), sensitivity=1.0, epsilon=1.0, delta=1e-6, methods=["gaussian"])
    assert calm.useless == ["gaussian"] and calm.outcomes[0].of_silence == math.inf


@pytest.mark.parametrize(
    ("epsilon", "expected"), [(1.0, 2**0.5), pytest.param(0.5, 8**0.5, marks=pytest.mark.slow)]
)
def test_noise_for_one_value_at_a_time_is_that_of_one_value(
    epsilon: float, expected: float
) -> None:
    found = compare(
        counts(500),
        sensitivity=1.0,
        epsilon=epsilon,
        delta=1e-6,
        runs=12,
        methods=["event-laplace", "event-gaussian", "laplace", "event-laplace-filtered"],
    )
    errors = {one.method: one for one in found.outcomes}
    plain = errors["event-laplace"]
    assert plain.rmse == pytest.approx(expected, rel=0.08)
    assert plain.unit == "event level" and plain.epsilon <= epsilon
    # The mechanism of one value, by its own exact curve.
    sigma = errors["event-gaussian"].rmse
    ratio = 1 / sigma
    upper = float(special.ndtr(ratio / 2 - epsilon / ratio))
    lower = math.exp(epsilon) * float(special.ndtr(-ratio / 2 - epsilon / ratio))
    assert 0.3e-6 < upper - lower < 3e-6
    assert errors["laplace"].rmse > 100 * plain.rmse
    assert errors["event-laplace-filtered"].rmse <= 1.02 * plain.rmse


def test_the_paper_weight_is_one_that_its_own_condition_allows() -> None:
    series = counts(400)
    for noise in (0.1, 10.0, 400.0, 2e4):
        bound = (1 - noise / series.var()) / (1 + noise / series.var())
        assert max(bound, 0) < paper_weight(series, noise) <= 1
    assert paper_weight(series, 1e-6) > 0.999


def test_the_published_rule_is_compared_at_its_best() -> None:
    rng = np.random.default_rng(3)
    series = 4000 + np.cumsum(rng.normal(size=300)) * 100
    names = ["published", "published-best", "gaussian", "realtime"]
    options = {"sensitivity": 1.0, "epsilon": 1.0, "delta": 1e-6, "runs": 2, "methods": names}
    errors = {o.method: o for o in compare(series, **options).outcomes}  # type: ignore[arg-type]
    # A weight that nobody asked for (.3) lost to the noise itself; its own do not.
    assert errors["published"].rmse < 1.05 * errors["gaussian"].rmse
    assert errors["published-best"].rmse <= 1.02 * errors["published"].rmse
    assert errors["published"].helped and errors["published-best"].helped
    given = compare(series, **options, weight=0.3)  # type: ignore[arg-type]
    told = {o.method: o for o in given.outcomes}
    assert not told["published"].helped and told["published"].rmse > errors["published"].rmse


def test_a_period_is_learnt_by_the_bank_alone() -> None:
    week = np.tile([0.0, 50.0, 80.0, 60.0, 0.0, -90.0, -100.0], 60) + 500
    options = {"sensitivity": 1.0, "epsilon": 1.0, "delta": 1e-6, "runs": 2}
    names = ["realtime", "gaussian"]
    plain = compare(week, **options, methods=names)  # type: ignore[arg-type]
    weekly = compare(week, **options, methods=names, period=7)  # type: ignore[arg-type]
    first, second = ({o.method: o.rmse for o in f.outcomes} for f in (plain, weekly))
    assert second["gaussian"] == first["gaussian"]
    assert second["realtime"] < 0.65 * first["realtime"]


def test_what_cannot_be_made_is_named_and_the_others_are_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = Registry("method", {name: METHODS[name] for name in ("silence", "event-laplace", "bd")})
    monkeypatch.setattr("sfumato.series.series_compare.METHODS", few)
    options = {"sensitivity": 1.0, "epsilon": 1e-4, "delta": 1e-6, "runs": 1, "window": 50}
    found = compare(counts(60), **options)  # type: ignore[arg-type]
    assert set(found.examples) == {"silence", "event-laplace"}
    assert "must" in found.refused["bd"]
    with pytest.raises(InvalidParameter):
        compare(counts(60), **options, methods=["bd"])  # type: ignore[arg-type]


def test_filtered_noise_is_nearer_than_the_noise_itself() -> None:
    spec = SeriesSpec(1.0, 0.5)
    methods = ["realtime", "gaussian", "laplace", "laplace-filtered"]
    outcomes = compare(counts(400), spec, runs=3, methods=methods).outcomes
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
    spec = SeriesSpec(1.0, 5.0, match=Match.VARIANCE)
    outcomes = compare(counts(1000), spec, runs=1, methods=["gaussian", "laplace", "fast"]).outcomes
    assert {one.method: one.epsilon for one in outcomes}["fast"] > 40
    first, second = (one.rmse for one in outcomes if one.method != "fast")
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
    found = compare(counts(length), sensitivity=1.0, epsilon=1.0, delta=1e-6, runs=1)
    assert len(found.outcomes) == len(METHODS)


TUNED = [name for name, entry in METHODS.items() if Trait.TUNED in entry.traits]


@pytest.mark.parametrize("name", TUNED)
def test_methods_that_are_tuned_need_the_true_series(name: str) -> None:
    with pytest.raises(InvalidParameter):
        METHODS[name].make(SeriesSpec(1.0, 1.0, 1e-6, 50))


@pytest.mark.parametrize("name", [name for name in METHODS if name not in TUNED])
def test_methods_that_are_not_tuned_do_not(name: str) -> None:
    method = METHODS[name].make(SeriesSpec(1.0, 1.0, 1e-6, 50))
    assert method.guarantee.epsilon <= 1.0
