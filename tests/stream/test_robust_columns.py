"""Outputs that keep a bound one by one, and what chains in exact fractions are told by them."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sfumato as sf
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.models.plausible import PlausibleChains
from sfumato.models.prior_sets import PriorBox
from sfumato.solver.design_methods import Method
from sfumato.solver.far_sighted import FarSight
from sfumato.stream.look_ahead import look_ahead
from sfumato.stream.partition import robust_sight
from sfumato.stream.partition.robust_columns import columns_mixed, two_levels
from sfumato.stream.partition.robust_sight import Repair, robust_sighted
from tests.models.test_belief_sets import a_box, corners
from tests.stream.test_other_truth import a_plan

Row = list[Fraction]
SEEDS = st.integers(0, 2**32 - 1)
RING = sf.MarkovChain.from_matrix(
    [[0.8, 0.1, 0.0, 0.1], [0.1, 0.8, 0.1, 0.0], [0.0, 0.1, 0.8, 0.1], [0.1, 0.0, 0.1, 0.8]],
    floor=1e-4,
)


@cache
def ring_sight() -> FarSight:
    """What beliefs about the ring are worth at 1 nat a value."""
    return FarSight(look_ahead(RING, sf.loss.hamming(RING.alphabet), 1.0))


def worst(rows: NDArray[np.float64], beliefs: NDArray[np.float64]) -> NDArray[np.float64]:
    """What each output leaks under the worst of some beliefs."""
    means = beliefs @ rows
    ratios = np.maximum(rows.max(axis=0) / means, means / rows.min(axis=0))
    return np.asarray(np.log(ratios.max(axis=0)))


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 4), epsilon=st.floats(0.1, 1.5))
def test_an_output_on_two_levels_tells_all_that_the_bound_lets_it(
    seed: int, size: int, epsilon: float
) -> None:
    rng = np.random.default_rng(seed)
    box = a_box(rng, size)
    told = worst(two_levels(box.nominal, box, math.expm1(epsilon)), corners(box))
    np.testing.assert_allclose(told, epsilon, atol=1e-9)


@settings(max_examples=10, deadline=None)
@given(seed=SEEDS, epsilon=st.floats(0.3, 1.5))
def test_a_mixture_of_outputs_needs_no_other_repair(seed: int, epsilon: float) -> None:
    """Outputs of a channel that leaks too much are drawn in, each as far as it must be."""
    rng = np.random.default_rng(seed)
    sight, box = ring_sight(), a_box(rng, 4)
    loud = Channel.from_probabilities(rng.dirichlet(np.ones(4), size=4) * 0.98 + 0.005)
    middle = np.maximum(box.nominal, 1e-6)
    made = columns_mixed(sight, middle / middle.sum(), box, epsilon, [loud])
    assert worst(made.probabilities, corners(box)).max() <= epsilon + 1e-9


def test_repair_by_output_costs_less() -> None:
    sight = ring_sight()
    rng, costs = np.random.default_rng(5), dict.fromkeys(Repair, 0.0)
    for _ in range(8):
        belief = rng.dirichlet(np.ones(4)) * 0.8 + 0.05
        box = PriorBox(np.maximum(belief - 0.02, 0.001), belief + 0.02)
        for repair in Repair:
            found = robust_sighted(sight, belief, box, 1.0, repair=repair).design
            costs[repair] += sight.going_on(belief, found.channel.probabilities)[1] / 8
    assert costs[Repair.BY_OUTPUT] < costs[Repair.WHOLE] - 0.005


def exact_chains(chains: PlausibleChains, seed: int) -> Iterator[tuple[Row, list[Row]]]:
    """How streams begin and move under some chains at corners of a set, and some within."""
    rng = np.random.default_rng(seed)
    first, *rest = (
        exact_corners(low, high)
        for low, high in zip(
            [chains.first_low, *chains.low], [chains.first_high, *chains.high], strict=True
        )
    )
    for inside in [False] * 12 + [True] * 4:
        rows = []
        for ends in (first, *rest):
            picked = [ends[place] for place in rng.integers(len(ends), size=3 if inside else 1)]
            rows.append([sum(column) / len(picked) for column in zip(*picked, strict=True)])
        yield rows[0], rows[1:]


def exact_corners(low: NDArray[np.float64], high: NDArray[np.float64]) -> list[Row]:
    """Distributions with all entries but one at their bounds."""
    found = []
    for free in range(low.size):
        for ends in itertools.product((low, high), repeat=low.size - 1):
            own = [place for place in range(low.size) if place != free]
            row = [Fraction(0)] * low.size
            for place, end in zip(own, ends, strict=True):
                row[place] = Fraction(float(end[place]))
            row[free] = 1 - sum(row, Fraction(0))
            if Fraction(float(low[free])) <= row[free] <= Fraction(float(high[free])):
                found.append(row)
    return found


def told_too_much(chains: PlausibleChains, values: list[int], seed: int) -> list[float]:
    """What outputs told beyond their charge, step by step, to chains followed exactly."""
    plan = a_plan(
        chains.estimate,
        1.0,
        robust=chains,
        method=Method.FAR_SIGHTED,
        repair=Repair.BY_OUTPUT,
        sight=ring_sight().value,
    )
    state, steps = plan.begin("ann"), []
    for value in values:
        found = plan.prepare(state)
        assert found is not None
        (event,), state = plan.step(state, [value], sf.seeded(seed))
        assert event.signal is not None and event.sip <= sf.SIP(1.0)
        weights = [[Fraction(int(one)) for one in row] for row in found.design.channel.weights]
        steps.append((weights, event.signal, event.sip.epsilon))
    beyond = []
    for first, moves in exact_chains(chains, seed):
        belief, size = first, range(len(first))
        for weights, signal, stated in steps:
            for output in range(len(weights[0])):
                column = [weights[x][output] for x in size]
                mean = sum(belief[x] * column[x] for x in size)
                ratio = max(max(column) / mean, mean / min(column))
                beyond.append(math.log(ratio.numerator) - math.log(ratio.denominator) - stated)
            joint = [belief[x] * weights[x][signal] for x in size]
            belief = [
                sum((joint[x] * moves[x][z] for x in size), Fraction(0)) / sum(joint) for z in size
            ]
    return beyond


@pytest.mark.parametrize("radius", [0.005, 0.02, 0.07])
def test_no_chain_of_the_set_is_told_more_in_exact_fractions(radius: float) -> None:
    chains = PlausibleChains.from_radius(RING, radius)
    for seed in range(2):
        beyond = told_too_much(chains, [0, 0, 1, 2, 2, 3], seed)
        # Logarithms of integers of thousands of digits are right within some roundings.
        assert max(beyond) <= 1e-11


def test_a_bound_that_is_not_kept_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check above finds channels that keep the budget for the belief in the middle alone."""

    def careless(
        channel: Channel, masses: NDArray[np.float64], beliefs: PriorBox, epsilon: float
    ) -> tuple[Channel, float]:
        return channel, epsilon

    monkeypatch.setattr(robust_sight, "mixed_within", careless)
    chains = PlausibleChains.from_radius(RING, 0.02)
    assert max(told_too_much(chains, [0, 0, 1, 2], 0)) > 0.01


def test_only_far_sighted_streams_for_many_chains_are_repaired_by_output() -> None:
    near, ahead, sight = (
        PlausibleChains.from_radius(RING, 0.02),
        Method.FAR_SIGHTED,
        ring_sight().value,
    )
    for terms in ({}, {"robust": near}, {"method": ahead, "sight": sight}):
        with pytest.raises(InvalidParameter, match="many chains"):
            a_plan(RING, 1.0, repair=Repair.BY_OUTPUT, **terms)
    plans = [
        a_plan(RING, 1.0, robust=near, method=ahead, repair=repair, sight=sight)
        for repair in Repair
    ]
    assert plans[0].fingerprint != plans[1].fingerprint
