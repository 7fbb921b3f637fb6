"""A floor under the loss of a stream: nothing is below it, and some releases come near."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.solver.optimal_channel import optimal
from sfumato.stream.loss_floor import allowed, loss_floor
from tests.oracles.binary_programme import BinaryProgramme

Table = list[list[float]]

_WRONG: Table = [[0.0, 1.0], [1.0, 0.0]]
_BITS: list[tuple[Table, Table, float, int]] = [
    ([[0.95, 0.05], [0.05, 0.95]], _WRONG, 3.0, 12),
    ([[0.97, 0.03], [0.2, 0.8]], [[0.0, 1.0], [2.5, 0.0]], 2.0, 8),
    ([[0.98, 0.02], [0.02, 0.98]], _WRONG, 5.0, 20),
]
"""Transition, loss, total, steps."""


def _sticky(stay: float) -> sf.MarkovChain:
    return sf.MarkovChain.from_matrix([[stay, 1 - stay], [1 - stay, stay]])


def _random_chain(rng: np.random.Generator, size: int) -> sf.MarkovChain:
    move = rng.dirichlet(np.full(size, 0.5), size=size) + 3 * rng.random() * np.eye(size) + 0.02
    return sf.MarkovChain.from_matrix(move / move.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(("move", "cost", "total", "steps"), _BITS)
def test_a_total_spent_as_well_as_can_be_is_above_the_floor_and_near(
    move: Table, cost: Table, total: float, steps: int
) -> None:
    exact = BinaryProgramme(move, cost, points=201).total(total, steps, levels=30)
    chain, budget = sf.MarkovChain.from_matrix(move), sf.Horizon(sf.SIP(total), steps)
    assert 0.4 * exact < loss_floor(chain, sf.loss.matrix(cost), budget, steps) < exact


@pytest.mark.parametrize(("move", "cost", "cap"), [(*one[:2], 0.5) for one in _BITS[:2]])
def test_a_cap_used_as_well_as_can_be_is_above_the_floor(
    move: Table, cost: Table, cap: float
) -> None:
    exact = BinaryProgramme(move, cost, points=201).average([cap]).loss
    chain, loss = sf.MarkovChain.from_matrix(move), sf.loss.matrix(cost)
    assert 0.1 * exact < loss_floor(chain, loss, sf.PerStep(sf.SIP(cap)), 500) < exact


@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.floats(0.05, 4.0))
@settings(max_examples=30)
def test_the_floor_of_one_value_is_the_cost_of_its_best_channel(
    seed: int, size: int, epsilon: float
) -> None:
    rng = np.random.default_rng(seed)
    chain, loss = _random_chain(rng, size), sf.loss.matrix(rng.random((size, size)))
    best = optimal(chain.initial, loss, epsilon).cost
    floor = loss_floor(chain, loss, sf.PerStep(sf.SIP(epsilon)), 1)
    assert 0.9 * best - 1e-3 <= floor <= best + 1e-12


def _shapes(rng: np.random.Generator, belief: Floats, epsilon: float) -> Floats:
    """A random channel that uses the budget to the full: symbol by output."""
    outputs = int(rng.integers(2, 4))
    rows = rng.dirichlet(np.full(outputs, 0.3), size=len(belief))
    marginal = belief @ rows
    # Mixed with its marginal until it is within the budget: least and largest ratio decide.
    ratios, k = rows / marginal, np.exp(epsilon)
    high, low = ratios.max(), ratios.min()
    mixed = max((high - k) / (high - 1), (1 / k - low) / (1 - low), 0.0)
    return np.asarray((1 - mixed) * rows + mixed * marginal)


def _least_loss(
    rng: np.random.Generator,
    move: Floats,
    loss: Floats,
    belief: Floats,
    spends: list[float],
) -> float:
    """Mean loss of a release with random channels, which shifts what it spends as it goes."""
    if not spends:
        return 0.0
    now, rest = spends[0], spends[1:]
    if rest:  # what is spent may depend on what was released so far
        moved = rng.uniform(0, now)
        now, rest = now - moved, [rest[0] + moved, *rest[1:]]
    channel = _shapes(rng, belief, now) if now > 0 else np.ones((len(belief), 1))
    total = 0.0
    for y in range(channel.shape[1]):
        joint = belief * channel[:, y]
        if joint.sum() > 0:
            after = joint / joint.sum()
            later = _least_loss(rng, move, loss, after @ move, rest)
            total += joint.sum() * ((after @ loss).min() + later)
    return float(total)


@given(st.integers(0, 2**32 - 1), st.integers(2, 3), st.integers(2, 4), st.floats(0.1, 6.0))
@settings(max_examples=25)
def test_no_release_within_a_total_loses_less(
    seed: int, size: int, steps: int, total: float
) -> None:
    rng = np.random.default_rng(seed)
    chain, table = _random_chain(rng, size), rng.random((size, size))
    np.fill_diagonal(table, 0.0)
    floor = loss_floor(chain, sf.loss.matrix(table), sf.Horizon(sf.SIP(total), steps), steps)
    spends = (rng.dirichlet(np.full(steps, 0.5)) * total).tolist()
    assert (
        floor <= _least_loss(rng, chain.transition(), table, chain.initial, spends) / steps + 1e-12
    )


def test_no_release_of_a_bit_by_extreme_posteriors_loses_less() -> None:
    """Of all spends of three bits on a lattice, each split as wide as its spend allows."""
    chain, total, steps = _sticky(0.9), 2.0, 3
    floor = loss_floor(
        chain, sf.loss.hamming(chain.alphabet), sf.Horizon(sf.SIP(total), steps), steps
    )
    lattice = np.linspace(0, total, 9)
    losses = [
        _split_loss(0.9, 0.5, spends)
        for spends in itertools.product(lattice, repeat=steps)
        if sum(spends) <= total
    ]
    assert 0.7 * min(losses) / steps < floor <= min(losses) / steps


def _split_loss(stay: float, belief: float, spends: tuple[float, ...]) -> float:
    if not spends:
        return 0.0
    k, (_, *rest) = np.exp(spends[0]), spends
    low, high = max(belief / k, 1 - k * (1 - belief)), min(k * belief, 1 - (1 - belief) / k)
    up = 0.5 if high == low else (belief - low) / (high - low)
    losses = [
        share
        * (min(after, 1 - after) + _split_loss(stay, (2 * stay - 1) * after + 1 - stay, (*rest,)))
        for share, after in ((up, high), (1 - up, low))
    ]
    return float(sum(losses))


def test_silence_is_the_floor_of_nothing_and_zero_that_of_everything() -> None:
    chain = _sticky(0.8)
    loss = sf.loss.hamming(chain.alphabet)
    assert loss_floor(chain, loss, sf.Horizon(sf.SIP(1e-9), 5), 5) == pytest.approx(0.5, abs=1e-6)
    assert loss_floor(chain, loss, sf.Horizon(sf.SIP(500.0), 5), 5) == pytest.approx(0, abs=1e-5)


def test_more_budget_never_raises_the_floor_and_less_charged_never_lowers_it() -> None:
    chain = _sticky(0.95)
    loss = sf.loss.hamming(chain.alphabet)
    floors = [loss_floor(chain, loss, sf.Horizon(sf.SIP(b), 20), 20) for b in (0.5, 1.0, 2.0, 4.0)]
    assert floors == sorted(floors, reverse=True)
    cap = sf.PerStep(sf.SIP(0.5))
    assert loss_floor(chain, loss, cap, 20, charged=2.0) > loss_floor(chain, loss, cap, 20)


def test_a_window_may_be_spent_at_once_and_as_often_as_it_fits() -> None:
    assert allowed(sf.Window(sf.SIP(2.0), width=10), 30).total == 6.0
    assert allowed(sf.Window(sf.SIP(2.0), width=10), 31).total == 8.0


def test_a_chain_that_starts_elsewhere_has_its_own_floor() -> None:
    """Who knows where a stream begins needs no output for a while."""
    move = [[0.95, 0.05], [0.05, 0.95]]
    sure = sf.MarkovChain.from_matrix(move, initial=[0.999, 0.001])
    even = sf.MarkovChain.from_matrix(move)
    loss, budget = sf.loss.hamming(sure.alphabet), sf.Horizon(sf.SIP(1.0), 6)
    assert loss_floor(sure, loss, budget, 6) < loss_floor(even, loss, budget, 6) / 1.5


@pytest.mark.parametrize(
    "chain",
    [
        _sticky(0.9).lifted(2),
        sf.MarkovChain.from_matrix([[0.5, 0.5], [0.0, 1.0]], initial=[1.0, 0.0]),
        sf.MarkovChain.from_matrix(np.full((65, 65), 1 / 65)),
    ],
    ids=["order 2", "a value that cannot be", "65 symbols"],
)
def test_chains_without_a_floor_are_refused(chain: sf.MarkovChain) -> None:
    with pytest.raises(InvalidParameter, match="order 1 with at most 64 symbols, all possible"):
        loss_floor(chain, sf.loss.hamming(chain.alphabet), sf.PerStep(sf.SIP(1.0)), 3)
