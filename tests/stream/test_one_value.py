"""What all outputs tell about one value, against sums over every sequence of true values."""

from itertools import pairwise, product
from math import prod

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato import LDP, SIP, Horizon, MarkovChain, Method, PerStep, Plan, Window, loss
from sfumato.stream import lifetime
from sfumato.stream.lifetime import one_value_bound
from sfumato.stream.one_value import (
    influence,
    leakage_about_another,
    one_value_leakage,
    one_value_leakage_of_batches,
)

Floats = NDArray[np.float64]


def chain_of(draw: np.random.Generator, size: int, order: int) -> tuple[MarkovChain, Floats]:
    rows = draw.dirichlet(np.full(size, 0.5), size**order) + 0.01
    rows /= rows.sum(axis=1, keepdims=True)
    initial = draw.dirichlet(np.ones(size**order)).reshape((size,) * order)
    return MarkovChain.from_matrix(rows, initial=initial), rows


def by_brute_force(chain: MarkovChain, rows: Floats, told: list[Floats | None]) -> float:
    """Every sequence of true values, listed."""
    size, order, steps = chain.size, chain.order, len(told)
    before, after = np.zeros((2, steps, size))
    for path in product(range(size), repeat=max(steps, order)):
        chance = float(chain.initial[path[:order]])
        for moment in range(order, len(path)):
            context = 0
            for value in path[moment - order : moment]:
                context = context * size + value
            chance *= rows[context, path[moment]]
        weight = prod(1.0 if one is None else one[path[t]] for t, one in enumerate(told))
        for moment in range(steps):
            before[moment, path[moment]] += chance
            after[moment, path[moment]] += chance * weight
    after /= after.sum(axis=1, keepdims=True)
    return float(np.abs(np.log(after / before)).max())


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("size", [2, 3])
def test_the_leakage_about_one_value_is_that_of_the_whole_joint_table(
    size: int, order: int
) -> None:
    draw = np.random.default_rng(10 * size + order)
    for steps in (1, 2, 4, 6):
        chain, rows = chain_of(draw, size, order)
        told = [draw.random(size) + 0.01 if draw.random() < 0.8 else None for _ in range(steps)]
        exact = by_brute_force(chain, rows, told) if any(x is not None for x in told) else 0.0
        assert exact <= one_value_leakage(chain, told) <= exact + 1e-9


def test_an_output_that_says_nothing_tells_nothing() -> None:
    chain = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
    assert one_value_leakage(chain, [None] * 5) == 0.0
    assert one_value_leakage(chain, []) == 0.0


def test_a_value_that_stays_is_told_beyond_the_budget_of_any_window() -> None:
    """One symbol told again and again: no window passes 1, all of them together do."""
    chain = MarkovChain.from_matrix([[0.995, 0.005], [0.005, 0.995]])
    rule = Method.RANDOMIZED_RESPONSE
    plan = Plan(chain, Window(SIP(1.0), 10), loss.hamming(chain.alphabet), method=rule)
    state, told = plan.begin("ann"), []
    for _ in range(300):
        prepared = plan.prepare(state)
        assert prepared is not None
        told.append(prepared.design.channel.likelihood(1))
        _, state = plan.observe(state, [1])
    total = one_value_leakage(chain, told)
    assert total > 2.4
    assert total <= one_value_bound(chain, plan.budget, 300).sip.epsilon


