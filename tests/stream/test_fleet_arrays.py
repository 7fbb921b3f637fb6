import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import MarkovChain
from sfumato.solver.policy import Tables
from sfumato.stream import Belief
from sfumato.stream.fleet_arrays import EXHAUSTED, MISSED, PREPARED, StreamArrays
from tests.compiled import (
    CHAINS,
    NO_LIMIT,
    PART,
    WHOLE,
    Floats,
    broken_law,
    capped_policy,
    exact_shares,
    handmade,
    mixed_weights,
    overcharged,
    policy_of,
    policy_with,
)
from tests.oracles.joint import exact_leakage
from tests.strategies import beliefs, positive_matrices

CLOSE = 1e-9
FIRST = np.zeros(1, dtype=np.int64)
CAPS: list[float | None] = [None, 1.5]
POLICIES: list[tuple[float, float | None]] = [
    (1e-6, None),
    (1e-6, 1e-6),
    (0.1, None),
    (0.1, 0.15),
    (1.0, None),
    (1.0, 1.2),
    (4.0, 6.0),
    (20.0, None),
    (20.0, 25.0),
]

COMPILED_WITH_CAP = (1.0, 1.2)

amounts = st.floats(-6.0, math.log10(20.0)).map(lambda exponent: float(10.0**exponent))


def chain_of(size: int) -> MarkovChain:
    return MarkovChain.from_matrix(np.full((size, size), 1 / size))


def tiny(size: int) -> st.SearchStrategy[Floats]:
    """Beliefs with masses down to the smallest that a design accepts."""
    exponents = st.lists(st.floats(-199.0, 0.0), min_size=size, max_size=size)
    return exponents.map(lambda powers: _shares(np.array(powers)))


def _shares(powers: Floats) -> Floats:
    masses = 10.0 ** (powers - powers.max())
    return np.asarray(masses / masses.sum())


def any_belief(size: int) -> st.SearchStrategy[Floats]:
    return st.one_of(beliefs(size), tiny(size))


def prepared(
    chain: MarkovChain, tables: Tables, belief: Belief, moment: int, allowed: tuple[float, float]
) -> tuple[int, int, list[int], list[float], int]:
    crowd = StreamArrays(chain, tables, NO_LIMIT, 1)
    crowd.put(0, moment, belief)
    step = crowd.prepare(FIRST, np.array([allowed]))
    return (
        int(step.chosen[0]),
        int(step.parts[0]),
        step.blends[0].tolist(),
        step.charges[0].tolist(),
        int(step.status[0]),
    )


def check(
    chain: MarkovChain, tables: Tables, belief: Belief, moment: int, allowed: tuple[float, float]
) -> tuple[int, list[list[int]]]:
    """Prepare a channel and hold it against the law; how much was mixed in, and the channel."""
    node, parts, blend, charge, status = prepared(chain, tables, belief, moment, allowed)
    assert status == PREPARED
    weights = mixed_weights(tables, node, parts, blend)
    shares = exact_shares(belief.joint, belief.axis)
    assert broken_law(weights, shares, charge, allowed) is None
    rebuilt = policy_with(tables).channel(node, parts, np.array(blend))
    assert rebuilt.weights.tolist() == weights
    if belief.drift == 0.0:
        assert overcharged(weights, shares, charge) <= CLOSE
    return parts, weights


# The law -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "cap"), POLICIES)
@settings(max_examples=12)
@given(data=st.data())
def test_a_compiled_channel_keeps_its_price_at_any_belief(
    epsilon: float, cap: float | None, data: st.DataObject
) -> None:
    policy = policy_of("dense, order 1", epsilon, cap)
    if (epsilon, cap) == COMPILED_WITH_CAP:
        policy = capped_policy(*COMPILED_WITH_CAP)
    belief = data.draw(any_belief(3))
    part = data.draw(st.floats(1e-3, 1.0) | st.just(1.0))
    allowed = (max(1e-6, epsilon * part), math.inf if cap is None else max(1e-6, cap * part))
    drift = data.draw(st.just(0.0) | st.floats(0.0, 1e-9))
    parts, _ = check(
        CHAINS["dense, order 1"], policy.tables, Belief(belief, drift=drift), 0, allowed
    )
    note("mixed" if parts else "as kept")


