"""Realtime releases: what they promise, recomputed; what they refuse; and how near they come."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.errors import BudgetExceeded, CorruptData, InsecureRandomness, InvalidParameter
from sfumato.core.guarantees import ApproxDP, PureDP
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import keyed, secure, seeded
from sfumato.core.state import SeriesState
from sfumato.noise.densities import local_gaussian_delta
from sfumato.noise.gaussian_noise import GaussianNoise
from sfumato.series.filter_banks import learned
from sfumato.series.filters import Estimate, kalman, one_lag, plain
from sfumato.series.realtime import Realtime
from sfumato.store.codec import from_bytes, to_bytes
from tests.contracts.series_laws import SECRET, SIMULATION, CountedCoins
from tests.oracles.other_filters import model_lag, several_lags
from tests.oracles.other_schedules import least_error, sampled
from tests.oracles.processes import Process, kalman_bound

Floats = NDArray[np.float64]
PROCESS = Process.first_order(50.0, 0.9, 4.0)
ESTIMATES = {
    "plain": plain(),
    "one lag": one_lag(),
    "known lag": model_lag(PROCESS),
    "lags": several_lags(PROCESS, 3),
    "kalman": kalman(PROCESS),
    "learned": learned(),
}


def geometric(length: int, ratio: float) -> Floats:
    """Shares whose squares fall by one factor."""
    return np.asarray(ratio ** (0.5 * np.arange(length)))


def exact_delta(noises: Sequence[GaussianNoise], sensitivity: float, epsilon: float) -> mpmath.mpf:
    """Delta of all noises together, from sensitivity and deviation alone, and what was rounded.

    Places on a lattice of `step` of values `sensitivity` apart are at most ceil(sensitivity/step)
    apart, so that is what the normal noise of so many steps must hide.
    """
    with mpmath.workdps(50):
        square = mpmath.mpf(0)
        for noise in noises:
            apart = math.ceil(Fraction(sensitivity) / Fraction(noise.step))
            square += (apart / mpmath.mpf(noise.deviation)) ** 2
        mu, eps = mpmath.sqrt(square), mpmath.mpf(epsilon)
        clean = mpmath.ncdf(mu / 2 - eps / mu) - mpmath.exp(eps) * mpmath.ncdf(-mu / 2 - eps / mu)
        return clean + sum(mpmath.mpf(noise.slack) for noise in noises)


def gaussians(method: Realtime) -> list[GaussianNoise]:
    return [noise for noise in method.noises if isinstance(noise, GaussianNoise)]


def small(estimate: Estimate | None = None, length: int = 40, **options: Any) -> Realtime:
    return Realtime.gaussian(
        1.0, epsilon=2.0, delta=1e-6, length=length, estimate=estimate, **options
    )


def walk(length: int = 40) -> Floats:
    return 50 + 3 * np.sin(np.arange(length) / 4)


# Guarantees -------------------------------------------------------------------------------------


def schedules(length: int) -> dict[str, Floats]:
    """Schedules of all kinds; the geometric one falls to a fifth."""
    return {
        "constant": np.ones(length),
        "geometric": geometric(length, 0.04 ** (1 / max(length, 2))),
        "sampled": sampled(length, 3),
        "least error": least_error(PROCESS, min(length, 60), 9.0),
    }


@pytest.mark.parametrize("kind", ["constant", "geometric", "sampled", "least error"])
@pytest.mark.parametrize("length", [1, 2, 57])
@pytest.mark.parametrize("sensitivity", [1.0, 3.0, 0.1, 1 / 3])
def test_guarantee_keeps_the_budget_for_every_schedule(
    kind: str, length: int, sensitivity: float
) -> None:
    shares = schedules(length)[kind]
    method = Realtime.gaussian(sensitivity, epsilon=1.0, delta=1e-6, schedule=shares)
    assert exact_delta(gaussians(method), sensitivity, 1.0) <= 1e-6
    assert method.guarantee <= ApproxDP(1.0, 1e-6)


@given(
    length=st.integers(1, 2000),
    sensitivity=st.sampled_from([1.0, 0.1, 0.7, 1e-7, 1e7, 12.5]),
    epsilon=st.sampled_from([0.1, 1.0, 5.0]),
    delta=st.sampled_from([1e-4, 1e-8]),
)
@settings(max_examples=25)
def test_guarantee_keeps_the_budget_for_every_length_and_sensitivity(
    length: int, sensitivity: float, epsilon: float, delta: float
) -> None:
    method = Realtime.gaussian(sensitivity, epsilon=epsilon, delta=delta, length=length)
    assert method.guarantee <= ApproxDP(epsilon, delta)


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "delta", "length"),
    [
        (0.1, 1.0, 1e-6, 356),
        (1 / 3, 0.00584820674577757, 1e-9, 1),
        (0.7, 0.018377111363650497, 1e-9, 2),
        (1.1, 0.008556397415979604, 1e-9, 3),
        (0.1, 0.0125795933945791, 1e-9, 3),
    ],
)
def test_guarantee_keeps_the_budget_where_the_lattice_changes(
    sensitivity: float, epsilon: float, delta: float, length: int
) -> None:
    """A little more noise may be put on a coarser lattice, whose whole steps are dearer."""
    method = Realtime.gaussian(sensitivity, epsilon=epsilon, delta=delta, length=length)
    assert method.guarantee <= ApproxDP(epsilon, delta)


@pytest.mark.parametrize("sensitivity", [0.1, 1 / 3, 0.7, 1.1, 3.0])
@pytest.mark.parametrize("length", [1000, 20_000])
def test_noise_in_units_of_the_sensitivity_does_not_depend_on_it(
    sensitivity: float, length: int
) -> None:
    sizes = [
        float(Realtime.gaussian(unit, epsilon=1.0, delta=1e-6, length=length).variances[0])
        for unit in (1.0, sensitivity)
    ]
    assert sizes[1] / sensitivity**2 == pytest.approx(sizes[0], rel=0.11)


@pytest.mark.parametrize("kind", ["discrete", "binomial"])
@pytest.mark.parametrize("sensitivity", [1.0, 0.7])
def test_other_noises_keep_the_budget(kind: str, sensitivity: float) -> None:
    make = Realtime.discrete_gaussian if kind == "discrete" else Realtime.binomial
    method = make(sensitivity, epsilon=1.0, delta=1e-6, length=6)
    assert method.guarantee <= ApproxDP(1.0, 1e-6)
    assert method.guarantee.epsilon > 0.9


def test_each_value_may_have_a_sensitivity_of_its_own() -> None:
    widths = [1.0, 0.1, 5.0]
    method = Realtime.gaussian(widths, epsilon=1.0, delta=1e-6, length=3)
    ratios = [
        width / math.sqrt(variance)
        for width, variance in zip(widths, method.variances.tolist(), strict=True)
    ]
    assert ratios == pytest.approx([ratios[0]] * 3, rel=0.02)
    assert method.guarantee <= ApproxDP(1.0, 1e-6)


@pytest.mark.parametrize("epsilon", [1.0, 5.0, 10.0, 12.0])
@pytest.mark.parametrize("length", [10, 1000])
def test_guarantee_uses_most_of_the_budget(epsilon: float, length: int) -> None:
    method = Realtime.gaussian(1.0, epsilon=epsilon, delta=1e-5, length=length)
    assert 0.97 * epsilon <= _epsilon(method) <= epsilon


def _epsilon(method: Realtime) -> float:
    return method.guarantee.epsilon


@pytest.mark.parametrize("kind", ["constant", "geometric", "sampled"])
def test_guarantee_is_the_curve_of_the_noises(kind: str) -> None:
    method = Realtime.gaussian(1.0, epsilon=1.5, delta=1e-5, schedule=schedules(30)[kind])
    promised = _epsilon(method)
    assert exact_delta(gaussians(method), 1.0, promised) <= 1e-5
    assert exact_delta(gaussians(method), 1.0, promised * (1 - 1e-6)) > 1e-5


def test_oracle_catches_first_steps_that_were_forgotten() -> None:
    """The planted bug: an account that starts after the first two values."""
    method = Realtime.gaussian(1.0, epsilon=1.0, delta=1e-6, schedule=geometric(30, 0.8))
    forgetful = Realtime(
        method.noises[2:], method.estimate, method.weights[2:], method.delta
    ).guarantee
    assert exact_delta(gaussians(method), 1.0, _epsilon(method)) <= 1e-6
    assert exact_delta(gaussians(method), 1.0, forgetful.epsilon) > 1e-6


@pytest.mark.parametrize(
    ("length", "sensitivity"), [(1, 0.1), (10, 0.1), (100, 1 / 3), (2000, 1.0)]
)
def test_laplace_budgets_add_up_to_no_more_than_the_budget(length: int, sensitivity: float) -> None:
    method = Realtime.laplace(sensitivity, epsilon=1.0, length=length)
    assert method.guarantee <= PureDP(1.0)
    assert method.guarantee.epsilon >= 0.9999
    assert len(method.noises) == length


def test_laplace_follows_its_schedule() -> None:
    method = Realtime.laplace(1.0, epsilon=2.0, schedule=[3.0, 0.0, 1.0])
    assert method.noises[1] is None
    shares = [noise.charge for noise in method.noises if noise is not None]
    assert shares == pytest.approx([1.5, 0.5], rel=1e-6)


def test_gaussian_noise_follows_its_schedule() -> None:
    method = Realtime.gaussian(1.0, epsilon=1.0, delta=1e-6, schedule=[2.0, 0.0, 1.0])
    first, none, last = method.variances
    assert last == pytest.approx(4 * first, rel=1e-3)
    assert none == math.inf and method.noises[1] is None
    assert method.weights.tolist() == [1.0, 0.0, 1.0]


def test_geometric_schedule_is_bounded_for_ever() -> None:
    """A hundred times as many values cost hardly any more noise in the first."""
    short = Realtime.gaussian(1.0, epsilon=1.0, delta=1e-6, schedule=geometric(20, 0.8))
    longer = Realtime.gaussian(1.0, epsilon=1.0, delta=1e-6, schedule=geometric(40, 0.8))
    assert longer.variances[0] == pytest.approx(short.variances[0], rel=0.02)
    shares = geometric(10_000, 0.8)
    assert float(np.square(shares).sum()) == pytest.approx(5.0, rel=1e-9)
    assert longer.guarantee <= ApproxDP(1.0, 1e-6)


def test_geometric_schedule_of_ten_thousand_values_is_made() -> None:
    """What falls for ever soon needs more noise than a table holds; it should be no measurement."""
    long = Realtime.gaussian(1.0, epsilon=1.0, delta=1e-6, schedule=geometric(10_000, 0.9))
    short = Realtime.gaussian(1.0, epsilon=1.0, delta=1e-6, schedule=geometric(100, 0.9))
    assert long.guarantee <= ApproxDP(1.0, 1e-6)
    assert long.variances[0] == pytest.approx(short.variances[0], rel=0.02)


def errors_by_riccati(model: Process, variances: Floats) -> float:
    """Summed error of the filter when the noise changes with time."""
    rho = float(model.coefficients[0])
    before, total = model.variance, 0.0
    for variance in variances:
        after = before * variance / (before + variance)
        total += after
        before = rho * rho * after + model.innovation
    return total


@pytest.mark.parametrize("rho", [0.3, 0.9, 0.99])
@pytest.mark.parametrize("noise", [0.2, 4.0, 100.0])
@pytest.mark.parametrize("length", [1, 5, 60])
def test_least_error_schedule_has_no_more_error_than_the_constant_one(
    rho: float, noise: float, length: int
) -> None:
    model = Process.first_order(0.0, rho, 1.0)
    shares = least_error(model, length, noise)
    assert float(np.square(shares).sum()) == pytest.approx(length, rel=1e-9)
    even = errors_by_riccati(model, np.full(length, noise))
    best = errors_by_riccati(model, noise / np.square(shares))
    assert best <= even * (1 + 1e-9)
    # No small exchange between two times is better.
    for one, other in ((0, length - 1), (length // 2, 0), (length - 1, length // 2)):
        if one != other:
            moved = np.square(shares)
            part = 0.02 * moved[other]
            moved[one], moved[other] = moved[one] + part, moved[other] - part
            assert errors_by_riccati(model, noise / moved) >= best * (1 - 2e-5)


@pytest.mark.parametrize("bad", [0, 401])
def test_least_error_schedule_of_an_impossible_length_is_refused(bad: int) -> None:
    with pytest.raises(InvalidParameter):
        least_error(PROCESS, bad, 1.0)


# Refusals ---------------------------------------------------------------------------------------


def test_a_series_too_long_is_refused_with_keyed_coins() -> None:
    with pytest.raises((BudgetExceeded, InvalidParameter)):
        small(plain(), 10).release(np.zeros(11), keyed(SECRET), name="a")


def test_seeded_coins_are_for_simulations_alone() -> None:
    method = small()
    state = method.begin(seeded(1), purpose=SIMULATION).state
    with pytest.raises(InsecureRandomness):
        method.release(walk(), seeded(1))
    with pytest.raises(InsecureRandomness):
        method.begin(seeded(1))
    with pytest.raises(InsecureRandomness):
        method.begin(seeded(1), state=state)
    with pytest.raises(InsecureRandomness):
        method.release_many(walk()[:, None], seeded(1))


@pytest.mark.parametrize(
    "options",
    [
        {"length": 0},
        {"length": None},
        {"length": 5, "schedule": [1.0, 1.0]},
        {"schedule": []},
        {"schedule": [0.0, 0.0]},
        {"schedule": [1.0, -1.0]},
        {"schedule": [1.0, math.nan]},
        {"schedule": [[1.0]]},
        {"length": 5, "weight": 0.0},
        {"length": 5, "weight": 1.5},
        {"length": 5, "weight": math.nan},
        {"length": 5, "epsilon": 0.0},
        {"length": 5, "epsilon": -1.0},
        {"length": 5, "epsilon": math.nan},
        {"length": 5, "sensitivity": 0.0},
        {"length": 5, "sensitivity": math.inf},
    ],
)
def test_impossible_parameters_are_refused(options: dict[str, Any]) -> None:
    chosen = {"sensitivity": 1.0, "epsilon": 1.0} | options
    with pytest.raises(InvalidParameter):
        Realtime.laplace(**chosen)
    with pytest.raises(InvalidParameter):
        Realtime.gaussian(**chosen, delta=1e-6)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0, math.nan, 1e-16])
def test_impossible_deltas_are_refused(delta: float) -> None:
    with pytest.raises(InvalidParameter):
        Realtime.gaussian(1.0, epsilon=1.0, delta=delta, length=1000)


@pytest.mark.parametrize("length", [1, 100, 17_379])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 20.0, 34.8, 50.0])
@pytest.mark.parametrize("delta", [1e-4, 1e-6, 1e-12])
def test_noise_is_nearly_the_least_that_the_curve_allows(
    length: int, epsilon: float, delta: float
) -> None:
    method = Realtime.gaussian(1.0, epsilon=epsilon, delta=delta, length=length)
    low, high = mpmath.mpf(0), mpmath.mpf(40)
    with mpmath.workdps(40):
        for _ in range(60):
            mu, eps = (low + high) / 2, mpmath.mpf(epsilon)
            tail = mpmath.exp(eps) * mpmath.ncdf(-mu / 2 - eps / mu)
            low, high = (mu, high) if mpmath.ncdf(mu / 2 - eps / mu) - tail <= delta else (low, mu)
        least = math.sqrt(length) / float(high)
    assert exact_delta(gaussians(method)[:1], 1.0, epsilon) <= delta
    assert least <= math.sqrt(method.variances[0]) <= 1.02 * least
    assert 0.9 * epsilon < method.guarantee.epsilon <= epsilon


def test_noise_for_a_series_is_found_without_a_search_in_a_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def counted(ratio: float, noise: float, level: float) -> float:
        asked.append(level)
        return local_gaussian_delta(ratio, noise, level)

    monkeypatch.setattr("sfumato.noise.curves.local_gaussian_delta", counted)
    Realtime.gaussian(1.0, epsilon=1.0, delta=1e-6, length=8)
    assert len(asked) < 2000


# Releases ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ESTIMATES)
def test_step_by_step_is_the_whole_release(name: str) -> None:
    method = small(ESTIMATES[name], 300, weight=0.4)
    series = walk(300)
    whole = method.release(series, keyed(SECRET), name="u1")
    running = method.begin(keyed(SECRET), name="u1")
    stepped = [running.step(value) for value in series]
    assert stepped == pytest.approx(whole.tolist(), rel=1e-12, abs=1e-12)


def test_names_have_noise_of_their_own() -> None:
    method = small(plain())
    told = [method.release(walk(), keyed(SECRET), name=name) for name in ("a", "b", "a")]
    assert np.array_equal(told[0], told[2])
    # On a lattice two draws may meet now and then.
    assert np.mean(told[0] == told[1]) < 0.1
    assert abs(np.corrcoef(told[0] - walk(), told[1] - walk())[0, 1]) < 0.6


def test_two_budgets_of_one_name_do_not_share_their_noise() -> None:
    """Noise that is twice the other's, coin for coin, would give the true values away."""
    series = walk()
    first = small(plain())
    second = Realtime.gaussian(1.0, epsilon=4.0, delta=1e-6, length=40, estimate=plain())
    scales = [math.sqrt(method.variances[0]) for method in (first, second)]
    told = [method.release(series, keyed(SECRET), name="a") for method in (first, second)]
    solved = (scales[0] * told[1] - scales[1] * told[0]) / (scales[0] - scales[1])
    assert np.abs(solved - series).mean() > 0.5


