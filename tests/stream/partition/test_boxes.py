"""Batches in boxes: exact where it is about privacy, near where it is about loss."""

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Alphabet, MarkovChain, loss
from sfumato.core.arrays import Bools
from sfumato.core.loss import Loss
from sfumato.stream.partition.batch_design import design_batch
from sfumato.stream.partition.batch_loss import additive
from sfumato.stream.partition.boxes import Boxes
from sfumato.stream.partition.cells import StepDesign
from tests.oracles import batches as oracle

FIRST_ORDER = 1 + 1e-9
SPOTS = [(0.0, 0.0), (1.0, 0.5), (0.0, 2.0), (3.0, 1.0)]
ODD = np.array([[0, 1, 4, 2], [2, 0, 1, 5], [1, 1, 0, 1], [3, 0.5, 2, 0]])
EACH: dict[str, tuple[Loss, oracle.Distance]] = {
    "hamming": (loss.hamming(Alphabet.of_size(4)), oracle.summed(lambda x, y: float(x != y))),
    "absolute": (loss.absolute(Alphabet.of_size(4)), oracle.summed(lambda x, y: float(abs(x - y)))),
    "squared": (loss.squared(Alphabet.of_size(4)), oracle.summed(lambda x, y: float((x - y) ** 2))),
    "euclidean": (
        loss.euclidean(Alphabet(range(4), SPOTS)),
        oracle.summed(lambda x, y: math.dist(SPOTS[x], SPOTS[y])),
    ),
    "table": (loss.matrix(ODD), oracle.summed(lambda x, y: float(ODD[x, y]))),
}


def in_parts(boxes: Boxes, batches: Sequence[oracle.Symbols]) -> list[int]:
    return [boxes.cell(batch) for batch in batches]


def check_masses(boxes: Boxes, process: oracle.Process, axis: int, width: int) -> None:
    """Every box holds what the batches in it hold together."""
    size = process.size
    exact: dict[int, Fraction] = defaultdict(Fraction)
    for batch, chance in zip(
        oracle.every(size, width), oracle.batch_chances(process, axis, width), strict=True
    ):
        exact[boxes.cell(batch)] += chance
    assert sorted(exact) == list(range(len(boxes.masses)))
    found = boxes.masses.tolist()
    assert oracle.furthest(found, [exact[part] for part in range(len(found))]) <= (
        boxes.error * FIRST_ORDER
    )
    assert math.fsum(found) == pytest.approx(1.0, abs=1e-12)


SHAPES = [(1, 0, 1), (1, 0, 4), (2, 0, 1), (2, 0, 3), (2, 1, 3), (3, 0, 2), (3, 1, 2)]


@pytest.mark.parametrize("name", list(EACH))
@pytest.mark.parametrize(("order", "axis", "width"), SHAPES)
def test_boxes_are_parts_with_the_masses_of_their_batches(
    order: int, axis: int, width: int, name: str
) -> None:
    for thin, count in ((False, 7), (True, 30)):
        process, belief = oracle.setting(4, order, axis, order + width)
        boxes = Boxes(oracle.chain_of(process, thin=thin), belief, width, EACH[name][0], count)
        assert 2 <= len(boxes.masses) <= count
        check_masses(boxes, process, axis, width)


@pytest.mark.parametrize(("order", "axis", "width"), SHAPES)
def test_a_box_has_one_set_of_symbols_at_each_position(order: int, axis: int, width: int) -> None:
    process, belief = oracle.setting(4, order, axis, 3)
    boxes = Boxes(oracle.chain_of(process), belief, width, EACH["absolute"][0], 30)
    batches = oracle.every(4, width)
    members: dict[int, list[oracle.Symbols]] = defaultdict(list)
    for batch, part in zip(batches, in_parts(boxes, batches), strict=True):
        members[part].append(batch)
    for inside in members.values():
        sides = [len({batch[position] for batch in inside}) for position in range(width)]
        assert len(inside) == math.prod(sides)