@pytest.mark.parametrize("budget", [PerStep(SIP(0.4)), Window(SIP(1.2), 3), Horizon(SIP(2.0), 5)])
@pytest.mark.parametrize("seed", range(3))
def test_no_output_of_a_release_tells_more_than_the_bound(
    budget: PerStep | Window | Horizon, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    chain, rows = chain_of(draw, 2, 1)
    plan = Plan(chain, budget, loss.hamming(chain.alphabet))
    worst = 0.0
    ahead = [(plan.begin("ann"), list[Floats | None]())]
    for _ in range(5):
        following = []
        for state, told in ahead:
            prepared = plan.prepare(state)
            assert prepared is not None
            for output in prepared.design.channel.outputs.tolist():
                _, after = plan.observe(state, [output])
                following.append((after, [*told, prepared.design.channel.likelihood(output)]))
        ahead = following
    for _, told in ahead:
        worst = max(worst, by_brute_force(chain, rows, told))
    assert worst <= one_value_bound(chain, budget, 5).sip.epsilon
    assert worst <= one_value_bound(chain, budget).sip.epsilon


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0])
def test_no_adversarial_channel_tells_more_than_forgetting_allows(
    size: int, epsilon: float
) -> None:
    """Outputs chosen to move one value as far as a step of this leakage can."""
    draw = np.random.default_rng(size)
    for _ in range(8):
        rows = draw.dirichlet(np.full(size, 0.5), size) + 0.05
        rows /= rows.sum(axis=1, keepdims=True)
        chain = MarkovChain.from_matrix(rows)
        belief, told = chain.initial, list[Floats | None]()
        for _ in range(6):
            likelihood = _extreme(belief, epsilon, draw)
            told.append(likelihood)
            belief = (belief * likelihood / (belief @ likelihood)) @ rows
        found = by_brute_force(chain, rows, told)
        assert found <= one_value_bound(chain, PerStep(SIP(epsilon)), 6).sip.epsilon


def _extreme(belief: Floats, epsilon: float, draw: np.random.Generator) -> Floats:
    """An output whose likelihoods are within `e^±epsilon` of their mean, one symbol at the edge."""
    high = draw.random(belief.size) < 0.5
    high[draw.integers(belief.size)] = True
    likelihood = np.exp(np.where(high, epsilon, -epsilon))
    mass = belief[high].sum()
    if mass * np.exp(epsilon) + (1 - mass) * np.exp(-epsilon) > 1:
        likelihood[high] = (1 - (1 - mass) * np.exp(-epsilon)) / mass
    else:
        likelihood[~high] = (1 - mass * np.exp(epsilon)) / max(1 - mass, 1e-12)
    return likelihood


def test_influences_bound_the_distance_of_laws_given_what_was_released_between() -> None:
    draw = np.random.default_rng(5)
    for _ in range(20):
        rows = draw.dirichlet(np.ones(3), 3) + 0.02
        rows /= rows.sum(axis=1, keepdims=True)
        found = influence(MarkovChain.from_matrix(rows))
        assert found is not None
        steps = np.arange(1.0, 81)
        earlier, later = np.tanh(found.earlier(steps) / 4), np.tanh(found.later(steps) / 4)
        laws, power, belief = rows.copy(), rows.copy(), draw.dirichlet(np.ones(3))
        for s in range(5):
            assert _spread(laws) <= later[s]
            # Bayes: an earlier value given a later one, whatever the belief about it was.
            for column in power.T:
                given = belief * column / (belief @ column)
                assert 0.5 * np.abs(given - belief).sum() <= earlier[s]
            weighted = laws * draw.random(3)
            laws, power = weighted / weighted.sum(axis=1, keepdims=True) @ rows, power @ rows
        assert np.all(np.diff(earlier) <= 0)
        assert np.all(np.diff(later) <= 0)


def _spread(laws: Floats) -> float:
    return max(0.5 * float(np.abs(a - b).sum()) for a in laws for b in laws)


