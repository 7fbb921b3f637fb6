"""Released series: the certificate follows from what leaves, and nothing else."""

import math
from dataclasses import asdict, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.core.errors import BudgetExceeded, InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import seeded
from sfumato.series.filter_banks import seasonal
from sfumato.series.realtime import Realtime
from sfumato.series.realtime_run import ReleasedSeries, release_series
from sfumato.series.rivals.windowed import Windowed
from sfumato.series.series_methods import METHODS, series_method
from sfumato.series.series_release import Unit
from sfumato.series.series_spec import SeriesSpec

SPEC = SeriesSpec(1.0, 2.0, 1e-6, 200)
VALUES: list[float | None] = [100 + 30 * math.sin(moment / 5) for moment in range(200)]


def released(values: list[float | None] | None = None, **options: Any) -> ReleasedSeries:
    run = {name: options.pop(name) for name in ("state", "name") if name in options}
    spec = SeriesSpec.of(SPEC, **options)
    coins: Any = {"randomness": seeded(1), "purpose": Purpose.SIMULATION}
    return release_series(VALUES if values is None else values, spec, **run, **coins)


@pytest.mark.parametrize("method", ["gaussian", "laplace", "tree", "square-root-tree"])
def test_the_error_of_plain_noise_is_its_deviation(method: str) -> None:
    done = released(method=method)
    made: Any = METHODS[method].make(SPEC)
    variances = made.variances if isinstance(made, Realtime) else made.variances()
    assert done.certificate.cost == pytest.approx(math.sqrt(np.mean(variances)))
    told = np.array(done.values, dtype=float)
    around = told.var() - np.mean(variances) * (1 - 1 / 200)
    assert done.certificate.silence == pytest.approx(math.sqrt(max(around, 0.0)))
    truth = np.array(VALUES, dtype=float)
    assert done.error == pytest.approx(math.sqrt(np.mean((told - truth) ** 2)))
    assert done.deviation == pytest.approx(truth.std())


@pytest.mark.parametrize("method", ["bd", "ba", "pegasus"])
def test_methods_that_cannot_say_their_error_say_none(method: str) -> None:
    certificate = released(method=method).certificate
    assert certificate.cost is None and certificate.silence is None


@pytest.mark.parametrize("unit", ["user", "event"])
@pytest.mark.parametrize("method", ["realtime", "gaussian", "laplace", "discrete-gaussian"])
def test_a_unit_is_what_the_guarantee_is_for(method: str, unit: str) -> None:
    certificate = released(method=method, unit=unit).certificate
    assert certificate.unit == f"{unit} level"
    assert certificate.epsilon <= 2.0
    made = series_method(replace(SPEC, method=method, unit=unit))
    assert isinstance(made, Realtime)
    noise = float(made.variances[0])
    # Noise for one value does not grow with the series; noise for all of them does.
    shorter = series_method(replace(SPEC, method=method, unit=unit, length=50))
    assert isinstance(shorter, Realtime)
    expected = 1.0 if unit == "event" else (16.0 if "laplace" in method else 4.0)
    assert noise / float(shorter.variances[0]) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize(
    ("method", "unit", "word"),
    [
        ("nobody", None, "method"),
        ("fast", None, "tuned"),
        ("silence", None, "tuned"),
        ("published", None, "weight"),
        ("bd", "event", "w-event level"),
        ("tree", "user", "event level"),
        ("event-laplace", "user", "event level"),
        ("realtime", "w-event", "user level"),
        ("realtime", "world", "unit"),
    ],
)
def test_methods_and_units_that_do_not_go_together_are_refused(
    method: str, unit: str | None, word: str
) -> None:
    with pytest.raises(InvalidParameter, match=word):
        series_method(replace(SPEC, method=method, unit=unit))


def test_a_published_rule_with_a_weight_may_be_released() -> None:
    done = released(method="published", weight=0.7)
    assert done.certificate.epsilon <= 2.0 and done.certificate.cost is None


