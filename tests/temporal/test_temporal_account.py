"""The running account, and budgets that hold: certified by fifty digits, and not too small."""

import math
import warnings
from collections import Counter
from fractions import Fraction
from typing import Any, ClassVar

import mpmath
import numpy as np
import pytest
from hypothesis import currently_in_test_context, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from numpy.typing import NDArray

from sfumato.core.errors import BudgetExceeded, InvalidParameter
from sfumato.temporal.least_noise import least_noise_budgets, noise_variance
from sfumato.temporal.loss_function import LossFunction
from sfumato.temporal.over_time import temporal_leakage
from sfumato.temporal.temporal_account import EndlessAccount, PlannedAccount
from sfumato.temporal.temporal_budgets import allocate, paper_budgets
from tests.contracts.accounts import STEPS, AccountLaws
from tests.oracles import temporal as oracle
from tests.oracles.temporal import ExactLoss, exact_event, exact_leakage

Floats = NDArray[np.float64]
Matrix = list[list[float]]

BACKWARD: Matrix = [[0.8, 0.2], [0.2, 0.8]]
FORWARD: Matrix = [[0.8, 0.2], [0.1, 0.9]]
BACKWARD_2: Matrix = [[0.1, 0.2, 0.7], [0.0, 0.0, 1.0], [0.3, 0.3, 0.4]]
FORWARD_2: Matrix = [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.6, 0.2, 0.2]]
ABSORBING: Matrix = [[0.8, 0.2], [0.0, 1.0]]
STICKY: Matrix = [[1 - 1e-6, 1e-6], [1e-6, 1 - 1e-6]]
EVEN: Matrix = [[0.5, 0.5], [0.5, 0.5]]
IDENTITY: Matrix = [[1.0, 0.0], [0.0, 1.0]]
APART: Matrix = [[0.5, 0.5, 0.0], [0.3, 0.3, 0.4], [0.0, 0.0, 1.0]]

PAIRS: dict[str, tuple[Matrix, Matrix]] = {
    "Fig. 8": (BACKWARD, FORWARD),
    "Fig. 2": (BACKWARD_2, FORWARD_2),
    "absorbing": (ABSORBING, ABSORBING),
    "absorbing one way": (BACKWARD, ABSORBING),
    "sticky": (STICKY, STICKY),
    "one way": (EVEN, FORWARD),
    "independent": (EVEN, EVEN),
}
ALPHAS = [1e-6, 0.1, 1.0, 5.0]
pairs = pytest.mark.parametrize("name", PAIRS)
levels = pytest.mark.parametrize("alpha", ALPHAS)


def losses(name: str) -> tuple[LossFunction, LossFunction]:
    return LossFunction.of(PAIRS[name][0]), LossFunction.of(PAIRS[name][1])


def exact_losses(name: str) -> tuple[ExactLoss, ExactLoss]:
    return ExactLoss(PAIRS[name][0]), ExactLoss(PAIRS[name][1])


# Constant budgets ---------------------------------------------------------------------------------


@pairs
@levels
def test_a_constant_budget_is_certified_and_the_largest(name: str, alpha: float) -> None:
    found = allocate(*losses(name), alpha)
    backward, forward = exact_losses(name)
    with mpmath.workdps(oracle.DIGITS):
        exact = mpmath.mpf(found.constant)
        assert backward.supremum(found.constant) + forward.supremum(found.constant) - exact <= alpha
        more = found.constant * (1 + 1e-6)
        assert backward.supremum(more) + forward.supremum(more) - mpmath.mpf(more) > alpha
    assert 0 < found.constant == found.middle <= min(found.first, found.last)


@pairs
@pytest.mark.parametrize(("alpha", "steps"), [(1e-6, 30), (0.1, 2), (1.0, 4), (5.0, 3)])
def test_budgets_of_a_known_number_are_certified_and_leak_alpha_at_every_moment(
    name: str, alpha: float, steps: int
) -> None:
    found = paper_budgets(*losses(name), alpha, steps)
    total = exact_leakage(found.tolist(), *exact_losses(name))[2]
    assert found.min() > 0
    assert max(total) <= alpha
    assert min(total) >= alpha * (1 - 1e-6)


@pytest.mark.parametrize("name", ["Fig. 8", "Fig. 2", "one way", "independent"])
@pytest.mark.parametrize("steps", [1, 2, 3, 10])
def test_budgets_are_those_of_algorithm_8(name: str, steps: int) -> None:
    wanted = oracle.algorithm_8(*PAIRS[name], 1.0, steps)
    assert paper_budgets(*losses(name), 1.0, steps) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("make", [paper_budgets, least_noise_budgets])
