"""Banks of filters: what they compute, what a period is worth, what they expect of themselves."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.core.errors import InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import seeded
from sfumato.series.filter_banks import CORRELATIONS, Bank, learned, seasonal
from sfumato.series.filters import Estimate
from sfumato.series.realtime import Realtime
from tests.series.test_filters import resumed

Floats = NDArray[np.float64]
WEEK = np.array([0.0, 40.0, 60.0, 30.0, -20.0, -70.0, -40.0])


def estimates(estimate: Estimate, measured: Floats, noise: float) -> Floats:
    """All at once."""
    return estimate.begin(measured.shape[1]).update(
        measured, np.ones(len(measured)), np.full(len(measured), noise)
    )


def matrices(measured: Floats, noise: float, period: int) -> tuple[Floats, Floats]:
    """The same bank by matrices of three states, one series: estimates and expected errors."""
    offsets = [(0.0, 0.0)] + [(o, o * d) for o in (1 / 64, 0.25, 4, 64) for d in (0.0, 0.01)]
    if period == 1:
        offsets = offsets[:1]
    filters = [
        (rho, 4.0**power * noise, offset * noise, drift * noise)
        for offset, drift in offsets
        for rho in CORRELATIONS
        for power in (*range(-5, 6), 8, 11, 14)
    ]
    told, errors = np.zeros((len(filters), measured.size)), np.zeros((len(filters), measured.size))
    logs = np.zeros((len(filters), measured.size))
    for number, (rho, signal, offset, drift) in enumerate(filters):
        state, spread = np.array([0.0, measured[0]]), np.diag([signal, 1e6 * (signal + noise)])
        season, widths = np.zeros(period), np.full(period, offset)
        move = np.diag([rho, 1.0])
        log = 0.0
        for time, value in enumerate(measured):
            phase = time % period
            widths[phase] += drift
            prior = np.zeros((3, 3))
            prior[:2, :2] = move @ spread @ move + np.diag([(1 - rho**2) * signal, 0.0])
            prior[2, 2] = widths[phase]
            mean = np.array([*(move @ state), season[phase]])
            if not math.isnan(value):
                whole = prior.sum() + noise
                gain = prior.sum(axis=1) / whole
                surprise = value - mean.sum()
                log -= 0.5 * math.log(whole) + 0.5 * surprise**2 / whole
                mean, prior = mean + gain * surprise, prior - np.outer(gain, prior.sum(axis=0))
            state, spread, season[phase], widths[phase] = (
                mean[:2],
                prior[:2, :2],
                mean[2],
                prior[2, 2],
            )
            told[number, time], errors[number, time] = mean.sum(), prior.sum()
            logs[number, time] = log
    weights = np.exp(logs - logs.max(axis=0))
    weights /= weights.sum(axis=0)
    found = (weights * told).sum(axis=0)
    return found, (weights * (errors + (told - found) ** 2)).sum(axis=0)


@pytest.mark.parametrize("period", [1, 3])
def test_a_bank_is_its_filters_averaged_by_their_likelihood(period: int) -> None:
    rng = np.random.default_rng(5)
    measured = 50 + 3 * WEEK[np.arange(24) % 3] / 60 + rng.normal(size=24) * 2
    measured[[7, 8, 21]] = np.nan
    estimate = learned() if period == 1 else seasonal(period)
    running = estimate.begin(1)
    assert isinstance(running, Bank)
    found = running.update(measured[:, None], np.ones(24), np.full(24, 4.0))[:, 0]
    expected, errors = matrices(measured, 4.0, period)
    assert found == pytest.approx(expected, rel=1e-6)
    risk = running.risk
    assert risk is not None
    assert risk.error == pytest.approx(math.sqrt(errors.mean()))
    varies = np.nanvar(measured) - 4.0 * (1 - 1 / np.count_nonzero(~np.isnan(measured)))
    assert risk.silence == pytest.approx(math.sqrt(max(varies, 0.0)))


def weekly(length: int, walk: float, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    calm = 300 + WEEK[np.arange(length) % 7] + rng.normal(size=length) * 5
    return np.asarray(calm + walk * np.cumsum(rng.normal(size=length)))


def running_means(measured: Floats, period: int) -> Floats:
    """The rival: a regression on the day of the week, of all that was released so far."""
    found = np.empty_like(measured)
    for time in range(len(measured)):
        found[time] = measured[time % period : time + 1 : period].mean(axis=0)
    return found


def off(found: Floats, values: Floats) -> float:
    return math.sqrt(float(np.square(found - values[:, None]).mean()))


@pytest.mark.parametrize(
    ("deviation", "walk", "most"), [(20.0, 0.0, 1.06), (100.0, 0.0, 1.0), (20.0, 4.0, 0.4)]
)
def test_a_period_matches_a_regression_on_the_weekday(
    deviation: float, walk: float, most: float
) -> None:
    values = weekly(365, walk, 3)
    noise = np.random.default_rng(1).normal(size=(365, 6)) * deviation
    measured = values[:, None] + noise
    ours = off(estimates(seasonal(7), measured, deviation**2), values)
    assert ours <= most * off(running_means(measured, 7), values)
    assert ours <= 0.7 * off(estimates(learned(), measured, deviation**2), values)


def test_a_period_and_a_level_beat_a_regression_that_sees_the_future() -> None:
    """Counts as of daily flights: a week, a slow year, days of their own, and four holidays."""
    rng, days = np.random.default_rng(0), np.arange(364)
    values = 920 + np.array([30.0, 20, 30, 40, 40, -190, -20])[days % 7]
    values += 40 * np.sin(2 * np.pi * (days - 100) / 365) + 20 * rng.normal(size=364)
    values[[184, 328, 358, 359]] -= 250
    measured = values[:, None] + 80 * rng.normal(size=(364, 10))
    later = np.tile(measured.reshape(52, 7, 10).mean(axis=0), (52, 1))
    ours = off(estimates(seasonal(7), measured, 6400.0), values)
    assert ours < 0.97 * off(later, values)
    assert ours < 0.9 * off(running_means(measured, 7), values)
    assert ours < 0.75 * off(estimates(learned(), measured, 6400.0), values)


def test_a_period_costs_little_where_there_is_none() -> None:
    values = np.cumsum(np.random.default_rng(2).normal(size=700)) * 4
    measured = values[:, None] + np.random.default_rng(1).normal(size=(700, 4)) * 30
    plain = off(estimates(learned(), measured, 900.0), values)
    assert off(estimates(seasonal(7), measured, 900.0), values) <= 1.05 * plain


@pytest.mark.parametrize("deviation", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("estimate", [learned(), seasonal(7)], ids=["learned", "seasonal"])
def test_an_estimate_is_hardly_worse_than_a_measurement(
    estimate: Estimate, deviation: float
) -> None:
    """Also where the series is far wider than the noise, and where it jumps."""
    rng = np.random.default_rng(8)
    values = np.where(rng.random(400) < 0.1, 4000.0, 900.0) + rng.normal(size=400) * 200
    measured = values[:, None] + rng.normal(size=(400, 5)) * deviation
    told = estimates(estimate, measured, deviation**2)
    assert off(told, values) <= 1.03 * off(measured, values)


def test_phases_may_be_given() -> None:
    measured = weekly(60, 0.0, 1)[:, None]
    turns = np.arange(60) % 7
    told = estimates(seasonal(7, phases=turns), measured, 9.0)
    assert np.array_equal(told, estimates(seasonal(7), measured, 9.0))
    assert not np.array_equal(told, estimates(seasonal(7, phases=turns // 2), measured, 9.0))
    with pytest.raises(InvalidParameter, match="phases"):
        estimates(seasonal(7, phases=turns[:59]), measured, 9.0)
    for bad in ([7], [-1], [0.5], [[1]]):
        with pytest.raises(InvalidParameter, match="phases"):
            seasonal(7, phases=bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [0, 1, -7, 2_001, 2.5])
def test_a_period_is_a_whole_number_of_phases(bad: int) -> None:
    with pytest.raises(InvalidParameter, match="period"):
        seasonal(bad)


def test_a_seasonal_series_in_parts_is_the_series_at_once() -> None:
    measured = weekly(60, 1.0, 4)[:, None]
    whole = estimates(seasonal(7), measured, 25.0)
    running = seasonal(7).begin(1)
    first = running.update(measured[:23], np.ones(23), np.full(23, 25.0))
    again = resumed(seasonal(7), 1, running.arrays())
    rest = again.update(measured[23:], np.ones(37), np.full(37, 25.0))
    assert np.array_equal(np.concatenate([first, rest]), whole)
    with pytest.raises(InvalidParameter):
        resumed(seasonal(8), 1, running.arrays())
    with pytest.raises(InvalidParameter):
        resumed(learned(), 1, running.arrays())


@pytest.mark.parametrize(("deviation", "useless"), [(2.0, False), (8.0, False), (3000.0, True)])
def test_a_bank_knows_its_own_error_and_that_of_silence(deviation: float, useless: bool) -> None:
    rng = np.random.default_rng(7)
    values = np.zeros(1500)
    for time in range(1, 1500):
        values[time] = 0.95 * values[time - 1] + rng.normal()
    values = 40 + 4 * values
    running = learned().begin(1)
    measured = (values + deviation * rng.normal(size=1500))[:, None]
    found = running.update(measured, np.ones(1500), np.full(1500, deviation**2))
    assert isinstance(running, Bank) and running.risk is not None
    error, silence = running.risk.error, running.risk.silence
    assert running.risk.doubtful == useless
    if not useless:
        assert error == pytest.approx(off(found, values), rel=0.15)
        assert silence == pytest.approx(values.std(), rel=0.15)


def test_the_risk_is_that_of_what_was_released() -> None:
    method = Realtime.gaussian(1.0, epsilon=2.0, delta=1e-6, length=60, estimate=seasonal(7))
    running = method.begin(seeded(1), purpose=Purpose.SIMULATION)
    assert running.risk() is None
    for value in weekly(60, 0.0, 1):
        running.step(float(value))
    risk = running.risk()
    assert risk is not None and risk.error > 0


@pytest.mark.parametrize("period", [1, 3])
def test_measurements_show_the_error_without_bias(period: int) -> None:
    """The sum that is kept, by pushing each measurement up and down a little."""
    measured = 50 + 6 * np.random.default_rng(5).normal(size=24)
    estimate = learned() if period == 1 else seasonal(period)
    shown, noise, little = 0.0, 4.0, 1e-4
    for time in range(1, 24):
        ways = []
        for by in (0.0, little, -little):
            pushed = measured[: time + 1].copy()
            pushed[-1] += by
            ways.append(estimates(estimate, pushed[:, None], noise)[-1, 0])
        at, up, down = ways
        shown += (at - measured[time]) ** 2 - noise + 2 * noise * (up - down) / (2 * little)
    running = estimate.begin(1)
    running.update(measured[:1, None], np.ones(1), np.full(1, noise))
    assert isinstance(running, Bank)
    begun = running.sums[0, 7]
    assert begun == pytest.approx(noise, rel=1e-3)  # it is released as it was measured
    running.update(measured[1:, None], np.ones(23), np.full(23, noise))
    assert running.sums[0, 7] - begun == pytest.approx(shown, rel=1e-5)


@pytest.mark.parametrize("estimate", [learned(), seasonal(24)], ids=["learned", "seasonal"])
def test_a_bank_that_no_longer_fits_does_not_expect_too_little(estimate: Estimate) -> None:
    """A series that is calm for long and then wild: no filter of the bank moves like that."""
    times = np.arange(504)
    values = np.where(times > 400, 100.0 + 300 * (times // 3 % 2), 100.0)
    for seed in range(5):
        measured = (values + 50 * np.random.default_rng(seed).normal(size=504))[:, None]
        running = estimate.begin(1)
        found = running.update(measured, np.ones(504), np.full(504, 2500.0))
        assert isinstance(running, Bank) and running.risk is not None
        alone = math.sqrt(running.sums[0, 1] / 504)
        assert alone < 0.6 * off(found, values)
        assert running.risk.error == pytest.approx(off(found, values), rel=0.12)


def test_a_state_of_before_goes_on() -> None:
    measured = weekly(60, 1.0, 4)[:, None]
    running = seasonal(7).begin(1)
    running.update(measured[:23], np.ones(23), np.full(23, 25.0))
    stored = running.arrays()
    stored["sums"] = stored["sums"][:, :7]
    again = resumed(seasonal(7), 1, stored)
    assert isinstance(again, Bank)
    assert again.sums[0, 7] == again.sums[0, 1]
    further = measured[23:], np.ones(37), np.full(37, 25.0)
    assert np.array_equal(running.update(*further), again.update(*further))