@pytest.mark.parametrize("method", ["bd", "gaussian", "tree"])
def test_a_filter_is_given_to_methods_that_have_one(method: str) -> None:
    with pytest.raises(InvalidParameter, match="learn"):
        series_method(replace(SPEC, method=method, estimate=seasonal(7)))
    made = series_method(replace(SPEC, estimate=seasonal(7)))
    assert isinstance(made, Realtime) and made.estimate.name == "bank 1.0 of 7 phases"
    assert (
        series_method(replace(SPEC, method="event-realtime", estimate=seasonal(7))).unit
        is Unit.EVENT
    )


def test_what_leaves_lies_in_the_range() -> None:
    done = released(interval=(90.0, 110.0), method="laplace")
    told = np.array(done.values, dtype=float)
    assert told.min() == 90.0 and told.max() == 110.0
    assert done.clamped == sum(not 90 <= (value or 0) <= 110 for value in VALUES)


def test_moments_without_a_value_pass_and_are_paid_for_by_nobody() -> None:
    gaps = [None if moment in (0, 3, 199) else value for moment, value in enumerate(VALUES)]
    done = released(gaps)
    assert [m for m, value in enumerate(done.values) if value is None] == [0, 3, 199]
    assert done.certificate.values == 197
    with pytest.raises(InvalidParameter, match="missing"):
        released(gaps, method="bd")
    made = series_method(replace(SPEC, length=2))
    assert isinstance(made, Realtime)
    running = made.begin(seeded(1), purpose=Purpose.SIMULATION)
    running.skip()
    running.step(4.0)
    assert running.time == 2
    for refused in (running.skip, lambda: running.step(4.0)):
        with pytest.raises(BudgetExceeded):
            refused()


def test_more_values_than_the_budget_is_for_are_refused_before_any_draw() -> None:
    for method in ("realtime", "tree", "bd", "ba", "pegasus"):
        with pytest.raises(InvalidParameter, match="199"):
            released(method=method, length=199)


@pytest.mark.parametrize("method", ["bd", "ba"])
def test_a_window_longer_than_the_series_is_kept_as_it_was_asked_for(method: str) -> None:
    """The certificate says ten values: no ten of them may leak more, also of a short series."""
    spec = SeriesSpec(1.0, 1.0, 1e-6, 3, 10, method)
    made = series_method(spec)
    assert isinstance(made, Windowed) and made.window == 10
    running = made.begin(seeded(1), purpose=Purpose.SIMULATION)
    events = running.advance([1e6 * (moment % 2) for moment in range(40)])
    leaked = [Fraction(event.charge) for event in events]
    assert 0 < max(sum(leaked[start : start + 10]) for start in range(31)) <= 1
    certificate = released(VALUES[:3], method=method, epsilon=1.0, length=3).certificate
    assert "any 10 successive values" in certificate.protects and certificate.epsilon <= 1


@pytest.mark.parametrize("method", ["realtime", "gaussian"])
def test_a_part_without_any_value_passes(tmp_path: Path, method: str) -> None:
    parts: list[list[float | None]] = [[50.0, 51.0], [50.0, 51.0, None, None]]
    for values in parts:
        done = released(values, method=method, state=tmp_path / "s")
    assert done.values == [None, None] and done.certificate.values == 0
    assert any("2 moments have no value" in remark for remark in done.certificate.remarks)


def test_a_state_needs_a_public_memory_and_no_key(tmp_path: Path) -> None:
    for method, name in (("pegasus", None), ("realtime", "flights")):
        with pytest.raises(InvalidParameter, match="state"):
            released(state=tmp_path / "s", method=method, name=name)
    assert not (tmp_path / "s").exists()


def test_a_certificate_holds_no_true_value() -> None:
    """Two series whose releases are the same have the same certificate, whatever the truth was."""

    wide = [None if value is None else value * 1.0001 for value in VALUES]
    first, second = (released(each, interval=(0.0, 1.0)) for each in (VALUES, wide))
    # All values are clamped to 1, so that the two releases are the same one.
    assert first.values == second.values
    assert asdict(first.certificate) == asdict(second.certificate)
    assert (first.clamped, first.error) == (second.clamped, second.error)


@pytest.mark.parametrize("bad", [[], [None, None], [1.0, math.nan], [1.0, math.inf]])
def test_a_series_that_is_none_is_refused(bad: list[float | None]) -> None:
    with pytest.raises(InvalidParameter):
        released(bad)