def test_a_single_release_gets_everything(make: Any) -> None:
    for matrix in (FORWARD, IDENTITY, EVEN):
        loss = LossFunction.of(matrix)
        assert make(loss, loss, 0.7, 1).tolist() == [0.7]


def test_lengths_of_published_budgets() -> None:
    found = allocate(*losses("Fig. 8"), 1.0)
    assert found.of_length(2).tolist() == [found.first, found.last]
    assert found.of_length(4).tolist() == [found.first, found.middle, found.middle, found.last]
    for steps in (0, 1, -3):
        with pytest.raises(InvalidParameter, match="steps"):
            found.of_length(steps)


# Rows that share nothing --------------------------------------------------------------------------


def test_no_constant_budget_lasts_for_rows_that_share_nothing_and_the_message_names_them() -> None:
    fine, apart = LossFunction.of(FORWARD), LossFunction.of(APART)
    with pytest.raises(InvalidParameter, match=r"forward must .*rows 0 and 2 with no common"):
        allocate(fine, apart, 1.0)
    with pytest.raises(InvalidParameter, match=r"backward must .*rows 0 and 2 with no common"):
        allocate(apart, fine, 1.0)
    with pytest.raises(InvalidParameter, match="rows 0 and 1"):
        EndlessAccount.begin(LossFunction.of(IDENTITY), fine, 1.0)


@pytest.mark.parametrize("steps", [2, 7, 150])
@pytest.mark.parametrize("make", [paper_budgets, least_noise_budgets])
def test_a_known_number_of_releases_of_one_secret_shares_alpha(make: Any, steps: int) -> None:
    loss = LossFunction.of(IDENTITY)
    found = make(loss, loss, 1.0, steps)
    assert found.min() > 0
    assert sum(map(Fraction, found.tolist())) <= 1
    assert found == pytest.approx([1 / steps] * steps, rel=1e-6)


@pytest.mark.parametrize("rest", [1e-3, 1e-9, 1e-13])
def test_rows_that_share_next_to_nothing_get_next_to_nothing_for_ever(rest: float) -> None:
    matrix = [[1 - rest, rest], [0.0, 1.0]]
    loss, exact = LossFunction.of(matrix), ExactLoss(matrix)
    found = allocate(loss, loss, 1.0)
    assert 0 < found.constant < 2 * rest
    with mpmath.workdps(oracle.DIGITS):
        assert 2 * exact.supremum(found.constant) - mpmath.mpf(found.constant) <= 1


