import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import MarkovChain
from sfumato.stream import Belief
from sfumato.stream.partition.batch_beliefs import unrolled
from tests.oracles import batches as oracle

FIRST_ORDER = 1 + 1e-9
"""Drifts are bounds to first order in the unit of rounding."""

CASES = [
    (size, order, axis, width, recalled)
    for size, order, widths in ((2, 1, 5), (2, 2, 4), (2, 3, 4), (3, 1, 3), (3, 2, 3))
    for axis in range(order)
    for width in range(1, widths)
    for recalled in range(axis + 1)
]


@pytest.mark.parametrize("thin", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(("size", "order", "axis", "width", "recalled"), CASES)
def test_masses_are_sums_over_all_sequences_within_the_stated_error(
    size: int, order: int, axis: int, width: int, recalled: int, thin: bool
) -> None:
    for seed in range(4):
        process, belief = oracle.setting(size, order, axis, seed)
        found = unrolled(oracle.chain_of(process, thin=thin), belief, width, recalled)
        exact = oracle.batch_chances(process, axis, width, recalled)
        assert len(found.masses) == len(exact) == size ** (recalled + width)
        assert oracle.furthest(found.masses.tolist(), exact) <= found.error * FIRST_ORDER
        assert found.masses.sum() == pytest.approx(1.0, abs=1e-12)
        assert found.error < 1e-13


@pytest.mark.parametrize("thin", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(("size", "order", "axis", "width", "recalled"), CASES)
def test_belief_after_a_batch_is_bayes_over_all_sequences_within_the_stated_drift(
    size: int, order: int, axis: int, width: int, recalled: int, thin: bool
) -> None:
    for seed in range(4):
        process, belief = oracle.setting(size, order, axis, seed)
        batches = oracle.every(size, recalled + width)
        likelihood = np.random.default_rng(seed).uniform(0.05, 1.0, len(batches))
        told = {o: Fraction(float(p)) for o, p in zip(batches, likelihood, strict=True)}
        after = unrolled(oracle.chain_of(process, thin=thin), belief, width, recalled).after(
            likelihood
        )
        exact = oracle.belief_after(process, axis, width, told)
        assert after.axis == min(axis + width, order - 1)
        assert after.joint.sum() == pytest.approx(1.0, abs=1e-12)
        contexts = oracle.every(size, order)
        found = [float(after.joint[context]) for context in contexts]
        assert oracle.furthest(found, [exact[context] for context in contexts]) <= (
            after.drift * FIRST_ORDER
        )
        assert after.drift < 1e-12


@settings(max_examples=25)
@given(
    st.integers(0, 10**6),
    st.integers(1, 3),
    st.lists(st.integers(1, 3), min_size=2, max_size=3).filter(lambda cuts: sum(cuts) <= 6),
)
def test_cutting_a_stream_into_other_batches_leads_to_the_same_belief(
    seed: int, order: int, cuts: list[int]
) -> None:
    rng = np.random.default_rng(seed)
    chain = oracle.chain_of(oracle.random_process(2, order, rng))
    whole, parts = chain.first(), chain.first()
    each = [rng.uniform(0.1, 1.0, 2**cut) for cut in cuts]
    together = np.ones(1)
    for likelihood in each:
        together = np.multiply.outer(together, likelihood).ravel()
    whole = unrolled(chain, whole, sum(cuts)).after(together)
    for cut, likelihood in zip(cuts, each, strict=True):
        parts = unrolled(chain, parts, cut).after(likelihood)
    assert parts.axis == whole.axis
    assert parts.joint == pytest.approx(whole.joint, rel=1e-11)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_batch_that_tells_nothing_is_so_many_moments_that_pass(order: int) -> None:
    chain = oracle.chain_of(oracle.random_process(3, order, np.random.default_rng(order)))
    belief = chain.first()
    for width in (1, 2, 1, 3):
        after = unrolled(chain, belief, width).after(np.ones(3**width))
        for _ in range(width):
            belief = chain.following(belief)
        assert after.axis == belief.axis
        assert after.joint == pytest.approx(belief.joint, rel=1e-12)


def test_drift_of_a_belief_is_handed_on() -> None:
    chain = oracle.chain_of(oracle.random_process(2, 1, np.random.default_rng(5)))
    vague = Belief(chain.initial, 0, drift=1e-3)
    found = unrolled(chain, vague, 3)
    assert found.error >= 1e-3
    assert found.after(np.ones(8)).drift >= 1e-3


# Chains that look back on more -------------------------------------------------------------------


@pytest.mark.parametrize(("order", "lifted"), [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 3)])
@pytest.mark.parametrize("thin", [False, True], ids=["dense", "sparse"])
def test_a_lifted_chain_tells_the_same_process(order: int, lifted: int, thin: bool) -> None:
    process = oracle.random_process(2, order, np.random.default_rng(lifted), holes=True)
    chain = oracle.chain_of(process, thin=thin).lifted(lifted)
    assert chain.order == lifted
    expected = {path: float(p) for path, p in process.chances(6).items()}
    for path in itertools.product(range(2), repeat=6):
        chance = float(chain.initial[path[:lifted]])
        for t in range(lifted, 6):
            context = int("".join(map(str, path[t - lifted : t])), 2)
            chance *= float(chain.row(context)[path[t]])
        assert chance == pytest.approx(expected[path], rel=1e-12)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("thin", [False, True], ids=["dense", "sparse"])
def test_weights_spread_and_values_expected_are_sums_over_transitions(
    order: int, thin: bool
) -> None:
    rng = np.random.default_rng(8)
    process = oracle.random_process(3, order, rng, holes=True)
    chain = oracle.chain_of(process, thin=thin)
    contexts = oracle.every(3, order)
    weights, values = rng.uniform(size=len(contexts)), rng.uniform(size=len(contexts))
    spread = dict.fromkeys(contexts, 0.0)
    means = []
    for weight, context in zip(weights, contexts, strict=True):
        mean = 0.0
        for value in range(3):
            following = (*context[1:], value)
            move = float(process.move(context, value))
            spread[following] += weight * move
            mean += move * values[contexts.index(following)]
        means.append(mean)
    assert chain.spread(weights) == pytest.approx([spread[c] for c in contexts], rel=1e-13)
    assert chain.expect(values, weights) == pytest.approx(means, rel=1e-13)
    few = chain.expect(values, weights, least=0.5)
    assert few == pytest.approx(np.where(weights > 0.5, means, 0.0), rel=1e-13)


def test_the_oracle_notices_one_rounding_too_many() -> None:
    process, belief = oracle.setting(2, 1, 0, 1)
    found = unrolled(oracle.chain_of(process), belief, 3)
    exact = oracle.batch_chances(process, 0, 3)
    off = found.masses.copy()
    off[0] *= 1 + 2.5 * found.error
    assert oracle.furthest(off.tolist(), exact) > found.error


def test_the_oracle_sees_that_a_wrong_order_of_values_is_wrong() -> None:
    process, belief = oracle.setting(2, 2, 0, 4)
    chain: MarkovChain = oracle.chain_of(process)
    turned = unrolled(chain, Belief(np.array(belief.joint.T), 0), 3)
    assert oracle.furthest(turned.masses.tolist(), oracle.batch_chances(process, 0, 3)) > 1e-3