def test_secure_releases_differ() -> None:
    method = small(plain())
    # On a lattice single values may well agree; all of them do not.
    first, second = (method.release(walk(), secure()) for _ in range(2))
    assert np.mean(first == second) < 0.5


def test_noise_of_different_times_is_independent() -> None:
    method = small(plain(), 2000)
    for coins, name in ((secure(), None), (keyed(SECRET), "a")):
        noise = method.release(np.zeros(2000), coins, name=name) / math.sqrt(method.variances[0])
        assert abs(np.corrcoef(noise[1:], noise[:-1])[0, 1]) < 0.12
        assert 0.85 < float(np.square(noise).mean()) < 1.15


def test_many_series_are_released_together_each_with_its_own_noise() -> None:
    method = small(plain(), 300)
    table = np.stack([walk(300)] * 5, axis=1)
    for coins, names in ((secure(), None), (keyed(SECRET), list("abcde"))):
        told = method.release_many(table, coins, names=names)
        noise = told - table
        assert told.shape == (300, 5)
        linked = np.corrcoef(noise.T)
        assert np.abs(linked - np.eye(5)).max() < 0.3
        assert float(np.square(noise).mean()) == pytest.approx(method.variances[0], rel=0.2)
    assert method.release_many(table[:7], secure()).shape == (7, 5)