@pytest.mark.parametrize("alpha", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("make", [paper_budgets, least_noise_budgets])
def test_an_alpha_that_is_none_is_refused(make: Any, alpha: float) -> None:
    with pytest.raises(InvalidParameter, match="alpha"):
        allocate(*losses("Fig. 8"), alpha)
    with pytest.raises(InvalidParameter, match="alpha"):
        make(*losses("Fig. 8"), alpha, 3)
    with pytest.raises(InvalidParameter, match="alpha"):
        EndlessAccount.begin(*losses("Fig. 8"), alpha)


# Least noise --------------------------------------------------------------------------------------


@pairs
@pytest.mark.parametrize(("alpha", "steps"), [(0.01, 5), (1.0, 25), (4.0, 2)])
def test_least_noise_is_certified_and_never_worse(name: str, alpha: float, steps: int) -> None:
    found = least_noise_budgets(*losses(name), alpha, steps)
    assert found.shape == (steps,)
    assert found.min() > 0
    assert exact_event(found.tolist(), *exact_losses(name)) <= alpha
    published = paper_budgets(*losses(name), alpha, steps)
    constant = np.full(steps, allocate(*losses(name), alpha).constant)
    assert noise_variance(found) <= noise_variance(published)
    assert noise_variance(found) <= noise_variance(constant) * (1 + 1e-9)


def test_least_noise_is_less_noise_where_there_is_something_to_gain() -> None:
    backward, forward = LossFunction.unknown(), LossFunction.of(FORWARD)
    found = least_noise_budgets(backward, forward, 1.0, 3)
    assert noise_variance(found) < 0.8 * noise_variance(paper_budgets(backward, forward, 1.0, 3))


@pytest.mark.parametrize("steps", [96, 97])
def test_long_sequences_have_a_constant_middle_and_are_certified(steps: int) -> None:
    found = least_noise_budgets(*losses("Fig. 8"), 1.0, steps)
    assert found.shape == (steps,)
    assert temporal_leakage(found, *losses("Fig. 8")).event.alpha <= 1.0
    assert exact_event(found.tolist(), *exact_losses("Fig. 8")) <= 1.0
    assert noise_variance(found) <= noise_variance(paper_budgets(*losses("Fig. 8"), 1.0, steps))


def test_random_chains_get_certified_budgets_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(12):
            rng = np.random.default_rng(seed)
            size, steps = int(rng.integers(2, 5)), int(rng.integers(2, 8))
            back, forth = (rng.dirichlet(np.full(size, 0.5), size) + 1e-6 for _ in range(2))
            back, forth = (m / m.sum(axis=1, keepdims=True) for m in (back, forth))
            alpha = float(10 ** rng.uniform(-2, 1))
            for make in (paper_budgets, least_noise_budgets):
                found = make(LossFunction.of(back), LossFunction.of(forth), alpha, steps)
                assert found.min() > 0
                assert exact_event(found.tolist(), ExactLoss(back), ExactLoss(forth)) <= alpha


def test_noise_variance_is_that_of_laplace_noise() -> None:
    assert noise_variance(np.array([0.5, 1.0])) == 2 / 0.25 + 2
    assert noise_variance(np.array([0.5, 0.0])) == math.inf


# Accounts -----------------------------------------------------------------------------------------


class TemporalAccountLaws(AccountLaws):
    """No moment leaks more than alpha, by the oracle of fifty digits."""

    def cost(self, account: Any, part: float) -> float:
        most = account.last_allowance if isinstance(account, EndlessAccount) else account.allowance
        return part * (most if part > 1 else account.allowance)

    def within(self, costs: list[Any]) -> bool:
        return bool(exact_event(costs, *exact_losses("Fig. 8")) <= 1.0)


class TestEndlessAccount(TemporalAccountLaws):
    def begin(self) -> EndlessAccount:
        return EndlessAccount.begin(*losses("Fig. 8"), 1.0)


class TestPlannedAccount(TemporalAccountLaws):
    def begin(self) -> PlannedAccount:
        return PlannedAccount(paper_budgets(*losses("Fig. 8"), 1.0, STEPS))

    def test_nothing_follows_the_last_planned_release(self) -> None:
        account = self.begin()
        for _ in range(STEPS):
            account = account.charged(0.0)
        assert account.allowance == 0.0
        with pytest.raises(BudgetExceeded):
            account.charged(0.0)


# Online -------------------------------------------------------------------------------------------


@pairs
@pytest.mark.parametrize("alpha", [0.01, 1.0, 5.0])
def test_offers_begin_like_the_published_first_and_go_on_like_the_middle_for_ever(
    name: str, alpha: float
) -> None:
    stream, published = EndlessAccount.begin(*losses(name), alpha), allocate(*losses(name), alpha)
    offers = []
    for _ in range(150):
        offers.append(stream.allowance)
        stream = stream.charged(stream.allowance)
    assert offers[0] == pytest.approx(published.first, rel=1e-8)
    assert offers[1:] == pytest.approx([published.middle] * 149, rel=1e-6)
    assert exact_event(offers, *exact_losses(name)) <= alpha


def test_the_last_offer_is_the_published_last() -> None:
    stream = EndlessAccount.begin(*losses("Fig. 8"), 1.0)
    spent = []
    for _ in range(30):
        spent.append(stream.allowance)
        stream = stream.charged(spent[-1])
    spent.append(stream.last_allowance)
    stream.charged(spent[-1])
    assert spent[-1] == pytest.approx(allocate(*losses("Fig. 8"), 1.0).last, rel=1e-8)
    assert exact_event(spent, *exact_losses("Fig. 8")) <= 1.0


def test_more_than_was_offered_is_refused_and_nothing_changes() -> None:
    stream = EndlessAccount.begin(*losses("Fig. 8"), 1.0)
    for over in (stream.last_allowance * (1 + 1e-9), 5.0, math.inf):
        with pytest.raises(BudgetExceeded, match="event 0 of stream 'temporal'"):
            stream.charged(over)
    for wrong in (-0.1, math.nan):
        with pytest.raises(InvalidParameter, match="epsilon"):
            stream.charged(wrong)
    assert (stream.past, stream.room) == (0.0, math.inf)


def test_a_pause_makes_room_for_more() -> None:
    stream = EndlessAccount.begin(*losses("Fig. 8"), 1.0)
    for _ in range(10):
        stream = stream.charged(stream.allowance)
    rested = stream
    for _ in range(10):
        rested = rested.charged(0.0)
    assert rested.allowance > 1.5 * stream.allowance


MACHINES: dict[str, tuple[Matrix, Matrix]] = {
    key: PAIRS[key] for key in ("Fig. 8", "Fig. 2", "absorbing", "absorbing one way", "one way")
}


class OnlineMachine(RuleBasedStateMachine):
    """Any spending against a shadow ledger in fifty digits."""

    reached: ClassVar[Counter[str]] = Counter()

    @initialize(name=st.sampled_from(sorted(MACHINES)), alpha=st.sampled_from([0.05, 1.0, 6.0]))
    def begin(self, name: str, alpha: float) -> None:
        self.alpha, self.spent, self.ended = alpha, list[float](), False
        self.exact = exact_losses(name)
        self.stream = EndlessAccount.begin(*losses(name), alpha)
        self.least = allocate(*losses(name), alpha).constant

    def note(self, what: str) -> None:
        if currently_in_test_context():
            event(what)
        self.reached[what] += 1

    def spend(self, epsilon: float) -> None:
        self.stream = self.stream.charged(epsilon)
        self.spent.append(epsilon)

    @rule(part=st.one_of(st.just(1.0), st.floats(0.0, 1.0)), times=st.integers(1, 4))
    def spend_some(self, part: float, times: int) -> None:
        for _ in range(times):
            self.note("all" if part == 1.0 else "part")
            self.spend(part * self.stream.allowance)

    @rule(times=st.integers(1, 4))
    def wait(self, times: int) -> None:
        for _ in range(times):
            self.note("waited")
            self.spend(0.0)

    @rule()
    def spend_as_if_it_were_the_last(self) -> None:
        self.note("last")
        self.ended = True
        self.spend(self.stream.last_allowance)

    @rule(over=st.floats(1e-9, 1.0))
    def ask_too_much(self, over: float) -> None:
        before = self.stream
        most = max(before.allowance, before.last_allowance)
        with pytest.raises(BudgetExceeded):
            before.charged(most * (1 + over) + 1e-12)
        self.note("refused")
        assert self.stream is before

    @invariant()
    def no_moment_leaks_over_alpha(self) -> None:
        if self.spent:
            assert exact_event(self.spent, *self.exact) <= self.alpha

    @invariant()
    def the_constant_is_always_offered_until_the_last_was_taken(self) -> None:
        assert self.stream.allowance >= 0
        if not self.ended:
            assert self.stream.allowance >= self.least * (1 - 1e-6)


OnlineMachine.TestCase.settings = settings(max_examples=15, stateful_step_count=12, deadline=None)
TestOnline = OnlineMachine.TestCase


def test_the_machine_reaches_pauses_last_releases_and_refusals() -> None:
    class Counting(OnlineMachine):
        reached: ClassVar[Counter[str]] = Counter()

    run_state_machine_as_test(
        Counting,
        settings=settings(
            max_examples=25, stateful_step_count=12, deadline=None, derandomize=True, database=None
        ),
    )
    for what in ("all", "part", "waited", "last", "refused"):
        assert Counting.reached[what] >= 10, Counting.reached


def test_the_shadow_notices_a_budget_that_is_a_little_too_large() -> None:
    machine = OnlineMachine()
    machine.begin("Fig. 8", 1.0)
    for _ in range(5):
        machine.spend_some(1.0, 1)
    machine.spend_as_if_it_were_the_last()
    machine.no_moment_leaks_over_alpha()
    machine.spent = [epsilon * (1 + 1e-9) for epsilon in machine.spent]
    with pytest.raises(AssertionError):
        machine.no_moment_leaks_over_alpha()


# Each of these was found broken -------------------------------------------------------------------


@pytest.mark.parametrize("rest", [1e-15, 1e-16])
def test_a_budget_of_nothing_is_never_given_out_as_if_it_were_one(rest: float) -> None:
    loss = LossFunction.of([[1 - rest, rest], [0.0, 1.0]])
    try:
        assert allocate(loss, loss, 1.0).constant > 0
    except InvalidParameter as refused:
        assert "rows 0 and 1" in str(refused)
    assert paper_budgets(loss, loss, 1.0, 3).min() > 0