@st.composite
def random_tables(draw: st.DrawFn) -> tuple[Tables, int]:
    """One to three channels of any shape, some so wide or with so few rows that loops differ."""
    size, width = draw(st.sampled_from([(2, 2), (3, 2), (3, 3), (5, 4), (4, 1), (5, 5), (13, 3)]))
    belief = draw(beliefs(size))
    rows = []
    for _ in range(draw(st.integers(1, 3))):
        few = draw(positive_matrices(draw(st.integers(1, min(size, 4))), width))
        owners = draw(st.lists(st.integers(0, len(few) - 1), min_size=size, max_size=size))
        rows.append(few[owners])
    order = draw(st.permutations(range(size)))
    return handmade(rows, belief, order[:width]), size


@settings(max_examples=80)
@given(random_tables(), amounts, st.none() | amounts, st.data())
def test_any_kept_channel_keeps_its_price_at_any_belief(
    made: tuple[Tables, int], epsilon: float, cap: float | None, data: st.DataObject
) -> None:
    tables, size = made
    allowed = (epsilon, math.inf if cap is None else cap)
    belief = Belief(data.draw(any_belief(size)))
    parts, weights = check(chain_of(size), tables, belief, 0, allowed)
    constant = all(row == weights[0] for row in weights)
    note("constant" if constant else "mixed" if parts else "as kept")


@pytest.mark.parametrize("units", [(3, 2, 2), (5, 4, 4), (9, 7, 7), (2, 3, 3)])
@pytest.mark.parametrize("epsilon", [0.05, 0.1, 0.2])
def test_a_rare_output_is_certified_after_its_marginal_was_rounded(
    units: tuple[int, int, int], epsilon: float
) -> None:
    # A marginal of a few units is rounded by a part of itself: the first repair is not enough.
    even = np.full(3, 1 / 3)
    rare = np.array(units) / PART
    tables = handmade([np.stack([1 - rare, rare], axis=1)], even)
    check(chain_of(3), tables, Belief(even), 0, (epsilon, math.inf))


@settings(max_examples=60)
@given(st.sampled_from([2, 3]), st.data())
def test_the_current_value_of_a_longer_chain_counts(order: int, data: st.DataObject) -> None:
    name = f"dense, order {order}"
    chain, cap = CHAINS[name], data.draw(st.sampled_from(CAPS))
    joint = data.draw(beliefs(chain.size**order)).reshape(chain.initial.shape)
    moment = data.draw(st.integers(0, order + 1))
    allowed = (data.draw(st.floats(1e-3, 1.0)), math.inf if cap is None else cap)
    belief = Belief(joint, min(moment, order - 1))
    check(chain, policy_of(name, 1.0, cap).tables, belief, moment, allowed)


@settings(max_examples=50)
@given(random_tables(), amounts, st.floats(1e-12, 1e-8), st.data())
def test_a_charge_covers_every_belief_within_the_drift(
    made: tuple[Tables, int], epsilon: float, drift: float, data: st.DataObject
) -> None:
    """The exact belief may be anything that rounding could have moved to this one."""
    tables, size = made
    belief, room = data.draw(beliefs(size)), (max(epsilon, 1e-5), math.inf)
    node, parts, blend, charge, status = prepared(
        chain_of(size), tables, Belief(belief, drift=drift), 0, room
    )
    assert status == PREPARED
    weights = mixed_weights(tables, node, parts, blend)
    signs = data.draw(st.lists(st.sampled_from([-1, 1]), min_size=size, max_size=size))
    shift = 1 + Fraction(drift)  # its logarithm is at most the drift
    moved = [
        Fraction(float(mass)) * (shift if sign > 0 else 1 / shift)
        for mass, sign in zip(belief, signs, strict=True)
    ]
    assert broken_law(weights, moved, charge, room) is None


def test_every_way_to_prepare_is_reached() -> None:
    """As kept, mixed, mixed to nothing: the laws above are about all three."""
    tables = handmade([np.array([[0.9, 0.1], [0.1, 0.9]])], np.array([0.5, 0.5]))
    even, far = Belief(np.array([0.5, 0.5])), Belief(np.array([1 - 1e-9, 1e-9]))
    chain = chain_of(2)
    assert check(chain, tables, even, 0, (2.5, math.inf))[0] == 0
    assert 0 < check(chain, tables, far, 0, (1.0, math.inf))[0] < WHOLE
    assert 0 < check(chain, tables, even, 0, (2.5, 1e-3))[0] < WHOLE
    assert check(chain, tables, far, 0, (1e-9, math.inf))[0] == WHOLE


# Planted bugs ------------------------------------------------------------------------------------

PLANTED = np.array([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]])