@pytest.mark.parametrize("size", [2, 3])
def test_a_batch_that_ties_its_ends_forgets_as_little_as_one_move(size: int) -> None:
    """Listed batches whose output depends on the first and the last value together."""
    draw, longest = np.random.default_rng(size), 0.0
    for trial in range(12):
        rows = draw.dirichlet(np.full(size, 3.0), size) + 0.05
        rows /= rows.sum(axis=1, keepdims=True)
        found = influence(MarkovChain.from_matrix(rows))
        assert found is not None
        laws = rows.copy()
        for batches in range(1, 5):
            spread = _spread(laws)
            assert spread <= np.tanh(found.later(np.array([float(batches)]))[0] / 4)
            per_move = found.rows * found.shrink ** (4 * (batches - 1))
            longest = max(longest, spread / np.tanh(per_move / 4))
            tied = np.eye(size) + 1e-6 if trial % 2 else draw.random((size, size)) ** 8
            ends = np.zeros((size, size))
            for path in product(range(size), repeat=4):
                chance = prod(float(rows[a, b]) for a, b in pairwise(path))
                ends[path[0], path[-1]] += chance * tied[path[0], path[-1]]
            laws = laws @ ends
            laws = laws / laws.sum(axis=1, keepdims=True) @ rows
    # One contraction for every value of a batch would be false.
    assert longest > 1.5


@pytest.mark.parametrize("width", [2, 3])
@pytest.mark.parametrize("epsilon", [0.3, 1.5])
@pytest.mark.parametrize("fixed", [True, False])
def test_no_adversarial_batch_tells_more_than_forgetting_allows(
    width: int, epsilon: float, fixed: bool
) -> None:
    """Batches of any length up to `width`; outputs are functions of both ends of a batch."""
    draw = np.random.default_rng(width)
    for _ in range(6):
        rows = draw.dirichlet(np.full(2, 3.0), 2) + 0.05
        rows /= rows.sum(axis=1, keepdims=True)
        chain = MarkovChain.from_matrix(rows)
        lengths = [width if fixed else int(draw.integers(1, width + 1)) for _ in range(4)]
        weights, paths = np.ones(1), np.zeros((1, 0), dtype=np.int64)
        chances = np.ones(1)
        for length in lengths:
            tails = np.array(list(product(range(2), repeat=length)))
            old = len(paths)
            paths = np.hstack([np.repeat(paths, len(tails), 0), np.tile(tails, (old, 1))])
            start = paths.shape[1] - length
            chances, weights = (np.repeat(one, len(tails)) for one in (chances, weights))
            for moment in range(start, paths.shape[1]):
                now = paths[:, moment]
                move = rows[paths[:, moment - 1], now] if moment else chain.initial[now]
                chances = chances * move
            code = 2 * paths[:, start] + paths[:, -1]
            belief = np.bincount(code, chances * weights, 4)
            told = np.ones(4)
            reached = belief > 0
            told[reached] = _extreme(belief[reached] / belief.sum(), epsilon * length, draw)
            weights = weights * told[code]
        assert _largest_move(paths, chances, weights) <= min(
            one_value_bound(chain, PerStep(SIP(epsilon)), end, width).sip.epsilon
            for end in (None, paths.shape[1])
        )


def _largest_move(paths: NDArray[np.int64], chances: Floats, weights: Floats) -> float:
    largest = 0.0
    for moment in paths.T:
        before = np.bincount(moment, chances)
        after = np.bincount(moment, chances * weights)
        moved = np.log(after / after.sum()) - np.log(before / before.sum())
        largest = max(largest, float(np.abs(moved).max()))
    return largest


def test_a_batch_of_any_length_is_as_near_as_its_nearest_value() -> None:
    """Two batches: the last value of one is told, then the first value of the next."""
    chain, width = MarkovChain.from_matrix([[0.999, 0.001], [0.1, 0.9]]), 50_000
    move, start = chain.transition(), chain.initial
    told_last = np.array([(1 - start[1] * np.e) / start[0], np.e])
    joint = (start * told_last)[:, None] * move
    second = joint.sum(axis=0)
    told_first = np.array([(1 - second[1] * np.e) / second[0], np.e])
    after = second * told_first
    truth = float(np.log(after[1] / after.sum() / (start @ move)[1]))
    assert truth == pytest.approx(1.934, abs=1e-3)
    for length in (None, 10 * width, 2 * width):
        bound = one_value_bound(chain, PerStep(SIP(1 / width)), length, width)
        assert truth <= bound.sip.epsilon <= (np.inf if length is None else length / width + 1e-9)


