"""One key, one stream, many plans: no two of them share a coin, in any domain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from sfumato import loss
from sfumato.column.privatize import privatize
from sfumato.core.alphabet import Alphabet
from sfumato.core.budgets import Horizon, PerStep
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import SIP
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Address, Domain, Randomness, keyed, seeded
from sfumato.models.cycle import Cycle
from sfumato.models.markov import MarkovChain
from sfumato.models.periodic import PeriodicChain
from sfumato.models.prior import Prior
from sfumato.record.publish import publish
from sfumato.series.series_methods import METHODS
from sfumato.series.series_spec import SeriesSpec
from sfumato.stream.compile import compile_policy
from sfumato.stream.fleet import Fleet
from sfumato.stream.partition.batch_loss import additive
from sfumato.stream.plan import Plan
from sfumato.stream.release import BatchedRelease, InstantRelease
from sfumato.temporal.loss_function import LossFunction
from sfumato.temporal.temporal_mechanisms import Answer, Histogram, Measurement
from sfumato.temporal.temporal_plan import TemporalPlan
from sfumato.temporal.temporal_release import TemporalRelease

SECRET = b"a secret of sixteen bytes or more"
BUDGETS = (0.4, 0.7, 1.0, 1.5, 2.5)
LENGTH = 12
CHAIN = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
BITS = CHAIN.sample(LENGTH, seeded(1)).tolist()
SERIES = np.linspace(10.0, 20.0, LENGTH)


class Recorder:
    """Keyed coins that remember where they were asked for."""

    simulated = False
    addressed = True

    def __init__(self) -> None:
        self.asked: list[Address] = []
        self.drawn: dict[Address, list[int]] = {}

    def at(self, address: Address) -> Randomness:
        self.asked.append(address)
        return _Noted(keyed(SECRET).at(address), self.drawn.setdefault(address, []))

    def words(self, count: int) -> NDArray[np.uint64]:
        raise AssertionError("a draw without an address")

    def word(self) -> int:
        raise AssertionError("a draw without an address")


@dataclass(frozen=True)
class _Noted:
    source: Randomness
    drawn: list[int]
    simulated = False
    addressed = True

    def words(self, count: int) -> NDArray[np.uint64]:
        words = self.source.words(count)
        self.drawn.extend(words.tolist())
        return words

    def word(self) -> int:
        return int(self.words(1)[0])

    def at(self, address: Address) -> Randomness:
        raise AssertionError("an address within an address")


def of_values(coins: Randomness) -> None:
    for budget in BUDGETS:
        for per in (PerStep(SIP(budget)), Horizon(SIP(budget), LENGTH)):
            for measure in (loss.hamming(CHAIN.alphabet), loss.squared(CHAIN.alphabet)):
                release = InstantRelease(CHAIN, budget=per, loss=measure, randomness=coins)
                list(release.over(BITS))


def of_batches(coins: Randomness) -> None:
    for budget in BUDGETS:
        for width in (2, 3):
            options: Any = {"loss": loss.hamming(CHAIN.alphabet), "randomness": coins}
            list(BatchedRelease(CHAIN, width=width, budget=SIP(budget), **options).over(BITS))


def of_fleets(coins: Randomness) -> None:
    measure = loss.hamming(CHAIN.alphabet)
    for budget in BUDGETS[:3]:
        policy = compile_policy(CHAIN, measure, budget, steps=200)
        plan = Plan(CHAIN, PerStep(SIP(budget)), measure, policy=policy)
        fleet = Fleet(plan, ["ann", "bob"], randomness=coins)
        for bit in BITS:
            fleet.step([bit, bit])
        alone = InstantRelease(
            CHAIN, budget=SIP(budget), loss=measure, stream="eve", policy=policy, randomness=coins
        )
        list(alone.over(BITS))
    each = additive(measure)
    policy = compile_policy(CHAIN, each, 1.5, width=3, steps=200)
    batches = Plan(CHAIN, PerStep(SIP(0.5)), each, 3, policy=policy)
    Fleet(batches, ["ann"], randomness=coins).step([[0, 0, 1]])


def of_phases(coins: Randomness) -> None:
    """Equal values at other times: every plan meets them in both halves of the day."""
    halves = Cycle.of("hour", 2)
    matrices = [[[0.9, 0.1], [0.2, 0.8]], [[0.3, 0.7], [0.6, 0.4]]]
    chain = PeriodicChain.from_matrices(matrices, halves)
    for budget in BUDGETS:
        plan = Plan(chain, PerStep(SIP(budget)), loss.hamming(chain.alphabet))
        for shift in range(2):
            state = plan.begin("ann")
            for moment, bit in enumerate(BITS):
                _, state = plan.step(state, [bit], coins, phase=(moment // 3 + shift) % 2)


def of_moments(coins: Randomness) -> None:
    letters = Alphabet("ab")
    for alpha in BUDGETS:
        for stay in (0.8, 0.9):
            for steps in (LENGTH, None):
                chain = LossFunction.of([[stay, 1 - stay], [1 - stay, stay]])
                plan = TemporalPlan(chain, chain, alpha, steps)
                for make in (Histogram.of(letters), Answer.of(letters)):
                    release = TemporalRelease(plan, make, stream="ann", randomness=coins)
                    for _ in range(LENGTH):
                        release("a")


def of_series(coins: Randomness) -> None:
    for way in METHODS.values():
        for epsilon in (1.0, 2.5):
            setting = SeriesSpec(1.0, epsilon, 1e-6, LENGTH, 4, truth=SERIES)
            try:
                method = way.make(setting)
            except InvalidParameter:
                continue  # some rivals need more budget
            method.release(SERIES, coins, name="flights")


def of_columns(coins: Randomness) -> None:
    table = {"name": [f"p{row}" for row in range(LENGTH)], "x": ["a", "b", "b"] * 4}
    for epsilon in BUDGETS:
        for mechanism in ("optimal", "calibrated", "randomized-response", "unary-encoding"):
            for prior in ("estimate", Prior([0.5, 0.5], Alphabet("ab"))):
                privatize(
                    table,
                    "x",
                    epsilon=epsilon,
                    mechanism=mechanism,
                    prior=prior,
                    values=["a", "b"],
                    history={"x": ["a", "b", "b"] * 4},
                    identity="name",
                    randomness=coins,
                )


def of_records(coins: Randomness) -> None:
    table = {
        "name": [f"p{row}" for row in range(LENGTH)],
        "x": SERIES.tolist(),
        "y": (2 * SERIES).tolist(),
    }
    for sigma in BUDGETS:
        for noise in ("gaussian", "ball"):
            for columns in (["x", "y"], ["y", "x"]):
                publish(
                    table,
                    columns,
                    accuracy=1.0,
                    sigma=sigma,
                    noise=noise,
                    coupling="none",
                    identity="name",
                    randomness=coins,
                )


RELEASES: dict[str, tuple[Domain, Callable[[Randomness], None]]] = {
    "values": (Domain.STREAM, of_values),
    "batches": (Domain.STREAM, of_batches),
    "fleets": (Domain.STREAM, of_fleets),
    "phases": (Domain.STREAM, of_phases),
    "moments": (Domain.TEMPORAL, of_moments),
    "series": (Domain.SERIES, of_series),
    "columns": (Domain.PRIVATIZE, of_columns),
    "records": (Domain.PUBLISH, of_records),
}


@cache
def recorded(name: str) -> Recorder:
    coins = Recorder()
    RELEASES[name][1](coins)
    return coins


def repeated(asked: Sequence[Address]) -> int:
    """How many addresses were asked for before."""
    return len(asked) - len(set(asked))


def test_every_domain_of_releases_is_tried() -> None:
    assert {domain for domain, _ in RELEASES.values()} == set(Domain) - {Domain.SIMULATION}


@pytest.mark.parametrize("name", RELEASES)
def test_one_stream_under_many_plans_has_no_address_twice(name: str) -> None:
    coins = recorded(name)
    assert len({address.plan for address in coins.asked}) >= 4
    assert {address.domain for address in coins.asked} == {RELEASES[name][0]}
    assert repeated(coins.asked) == 0
    firsts = [words[0] for words in coins.drawn.values() if words]
    assert len(set(firsts)) == len(firsts)


@pytest.mark.parametrize("name", RELEASES)
def test_a_plan_that_is_missing_from_the_address_is_noticed(name: str) -> None:
    forgetful = [replace(address, plan="one for all") for address in recorded(name).asked]
    assert repeated(forgetful) > 0.5 * len(forgetful)


def pairs(drawn: Mapping[Address, Sequence[int]]) -> Iterator[tuple[int, int]]:
    """First words of one moment under two plans."""
    first: dict[tuple[str, int], int] = {}
    for address, words in drawn.items():
        if words:
            place = address.stream, address.sequence
            if place in first:
                yield first[place], words[0]
            first[place] = words[0]


@pytest.mark.statistical
def test_coins_of_two_plans_are_independent() -> None:
    words = [pair for name in RELEASES for pair in pairs(recorded(name).drawn)]
    tops = np.array(words, dtype=np.uint64) >> np.uint64(62)
    assert len(tops) > 500
    table = np.zeros((4, 4))
    np.add.at(table, tuple(tops.T.astype(int)), 1)
    assert stats.chi2_contingency(table).pvalue > 1e-6
    assert stats.chisquare(table.ravel()).pvalue > 1e-6
    same = np.diag(table.sum(axis=0))  # what coins without a plan would give
    assert stats.chi2_contingency(same + 1e-9).pvalue < 1e-6


# An attack ----------------------------------------------------------------------------------------

THREE = MarkovChain.from_matrix([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]])
TRUTH = THREE.sample(120, seeded(3)).tolist()


class Forgetful:
    """The planted bug: keyed coins of which every plan gets the same."""

    simulated = False
    addressed = True

    def at(self, address: Address) -> Randomness:
        return keyed(SECRET).at(replace(address, plan="one for all"))

    def words(self, count: int) -> NDArray[np.uint64]:
        raise AssertionError("a draw without an address")

    def word(self) -> int:
        raise AssertionError("a draw without an address")


def left_by_shared_coins(coins: Randomness) -> NDArray[np.bool_]:
    """Which values are possible if one coin drew the answers of all budgets: moment by symbol."""
    low = np.zeros((len(TRUTH), 3), dtype=np.int64)
    high = np.full(low.shape, 2**62)
    for budget in BUDGETS:
        plan = Plan(THREE, PerStep(SIP(budget)), loss.hamming(THREE.alphabet))
        state = plan.begin("ann")
        for moment, value in enumerate(TRUTH):
            ready = plan.prepare(state)
            assert ready is not None
            (event,), state = plan.step(state, [value], coins)
            column = ready.design.channel.outputs.tolist().index(event.released)
            ends = np.pad(ready.design.channel.weights.cumsum(axis=1), ((0, 0), (1, 0)))
            low[moment] = np.maximum(low[moment], ends[:, column])
            high[moment] = np.minimum(high[moment], ends[:, column + 1])
    return np.asarray(low < high)


def test_whoever_takes_coins_for_shared_proves_nothing() -> None:
    possible = left_by_shared_coins(keyed(SECRET))
    assert (possible.sum(axis=1) == 0).mean() > 0.1  # no value at all: he contradicts himself
    assert possible[np.arange(len(TRUTH)), TRUTH].mean() < 0.9


def test_the_attack_proves_values_where_plans_share_their_coins() -> None:
    possible = left_by_shared_coins(Forgetful())
    proven = possible.sum(axis=1) == 1
    assert proven.mean() > 0.2
    assert possible[np.arange(len(TRUTH)), TRUTH].all()


# Purposes, reruns, mechanisms of others -----------------------------------------------------------


def test_a_simulation_has_other_coins_than_a_release() -> None:
    measure = loss.hamming(CHAIN.alphabet)
    chain = LossFunction.of([[0.8, 0.2], [0.2, 0.8]])
    made = METHODS["realtime"].make(SeriesSpec(1.0, 1.0, 1e-6, LENGTH, 4, truth=SERIES))
    moments = TemporalPlan(chain, chain, 1.0), Answer.of(Alphabet("ab"))
    table = {"x": ["a", "b"] * 6, "y": [1.0, 2.0] * 6}
    coins = Recorder()
    for purpose in Purpose:
        how: Any = {"randomness": coins, "purpose": purpose}
        InstantRelease(CHAIN, budget=SIP(1.0), loss=measure, **how)(0)
        TemporalRelease(*moments, stream="ann", **how)("a")
        made.release(SERIES, coins, purpose, name="flights")
        privatize(table, "x", epsilon=1.0, history={"x": ["a", "b"]}, **how)
        domains = {"y": (0.0, 3.0)}
        publish(table, ["y"], accuracy=1.0, sigma=1.0, coupling="none", domains=domains, **how)
    assert repeated(coins.asked) == 0
    bare = [replace(address, plan="one for all") for address in coins.asked]
    assert repeated(bare) == len(bare) / 2


def test_the_same_plan_again_gives_the_same_answers() -> None:
    """A rerun is no second release."""
    table = {"x": ["a", "b", "b"] * 8}
    told = [
        privatize(table, "x", epsilon=epsilon, randomness=keyed(SECRET), order="kept").frame["x"]
        for epsilon in (1.0, 1.0, 1.001)
    ]
    assert told[0] == told[1]
    method = METHODS["realtime"].make(SeriesSpec(1.0, 1.0, 1e-6, LENGTH, 4, truth=SERIES))
    once, again = (method.release(SERIES, keyed(SECRET), name="flights") for _ in range(2))
    assert once.tolist() == again.tolist()


def test_a_mechanism_that_cannot_be_told_apart_has_no_keyed_coins() -> None:
    class Opaque:
        epsilon = 0.0

        def __call__(self, value: Any, randomness: Randomness) -> Any:
            return randomness.word()

    chain = LossFunction.of([[0.8, 0.2], [0.2, 0.8]])
    plan = TemporalPlan(chain, chain, 1.0)
    release = TemporalRelease(plan, lambda _: Opaque(), stream="ann", randomness=keyed(SECRET))
    with pytest.raises(InvalidParameter, match="be a dataclass or have a fingerprint"):
        release("a")
    assert release.spent.alpha == 0


def test_a_measurement_brings_its_own_coins() -> None:
    class Exact:
        def map(self, distance: float) -> float:
            return 0.0

        def __call__(self, value: Any) -> Any:
            return value

    chain = LossFunction.of([[0.8, 0.2], [0.2, 0.8]])
    make = Measurement.of(lambda _: Exact(), 1)
    coins = keyed(SECRET)
    assert TemporalRelease(TemporalPlan(chain, chain, 1.0), make, stream="a", randomness=coins)(7)


@pytest.mark.statistical
def test_noise_of_two_plans_does_not_cancel() -> None:
    """Two budgets for one stream: the noises are no multiples of each other."""
    zero, noises = np.zeros(3000), []
    for epsilon in (1.0, 1.5):
        method = METHODS["gaussian"].make(SeriesSpec(1.0, epsilon, 1e-6, 3000, 4, truth=zero))
        noises.append(method.release(zero, keyed(SECRET), name="flights"))
    assert abs(stats.pearsonr(*noises).statistic) < 0.1