@pytest.mark.parametrize("shape", [(41, 2), (0, 2), (5,), (2, 2, 2)])
def test_tables_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InvalidParameter):
        small().release_many(np.zeros(shape), secure())


def test_a_table_without_series_is_refused() -> None:
    """Kernels must not read a first series that is not there."""
    for estimate in (plain(), kalman(PROCESS)):
        with pytest.raises(InvalidParameter, match="at least one series"):
            small(estimate).release_many(np.zeros((5, 0)), secure())


@pytest.mark.parametrize("schedule", [None, sampled(40, 4)])
def test_coins_of_a_key_belong_to_a_series_and_not_to_its_place(schedule: Floats | None) -> None:
    """Else the difference of two tables is that of the true values of two people."""
    method, key = small(plain(), 40, schedule=schedule), keyed(SECRET)
    ann, bob = walk(), walk() + 512.0
    both = method.release_many(np.stack([ann, bob], axis=1), key, names=["ann", "bob"])
    moved = method.release_many(np.stack([bob, ann], axis=1), key, names=["bob", "ann"])
    alone = method.release(bob, key, name="bob")
    assert both.T.tolist() == moved.T[::-1].tolist()
    assert both[:, 1].tolist() == alone.tolist()
    assert np.mean(both[:, 0] - alone == ann - bob) < 0.5
    # The noise of one is not that of the other, at any pair of places.
    assert np.mean(both[:, 1] - both[:, 0] == 512.0) < 0.5