def mixed_cases() -> list[tuple[Floats, tuple[float, float], int, list[int], list[float]]]:
    """Beliefs at which the planted channel is mixed, by a little or by a lot."""
    tables, draw = handmade([PLANTED], np.full(3, 1 / 3)), np.random.default_rng(5)
    cases = []
    for _ in range(40):
        belief = draw.dirichlet(np.full(3, 0.4)) + 1e-9
        allowed = (float(draw.uniform(0.05, 0.8)), math.inf)
        _, parts, blend, charge, status = prepared(
            chain_of(3), tables, Belief(belief / belief.sum()), 0, allowed
        )
        if status == PREPARED and 0 < parts < WHOLE:
            cases.append((belief / belief.sum(), allowed, parts, blend, charge))
    return cases


def test_the_oracle_objects_to_one_part_too_little() -> None:
    tables, caught, cases = handmade([PLANTED], np.full(3, 1 / 3)), 0, mixed_cases()
    for belief, allowed, parts, blend, charge in cases:
        shares = exact_shares(belief, 0)
        right = mixed_weights(tables, 0, parts, blend)
        assert broken_law(right, shares, charge, allowed) is None
        wrong = mixed_weights(tables, 0, parts - 1, blend)
        caught += broken_law(wrong, shares, charge, allowed) is not None
    assert len(cases) >= 20
    assert caught == len(cases)


def test_the_oracle_objects_to_the_marginal_of_another_belief() -> None:
    tables, caught, cases = handmade([PLANTED], np.full(3, 1 / 3)), 0, mixed_cases()
    for belief, allowed, _, _, _ in cases:
        other = Belief(np.roll(belief, 1))
        _, parts, blend, charge, _ = prepared(chain_of(3), tables, other, 0, allowed)
        wrong = mixed_weights(tables, 0, parts, blend)
        assert broken_law(wrong, exact_shares(other.joint, 0), charge, allowed) is None
        caught += broken_law(wrong, exact_shares(belief, 0), charge, allowed) is not None
    assert caught >= 10


def test_the_oracle_objects_to_a_blend_that_loses_a_unit() -> None:
    tables = handmade([PLANTED], np.full(3, 1 / 3))
    for belief, allowed, parts, blend, charge in mixed_cases():
        assert sum(blend[:3]) == PART
        short = [blend[0] - 1, *blend[1:]]
        wrong = mixed_weights(tables, 0, parts, short)
        assert broken_law(wrong, exact_shares(belief, 0), charge, allowed) is not None


# What a crowd leaves to others -------------------------------------------------------------------


@given(st.floats(0.0, 1e-14), st.sampled_from([0, 1]))
def test_an_allowance_within_rounding_prepares_nothing(amount: float, kind: int) -> None:
    policy = policy_of("dense, order 1")
    allowed = [1.0, 1.0]
    allowed[kind] = amount
    belief = Belief(np.array([0.2, 0.3, 0.5]))
    node, _, _, charge, status = prepared(
        CHAINS["dense, order 1"], policy.tables, belief, 0, (allowed[0], allowed[1])
    )
    assert (node, status, charge) == (-1, EXHAUSTED, [0.0, 0.0])


def test_a_belief_at_which_mixing_costs_too_much_is_missed() -> None:
    tables = handmade([np.array([[0.9, 0.1], [0.1, 0.9]])], np.array([0.5, 0.5]))
    crowd = StreamArrays(chain_of(2), tables, 1e-9, 1)
    crowd.put(0, 0, Belief(np.array([0.9, 0.1])))
    assert crowd.prepare(FIRST, np.array([[0.5, math.inf]])).status[0] == MISSED
    crowd.put(0, 0, Belief(np.array([0.5, 0.5])))
    assert crowd.prepare(FIRST, np.array([[3.0, math.inf]])).status[0] == PREPARED


def test_preparing_changes_no_belief() -> None:
    policy, name = policy_of("dense, order 2"), "dense, order 2"
    crowd = StreamArrays(CHAINS[name], policy.tables, 0.2, 4)
    before = crowd.joints.copy(), crowd.moments.copy(), crowd.drifts.copy()
    crowd.prepare(np.arange(4), np.tile([1.0, math.inf], (4, 1)))
    after = crowd.joints, crowd.moments, crowd.drifts
    assert all(np.array_equal(one, two) for one, two in zip(before, after, strict=True))


# Many streams ------------------------------------------------------------------------------------


