import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.column import notion_relations as relations
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, LIP
from sfumato.core.local_leakage import local_leakage
from tests.oracles.quotient_program import quotient_program
from tests.strategies import (
    Floats,
    beliefs,
    channels_and_beliefs,
    epsilons,
    leakages,
    positive_matrices,
)

SLACK = 1e-9

fractions = st.floats(1e-6, 1.0)


@st.composite
def kernels_and_priors(draw: st.DrawFn) -> tuple[Floats, Floats]:
    """A kernel of finite leakage and a prior in which no symbol is negligible."""
    kernel = draw(positive_matrices())
    size = len(kernel)
    masses = np.array(draw(st.lists(st.floats(0.01, 1.0), min_size=size, max_size=size)))
    return kernel, np.asarray(masses / masses.sum())


def lip(kernel: Floats, prior: Floats) -> float:
    """Definition: the largest log ratio of a posterior to its prior, over all pairs."""
    joint = prior[:, None] * kernel
    posterior = joint / joint.sum(axis=0)
    return float(np.abs(np.log(posterior / prior[:, None])).max())


def ldp(kernel: Floats) -> float:
    """Definition: the largest log quotient of two entries of a column."""
    pairs = itertools.permutations(range(len(kernel)), 2)
    return max(float(np.log(kernel[x] / kernel[other]).max()) for x, other in pairs)


def subsets(count: int) -> list[list[int]]:
    return [
        list(chosen)
        for size in range(1, count + 1)
        for chosen in itertools.combinations(range(count), size)
    ]


def lip_delta(kernel: Floats, prior: Floats, epsilon: float, *, forgiven: float = 1.0) -> float:
    """The least delta, over every set of outputs and every symbol.

    Definition (3) of the paper forgives a factor of e^epsilon on one side.
    """
    marginal, k = prior @ kernel, math.exp(epsilon)
    worst = 0.0
    for chosen in subsets(kernel.shape[1]):
        total = marginal[chosen].sum()
        for row in kernel:
            given_x = row[chosen].sum()
            over = float(given_x - k * total) / forgiven
            worst = max(worst, over, float(total - k * given_x))
    return worst


def ldp_delta(kernel: Floats, epsilon: float) -> float:
    """Definition (1): the least delta, over every set of outputs and every pair of symbols."""
    worst = 0.0
    for chosen in subsets(kernel.shape[1]):
        masses = kernel[:, chosen].sum(axis=1)
        worst = max(worst, float(masses.max() - math.exp(epsilon) * masses.min()))
    return worst


# --- pure guarantees ---


@settings(max_examples=25)
@given(kernels_and_priors(), st.data())
def test_every_relation_holds_for_every_kernel_and_prior(
    pair: tuple[Floats, Floats], data: st.DataObject
) -> None:
    kernel, prior = pair
    amount, free = lip(kernel, prior), ldp(kernel)
    # [SIP, Thm. 3]: a model never leaks more than no model, which leaks at most twice as much.
    assert amount <= free + SLACK
    assert free <= 2 * amount + SLACK
    assert amount <= relations.lip_from_ldp(LDP(free), prior).epsilon + SLACK
    tight = relations.ldp_from_lip(LIP(amount), prior).epsilon
    loose = relations.ldp_from_lip_closed_form(LIP(amount), prior).epsilon
    assert free <= tight + SLACK
    assert tight <= loose + SLACK
    assert loose <= 2 * amount
    # The measures without a unit of their own.
    quotient = identifiability(kernel, prior)
    assert quotient <= relations.identifiability_from_lip(LIP(amount), prior) + SLACK
    spread = math.log(float(prior.max() / prior.min()))
    assert amount <= relations.lip_from_ldp(LDP(quotient + spread), prior).epsilon + SLACK
    bound = relations.information_from_lip(LIP(amount))
    assert information(kernel, prior) <= bound + SLACK
    assert bound <= amount * math.tanh(amount / 2) * (1 + 1e-12) <= amount
    direct = math.log(sum(max(row[y] for row in kernel) for y in range(kernel.shape[1])))
    assert direct <= relations.maximal_leakage_from_lip(LIP(amount)) + SLACK
    # [LIP, Cor. 2]: the worst prior makes it the model-free leakage.
    size = len(kernel)
    nearly_sure = (np.full(size, 1e-15) + (1 - size * 1e-15) * corner for corner in np.eye(size))
    assert max(lip(kernel, corner) for corner in nearly_sure) == pytest.approx(free, abs=1e-4)
    some = np.array(data.draw(st.lists(fractions, min_size=size, max_size=size)))
    assert lip(kernel, some / some.sum()) <= free + SLACK


@settings(max_examples=16)
@given(
    positive_matrices(rows=2, columns=2),
    positive_matrices(rows=2, columns=2),
    st.floats(0.01, 0.99),
    st.floats(0.01, 0.99),
)
def test_both_bounds_hold_for_a_correlated_sequence(
    first: Floats, second: Floats, start: float, stay: float
) -> None:
    # (x1, x2) to (y1, y2), the noise of each step its own
    kernel = np.asarray(np.kron(first, second), dtype=np.float64)
    initial = np.array([start, 1 - start])
    transition = np.array([[stay, 1 - stay], [1 - stay, stay]])
    prior = (initial[:, None] * transition).ravel()
    sip, free = lip(kernel, prior), ldp(kernel)
    assert sip <= free + SLACK
    assert free <= 2 * sip + SLACK


