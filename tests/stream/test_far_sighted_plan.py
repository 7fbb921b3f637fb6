"""Far-sighted streams: certificates over all sequences, signals, and what sight is worth."""

from functools import cache

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss
from sfumato.solver.value_function import ValueFunction
from sfumato.solver.value_iteration import Effort
from sfumato.stream.look_ahead import look_ahead
from sfumato.stream.plan import Plan
from tests.oracles.far_sighted_sequences import assert_charges_cover_every_sequence

SECOND = [[0.9, 0.1], [0.3, 0.7], [0.6, 0.4], [0.2, 0.8]]
CHAINS = {
    "2": sf.MarkovChain.from_matrix([[0.9, 0.1], [0.3, 0.7]]),
    "3": sf.MarkovChain.from_matrix([[0.9, 0.07, 0.03], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]]),
    "order 2": sf.MarkovChain.from_matrix(SECOND),
}
LITTLE = Effort(beliefs=(20,), depths=(4,), turns=4, walked=60, judged=100)


@cache
def sight(name: str, epsilon: float, price: float = 0.0, width: int = 1) -> ValueFunction:
    chain = CHAINS[name]
    losses = sf.loss.hamming(chain.alphabet)
    return look_ahead(chain, losses, epsilon * width, price=price, width=width, effort=LITTLE)


def plan_of(
    name: str, epsilon: float, price: float = 0.0, width: int = 1, **options: object
) -> Plan:
    chain, ahead = CHAINS[name], sight(name, epsilon, price, width)
    losses, budget = sf.loss.hamming(chain.alphabet), sf.PerStep(sf.SIP(epsilon))
    far = sf.Method.FAR_SIGHTED
    return Plan(chain, budget, losses, width, method=far, sight=ahead, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "epsilon", "price", "lengths"),
    [
        ("2", 0.7, 0.0, (1,) * 5),
        ("3", 0.6, 0.0, (1,) * 3),
        ("3", 0.8, 0.05, (1,) * 3),
        ("order 2", 0.7, 0.0, (1,) * 4),
        ("2", 0.5, 0.0, (2, 2, 1)),
        pytest.param("3", 0.6, 0.0, (1,) * 5, marks=pytest.mark.slow),
        pytest.param("order 2", 0.7, 0.05, (1,) * 6, marks=pytest.mark.slow),
        pytest.param("3", 0.4, 0.0, (2, 2), marks=pytest.mark.slow),
        pytest.param("2", 0.3, 0.0, (3, 3, 2), marks=pytest.mark.slow),
    ],
)
def test_the_charges_cover_every_sequence(
    name: str, epsilon: float, price: float, lengths: tuple[int, ...]
) -> None:
    plan = plan_of(name, epsilon, price, max(lengths))
    assert_charges_cover_every_sequence(plan, lengths)


def test_signals_tell_outputs_of_one_symbol_apart() -> None:
    plan = plan_of("2", 0.7)
    coins = sf.keyed(bytes(range(32)))
    state, twice = plan.begin("s"), 0
    for _ in range(20):
        ready = plan.prepare(state)
        assert ready is not None
        same = len(ready.patterns) > len(np.unique(ready.patterns))
        (event,), following = plan.step(state, [0], coins)
        assert event.signal is not None
        seen, watched = plan.observe(state, [event.released], signal=event.signal)
        assert seen == (event,)
        assert (watched.belief.joint == following.belief.joint).all()
        twice += same
        state = following
    assert twice > 0


def test_a_signal_must_fit() -> None:
    plan, blind = plan_of("2", 0.7), Plan(CHAINS["2"], sf.PerStep(sf.SIP(0.7)), hamming("2"))
    (event,), _ = plan.step(plan.begin("s"), [0], sf.secure())
    for signal in (None, 7):
        with pytest.raises(InvalidParameter, match=r"signal|output"):
            plan.observe(plan.begin("s"), [event.released], signal=signal)
    with pytest.raises(InvalidParameter, match="signal"):
        blind.observe(blind.begin("s"), [0], signal=0)


def hamming(name: str) -> Loss:
    return sf.loss.hamming(CHAINS[name].alphabet)


def test_the_value_function_is_part_of_the_rule() -> None:
    plans = [plan_of("2", 0.7), plan_of("2", 0.7, price=0.1)]
    assert plans[0].fingerprint != plans[1].fingerprint
    assert plans[0].fingerprint == plan_of("2", 0.7).fingerprint
    batches = [plan_of("2", 0.7, price, width=2) for price in (0.0, 0.1)]
    assert batches[0].fingerprint != batches[1].fingerprint


def test_a_plan_looks_ahead_by_itself() -> None:
    budget = sf.PerStep(sf.SIP(0.7))
    plan = Plan(CHAINS["2"], budget, hamming("2"), method=sf.Method.FAR_SIGHTED)
    assert plan.fingerprint == plan_of("2", 0.7).fingerprint


def test_what_cannot_look_ahead_is_refused() -> None:
    far, one = sf.Method.FAR_SIGHTED, sight("2", 0.7)
    step = sf.PerStep(sf.SIP(0.7))
    with pytest.raises(InvalidParameter, match="sight"):
        Plan(CHAINS["2"], sf.Horizon(sf.SIP(3.0), 10), hamming("2"), method=far)
    with pytest.raises(InvalidParameter, match="batch"):
        Plan(CHAINS["2"], step, hamming("2"), 2, method=far, sight=one)
    with pytest.raises(InvalidParameter, match="sight"):
        Plan(CHAINS["2"], step, hamming("2"), 2, 2, method=far, sight=sight("2", 0.7, width=2))
    with pytest.raises(InvalidParameter, match="4096 batches"):
        Plan(CHAINS["2"], step, hamming("2"), 13, method=far)
    with pytest.raises(InvalidParameter, match="boxes"):
        seen = sight("2", 0.7, width=2)
        Plan(CHAINS["2"], step, hamming("2"), 2, listed=3, method=far, sight=seen)
    with pytest.raises(InvalidParameter, match="order 1 for batches"):
        Plan(CHAINS["order 2"], step, hamming("2"), 2, method=far)
    with pytest.raises(InvalidParameter, match="sight"):
        Plan(CHAINS["2"], step, hamming("2"), sight=one)
    with pytest.raises(InvalidParameter, match="sight"):
        Plan(CHAINS["3"], step, hamming("3"), method=far, sight=one)


def test_a_horizon_takes_what_it_is_given() -> None:
    """With another budget the value function is a guess, and the certificate is what it was."""
    budget, far = sf.Horizon(sf.SIP(2.0), 6), sf.Method.FAR_SIGHTED
    plan = Plan(CHAINS["2"], budget, hamming("2"), method=far, sight=sight("2", 0.7))
    state, spent = plan.begin("s"), 0.0
    for _ in range(6):
        (event,), state = plan.step(state, [1], sf.secure())
        spent += event.sip.epsilon
    assert 0 < spent <= 2.0


def test_model_free_leakage_is_capped() -> None:
    budget = sf.PerStep(sf.SIP(0.7), sf.LDP(0.5))
    for size in ("2", "3"):
        far = sf.Method.FAR_SIGHTED
        plan = Plan(CHAINS[size], budget, hamming(size), method=far, sight=sight(size, 0.7))
        (event,), _ = plan.step(plan.begin("s"), [1], sf.secure())
        assert event.ldp.epsilon <= 0.5