@pytest.mark.parametrize("names", [None, ["ann"], ["ann", "ann"], "ab", ["ann", 7]])
def test_series_without_a_name_each_get_no_coins_of_a_key(names: Any) -> None:
    for purpose in Purpose:
        with pytest.raises(InvalidParameter, match="names"):
            small().release_many(np.zeros((5, 2)), keyed(SECRET), purpose, names=names)


def test_gaps_are_filled_by_the_filter() -> None:
    for estimate in (plain(), learned(), kalman(PROCESS)):
        method = small(estimate, 40, schedule=sampled(40, 4))
        coins = CountedCoins()
        told = method.release(walk(), coins)
        assert np.isfinite(told).all() and coins.taken == 10
    for estimate in (one_lag(), model_lag(PROCESS), several_lags(PROCESS, 2)):
        with pytest.raises(InvalidParameter):
            small(estimate, 40, schedule=sampled(40, 4)).release(walk(), secure())


@pytest.mark.statistical
@pytest.mark.parametrize("rho", [0.5, 0.9, 0.99])
def test_known_process_comes_within_two_percent_of_the_kalman_bound(rho: float) -> None:
    model = Process.first_order(50.0, rho, 4.0)
    method = Realtime.gaussian(0.03, epsilon=2.0, delta=1e-6, length=400, estimate=kalman(model))
    rng = np.random.default_rng(4)
    series = np.empty((400, 1500))
    series[0] = rng.normal(0, 2.0, 1500)
    for time in range(1, 400):
        fresh = rng.normal(0, math.sqrt(model.innovation), 1500)
        series[time] = rho * series[time - 1] + fresh
    series += 50.0
    told = method.release_many(series, seeded(1), SIMULATION)
    error = float(np.square(told - series)[100:].mean())
    assert error == pytest.approx(kalman_bound(model, float(method.variances[0])), rel=0.02)


