import functools
import math

import numpy as np
import pytest

from sfumato.core.errors import InvalidParameter
from sfumato.record.attack.bayes_attack import bayes_disclosure
from sfumato.record.best_round_noise import BestRound, best_round_noise
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.published_noise import noise_of
from sfumato.record.round_noise import RoundNoise
from tests.record.noises import shells

SHELLS = 12
CASES = [(0.5, 0.9), (2.0, 0.3)]


def known(deviation: float) -> JointMixture:
    return JointMixture.normal([0.0], [[deviation**2]])


@functools.cache
def best(deviation: float, half: float) -> BestRound:
    return best_round_noise([1.0], [half], known(deviation), shells=SHELLS)


@pytest.mark.parametrize(("deviation", "half"), CASES)
def test_it_is_never_worse_than_the_ball_by_more_than_its_gap(
    deviation: float, half: float
) -> None:
    found, ball = best(deviation, half), noise_of("ball", 1.0, 1)
    value = max(bayes_disclosure(known(deviation), ball, half).delta, ball.largest_box([half]))
    reached = max(found.attacker.delta, found.delta)
    assert found.floor <= value * 1.001
    assert reached <= value * (1 + found.gap) * 1.001
    assert found.floor <= reached * 1.001
    assert found.gap == pytest.approx(max(reached / found.floor - 1, 0), abs=1e-9)


@pytest.mark.parametrize(("deviation", "half"), CASES)
def test_it_is_never_worse_than_the_gaussian_by_more_than_its_gap(
    deviation: float, half: float
) -> None:
    found, noise = best(deviation, half), noise_of("gaussian", 1.0, 1)
    value = bayes_disclosure(known(deviation), noise, half).delta
    assert found.attacker.delta <= max(value, noise.largest_box([half])) * (1 + found.gap) * 1.003


def brute_force(noise: RoundNoise, deviation: float, half: float) -> float:
    """One normal attribute and noise of shells: every window, for every published point."""
    step = 0.005
    values = np.arange(-6 * deviation, 6 * deviation, step)
    prior = np.exp(-0.5 * (values / deviation) ** 2) / (deviation * math.sqrt(2 * math.pi))
    width, total = round(2 * half / step), 0.0
    heights = np.append(noise.heights, 0.0)
    for told in np.arange(-6 * deviation - 4, 6 * deviation + 4, 0.04):
        shell = np.searchsorted(noise.edges, np.abs(told - values), side="right") - 1
        running = np.append(0.0, np.cumsum(heights[shell] * prior))
        total += float((running[width:] - running[:-width]).max()) * step * 0.04
    return total


@pytest.mark.parametrize(("deviation", "half"), CASES)
def test_the_floor_is_under_what_is_truly_reached(deviation: float, half: float) -> None:
    found = best(deviation, half)
    reached = max(brute_force(found.noise, deviation, half), found.delta)
    assert found.floor <= reached * 1.002
    assert found.attacker.delta == pytest.approx(
        brute_force(found.noise, deviation, half), rel=4e-3
    )


@pytest.mark.parametrize(("deviation", "half"), CASES)
def test_no_noise_of_the_shells_is_under_the_floor(deviation: float, half: float) -> None:
    found, rng = best(deviation, half), np.random.default_rng(5)
    squares = np.diff(found.noise.edges**3) / 3 / np.diff(found.noise.edges)
    for _ in range(6):
        # Any masses, mixed with a shell beyond or within so that the variance is 1, and the best.
        masses = rng.dirichlet(np.full(squares.size, 0.5))
        other = np.zeros(squares.size)
        other[-1 if masses @ squares < 1 else 0] = 1.0
        share = (1 - masses @ squares) / ((other - masses) @ squares)
        mixed = rng.uniform() * ((1 - share) * masses + share * other - found.noise.masses)
        noise = RoundNoise(np.ones(1), found.noise.edges, found.noise.masses + mixed)
        assert found.floor <= brute_force(noise, deviation, half) * 1.001


@pytest.mark.parametrize(("deviation", "half"), [*CASES, (2.0, 0.005), (30.0, 0.3)])
def test_the_gap_is_small_for_boxes_narrow_and_wide(deviation: float, half: float) -> None:
    assert best(deviation, half).gap < 0.02


@pytest.mark.parametrize(("deviation", "half"), CASES)
def test_every_axis_has_the_deviation_that_was_asked_for(deviation: float, half: float) -> None:
    noise = best(deviation, half).noise
    squares = np.diff(noise.edges**3) / 3 / np.diff(noise.edges)
    assert float(noise.masses @ squares) == pytest.approx(1.0, rel=1e-6)
    words = np.random.default_rng(1).integers(0, 2**64, (40_000, noise.words), dtype=np.uint64)
    assert float(noise.draw(words).var()) == pytest.approx(1.0, rel=0.03)