def test_twice_over_is_reached() -> None:
    """Rare symbols on both sides: one output is e^eps up and e^eps down."""
    k = math.exp(0.7)
    prior = np.array([1 / (k + 1), k / (k + 1)])
    kernel = np.array([[k * 0.1, 1 - k * 0.1], [0.1 / k, 1 - 0.1 / k]])
    ratios = kernel[:, 0] / (prior @ kernel[:, 0])
    assert np.log(ratios).tolist() == pytest.approx([0.7, -0.7])
    assert math.log(kernel[0, 0] / kernel[1, 0]) == pytest.approx(1.4)


@settings(max_examples=25)
@given(epsilons, beliefs())
def test_lip_from_ldp_is_reached(epsilon: float, prior: Floats) -> None:
    """One output that the rarest symbol makes e^eps less likely than all others do."""
    share = 0.5 / math.exp(epsilon)
    column = np.full(prior.size, share * math.exp(epsilon))
    column[prior.argmin()] = share
    kernel = np.column_stack([column, 1 - column])
    bound = relations.lip_from_ldp(LDP(epsilon), prior).epsilon
    assert math.log(prior @ column / share) == pytest.approx(bound, abs=SLACK)
    assert lip(kernel, prior) <= bound + SLACK


@given(st.floats(1e-2, 3.0), st.lists(st.floats(0.02, 1.0), min_size=2, max_size=5))
@settings(max_examples=16)
def test_ldp_from_lip_solves_the_program_of_the_paper(epsilon: float, masses: list[float]) -> None:
    prior = np.array(masses) / sum(masses)
    expected = quotient_program(prior, epsilon)
    assert relations.ldp_from_lip(LIP(epsilon), prior).epsilon == pytest.approx(expected, abs=1e-7)


@settings(max_examples=25)
@given(epsilons, beliefs())
def test_the_closed_form_is_that_of_the_paper(epsilon: float, prior: Floats) -> None:
    least = float(prior.min())
    quotient = (math.exp(epsilon) - 1 + least) / least
    expected = min(2 * epsilon, math.log(quotient))
    found = relations.ldp_from_lip_closed_form(LIP(epsilon), prior).epsilon
    assert found == pytest.approx(expected, rel=1e-9)


def test_an_even_prior_meets_the_closed_form() -> None:
    """[LIP, Fig. 2a]: for the even prior the program and the closed form are one curve."""
    for size, epsilon in itertools.product((2, 4, 9), (0.1, 0.5, 1.5, 4.0)):
        prior = np.full(size, 1 / size)
        tight = relations.ldp_from_lip(LIP(epsilon), prior).epsilon
        loose = relations.ldp_from_lip_closed_form(LIP(epsilon), prior).epsilon
        assert tight == pytest.approx(loose, rel=1e-12)


def test_nothing_leaks_nothing_under_any_notion() -> None:
    prior = [0.3, 0.7]
    assert relations.ldp_from_lip(LIP(0.0), prior) == LDP(0.0)
    assert relations.ldp_from_lip(LIP(1.0), [1.0]) == LDP(0.0)
    assert relations.ldp_from_lip_closed_form(LIP(0.0), prior) == LDP(0.0)
    assert relations.lip_from_ldp(LDP(0.0), prior) == LIP(0.0)
    assert relations.information_from_lip(LIP(0.0)) == 0.0
    assert relations.maximal_leakage_from_lip(LIP(0.0)) == 0.0


# --- approximate guarantees ---


@settings(max_examples=25)
@given(kernels_and_priors(), st.floats(0.01, 2.0))
def test_approximate_guarantees_imply_each_other(
    pair: tuple[Floats, Floats], epsilon: float
) -> None:
    """[LIP, Cor. 3], with delta on both sides of the definition."""
    kernel, prior = pair
    free, under = ldp_delta(kernel, epsilon), lip_delta(kernel, prior, epsilon)
    if free > 0:
        found = relations.lip_from_ldp(LDP(epsilon, free), prior)
        assert found.epsilon == epsilon
        assert under <= found.delta + SLACK
    assert ldp_delta(kernel, 2 * epsilon) <= (math.exp(epsilon) + 1) * under + SLACK


def test_the_constant_of_the_paper_fails_under_its_own_definition() -> None:
    kernel = np.array([[0.4369, 0.408, 0.1551], [0.9058, 0.0061, 0.0881]])
    prior = np.array([0.1127, 0.8873])
    epsilon = 1.852
    published = lip_delta(kernel, prior, epsilon, forgiven=math.exp(epsilon))
    true = ldp_delta(kernel, 2 * epsilon)
    assert 0 < (math.exp(epsilon) + 1) * published < true < 2 * math.exp(epsilon) * published
    ours = lip_delta(kernel, prior, epsilon)
    assert true <= (math.exp(epsilon) + 1) * ours


