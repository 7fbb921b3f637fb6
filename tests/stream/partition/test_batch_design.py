"""Batches that are listed: the program of the paper, against the program as it stands on paper."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Alphabet, Method, loss
from sfumato.core.errors import InvalidParameter
from sfumato.solver.design_methods import STEP_WISE
from sfumato.stream import Belief
from sfumato.stream import batch_loss as batch_losses
from sfumato.stream.partition.batch_design import design_batch
from sfumato.stream.partition.batch_loss import BatchLoss, additive
from sfumato.stream.partition.cells import StepDesign
from tests.oracles import batches as oracle
from tests.oracles.textbook_lp import textbook_optimum

SPOTS = [(0.0, 0.0), (3.0, 1.0), (1.0, 4.0)]
Maker = Callable[[Alphabet], BatchLoss]


def _straight(x: int, y: int) -> float:
    return float(np.hypot(SPOTS[x][0] - SPOTS[y][0], SPOTS[x][1] - SPOTS[y][1]))


def _rises(batch: oracle.Symbols) -> float:
    return sum(later > earlier for earlier, later in itertools.pairwise(batch))


LOSSES: dict[str, tuple[Maker, oracle.Distance]] = {
    "hamming": (lambda a: additive(loss.hamming(a)), oracle.summed(lambda x, y: float(x != y))),
    "absolute": (
        lambda a: additive(loss.absolute(Alphabet.of_size(len(a)))),
        oracle.summed(lambda x, y: float(abs(x - y))),
    ),
    "squared": (
        lambda a: additive(loss.squared(Alphabet.of_size(len(a)))),
        oracle.summed(lambda x, y: float((x - y) ** 2)),
    ),
    "euclidean": (
        lambda a: additive(loss.euclidean(Alphabet(a.labels, SPOTS[: len(a)]))),
        oracle.summed(_straight),
    ),
    "histogram": (batch_losses.histogram, oracle.bars([0, 1, 2])),
    "query": (
        lambda a: batch_losses.query(a, lambda b: float(max(map(int, b)))),
        lambda o, r: float(abs(max(o) - max(r))),
    ),
    "compared": (
        lambda a: batch_losses.compared(a, lambda o, r: abs(_rises(o) - _rises(r)) + 0.5 * (o > r)),  # type: ignore[arg-type]
        lambda o, r: abs(_rises(o) - _rises(r)) + 0.5 * (o > r),
    ),
}


def expanded(
    found: StepDesign, batches: Sequence[oracle.Symbols]
) -> tuple[list[list[int]], list[oracle.Symbols]]:
    """The channel as it acts on batches: a row of weights each, and the batch of each column."""
    channel = found.design.channel
    rows = [channel.weights[found.partition.cell(batch)].tolist() for batch in batches]
    return rows, [tuple(row) for row in found.patterns[channel.outputs].tolist()]


SHAPES = [(2, 1), (2, 2), (2, 3), (2, 4), (3, 1), (3, 2), (3, 3)]


@pytest.mark.parametrize("name", list(LOSSES))
@pytest.mark.parametrize(("size", "width"), SHAPES)
def test_cost_is_that_of_the_textbook_program_over_all_batches(
    size: int, width: int, name: str
) -> None:
    maker, distance = LOSSES[name]
    for seed in range(1 if size**width > 20 else 3):
        rng = np.random.default_rng(31 * width + seed)
        process, belief = oracle.setting(size, 1, 0, 31 * width + seed, rng)
        chain, epsilon = oracle.chain_of(process), float(rng.uniform(0.1, 3.0))
        found = design_batch(chain, belief, width, maker(chain.alphabet), epsilon)
        batches, chances = oracle.every(size, width), oracle.batch_chances(process, 0, width)
        losses = oracle.table(distance, batches, batches)
        share = np.array([float(chance) for chance in chances])
        best = textbook_optimum(share, losses, epsilon)
        assert found.exact
        assert found.design.cost == pytest.approx(best, abs=1e-7 * max(1.0, losses.max()))
        rows, told = expanded(found, batches)
        cost = oracle.mean_loss(
            chances, np.array(rows) / 2.0**62, oracle.table(distance, batches, told)
        )
        assert cost == pytest.approx(found.design.cost, rel=1e-9, abs=1e-12)
        sip, ldp = oracle.exact_leakages(rows, chances)
        assert sip <= epsilon + 2 * found.partition.error
        assert sip <= found.design.sip.epsilon + 2 * found.partition.error
        assert ldp <= found.design.ldp.epsilon


@settings(max_examples=25)
@given(
    st.sampled_from([(2, 2, 0, 3), (2, 2, 1, 2), (2, 3, 0, 2), (2, 3, 1, 3), (2, 3, 2, 2)]),
    st.sampled_from(["hamming", "squared", "histogram", "query"]),
    st.integers(0, 10**6),
    st.floats(0.05, 4.0),
)
def test_cost_is_that_of_the_textbook_program_for_longer_memories_of_the_chain(
    shape: tuple[int, int, int, int], name: str, seed: int, epsilon: float
) -> None:
    size, order, axis, width = shape
    maker, distance = LOSSES[name]
    process, belief = oracle.setting(size, order, axis, seed)
    chain = oracle.chain_of(process)
    found = design_batch(chain, belief, width, maker(chain.alphabet), epsilon)
    batches, chances = oracle.every(size, width), oracle.batch_chances(process, axis, width)
    share = np.array([float(chance) for chance in chances])
    best = textbook_optimum(share, oracle.table(distance, batches, batches), epsilon)
    assert found.design.cost == pytest.approx(best, abs=1e-7 * 4)
    sip, _ = oracle.exact_leakages(expanded(found, batches)[0], chances)
    assert sip <= epsilon + 2 * found.partition.error


@pytest.mark.parametrize("name", ["hamming", "absolute", "histogram"])
def test_a_cap_on_the_model_free_leakage_is_kept_at_the_textbook_cost(name: str) -> None:
    maker, distance = LOSSES[name]
    for seed, (size, width) in enumerate([(2, 2), (2, 3), (3, 2)]):
        process, belief = oracle.setting(size, 1, 0, seed)
        chain = oracle.chain_of(process)
        found = design_batch(chain, belief, width, maker(chain.alphabet), 1.0, ldp=1.2)
        batches, chances = oracle.every(size, width), oracle.batch_chances(process, 0, width)
        share = np.array([float(chance) for chance in chances])
        best = textbook_optimum(share, oracle.table(distance, batches, batches), 1.0, 1.2)
        sip, ldp = oracle.exact_leakages(expanded(found, batches)[0], chances)
        assert ldp <= 1.2
        assert sip <= 1.0 + 2 * found.partition.error
        assert found.design.cost == pytest.approx(best, abs=1e-7 * 4)


@pytest.mark.parametrize("name", ["hamming", "histogram", "bars of groups"])
@pytest.mark.parametrize(
    ("size", "order", "axis", "width"), [(3, 1, 0, 3), (3, 2, 0, 1), (3, 2, 1, 3), (2, 3, 1, 4)]
)
def test_what_a_channel_looks_at_has_the_masses_and_followers_of_its_batches(
    size: int, order: int, axis: int, width: int, name: str
) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        process, belief = oracle.setting(size, order, axis, seed, rng)
        chain = oracle.chain_of(process, thin=seed == 1)
        if name == "bars of groups":
            bar = {label: "odd" if int(label) % 2 else "even" for label in chain.alphabet.labels}
            made = batch_losses.histogram(chain.alphabet, bar)
        else:
            made = LOSSES[name][0](chain.alphabet)
        parts = design_batch(chain, belief, width, made, 0.8).partition
        batches = oracle.every(size, width)
        exact: dict[int, Fraction] = defaultdict(Fraction)
        for batch, chance in zip(batches, oracle.batch_chances(process, axis, width), strict=True):
            exact[parts.cell(batch)] += chance
        assert sorted(exact) == list(range(len(parts.masses)))
        ordered = [exact[part] for part in sorted(exact)]
        assert oracle.furthest(parts.masses.tolist(), ordered) <= parts.error * (1 + 1e-9)
        likelihood = rng.uniform(0.05, 1.0, len(parts.masses))
        after = parts.after(likelihood)
        told = {batch: Fraction(float(likelihood[parts.cell(batch)])) for batch in batches}
        following = oracle.belief_after(process, axis, width, told)
        contexts = oracle.every(size, order)
        found = [float(after.joint[context]) for context in contexts]
        assert after.axis == min(axis + width, order - 1)
        off = oracle.furthest(found, [following[context] for context in contexts])
        assert off <= after.drift * (1 + 1e-9)


# Memory ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["hamming", "absolute", "histogram", "query"])
@pytest.mark.parametrize(
    ("size", "width", "recalled"), [(2, 1, 1), (2, 2, 1), (2, 2, 2), (3, 1, 2)]
)
def test_looking_back_cannot_lower_the_loss_of_a_batch(
    size: int, width: int, recalled: int, name: str
) -> None:
    # Averaging a channel over what it recalls, weighted by the belief, keeps its marginal and its
    # expected loss; ratios become means of ratios, so every bound still holds.
    maker, distance = LOSSES[name]
    for seed in range(3):
        rng = np.random.default_rng(100 + seed)
        process, _ = oracle.setting(size, 1, 0, 100 + seed, rng)
        order, epsilon = recalled + 1, float(rng.uniform(0.2, 2.0))
        chain = oracle.chain_of(process).lifted(order)
        joint = np.array([float(p) for p in oracle.shares(rng.dirichlet(np.ones(size**order)))])
        belief = Belief(joint.reshape((size,) * order), recalled)
        made = maker(chain.alphabet)
        short = design_batch(chain, belief, width, made, epsilon)
        long = design_batch(chain, belief, width, made, epsilon, recalled=recalled)
        assert long.design.cost == pytest.approx(short.design.cost, abs=1e-7)
        longer = oracle.every(size, recalled + width)
        share = np.array([float(b) for b in long.partition.masses])
        best = textbook_optimum(
            share,
            oracle.table(lambda o, r: distance(o[-width:], r[-width:]), longer, longer),
            epsilon,
        )
        assert long.design.cost == pytest.approx(best, abs=1e-7)
        averaged, mass = averaged_over_the_past(
            long.design.channel.probabilities, share, size**width
        )
        told = oracle.table(
            distance,
            oracle.every(size, width),
            [tuple(row) for row in long.patterns[long.design.channel.outputs].tolist()],
        )
        assert float(mass @ (averaged * told).sum(axis=1)) == pytest.approx(long.design.cost)
        ratios = averaged / (mass @ averaged)
        assert np.abs(np.log(ratios)).max() <= epsilon + 1e-9


def averaged_over_the_past(
    rows: oracle.Floats, share: oracle.Floats, batches: int
) -> tuple[oracle.Floats, oracle.Floats]:
    """Rows of batches alone, and their masses; the past is the slower part of a row's number."""
    weighted = (rows * share[:, None]).reshape(-1, batches, rows.shape[1]).sum(axis=0)
    mass = share.reshape(-1, batches).sum(axis=0)
    return weighted / mass[:, None], mass / mass.sum()


# Refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", ["recalled", "method", "loss"])
def test_what_boxes_cannot_do_is_refused(wrong: str) -> None:
    process, belief = oracle.setting(3, 1, 0, 1)
    chain = oracle.chain_of(process)
    made = LOSSES["query" if wrong == "loss" else "hamming"][0](chain.alphabet)
    with pytest.raises(InvalidParameter, match="at most 10 batches"):
        design_batch(
            chain,
            belief,
            3,
            made,
            1.0,
            method=Method.CALIBRATED if wrong == "method" else Method.OPTIMAL,
            recalled=1 if wrong == "recalled" else 0,
            most=10,
        )


@pytest.mark.parametrize("method", STEP_WISE)
def test_every_method_reports_its_exact_leakage(method: Method) -> None:
    process, belief = oracle.setting(3, 1, 0, 2)
    chain = oracle.chain_of(process)
    made = additive(loss.hamming(chain.alphabet))
    found = design_batch(chain, belief, 2, made, 0.8, method=method)
    batches, chances = oracle.every(3, 2), oracle.batch_chances(process, 0, 2)
    sip, ldp = oracle.exact_leakages(expanded(found, batches)[0], chances)
    assert found.design.sip.epsilon == pytest.approx(sip, abs=1e-9)
    assert found.design.ldp.epsilon == pytest.approx(ldp, abs=1e-9)
    assert method is Method.PAPER or sip <= 0.8 + 2 * found.partition.error