@pytest.mark.parametrize("width", [1, 4096, 4097, 5000, 100_000])
@pytest.mark.parametrize("batch", [1, 7, 6000])
def test_windows_and_batches_of_every_length_have_a_bound(width: int, batch: int) -> None:
    chain = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
    budget = Window(SIP(1.0), width)
    bounds = [
        one_value_bound(chain, budget, length, batch).sip.epsilon
        for length in (1, 2, 5001, 300_000, None)
    ]
    assert bounds == sorted(bounds)
    assert bounds[0] == 1.0
    assert np.isfinite(bounds[-1])
    if batch == 1 and width > 1000:
        # The window before the value and the one that begins with it.
        assert bounds[-1] == pytest.approx(2.0)


def test_a_longer_list_of_blocks_leaves_the_bound_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not listed is bounded by a geometric sum."""
    chain = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
    cases: list[tuple[PerStep | Window, int]] = [
        (PerStep(SIP(0.1)), 1),
        (PerStep(SIP(0.1)), 3),
        (Window(SIP(1.0), 4), 6),
    ]
    for budget, batch in cases:
        listed = one_value_bound(chain, budget, None, batch).sip.epsilon
        monkeypatch.setattr(lifetime, "_LISTED", 30)
        short = one_value_bound(chain, budget, None, batch).sip.epsilon
        monkeypatch.undo()
        assert listed <= short <= 1.05 * listed


def test_an_output_tells_less_about_values_that_are_forgotten() -> None:
    told = leakage_about_another(0.5, np.array([0.0, 1e-6, 0.1, 0.4, 1.0]))
    assert told[0] == 0.0
    assert np.all(np.diff(told) >= 0)
    assert told[-1] == 0.5


def test_a_total_bounds_one_value_and_a_sum_where_nothing_is_known_of_the_chain() -> None:
    chain = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
    assert one_value_bound(chain, Horizon(SIP(3.0), 7)).sip == SIP(3.0)
    assert one_value_bound(chain.lifted(2), PerStep(SIP(0.1))).sip == SIP(np.inf)
    capped = one_value_bound(chain.lifted(2), PerStep(SIP(1.0), LDP(0.5)), 4)
    assert capped.sip.epsilon == pytest.approx(2.0)
    assert capped.rule == "the sum of all steps"


@pytest.mark.parametrize("size", [2, 3])
def test_batches_tell_what_the_whole_joint_table_says(size: int) -> None:
    draw = np.random.default_rng(size)
    for lengths in ([1], [2], [3, 1], [2, 1, 3], [1, 2, 2]):
        chain, rows = chain_of(draw, size, 1)
        told: list[tuple[int, Floats | None]] = [
            (length, draw.random(size**length) + 0.01 if draw.random() < 0.8 else None)
            for length in lengths
        ]
        before, after = np.zeros((2, sum(lengths), size))
        for path in product(range(size), repeat=sum(lengths)):
            chance = float(chain.initial[path[0]])
            chance *= prod(float(rows[a, b]) for a, b in pairwise(path))
            weight, start = 1.0, 0
            for length, one in told:
                code = int("".join(map(str, path[start : start + length])), size)
                weight, start = weight * (1.0 if one is None else float(one[code])), start + length
            for moment, value in enumerate(path):
                before[moment, value] += chance
                after[moment, value] += chance * weight
        exact = float(np.abs(np.log(after / after.sum(axis=1, keepdims=True) / before)).max())
        if any(one is not None for _, one in told):
            assert exact <= one_value_leakage_of_batches(chain, told) <= exact + 1e-9
        else:
            assert one_value_leakage_of_batches(chain, told) == 0.0