def walked(name: str, threads: int, streams: int, steps: int) -> list[Any]:
    crowd = StreamArrays(CHAINS[name], policy_of(name).tables, NO_LIMIT, streams, threads)
    draw, told = np.random.default_rng(8), []
    for step in range(steps):
        which = np.flatnonzero((np.arange(streams) + step) % 3 != 0)[::-1].copy()
        ready = crowd.prepare(which, np.tile([1.0, math.inf], (len(which), 1)))
        truths = draw.integers(0, CHAINS[name].size, len(which))
        words = draw.integers(0, 2**64, len(which), dtype=np.uint64)
        told.append(crowd.release(ready, truths, words).tolist())
        told.append(ready.charges.tolist())
        crowd.advance(which)
    return [*told, crowd.joints.tobytes(), crowd.drifts.tobytes(), crowd.moments.tolist()]


@pytest.mark.parametrize("name", ["dense, order 1", "sparse, order 2", "dense, order 3"])
@pytest.mark.parametrize("threads", [2, 3])
def test_threads_change_nothing(name: str, threads: int) -> None:
    assert walked(name, 1, 11, 9) == walked(name, threads, 11, 9)


@pytest.mark.parametrize("name", list(CHAINS))
def test_the_carried_belief_is_the_exact_one_within_its_drift(name: str) -> None:
    """Dozens of released steps next to a recursion in 60 digits."""
    chain, steps = CHAINS[name], 60
    crowd = StreamArrays(chain, policy_of(name).tables, NO_LIMIT, 1)
    draw, exact = np.random.default_rng(2), Exact(chain)
    for _ in range(steps):
        belief = crowd.belief(0)
        assert exact.distance(belief) <= belief.drift
        told = crowd.marginals()[0]
        ready = crowd.prepare(FIRST, np.array([[1.0, math.inf]]))
        node, parts = int(ready.chosen[0]), int(ready.parts[0])
        full = mixed_weights(crowd.tables, node, parts, ready.blends[0].tolist())
        assert exact_leakage(full, exact.marginal()) <= float(ready.charges[0, 0])
        truth = draw.choice(chain.size, size=1, p=told)
        words = draw.integers(0, 2**64, 1, dtype=np.uint64)
        output = int(crowd.release(ready, truth, words)[0])
        likelihood = policy_with(crowd.tables).channel(node, parts, ready.blends[0])
        column = likelihood.outputs.tolist().index(output)
        exact.condition([int(row[column]) for row in likelihood.weights])
        crowd.advance(FIRST)
        exact.advance()
    assert crowd.drifts[0] < 1e-10


class Exact:
    """The joint of the last values in 60 digits, by the textbook."""

    def __init__(self, chain: MarkovChain) -> None:
        self._size, self._order, self._moment = chain.size, chain.order, 0
        known = chain.known if isinstance(chain.known, np.ndarray) else chain.known.toarray()
        with mpmath.workdps(60):
            self._joint = {
                place: mpmath.mpf(float(chain.initial[place]))
                for place in np.ndindex(*chain.initial.shape)
            }
            self._rows = {}
            for number, place in enumerate(self._joint):
                weight = mpmath.mpf(float(chain.backoff[number]))
                row = [
                    (1 - weight) * mpmath.mpf(float(p)) + weight * mpmath.mpf(float(u))
                    for p, u in zip(known[number], chain.background, strict=True)
                ]
                self._rows[place] = [p / sum(row) for p in row]

    @property
    def _axis(self) -> int:
        return min(self._moment, self._order - 1)

    def condition(self, likelihood: list[int]) -> None:
        with mpmath.workdps(60):
            self._joint = {c: p * likelihood[c[self._axis]] for c, p in self._joint.items()}

    def advance(self) -> None:
        self._moment += 1
        with mpmath.workdps(60):
            if self._moment >= self._order:
                moved = dict.fromkeys(self._joint, mpmath.mpf(0))
                for context, p in self._joint.items():
                    for value, move in enumerate(self._rows[context]):
                        moved[(*context[1:], value)] += p * move
                self._joint = moved
            total = sum(self._joint.values())
            self._joint = {context: p / total for context, p in self._joint.items()}

    def marginal(self) -> list[Any]:
        with mpmath.workdps(60):
            return [
                sum(p for c, p in self._joint.items() if c[self._axis] == x)
                for x in range(self._size)
            ]

    def distance(self, belief: Belief) -> Any:
        """The least d with |log(computed / (c * exact))| <= d for some scale c."""
        with mpmath.workdps(60):
            logs = [
                mpmath.log(mpmath.mpf(float(belief.joint[c])) / p) for c, p in self._joint.items()
            ]
            return (max(logs) - min(logs)) / 2