@pytest.mark.parametrize("thin", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(("order", "axis", "width"), SHAPES)
def test_belief_after_a_box_is_bayes_over_all_sequences(
    order: int, axis: int, width: int, thin: bool
) -> None:
    process, belief = oracle.setting(4, order, axis, 11)
    boxes = Boxes(oracle.chain_of(process, thin=thin), belief, width, EACH["squared"][0], 25)
    likelihood = np.random.default_rng(1).uniform(0.05, 1.0, len(boxes.masses))
    told = {
        batch: Fraction(float(likelihood[boxes.cell(batch)])) for batch in oracle.every(4, width)
    }
    oracle.assert_bayes(boxes.after(likelihood), process, axis, told)


@pytest.mark.parametrize("name", list(EACH))
@pytest.mark.parametrize(("order", "axis", "width"), SHAPES)
def test_costs_are_expected_losses_inside_each_box(
    order: int, axis: int, width: int, name: str
) -> None:
    each = EACH[name][0]
    process, belief = oracle.setting(4, order, axis, 7)
    boxes = Boxes(oracle.chain_of(process), belief, width, each, 20)
    batches = oracle.every(4, width)
    share = np.array([float(chance) for chance in oracle.batch_chances(process, axis, width)])
    parts = np.array(in_parts(boxes, batches))
    symbols = np.array(batches)
    matrix = each.matrix
    for part in range(len(boxes.masses)):
        inside = parts == part
        for position in range(width):
            expected = share[inside] @ matrix[symbols[inside, position]]
            assert boxes.costs[part, position] == pytest.approx(
                expected[boxes.symbols[position]], rel=1e-9, abs=1e-10
            )


# Channels ----------------------------------------------------------------------------------------


def expanded(found: StepDesign, batches: Sequence[oracle.Symbols]) -> list[list[int]]:
    """The channel as it acts on batches: one row of integer weights each."""
    weights = found.design.channel.weights.tolist()
    return [weights[found.partition.cell(batch)] for batch in batches]


def check_design(
    found: StepDesign, process: oracle.Process, axis: int, width: int, distance: oracle.Distance
) -> tuple[float, float]:
    """Both leakages by brute force; the reported ones and the cost must agree."""
    batches, chances = oracle.every(process.size, width), oracle.batch_chances(process, axis, width)
    rows = expanded(found, batches)
    sip, ldp = oracle.exact_leakages(rows, chances)
    assert sip <= found.design.sip.epsilon + 2 * found.partition.error
    assert found.design.sip.epsilon <= sip + 1e-9
    assert ldp <= found.design.ldp.epsilon <= ldp + 1e-9
    channel = found.design.channel
    told = [tuple(row) for row in found.patterns[channel.outputs].tolist()]
    assert len(set(told)) == len(told)
    cost = oracle.mean_loss(
        chances, np.array(rows) / 2.0**62, oracle.table(distance, batches, told)
    )
    assert found.design.cost == pytest.approx(cost, rel=1e-8, abs=1e-9)
    return sip, ldp


@settings(max_examples=25)
@given(
    st.sampled_from(list(EACH)),
    st.sampled_from([(1, 0, 3), (1, 0, 4), (2, 0, 3), (2, 1, 3), (3, 1, 3)]),
    st.integers(0, 10**6),
    st.floats(0.01, 4.0),
    st.sampled_from([8, 32, 96]),
)
def test_a_channel_on_boxes_keeps_its_budget_over_all_batches(
    name: str, shape: tuple[int, int, int], seed: int, epsilon: float, count: int
) -> None:
    order, axis, width = shape
    each, distance = EACH[name]
    process, belief = oracle.setting(4, order, axis, seed)
    chain = oracle.chain_of(process)
    found = design_batch(chain, belief, width, additive(each), epsilon, most=1, boxes=count)
    assert not found.exact
    sip, ldp = check_design(found, process, axis, width, distance)
    assert sip <= epsilon + 2 * found.partition.error
    assert ldp <= 2 * epsilon + 1e-9


@pytest.mark.parametrize(
    ("name", "ldp"),
    [("absolute", 1e-12), ("hamming", 0.1), ("absolute", 0.7), ("hamming", 1.3), ("squared", 2.5)],
)
def test_a_channel_on_boxes_keeps_a_cap_on_its_model_free_leakage(name: str, ldp: float) -> None:
    each, distance = EACH[name]
    process, belief = oracle.setting(4, 1, 0, 5)
    found = design_batch(oracle.chain_of(process), belief, 3, additive(each), 1.0, ldp=ldp, most=1)
    sip, local = check_design(found, process, 0, 3, distance)
    assert sip <= 1.0 + 2 * found.partition.error
    assert local <= ldp
    if 0.1 <= ldp < 2:
        assert local >= 0.5 * ldp or found.design.channel.is_constant


def walk(size: int, stay: float) -> oracle.Process:
    """A line on which values stay or move to a neighbour."""
    rows = np.full((size, size), 0.01)
    for x in range(size):
        rows[x, x] = stay
        for y in (x - 1, x + 1):
            if 0 <= y < size:
                rows[x, y] = (1 - stay) / 2
    contexts = oracle.every(size, 1)
    known = {c: oracle.shares(rows[c[0]] / rows[c[0]].sum()) for c in contexts}
    even = oracle.shares(np.full(size, 1 / size))
    start = dict(zip(contexts, even, strict=True))
    return oracle.Process(size, 1, start, known, dict.fromkeys(contexts, Fraction(0)), even)


@pytest.mark.parametrize(
    ("size", "width", "name", "epsilon", "worse"),
    [
        pytest.param(4, 5, "absolute", 1.0, 0.03, marks=pytest.mark.slow),
        (4, 5, "squared", 1.0, 0.03),
        (4, 4, "hamming", 1.0, 0.03),
        (4, 4, "absolute", 2.0, 0.05),
        (4, 4, "absolute", 0.3, 0.03),
    ],
)
def test_a_channel_on_boxes_is_near_the_best_of_all(
    size: int, width: int, name: str, epsilon: float, worse: float
) -> None:
    each = EACH[name][0]
    process = walk(size, 0.6)
    chain = oracle.chain_of(process)
    made = additive(each)
    best = design_batch(chain, chain.first(), width, made, epsilon).design
    near = design_batch(chain, chain.first(), width, made, epsilon, most=1).design
    floor = best.cost if best.lower_bound is None else best.lower_bound
    assert floor * (1 - 1e-9) <= near.cost <= (1 + worse) * best.cost


def test_a_batch_with_more_patterns_than_atoms_keeps_its_budget() -> None:
    size, width = 120, 20
    rows = np.exp(-np.abs(np.subtract.outer(np.arange(size), np.arange(size))) / 3.0)
    chain = MarkovChain.from_matrix(rows / rows.sum(axis=1, keepdims=True), floor=1e-6)
    each = additive(loss.absolute(chain.alphabet))
    found = design_batch(chain, chain.first(), width, each, 2.0, boxes=64)
    assert found.design.sip.epsilon <= 2.0
    assert found.patterns.shape[1] == width
    assert found.patterns.min() >= 0
    assert found.patterns.max() < size
    constant = min_constant_cost(chain, width)
    assert 0 < found.design.cost < 0.9 * constant
    drawn = np.random.default_rng(3).integers(0, size, (50, width))
    parts = [found.partition.cell(batch) for batch in drawn.tolist()]
    assert all(0 <= part < len(found.partition.masses) for part in parts)


def min_constant_cost(chain: MarkovChain, width: int) -> float:
    marginal: oracle.Floats = np.array(chain.initial)
    apart = np.abs(np.subtract.outer(np.arange(chain.size), np.arange(chain.size)))
    total = 0.0
    for _ in range(width):
        total += float((marginal @ apart).min())
        marginal = marginal @ chain.transition()
    return total


# Planted bugs ------------------------------------------------------------------------------------


def test_masses_that_ignore_a_cut_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Boxes._forward

    def forgetful(self: Boxes, allowed: tuple[Bools | None, ...]) -> list[oracle.Floats]:
        return honest(self, (*allowed[:-1], None))

    process, belief = oracle.setting(4, 1, 0, 2)
    check_masses(Boxes(oracle.chain_of(process), belief, 3, EACH["absolute"][0], 12), process, 0, 3)
    monkeypatch.setattr(Boxes, "_forward", forgetful)
    with pytest.raises(AssertionError):
        check_masses(
            Boxes(oracle.chain_of(process), belief, 3, EACH["absolute"][0], 12), process, 0, 3
        )


def test_masses_of_positions_taken_one_by_one_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def product_of_marginals(self: Boxes, allowed: tuple[Bools | None, ...]) -> list[oracle.Floats]:
        weights, found, kept = np.array(self._belief.joint.ravel()), [], 1.0
        for position, mask in enumerate(allowed):
            weights = self._chain.spread(weights) if position else weights
            kept *= float(weights[mask].sum()) if mask is not None else 1.0
            found.append(weights * kept)
        return found

    process, belief = oracle.setting(4, 1, 0, 4)
    chain, each = oracle.chain_of(process), EACH["absolute"]
    monkeypatch.setattr(Boxes, "_forward", product_of_marginals)
    found = design_batch(chain, belief, 3, additive(each[0]), 1.0, most=1)
    with pytest.raises(AssertionError):
        check_design(found, process, 0, 3, each[1])
