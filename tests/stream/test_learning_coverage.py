"""Monte Carlo: sets hold the true chain as often as they say, and then no charge is too small."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.arrays import Floats
from sfumato.core.purpose import Purpose
from sfumato.models import chain_bets
from sfumato.models.markov import MarkovChain
from sfumato.stream.learning_rules import LearningRules
from tests.oracles.exact_adversary import ExactAdversary, within
from tests.stream.populations import (
    UNIT,
    bikes,
    drawn,
    real_bikes,
    ring,
    streams_of,
    versions_of,
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forecasts are short: what a version is worth decides nothing."""
    for name, value in {"_WALKS": 1, "_LENGTH": 1}.items():
        monkeypatch.setattr(f"sfumato.stream.model_versions.{name}", value)


@pytest.fixture
def moving(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few values are enough to move."""
    for name, value in {"_LENGTH": 4, "_NARROW": 1.0}.items():
        monkeypatch.setattr(f"sfumato.stream.model_versions.{name}", value)


def missed_and_excluded(
    chain: MarkovChain, epsilon: float, shape: tuple[int, int], seed: int
) -> tuple[bool, bool, bool]:
    """Whether one of three sets lacks the chain; whether the last rules out others beside it.

    Others: every probability to stay a third less, and a third more.
    """
    budget, priced = sf.PerStep(sf.SIP(epsilon)), sf.loss.hamming(chain.alphabet)
    # Nobody moves: the sets of all counts come from the same streams.
    first = shape[0] * (shape[1] // 4)
    rules = LearningRules(chain.alphabet, budget, priced, first=first, ready=0.999)
    rng = np.random.default_rng(seed)
    sets = [version.chains for version in versions_of(rules, streams_of(chain, shape, rng), rng)]
    last, own = sets[-1], np.diag(chain.transition())
    missed = any(chains is None or not chains.contains(chain) for chains in sets)
    if last is None:
        return missed, True, True
    less, more = np.any(0.7 * own < np.diag(last.low)), np.any(1.3 * own > np.diag(last.high))
    return missed, bool(less), bool(more)


def assert_three_sided(
    chain: MarkovChain, epsilon: float, shape: tuple[int, int], draws: int
) -> None:
    found = np.array([missed_and_excluded(chain, epsilon, shape, draw) for draw in range(draws)])
    # Stated: missed with probability .05 at most; four standard errors more happen at 1e-4.
    assert found[:, 0].sum() <= 0.05 * draws + 4 * np.sqrt(0.05 * 0.95 * draws)
    assert found[:, 1].mean() > 0.9 and found[:, 2].mean() > 0.9


POPULATIONS: dict[str, tuple[Callable[[], MarkovChain], float, tuple[int, int], int, int]] = {
    "sticky bit": (lambda: ring(2, 0.7), 2.5, (40, 60), 20, 200),
    "ring of 4": (lambda: ring(4, 0.7), 3.0, (100, 80), 5, 100),
    "ring of 16": (lambda: ring(16, 0.7), 8.0, (100, 80), 4, 60),
    "made-up bikes": (lambda: bikes(7), 5.0, (200, 80), 5, 60),
}


@pytest.mark.parametrize("name", POPULATIONS)
def test_sets_hold_the_true_chain_and_no_other_that_is_a_third_off(name: str) -> None:
    chain, epsilon, shape, draws, _ = POPULATIONS[name]
    assert_three_sided(chain(), epsilon, shape, draws)


@pytest.mark.slow
@pytest.mark.parametrize("name", POPULATIONS)
def test_sets_hold_it_in_many_draws(name: str) -> None:
    chain, epsilon, shape, _, draws = POPULATIONS[name]
    assert_three_sided(chain(), epsilon, shape, draws)


@pytest.mark.slow
@pytest.mark.parametrize(("stations", "epsilon"), [(7, 5.0), (15, 6.0)])
def test_sets_hold_a_chain_fitted_to_trips(stations: int, epsilon: float) -> None:
    assert_three_sided(real_bikes(stations), epsilon, (400, 80), 30)


def test_bets_with_another_confidence_than_stated_miss_the_chain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    honest, chain, draws = chain_bets._ends, ring(2, 0.7), 20

    def bold(
        counts: Floats, stakes: Floats, shown: Floats, odds: float, off: float
    ) -> tuple[float, float]:
        return honest(counts, stakes, shown, 2 / chain_bets._RATES, off)

    # As if there were one bet and not hundreds.
    monkeypatch.setattr(chain_bets, "_ends", bold)
    found = [missed_and_excluded(chain, 2.5, (40, 60), draw)[0] for draw in range(draws)]
    assert sum(found) > 0.05 * draws + 4 * np.sqrt(0.05 * 0.95 * draws)


def assert_never_more_than_stated(
    chain: MarkovChain, epsilon: float, shape: tuple[int, int], first: int, later: int, seed: int
) -> None:
    """Follow the first streams of a learning release, step by step, in whole numbers.

    Args:
        chain: How streams move; its probabilities are multiples of the unit.
        epsilon: Cap of a value.
        shape: Streams, and values of each.
        first: Values of all streams until the first version.
        later: Values that the followed streams have beyond those of others.
        seed: Of values and coins.
    """
    release = sf.LearningRelease(
        chain.alphabet,
        budget=sf.SIP(epsilon),
        loss=sf.loss.hamming(chain.alphabet),
        first=first,
        scouts=6,
        ready=0.0001,
        purpose=Purpose.SIMULATION,
        randomness=sf.seeded(seed),
    )
    rng, labels = np.random.default_rng(seed), chain.alphabet.labels
    initial, rows = (
        np.rint(part * UNIT).astype(int).tolist()
        for part in (chain.initial.ravel(), chain.transition())
    )
    values = drawn(chain.initial.ravel()[None], np.zeros(shape[0], dtype=np.int64), rng)
    followed = {place: ExactAdversary(initial, rows) for place in range(min(4, shape[0]))}
    versions, checked = set[int](), 0
    for moment in range(shape[1] + later):
        for place in range(shape[0]) if moment < shape[1] else followed:
            name, value = f"u{place}", labels[values[place]]
            if place not in followed:
                release(name, value)
                continue
            state = release.states.get(name) or release.plan.begin(name)
            due = release.plan.prepare(state, 1)
            assert due is not None
            channel = due.design.channel
            weights = channel.weights.tolist()
            told = followed[place].told_by(weights)
            event = release(name, value)
            version, output = release.plan.rules.told_by(event.signal or 0)
            if output is None:  # each symbol is one output
                output = due.output(chain.alphabet.indices([event.released]))
            assert output is not None
            assert within(told, event.sip.epsilon)
            followed[place].sees(weights, channel.column(output))
            versions.add(version)
            checked += 1
        values = drawn(chain.transition(), values, rng)
    sets = [version.chains for version in release.versions]
    # What is proven holds where the truth is in the sets, and these streams have moved.
    assert sets and all(chains is not None and chains.contains(chain) for chains in sets)
    assert 0 in versions and max(versions) >= 1
    assert checked == len(followed) * (shape[1] + later)


@pytest.mark.usefixtures("moving")
def test_a_sticky_bit_leaks_no_more_than_is_stated_at_any_step() -> None:
    assert_never_more_than_stated(ring(2, 0.9), 2.0, (100, 20), 1_000, 20, 0)


@pytest.mark.slow
@pytest.mark.usefixtures("moving")
@pytest.mark.parametrize("seed", [0, 2])
@pytest.mark.parametrize("name", ["sticky bit", "ring of 16", "bikes"])
def test_no_population_leaks_more_than_is_stated_at_any_step(name: str, seed: int) -> None:
    match name:
        case "sticky bit":
            assert_never_more_than_stated(ring(2, 0.9), 2.0, (100, 60), 1_000, 20, seed)
        case "ring of 16":
            assert_never_more_than_stated(ring(16, 0.7), 6.0, (200, 80), 15_990, 20, seed)
        case _:
            assert_never_more_than_stated(real_bikes(7), 5.0, (400, 80), 31_990, 10, seed)


def test_a_stated_leakage_that_is_too_small_by_two_last_digits_is_noticed() -> None:
    channel, half = [[6, 2], [2, 6]], math.log(2.5)
    adversary = ExactAdversary([3, 1], [[3, 1], [1, 3]])
    # The first output has probability 5/8, and 2/8 after the second value.
    told = adversary.told_by(channel)
    assert told == Fraction(5, 2)
    assert within(told, half * (1 + 3e-16)) and not within(told, half * (1 - 3e-16))
    adversary.sees(channel, 0)
    # 18 to 2 after it, and 56 to 24 a move later.
    assert adversary.told_by(channel) == Fraction(12, 5)
