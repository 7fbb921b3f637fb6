"""Histograms as parts: exact masses, the optimum over all batches, long batches by convolution."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import SIP, Alphabet, PerStep, Plan
from sfumato.stream import batch_loss
from sfumato.stream.partition.batch_design import design_batch
from sfumato.stream.partition.batch_loss import BatchLoss
from sfumato.stream.partition.histograms import Histograms, histogram_count
from tests.oracles import batches as oracle
from tests.oracles.textbook_lp import textbook_optimum

FIRST_ORDER = 1 + 1e-9
LONG = 50
SHAPES = [
    (2, 1, 0, 1),
    (2, 1, 0, 5),
    (3, 1, 0, 3),
    (2, 2, 0, 1),
    (2, 2, 0, 4),
    (2, 2, 1, 4),
    (3, 2, 0, 3),
    (3, 2, 1, 2),
    (2, 3, 0, 2),
    (2, 3, 1, 3),
]
"""Symbols, order, axis of the first value of the batch, values of the batch."""


def groups_of(size: int, seed: int) -> list[int]:
    """Each symbol in a bar of its own, or some of three symbols in one."""
    return [0, 1, 0] if size == 3 and seed % 2 else list(range(size))


def counted(batch: oracle.Symbols, group: Sequence[int]) -> tuple[int, ...]:
    counts = Counter(group[value] for value in batch)
    return tuple(counts[bar] for bar in range(max(group) + 1))


def tallies_of(
    shape: tuple[int, int, int, int], seed: int
) -> tuple[oracle.Process, Histograms, list[int]]:
    size, order, axis, width = shape
    process, belief = oracle.setting(size, order, axis, seed)
    group = groups_of(size, seed)
    chain = oracle.chain_of(process, thin=seed % 2 == 0)
    return process, Histograms(chain, belief, width, np.array(group)), group


def histogram(size: int, group: Sequence[int]) -> BatchLoss:
    alphabet = Alphabet.of_size(size)
    return batch_loss.histogram(
        alphabet, {symbol: f"bar {group[symbol]}" for symbol in range(size)}
    )


# Parts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_batch_is_in_the_part_of_its_histogram(
    shape: tuple[int, int, int, int], seed: int
) -> None:
    size, _, _, width = shape
    _, tallies, group = tallies_of(shape, seed)
    members = defaultdict(set)
    for batch in oracle.every(size, width):
        members[tallies.cell(batch)].add(counted(batch, group))
    assert sorted(members) == list(range(len(tallies.masses)))
    assert [{counts} for counts in tallies.counts] == [members[part] for part in sorted(members)]
    assert len(tallies.counts) == len(set(tallies.counts)) == histogram_count(max(group) + 1, width)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_batch_that_stands_for_a_histogram_has_it(
    shape: tuple[int, int, int, int], seed: int
) -> None:
    _, tallies, _ = tallies_of(shape, seed)
    patterns = tallies.patterns()
    assert patterns.shape == (len(tallies.masses), shape[3])
    assert [tallies.cell(row) for row in patterns.tolist()] == list(range(len(patterns)))


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_masses_are_those_of_the_batches_in_each_part(
    shape: tuple[int, int, int, int], seed: int
) -> None:
    size, _, axis, width = shape
    process, tallies, group = tallies_of(shape, seed)
    exact: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for batch, chance in zip(
        oracle.every(size, width), oracle.batch_chances(process, axis, width), strict=True
    ):
        exact[counted(batch, group)] += chance
    found = oracle.furthest(tallies.masses.tolist(), [exact[counts] for counts in tallies.counts])
    assert found <= tallies.error * FIRST_ORDER
    assert math.fsum(tallies.masses) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_belief_after_a_histogram_is_bayes_over_all_sequences(
    shape: tuple[int, int, int, int], seed: int
) -> None:
    size, _, axis, width = shape
    process, tallies, _ = tallies_of(shape, seed)
    likelihood = np.random.default_rng(1).uniform(0.05, 1.0, len(tallies.masses))
    told = {b: Fraction(float(likelihood[tallies.cell(b)])) for b in oracle.every(size, width)}
    oracle.assert_bayes(tallies.after(likelihood), process, axis, told)


# The optimum -------------------------------------------------------------------------------------


def check_optimum(shape: tuple[int, int, int, int], seed: int, epsilon: float, ldp: float) -> None:
    """The channel on histograms is as good as any on batches, and leaks what it says."""
    size, order, axis, width = shape
    process, belief = oracle.setting(size, order, axis, seed)
    group, cap = groups_of(size, seed), ldp if ldp < 2 * epsilon else None
    losses, chain = histogram(size, group), oracle.chain_of(process)
    found = design_batch(chain, belief, width, losses, epsilon, ldp=cap)
    batches, chances = oracle.every(size, width), oracle.batch_chances(process, axis, width)
    apart = oracle.table(oracle.bars(group), batches, batches)
    share = np.array([float(chance) for chance in chances])
    best = textbook_optimum(share, apart, epsilon, cap)
    assert found.exact
    assert found.design.cost == pytest.approx(best, abs=1e-7 * max(1.0, apart.max()))
    channel = found.design.channel
    rows = [channel.weights[found.partition.cell(batch)].tolist() for batch in batches]
    told = [tuple(row) for row in found.patterns[channel.outputs].tolist()]
    cost = oracle.mean_loss(
        chances, np.array(rows) / 2.0**62, oracle.table(oracle.bars(group), batches, told)
    )
    assert cost == pytest.approx(found.design.cost, rel=1e-9, abs=1e-12)
    sip, local = oracle.exact_leakages(rows, chances)
    assert sip <= min(epsilon, found.design.sip.epsilon) + 2 * found.partition.error
    assert local <= found.design.ldp.epsilon <= (math.inf if cap is None else cap)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape[0] ** shape[3] <= 27])
def test_the_optimum_is_that_of_the_textbook_program_over_all_batches(
    shape: tuple[int, int, int, int],
) -> None:
    for seed, epsilon in ((3, 0.4), (4, 1.7)):
        check_optimum(shape, seed, epsilon, math.inf)


@pytest.mark.parametrize("shape", [(2, 1, 0, 3), (2, 2, 0, 3), (3, 1, 0, 2)])
def test_a_cap_is_kept_at_the_optimum_of_the_textbook_program(
    shape: tuple[int, int, int, int],
) -> None:
    for seed, epsilon in ((5, 0.9), (6, 1.4)):
        check_optimum(shape, seed, epsilon, 1.1 * epsilon)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from([(2, 1, 0, 4), (2, 2, 1, 3), (3, 1, 0, 2)]),
    epsilon=st.floats(0.05, 4.0),
)
def test_no_belief_makes_histograms_dearer_than_batches(
    seed: int, shape: tuple[int, int, int, int], epsilon: float
) -> None:
    check_optimum(shape, seed, epsilon, math.inf)


# Long batches ------------------------------------------------------------------------------------

Polynomial = list[Fraction]


def times(left: Polynomial, right: Polynomial) -> Polynomial:
    """A convolution of coefficients."""
    product = [Fraction(0)] * (len(left) + len(right) - 1)
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            product[i + j] += one * other
    return product


def plus(left: Polynomial, right: Polynomial) -> Polynomial:
    size = max(len(left), len(right))
    padded = [[*one, *[Fraction(0)] * (size - len(one))] for one in (left, right)]
    return [one + other for one, other in zip(*padded, strict=True)]


def by_convolution(
    process: oracle.Process, first: Sequence[Fraction], width: int
) -> list[Polynomial]:
    """For each last value, chances of each number of ones: coefficients of a polynomial.

    A value x multiplies by z**x; a transition by its probability.
    """
    marks: list[Polynomial] = [[Fraction(1)], [Fraction(0), Fraction(1)]]
    rows = [times([chance], mark) for chance, mark in zip(first, marks, strict=True)]
    for _ in range(width - 1):
        rows = [
            times(
                plus(*(times(rows[x], [process.move((x,), y)]) for x in range(2))),
                marks[y],
            )
            for y in range(2)
        ]
    return [plus(row, [Fraction(0)] * (width + 1)) for row in rows]


def bits(seed: int) -> oracle.Process:
    return oracle.random_process(2, 1, np.random.default_rng(seed), sticky=2.0)


def test_convolution_counts_short_batches_as_brute_force_does() -> None:
    process = bits(1)
    first = [process.initial[x,] for x in range(2)]
    rows = by_convolution(process, first, 5)
    exact: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for batch, chance in zip(oracle.every(2, 5), oracle.batch_chances(process, 0, 5), strict=True):
        exact[batch[-1], sum(batch)] += chance
    assert [rows[x][ones] for x in range(2) for ones in range(6)] == [
        exact[x, ones] for x in range(2) for ones in range(6)
    ]


@pytest.mark.parametrize("seed", [1, 2])
def test_masses_of_long_batches_are_those_of_a_convolution(seed: int) -> None:
    process = bits(seed)
    chain, width = oracle.chain_of(process), LONG
    tallies = Histograms(chain, chain.first(), width, np.array([0, 1]))
    rows = by_convolution(process, [process.initial[x,] for x in range(2)], width)
    exact = plus(*rows)
    assert [counts[1] for counts in tallies.counts] == list(range(width, -1, -1))
    assert oracle.furthest(tallies.masses.tolist(), exact[::-1]) <= tallies.error * FIRST_ORDER


@pytest.mark.parametrize(
    ("seed", "epsilon", "ldp"), [(1, 2.0, None), (2, 6.0, None), (3, 1.0, 1.2)]
)
def test_long_batches_are_certified_exactly(seed: int, epsilon: float, ldp: float | None) -> None:
    process = bits(seed)
    chain, losses = oracle.chain_of(process), batch_loss.histogram(Alphabet.of_size(2))
    found = design_batch(chain, chain.first(), LONG, losses, epsilon, ldp=ldp)
    exact = plus(*by_convolution(process, [process.initial[x,] for x in range(2)], LONG))
    sip, local = oracle.exact_leakages(found.design.channel.weights.tolist(), exact[::-1])
    assert max(sip / epsilon, 0.0 if ldp is None else local / ldp) > 0.9
    assert sip <= min(epsilon, found.design.sip.epsilon) + 2 * found.partition.error
    assert local <= found.design.ldp.epsilon <= (math.inf if ldp is None else ldp)


def test_a_stream_of_long_batches_is_charged_at_least_what_each_leaks() -> None:
    """Two whole batches and a shorter one; no rounding is forgiven."""
    process = bits(4)
    chain, losses = oracle.chain_of(process), batch_loss.histogram(Alphabet.of_size(2))
    plan = Plan(chain, PerStep(SIP(0.05)), losses, LONG)
    state, first = plan.begin("s"), [process.initial[x,] for x in range(2)]
    for width, kept in ((LONG, 0.3), (LONG, 0.8), (20, 0.5)):
        prepared = plan.prepare(state, width)
        assert prepared is not None and prepared.exact
        channel, rows = prepared.design.channel, by_convolution(process, first, width)
        sip, local = oracle.exact_leakages(channel.weights.tolist(), plus(*rows)[::-1])
        column = int(kept * channel.outputs.size)
        told = prepared.patterns[channel.outputs[column]].tolist()
        events, state = plan.observe(state, told)
        assert 0 < sip <= events[-1].sip.epsilon <= 0.05 * width
        assert local <= events[-1].ldp.epsilon
        first = following(process, rows, channel.weights[::-1, column].tolist())
        joint = state.belief.joint.tolist()
        assert oracle.furthest(joint, first) <= state.belief.drift * FIRST_ORDER


def following(
    process: oracle.Process, rows: list[Polynomial], weights: Sequence[int]
) -> list[Fraction]:
    """Belief about the value after a batch, given the weight of what was told for each count."""
    last = [
        sum((chance * w for chance, w in zip(row, weights, strict=True)), Fraction(0))
        for row in rows
    ]
    moved = [sum(last[x] * process.move((x,), y) for x in range(2)) for y in range(2)]
    return [Fraction(part) / sum(moved) for part in moved]