# States -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ESTIMATES)
@pytest.mark.parametrize("stop", [0, 1, 2, 17])
def test_a_stored_state_goes_on_as_if_nothing_had_happened(name: str, stop: int) -> None:
    method = small(ESTIMATES[name], weight=0.5)
    series = walk()
    whole = method.begin(keyed(SECRET), name="u1")
    expected = [whole.step(value) for value in series]
    running: Any = method.begin(keyed(SECRET), name="u1")
    told = [running.step(value) for value in series[:stop]]
    stored = to_bytes(running.state)
    back = from_bytes(stored, SeriesState)
    assert to_bytes(back) == stored
    again = method.begin(keyed(SECRET), name="u1", state=back)
    told += [again.step(value) for value in series[stop:]]
    assert told == expected
    with pytest.raises(BudgetExceeded):
        again.step(1.0)


def test_a_state_is_a_copy() -> None:
    running: Any = small().begin(seeded(1), purpose=SIMULATION)
    running.step(1.0)
    state = running.state
    before = to_bytes(state)
    running.step(2.0)
    small().begin(seeded(1), purpose=SIMULATION, state=state).step(5.0)
    assert to_bytes(state) == before


def test_the_size_of_a_state_does_not_grow() -> None:
    for estimate in ESTIMATES.values():
        running: Any = small(estimate, 400).begin(seeded(1), purpose=SIMULATION)
        sizes = []
        for time in range(400):
            running.step(50.0)
            if time in (20, 399):
                sizes.append(len(to_bytes(running.state)))
        assert sizes[1] <= sizes[0] + 16


