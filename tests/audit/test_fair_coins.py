"""Bets against fair coins: honest releases are hardly ever accused, others soon are."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.core.arrays import Floats
from sfumato.core.fair_coins import SHARES
from sfumato.solver.design_methods import Method
from sfumato.stream.coin_bets import WAYS, Bets
from sfumato.stream.coin_loops import unfair_ratios
from tests.audit.releasers import (
    Cheat,
    coins_of,
    farthest,
    honest,
    likeliest,
    nearer_of_two,
    nearest,
    plan,
)


def channels(rng: np.random.Generator, count: int) -> list[tuple[Floats, Floats, Floats]]:
    """Rows of channels: fair probabilities, losses with ties, and which outputs were said last."""
    found = []
    for _ in range(count):
        size = int(rng.integers(2, 7))
        fair = rng.dirichlet(np.ones(size))
        if size > 2 and rng.random() < 0.3:
            fair[int(rng.integers(size))] = 0.0
            fair /= fair.sum()
        losses = rng.integers(0, 4, size).astype(np.float64)
        alike = (rng.random(size) < 0.3).astype(np.float64)
        found.append((fair, losses, alike))
    return found


def test_every_bet_is_fair_under_fair_coins() -> None:
    """The mean of each ratio over the outputs of a channel is 1, whatever was learnt before."""
    rng = np.random.default_rng(3)
    for fair, losses, alike in channels(rng, 200):
        learnt = rng.random(8) + 0.1
        mean = np.zeros(len(WAYS))
        for output in np.flatnonzero(fair > 0).tolist():
            ratios = np.empty(len(WAYS))
            unfair_ratios(fair, losses, alike, output, learnt.copy(), ratios)
            assert (ratios >= 0).all()
            mean += fair[output] * ratios
        assert mean == pytest.approx(np.ones(len(WAYS)), abs=1e-12)


def test_ratios_are_those_of_the_ways_to_cheat_by_counting() -> None:
    rng = np.random.default_rng(4)
    for fair, losses, alike in channels(rng, 50):
        possible = np.flatnonzero(fair > 0).tolist()
        for output in possible:
            ratios = np.empty(len(WAYS))
            chance = unfair_ratios(fair, losses, alike, output, np.ones(8), ratios)
            near = [y for y in possible if losses[y] == losses[possible].min()]
            assert chance == pytest.approx(fair[near].sum())
            assert ratios[0] == pytest.approx((output in near) / fair[near].sum())
            # Of equally near draws the first one is kept: as likely as it was.
            nearer = sum(
                fair[first] * fair[second]
                for first in possible
                for second in possible
                if (first if losses[first] <= losses[second] else second) == output
            )
            farther = sum(
                fair[first] * fair[second]
                for first in possible
                for second in possible
                if (first if losses[first] >= losses[second] else second) == output
            )
            assert ratios[1] == pytest.approx(nearer / fair[output])
            assert ratios[3] == pytest.approx(farther / fair[output])


@pytest.mark.parametrize(
    ("cheat", "share", "rows"),
    [
        (nearest, 1.0, 256),
        (nearest, 0.5, 600),
        (nearest, 0.2, 3000),
        (nearer_of_two, 1.0, 400),
        (likeliest, 1.0, 400),
        (farthest, 0.5, 1500),
    ],
)
def test_whoever_cheats_is_found(cheat: Cheat, share: float, rows: int) -> None:
    _, report = coins_of(plan(), cheat, share, rows, np.random.default_rng(8))
    assert report.coins is not None
    assert report.coins.alarm
    assert report.problem_kinds == {"coins": 1}
    assert "must be fair draws" in report.problems[0]


def test_cheating_in_one_stream_or_at_one_place_is_found_among_honest_rows() -> None:
    one_place = coins_of(
        plan(), nearest, 1.0, 2000, np.random.default_rng(1), only=lambda row, place: place == 2
    )
    assert one_place[1].coins is not None
    assert one_place[1].coins.alarm


def test_signals_are_outputs_too() -> None:
    """A far-sighted channel has more outputs than symbols; each is bet upon by itself."""
    rule = plan(3, 0.8, 1.5, method=Method.FAR_SIGHTED)
    _, report = coins_of(rule, honest, 0.0, 400, np.random.default_rng(2))
    assert report.problems == []
    _, report = coins_of(rule, nearest, 1.0, 400, np.random.default_rng(2))
    assert report.problem_kinds == {"coins": 1}


def test_an_honest_release_is_not_accused() -> None:
    _, report = coins_of(plan(), honest, 0.0, 2000, np.random.default_rng(5))
    assert report.coins is not None
    assert (report.coins.alarm, report.problems, report.coins.tested) == (False, [], 2000)
    shares = [power.share for power in report.coins.power]
    assert shares == [1.0, 0.5, 0.2, 0.1, 0.05]
    rows = [power.rows for power in report.coins.power]
    assert rows == sorted(rows)
    assert rows[0] < 152
    assert rows[1] < 203
    assert rows[2] < 1396


def simulated(rng: np.random.Generator, share: float, rows: int, level: float) -> Bets:
    """Bets on outputs of random channels, without any plan; all rows are of a few streams."""
    bets, learnt = Bets(level), np.full(8, 0.5)
    kinds = channels(np.random.default_rng(0), 40)
    for row in range(rows):
        fair, losses, alike = kinds[int(rng.integers(len(kinds)))]
        output = int(rng.choice(fair.size, p=fair))
        if rng.random() < share:
            possible = np.flatnonzero(fair > 0)
            near = possible[losses[possible] == losses[possible].min()]
            output = int(rng.choice(near, p=fair[near] / fair[near].sum()))
        ratios = np.empty(len(WAYS))
        chance = unfair_ratios(fair, losses, alike, output, learnt, ratios)
        bets.add(row + 1, ratios, chance, row % 3, int(rng.integers(5)))
    bets.settle()
    return bets


def accused(releases: int, rows: int, level: float) -> int:
    """How many of some honest releases are accused, by ever reaching the alarm."""
    rng = np.random.default_rng(17)
    return sum(simulated(rng, 0.0, rows, level).crossed is not None for _ in range(releases))


def test_few_honest_releases_are_accused() -> None:
    """At a level at which some must be, and no more than it says."""
    found = accused(200, 100, 0.2)
    assert 0 < found <= binom.ppf(1 - 1e-6, 200, 0.2)


@pytest.mark.slow
def test_ten_thousand_honest_releases_are_accused_as_seldom_as_stated() -> None:
    """The bound holds, it is no empty one, and unfair coins would break it."""
    level, releases = 0.02, 10_000
    found = accused(releases, 60, level)
    assert found <= binom.ppf(1 - 1e-6, releases, level)
    assert found >= releases * level / 20
    rng = np.random.default_rng(18)
    unfair = sum(simulated(rng, 0.3, 60, level).crossed is not None for _ in range(300))
    assert unfair > binom.ppf(1 - 1e-6, 300, level)


@pytest.mark.slow
@pytest.mark.parametrize("share", [1.0, 0.5, 0.2])
def test_the_power_that_is_printed_is_the_power_there_is(share: float) -> None:
    rng = np.random.default_rng(29)
    told = simulated(rng, 0.0, 4000, 1e-4).power()
    power = next(one for one in told if one.share == share)
    crossed = []
    for _ in range(200):
        found = simulated(rng, share, int(3 * power.high), 1e-4).crossed
        assert found is not None
        crossed.append(found)
    inside = sum(power.low <= rows <= power.high for rows in crossed)
    assert inside >= binom.ppf(1e-4, 200, 0.8)
    assert np.mean(crossed) == pytest.approx(power.rows, rel=0.15)
    # A power 40 % off would not pass.
    assert abs(np.mean(crossed) / (1.4 * power.rows) - 1) > 0.15


def test_bets_begin_with_one_and_never_have_more_by_themselves() -> None:
    """Outputs that every releaser gives alike move no money, in whatever stream they are."""
    bets = Bets()
    for row in range(600):
        bets.add(row + 1, np.ones(len(WAYS)), 1.0, row, row % 7)
    bets.settle()
    assert bets.best == pytest.approx(0.0, abs=1e-9)


def test_a_share_that_is_printed_is_one_that_is_bet_upon() -> None:
    assert set(SHARES) >= {power.share for power in Bets().power()}
    assert sum(WAYS.values()) == pytest.approx(1.0)
    assert math.isinf(Bets().power()[0].rows)