@pytest.mark.parametrize(("deviation", "half"), CASES)
def test_what_the_attacker_reaches_is_what_the_best_attacker_reaches(
    deviation: float, half: float
) -> None:
    found = best(deviation, half)
    again = bayes_disclosure(known(deviation), found.noise, half, precision=1e-3)
    assert found.attacker.delta == pytest.approx(again.delta, rel=5e-3)


@pytest.mark.parametrize(("deviation", "half"), CASES)
def test_a_bound_that_some_noise_keeps_is_not_refused(deviation: float, half: float) -> None:
    reached = best(deviation, half).attacker
    limit = min(1.03 * reached.delta, 0.999)
    found = best_round_noise([1.0], [half], known(deviation), attacker=limit, shells=SHELLS)
    assert found.delta <= best(deviation, half).delta * 1.01


@pytest.mark.parametrize(("deviation", "half", "room"), [(0.5, 0.9, 1.02), (2.0, 0.3, 1.15)])
def test_a_bound_on_the_attacker_is_kept(deviation: float, half: float, room: float) -> None:
    reached = best(deviation, half).attacker
    limit = min(room * reached.delta, 0.999)
    found = best_round_noise([1.0], [half], known(deviation), attacker=limit, shells=SHELLS)
    assert found.attacker.delta <= limit
    again = bayes_disclosure(known(deviation), found.noise, half, precision=1e-3)
    assert again.low <= limit


def test_a_bound_that_no_noise_keeps_is_refused() -> None:
    # A guess alone has 0.93.
    with pytest.raises(InvalidParameter, match="attacker must be more"):
        best_round_noise([1.0], [0.9], known(0.5), attacker=0.5, shells=8)


def test_a_refusal_tells_what_was_found_and_what_no_noise_goes_below() -> None:
    least = best(2.0, 0.3)
    found, floor = (f"{value:.9f}"[:6] for value in (least.attacker.delta, least.floor))
    told = f"leaves the attacker {found}.*less than {floor}"
    with pytest.raises(InvalidParameter, match=told):
        best_round_noise([1.0], [0.3], known(2.0), attacker=0.99 * least.floor, shells=SHELLS)


@pytest.mark.parametrize("room", [1.002, 1.01, 1.6])
def test_a_bound_near_the_least_or_far_from_it_is_truly_kept(room: float) -> None:
    least = best(2.0, 0.3)
    limit = room * least.attacker.delta
    found = best_round_noise([1.0], [0.3], known(2.0), attacker=limit, shells=SHELLS)
    assert brute_force(found.noise, 2.0, 0.3) <= limit * 1.002
    assert found.floor <= found.delta <= least.delta * 1.001
    assert found.gap < 0.02


@pytest.mark.parametrize("attacker", [0.0, 1.0, -1.0, math.nan])
def test_a_bound_that_is_no_probability_is_refused(attacker: float) -> None:
    with pytest.raises(InvalidParameter, match="attacker"):
        best_round_noise([1.0], [0.5], known(1.0), attacker=attacker)


def test_two_axes_are_no_worse_than_the_ball_and_have_their_own_scales() -> None:
    prior = JointMixture.normal([0.0, 0.0], [[4.0, 9.6], [9.6, 36.0]])
    found = best_round_noise([1.0, 3.0], [0.8, 2.4], prior, shells=8)
    ball = bayes_disclosure(prior, noise_of("ball", [1.0, 3.0]), [0.8, 2.4])
    assert found.attacker.delta <= ball.delta * 1.01
    words = np.random.default_rng(1).integers(0, 2**64, (40_000, 4), dtype=np.uint64)
    np.testing.assert_allclose(found.noise.draw(words).std(axis=0), [1.0, 3.0], rtol=0.02)


def test_a_ring_that_tells_little_alone_is_beaten_where_attackers_know_a_prior() -> None:
    ring = shells([1.0], [0.95, 1.05], [1.0])
    assert ring.largest_box([0.9]) < noise_of("ball", 1.0, 1).largest_box([0.9])
    guarded = best_round_noise([1.0], [0.9], known(2.0), shells=24).attacker
    assert guarded.delta <= bayes_disclosure(known(2.0), ring, 0.9).delta * 1.003


def test_what_cannot_be_asked_is_refused_by_name() -> None:
    with pytest.raises(InvalidParameter, match="at most 2 attributes"):
        best_round_noise([1.0] * 3, 0.5, JointMixture.normal(np.zeros(3), np.eye(3)))
    with pytest.raises(InvalidParameter, match="sigma must be greater than 0"):
        best_round_noise([0.0], 0.5, known(1.0))
    with pytest.raises(InvalidParameter, match="shells"):
        best_round_noise([1.0], 0.5, known(1.0), shells=2)
