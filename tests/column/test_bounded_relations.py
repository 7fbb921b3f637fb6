"""What a guarantee for a set of priors implies model-free, and the reverse; many releases."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from sfumato.column.notion_relations import bounded_lip_from_ldp, ldp_from_bounded_lip
from sfumato.column.repeated_leakage import repeated_bound_of_set
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, LIP
from sfumato.models.prior_sets import Polytope, PriorBall, PriorBox, PriorList, PriorSet
from tests.strategies import Floats

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.integers(2, 4)
SLACK = 1e-9


def kernel_of(rng: np.random.Generator, size: int) -> Floats:
    return np.asarray(rng.dirichlet(np.ones(3), size=size) * 0.97 + 0.01)


def priors_of(rng: np.random.Generator, size: int, count: int) -> Floats:
    return np.asarray(rng.dirichlet(np.ones(size), size=count) * 0.9 + 0.1 / size)


def lip(kernel: Floats, priors: Floats) -> float:
    """Definition, under the worst of the priors: a mixture of them is never worse."""
    return max(float(np.abs(np.log(kernel / (prior @ kernel))).max()) for prior in priors)


def ldp(kernel: Floats) -> float:
    pairs = itertools.permutations(range(len(kernel)), 2)
    return max(float(np.log(kernel[x] / kernel[other]).max()) for x, other in pairs)


def evenest(priors: PriorSet) -> float:
    """The largest least probability in the set, by the constraints that the set itself names."""
    shape = priors.polytope()
    count = shape.spread.shape[1]
    above = np.vstack(
        [
            np.column_stack([-shape.spread, np.ones(priors.size)]),
            np.column_stack([shape.above, np.zeros(len(shape.above))]),
        ]
    )
    found = linprog(
        np.append(np.zeros(count), -1.0),
        above,
        np.concatenate([shape.offset, shape.limits]),
        np.column_stack([shape.equal, np.zeros(len(shape.equal))]),
        shape.targets,
        bounds=(None, None),
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0, found.message
    return -float(found.fun)


def some_set(rng: np.random.Generator, kind: str, size: int) -> PriorSet:
    if kind == "list":
        return PriorList(priors_of(rng, size, int(rng.integers(1, 4))))
    centre = priors_of(rng, size, 1)[0]
    if kind == "ball":
        return PriorBall(centre, float(rng.uniform(0, 0.6)))
    low, high = rng.uniform(0, 1, size=(2, size))
    return PriorBox(centre * low, centre + (1 - centre) * high)


# --- theorem 2 ---


@settings(max_examples=16, deadline=None)
@given(seed=SEEDS, size=SIZES, count=st.integers(1, 4))
def test_both_directions_hold_for_every_channel(seed: int, size: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    kernel, rows = kernel_of(rng, size), priors_of(rng, size, count)
    priors, leaked, free = PriorList(rows), lip(kernel, rows), ldp(kernel)
    assert leaked <= bounded_lip_from_ldp(LDP(free), priors).epsilon + SLACK
    assert free <= ldp_from_bounded_lip(LIP(leaked), priors).epsilon + SLACK


@settings(max_examples=16, deadline=None)
@given(seed=SEEDS, size=SIZES, kind=st.sampled_from(["list", "box", "ball"]))
def test_both_are_the_formulas_of_the_paper(seed: int, size: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    priors, epsilon = some_set(rng, kind, size), float(rng.uniform(0.05, 6))
    k, most = math.exp(epsilon), evenest(priors)
    least = min(float(priors.least_means(np.eye(size)[:, [x]])[0]) for x in range(size))
    free = ldp_from_bounded_lip(LIP(epsilon), priors).epsilon
    assert free == pytest.approx(min(2 * epsilon, math.log((k - 1 + most) / most)), abs=1e-6)
    told = bounded_lip_from_ldp(LDP(epsilon), priors).epsilon
    assert told == pytest.approx(math.log(least + k * (1 - least)), abs=1e-9)


@settings(max_examples=16, deadline=None)
@given(seed=SEEDS, size=SIZES, epsilon=st.floats(0.01, 6))
def test_neither_is_below_the_formula_in_exact_arithmetic(
    seed: int, size: int, epsilon: float
) -> None:
    lower = np.random.default_rng(seed).dirichlet(np.ones(size)) * 0.5
    priors = PriorBox(lower, np.ones(size))
    parts = sorted(Fraction(float(mass)) for mass in lower)
    rest = 1 - sum(parts, Fraction(0))
    most = min(sum(parts[:count], rest) / count for count in range(1, size + 1))
    with mpmath.workdps(40):
        k, p, q = mpmath.exp(mpmath.mpf(epsilon)), parts[0], most
        least = mpmath.mpf(p.numerator) / p.denominator
        level = mpmath.mpf(q.numerator) / q.denominator
        told = bounded_lip_from_ldp(LDP(epsilon), priors).epsilon
        assert told >= mpmath.log(least + k * (1 - least))
        free = ldp_from_bounded_lip(LIP(epsilon), priors).epsilon
        assert free >= min(2 * mpmath.mpf(epsilon), mpmath.log((k - 1 + level) / level))


@settings(max_examples=16, deadline=None)
@given(seed=SEEDS, size=SIZES, epsilon=st.floats(0.05, 4))
def test_lip_from_ldp_is_reached(seed: int, size: int, epsilon: float) -> None:
    """The rarest symbol of any prior makes one output less likely than all others do."""
    rows = priors_of(np.random.default_rng(seed), size, 3)
    column = np.full(size, 0.5)
    column[np.unravel_index(rows.argmin(), rows.shape)[1]] = 0.5 / math.exp(epsilon)
    kernel = np.column_stack([column, 1 - column])
    bound = bounded_lip_from_ldp(LDP(epsilon), PriorList(rows)).epsilon
    leaked = max(float(np.log(prior @ column / column.min())) for prior in rows)
    assert leaked == pytest.approx(bound, abs=SLACK)
    assert ldp(kernel) == pytest.approx(epsilon)
    assert lip(kernel, rows) <= bound + SLACK


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 5.0])
def test_ldp_from_lip_is_reached_by_one_even_prior(epsilon: float) -> None:
    size, k = 4, math.exp(epsilon)
    most = min(k, (k - 1 + 1 / size) * size / k)
    ratios = np.full(size, (size - most - 1 / k) / (size - 2))
    ratios[:2] = most, 1 / k
    assert ratios.mean() == pytest.approx(1.0)
    assert np.abs(np.log(ratios)).max() <= epsilon + SLACK
    free = ldp_from_bounded_lip(LIP(epsilon), PriorList([np.full(size, 0.25)])).epsilon
    assert math.log(most * k) == pytest.approx(free)


def test_mixtures_of_listed_priors_count() -> None:
    pair = PriorList([[0.1, 0.9], [0.9, 0.1]])
    even = PriorList([[0.5, 0.5]])
    for epsilon in (0.3, 1.0, 3.0):
        found = ldp_from_bounded_lip(LIP(epsilon), pair).epsilon
        assert found == pytest.approx(ldp_from_bounded_lip(LIP(epsilon), even).epsilon, abs=1e-9)


def test_the_inequality_below_the_theorem_is_the_wrong_way_round() -> None:
    """The paper: a guarantee for the set is at most that for one prior of it."""
    one, both = PriorList([[0.5, 0.5]]), PriorList([[0.5, 0.5], [0.1, 0.9]])
    assert bounded_lip_from_ldp(LDP(1.0), both) > bounded_lip_from_ldp(LDP(1.0), one)


def test_over_all_priors_the_theorem_is_not_the_truth() -> None:
    everything = PriorBox(np.zeros(4), np.ones(4))
    assert bounded_lip_from_ldp(LDP(2.0), everything) == LIP(2.0)
    # A leakage of 2 under every prior is a model-free leakage of 2.
    found = ldp_from_bounded_lip(LIP(2.0), everything).epsilon
    assert found == pytest.approx(math.log(4 * math.exp(2) - 3))
    assert found > 3.27


class OnePrior(PriorSet):
    """A set that the module has never seen."""

    @property
    def nominal(self) -> Floats:
        return np.array([0.3, 0.7])

    def least_means(self, columns: Floats) -> Floats:
        return np.asarray(self.nominal @ columns)

    def polytope(self) -> Polytope:
        raise NotImplementedError


def test_edges() -> None:
    sure, pair = PriorList([[1.0]]), PriorList([[0.5, 0.5]])
    assert bounded_lip_from_ldp(LDP(1.0), sure) == LIP(0.0)
    assert ldp_from_bounded_lip(LIP(1.0), sure) == LDP(0.0)
    corner = PriorList([[1.0, 0.0]])
    assert ldp_from_bounded_lip(LIP(1.0), corner) == LDP(2.0)
    assert bounded_lip_from_ldp(LDP(1.0, 0.1), pair) == LIP(1.0, 0.1)
    assert ldp_from_bounded_lip(LIP(math.inf), pair) == LDP(math.inf)
    with pytest.raises(InvalidParameter, match="guarantee must have delta 0"):
        ldp_from_bounded_lip(LIP(1.0, 0.1), pair)
    known = ldp_from_bounded_lip(LIP(2.0), PriorList([[0.3, 0.7]])).epsilon
    assert ldp_from_bounded_lip(LIP(2.0), OnePrior()).epsilon == pytest.approx(known)


# --- corollary 4 ---


@settings(max_examples=25)
@given(seed=SEEDS, size=SIZES, count=st.integers(1, 3), releases=st.integers(1, 4))
def test_many_releases_leak_no_more_than_the_bound(
    seed: int, size: int, count: int, releases: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = priors_of(rng, size, count)
    kernels = [kernel_of(rng, size) for _ in range(releases)]
    product = np.ones((size, 1))
    for kernel in kernels:
        product = np.stack([np.kron(product[x], kernel[x]) for x in range(size)])
    each = [LIP(lip(kernel, rows)) for kernel in kernels]
    bound = repeated_bound_of_set(each, PriorList(rows)).epsilon
    assert lip(product, rows) <= bound + SLACK


def test_the_bound_of_many_releases_is_that_of_the_paper() -> None:
    rows = [[0.1, 0.1, 0.1, 0.7], [0.01, 0.33, 0.33, 0.33]]
    for epsilons in ([2.0], [2.0, 5.0], [0.1, 3.0, 3.0]):
        sums = sum(min(2 * e, math.log((math.exp(e) - 1 + 0.1) / 0.1)) for e in epsilons)
        found = repeated_bound_of_set([LIP(e) for e in epsilons], PriorList(rows)).epsilon
        assert found == pytest.approx(math.log(0.01 + 0.99 * math.exp(sums)), abs=1e-9)


def test_the_bound_is_reached_for_two_even_symbols() -> None:
    k = math.exp(1.0)
    even = PriorList([[0.5, 0.5]])
    # Ratios 1/k and 2 - 1/k average to 1; n of them in a row leave this for the rarer symbol.
    for releases in (1, 2, 5):
        spread = releases * math.log((2 - 1 / k) * k)
        exact = math.log(0.5 + 0.5 * math.exp(spread))
        found = repeated_bound_of_set([LIP(1.0)] * releases, even).epsilon
        assert exact == pytest.approx(found, abs=1e-9)


def test_no_release_leaks_nothing() -> None:
    assert repeated_bound_of_set([], PriorList([[0.5, 0.5]])) == LIP(0.0)