# --- notions without a unit ---


def identifiability(kernel: Floats, prior: Floats) -> float:
    joint = prior[:, None] * kernel
    posterior = joint / joint.sum(axis=0)
    pairs = itertools.permutations(range(len(prior)), 2)
    return max(float(np.log(posterior[x] / posterior[other]).max()) for x, other in pairs)


def information(kernel: Floats, prior: Floats) -> float:
    marginal = prior @ kernel
    cells = itertools.product(range(len(prior)), range(kernel.shape[1]))
    return sum(
        float(prior[x] * kernel[x, y] * math.log(kernel[x, y] / marginal[y])) for x, y in cells
    )


@settings(max_examples=25)
@given(leakages, beliefs())
def test_the_identifiability_bound_follows_its_formula(amount: float, prior: Floats) -> None:
    spread = math.log(float(prior.max() / prior.min()))
    assert relations.identifiability_from_lip(LIP(amount), prior) == pytest.approx(
        2 * amount + spread, rel=1e-12, abs=1e-15
    )


def test_the_bound_on_the_divergence_is_reached() -> None:
    """Two distributions at log ratios +-eps are eps tanh(eps/2) apart."""
    for epsilon in (0.1, 1.0, 4.0):
        p = np.array([math.exp(epsilon), 1.0]) / (math.exp(epsilon) + 1)
        divergence = float((p * np.log(p / p[::-1])).sum())
        assert divergence == pytest.approx(relations.information_from_lip(LIP(epsilon)))


@settings(max_examples=25)
@given(channels_and_beliefs())
def test_the_measures_are_those_of_the_channel(pair: tuple[Channel, Floats]) -> None:
    channel, prior = pair
    kernel = np.array([[w / 2**62 for w in row] for row in channel.weights.tolist()])
    maximal = math.log(sum(max(row[y] for row in kernel) for y in range(kernel.shape[1])))
    assert relations.mutual_information(channel, prior) == pytest.approx(
        information(kernel, prior), rel=1e-9, abs=1e-12
    )
    assert relations.maximal_leakage(channel) == pytest.approx(maximal, abs=1e-12)


def test_the_measures_of_a_channel_that_hides_nothing() -> None:
    open_ = Channel.from_probabilities(np.eye(4))
    assert relations.mutual_information(open_, [0.25] * 4) == pytest.approx(math.log(4))
    assert relations.maximal_leakage(open_) == pytest.approx(math.log(4))


def test_maximal_leakage_says_nothing_about_lip() -> None:
    """[LIP, Thm. 3]: a small average leakage allows any pointwise one."""
    nearly_constant = Channel.from_probabilities([[1.0, 0.0], [1 - 1e-6, 1e-6]])
    assert relations.maximal_leakage(nearly_constant) < 1.1e-6
    assert relations.mutual_information(nearly_constant, [0.5, 0.5]) < 1e-6
    assert local_leakage(nearly_constant).epsilon == math.inf


# --- laws of all of them ---


@settings(max_examples=25)
@given(leakages, leakages, beliefs())
def test_a_weaker_guarantee_never_implies_a_stronger_one(
    one: float, other: float, prior: Floats
) -> None:
    less, more = sorted((one, other))
    slack = 1 + 1e-9
    pairs = [
        (
            relations.lip_from_ldp(LDP(e), prior).epsilon,
            relations.ldp_from_lip(LIP(e), prior).epsilon,
        )
        for e in (less, more)
    ]
    for small, large in zip(*pairs, strict=True):
        assert small <= large * slack + 1e-12
    assert relations.information_from_lip(LIP(less)) <= relations.information_from_lip(LIP(more))


@pytest.mark.parametrize(
    "relation",
    [
        lambda: relations.ldp_from_lip(LIP(1.0, 0.1), [0.5, 0.5]),
        lambda: relations.ldp_from_lip_closed_form(LIP(1.0, 0.1), [0.5, 0.5]),
        lambda: relations.identifiability_from_lip(LIP(1.0, 0.1), [0.5, 0.5]),
        lambda: relations.information_from_lip(LIP(1.0, 0.1)),
        lambda: relations.maximal_leakage_from_lip(LIP(1.0, 0.1)),
    ],
)
def test_a_pure_relation_refuses_a_guarantee_that_may_fail(relation: Callable[[], object]) -> None:
    with pytest.raises(InvalidParameter, match="guarantee must have delta 0"):
        relation()


@pytest.mark.parametrize("prior", [[0.5, 0.6], [1.0, 0.0], [math.nan, 1.0]])
def test_a_relation_refuses_a_prior_that_is_none(prior: list[float]) -> None:
    with pytest.raises(InvalidParameter, match="prior"):
        relations.lip_from_ldp(LDP(1.0), prior)
    with pytest.raises(InvalidParameter, match="prior"):
        relations.ldp_from_lip(LIP(1.0), prior)
    with pytest.raises(InvalidParameter, match="prior"):
        relations.identifiability_from_lip(LIP(1.0), prior)