@pytest.mark.parametrize(
    "other",
    [
        small(learned(forgetting=0.99)),
        small(kalman(PROCESS)),
        small(learned(), 41),
        small(learned(), weight=0.5),
        Realtime.gaussian(1.0, epsilon=1.0, delta=1e-6, length=40),
        Realtime.gaussian(2.0, epsilon=2.0, delta=1e-6, length=40),
        Realtime.laplace(1.0, epsilon=2.0, length=40),
    ],
)
def test_the_state_of_another_method_is_refused(other: Realtime) -> None:
    running: Any = small(learned()).begin(seeded(1), purpose=SIMULATION)
    running.step(1.0)
    with pytest.raises(InvalidParameter, match="begun with"):
        other.begin(secure(), state=running.state)


def test_equal_methods_share_their_states() -> None:
    running: Any = small().begin(seeded(1), purpose=SIMULATION)
    running.step(1.0)
    assert small().begin(seeded(2), purpose=SIMULATION, state=running.state).time == 1


@pytest.mark.parametrize("place", [0, 9, 40, 200, -1])
def test_damaged_states_are_refused(place: int) -> None:
    running: Any = small(plain()).begin(seeded(1), purpose=SIMULATION)
    running.step(1.0)
    stored = bytearray(to_bytes(running.state))
    stored[min(place, len(stored) - 1)] ^= 0x41
    with pytest.raises(CorruptData):
        from_bytes(bytes(stored), SeriesState)
    with pytest.raises(CorruptData):
        from_bytes(to_bytes(running.state)[:-3], SeriesState)


@pytest.mark.parametrize("time", [-1, -40])
def test_a_state_before_the_beginning_is_refused(time: int) -> None:
    """Else the values would be counted from before the first one."""
    method = small(plain())
    running: Any = method.begin(seeded(1), purpose=SIMULATION)
    running.step(1.0)
    state = SeriesState(running.state.plan, time, running.state.arrays)
    with pytest.raises((InvalidParameter, CorruptData)):
        method.begin(secure(), state=from_bytes(to_bytes(state), SeriesState))


def test_a_state_whose_arrays_have_another_shape_is_refused() -> None:
    method = small(kalman(PROCESS))
    running: Any = method.begin(seeded(1), purpose=SIMULATION)
    running.step(1.0)
    arrays = running.state.arrays | {"means": np.zeros((1, 0))}
    with pytest.raises((InvalidParameter, CorruptData)):
        method.begin(secure(), state=SeriesState(running.state.plan, 1, arrays))
