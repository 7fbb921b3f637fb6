"""Release every value at once, as it comes: the certified instantaneous release.

`InstantPlan` is the rule, frozen and public; `StreamState` is all that the next step needs, and
holds nothing the adversary could not compute; `InstantRelease` is a small object around the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.alphabet import Label
from sfumato.core.arrays import Floats
from sfumato.core.belief import Belief, Model
from sfumato.core.budgets import USELESS_BELOW, Allowance, Budget, as_budget
from sfumato.core.digest import digest
from sfumato.core.errors import BudgetExceeded, InsecureRandomness, InvalidParameter, UnknownSymbol
from sfumato.core.events import Event, Outcome
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.guard import Guarded
from sfumato.core.ledger import FREE, Charge, Ledger
from sfumato.core.loss import Loss, as_loss
from sfumato.core.numerics import UNIT, up
from sfumato.core.purpose import Fallback, Purpose
from sfumato.core.randomness import (
    Address,
    Domain,
    Randomness,
    categorical,
    integer_weights,
    secure,
)
from sfumato.core.state import StreamState
from sfumato.models.markov import MarkovChain
from sfumato.solver.design_methods import Method, design
from sfumato.solver.design_result import Design, silent
from sfumato.solver.policy import Policy

if TYPE_CHECKING:
    from sfumato.stream.single_stream import Solo

_LEAST_MASS = 1e-200
"""Below this the known error of a product is lost."""
_KEPT_CELLS = 4_000_000
"""How many channel weights a plan keeps for streams that stand alike."""


@dataclass(frozen=True, slots=True, eq=False)
class InstantPlan:
    """The rule of an instantaneous release: what each step does, as a pure function.

    Attributes:
        model: What the adversary is assumed to know; full support.
        budget: What may leak, step by step.
        loss: What it costs to release one symbol when another is true.
        method: How the channel of a step is found.
        on_exhausted: What leaves when the budget is gone.
        on_unknown: What leaves for a value outside the alphabet.
        purpose: `SIMULATION` admits `seeded()` coins; its states are no use to a real release.
        policy: Channels compiled for this chain, loss and method; a step then leaks at most what
            the policy was compiled for, and only beliefs it does not cover are solved.
        fingerprint: Identifies the plan; states carry it.
    """

    model: Model
    budget: Budget
    loss: Loss
    method: Method = Method.OPTIMAL
    on_exhausted: Fallback = Fallback.REFUSE
    on_unknown: Fallback = Fallback.REFUSE
    purpose: Purpose = Purpose.RELEASE
    policy: Policy | None = None
    fingerprint: str = field(init=False)
    _designs: Callable[[bytes, float, float | None], Design] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.model.full_support:
            raise InvalidParameter(
                "model", "zeros", "give every value some probability: fit it with a floor"
            )
        as_loss(self.loss, len(self.model.alphabet))
        if self.policy is not None:
            check_policy(self.policy, self.model, self.loss, self.method)
        if self.on_exhausted is Fallback.SUBSTITUTE:
            raise InvalidParameter("on_exhausted", "substitute", "be refuse, suppress or repeat")
        object.__setattr__(self, "fingerprint", self._digest())
        # Streams that stand alike share a design; it is a pure function of public things.
        kept = max(64, _KEPT_CELLS // len(self.loss) ** 2)
        object.__setattr__(self, "_designs", lru_cache(maxsize=kept)(self._solve))

    def _digest(self) -> str:
        return digest(
            "instant plan",
            2,
            self.model.fingerprint,
            repr(self.budget),
            self.loss.fingerprint,
            self.method.value,
            self.on_exhausted.value,
            self.on_unknown.value,
            self.purpose.value,
            None if self.policy is None else self.policy.fingerprint,
        )

    def address(self, stream: str, sequence: int) -> Address:
        """Where the coins of a moment are; another plan has others."""
        return Address(Domain.STREAM, self.fingerprint, stream, sequence)

    def begin(self, stream: str) -> StreamState:
        """The state before the first value of a stream."""
        return StreamState(self.fingerprint, stream, 0, self.model.first(), Ledger())

    def prepare(self, state: StreamState) -> Design | None:
        """The channel of the next step; None when the budget is gone. Public: needs no value."""
        self.check_own(state)
        ready = self._ready(state, self.allowance(state.ledger))
        return ready.design if ready and ready.covered else None

    def allowance(self, ledger: Ledger) -> Allowance:
        """What the next step may leak: what the budget says, and no more than the policy's part."""
        return within(self.budget.allowance(ledger), self.policy)

    def step(
        self, state: StreamState, value: object, randomness: Randomness
    ) -> tuple[Event, StreamState]:
        """Release one value.

        Args:
            state: Where the stream stands.
            value: The true symbol.
            randomness: Coins; `seeded()` ones only in a simulation.

        Raises:
            BudgetExceeded: If the budget is gone and the plan says to refuse.
            UnknownSymbol: If the value is not in the alphabet and the plan says to refuse.
            InsecureRandomness: If the coins can be guessed and this is no simulation.
        """
        self.check_own(state)
        if randomness.simulated and self.purpose is not Purpose.SIMULATION:
            raise InsecureRandomness("a release")
        allowance = self.allowance(state.ledger)
        ready = self._ready(state, allowance)
        if ready is None or not ready.covered:
            return self._exhausted(state, allowance, ready)
        coins = randomness.at(self.address(state.stream, state.sequence))
        try:
            place = self.model.alphabet.index(value)
        except UnknownSymbol:
            match self.on_unknown:
                case Fallback.REFUSE:
                    raise
                case Fallback.SUBSTITUTE:
                    place = drawn_from(state.belief.marginal, coins)
                case fallback:
                    return self._withheld(state, fallback)
        output = int(ready.design.channel.draw(place, coins.words(1))[0])
        return self._released(state, ready, output)

    def skip(self, state: StreamState) -> tuple[Event, StreamState]:
        """Let a moment pass without a release; the belief moves on, nothing is spent."""
        self.check_own(state)
        return self._moved(state, Outcome.SKIPPED, None, state.last)

    def observe(
        self, state: StreamState, output: Label | None, outcome: Outcome = Outcome.RELEASED
    ) -> tuple[Event, StreamState]:
        """What anybody can compute who sees an output: its certificates and the belief after it.

        Raises:
            InvalidParameter: If this plan could not have produced the output here.
        """
        self.check_own(state)
        if outcome is not Outcome.RELEASED:
            return self._observed_silence(state, output, outcome)
        ready = self._ready(state, self.allowance(state.ledger))
        if ready is None or not ready.covered:
            raise InvalidParameter("output", "a release", "not occur: the budget was gone")
        place = self.model.alphabet.index(output)
        if place not in ready.design.channel.outputs:
            raise InvalidParameter("output", output, "be one that the channel can release")
        return self._released(state, ready, place)

    def _observed_silence(
        self, state: StreamState, output: Label | None, outcome: Outcome
    ) -> tuple[Event, StreamState]:
        """A moment at which nothing new left, if the plan has such moments here."""
        due, following = self.skip(state)
        if outcome is not Outcome.SKIPPED:
            gone = self.prepare(state) is None
            fallback = self.on_exhausted if gone else self.on_unknown
            if fallback not in (Fallback.SUPPRESS, Fallback.REPEAT):
                raise InvalidParameter("outcome", outcome.value, "be one that the plan allows here")
            due, following = self._withheld(state, fallback)
        if (output, outcome) != (due.released, due.outcome):
            raise InvalidParameter("output", outcome.value, "be what the plan lets leave here")
        return due, following

    def check_own(self, state: StreamState) -> None:
        """Refuse a state that another plan made."""
        if state.plan != self.fingerprint:
            raise InvalidParameter(
                "state", "that of another plan", "come from this model, budget, loss and method"
            )

    def _ready(self, state: StreamState, allowance: Allowance) -> _Ready | None:
        """The channel of the next step and its price; None when the budget is gone."""
        if allowance.exhausted:
            return None
        if self.policy is not None and allowance.useful:
            from sfumato.stream.compiled_steps import kept_channel

            assert isinstance(self.model, MarkovChain)
            kept = kept_channel(self.model, self.loss, self.policy, state, allowance)
            if kept is not None:
                return _Ready(*kept, covered=True)
        found = self._design(state, allowance)
        charge = _charge(found, state.belief)
        return _Ready(found, charge, allowance.covers(charge.sip, charge.ldp))

    def _design(self, state: StreamState, allowance: Allowance) -> Design:
        # What rounding may have done to the belief is paid for out of the allowance; in powers of
        # two, so that successive steps ask for the same epsilon.
        spare = 4 * state.belief.error + 8 * UNIT * allowance.sip if state.belief.error else 0.0
        spare = 2.0 ** math.ceil(math.log2(spare)) if spare else 0.0
        epsilon = min(allowance.sip - spare, checks.MAX_EPSILON)
        if not allowance.useful or epsilon < USELESS_BELOW / 2:
            # Too little to tell anything with: a constant costs nothing, and the stream goes on.
            return silent(state.belief.marginal, self.loss)
        cap = None if allowance.ldp is None else min(allowance.ldp, checks.MAX_EPSILON)
        return self._designs(state.belief.marginal.tobytes(), epsilon, cap)

    def _solve(self, belief: bytes, epsilon: float, cap: float | None) -> Design:
        marginal = np.frombuffer(belief, dtype=np.float64)
        return design(self.method, marginal, self.loss, epsilon, ldp=cap)

    def _exhausted(
        self, state: StreamState, allowance: Allowance, refused: _Ready | None
    ) -> tuple[Event, StreamState]:
        if self.on_exhausted is not Fallback.REFUSE:
            return self._withheld(state, self.on_exhausted)
        wanted: object = "something"
        if refused is not None:
            wanted = f"{SIP(refused.charge.sip)} and {LDP(refused.charge.ldp)}"
        raise BudgetExceeded(state.stream, state.sequence, wanted, allowance)

    def _withheld(self, state: StreamState, fallback: Fallback) -> tuple[Event, StreamState]:
        if fallback is Fallback.REPEAT and state.last is not None:
            return self._moved(state, Outcome.REPEATED, state.last, state.last)
        return self._moved(state, Outcome.SUPPRESSED, None, state.last)

    def _released(
        self, state: StreamState, ready: _Ready, output: int
    ) -> tuple[Event, StreamState]:
        informed, channel = state.belief, ready.design.channel
        if not channel.is_constant:
            informed = informed.weighted(channel.likelihood(output))
        return self._moved(
            replace(state, belief=informed), Outcome.RELEASED, output, output, ready.charge
        )

    def _moved(
        self,
        state: StreamState,
        outcome: Outcome,
        output: int | None,
        last: int | None,
        charge: Charge = FREE,
    ) -> tuple[Event, StreamState]:
        label = None if output is None else self.model.alphabet.labels[output]
        sip, ldp = SIP(charge.sip), LDP(charge.ldp)
        event = Event(state.stream, state.sequence, outcome, label, sip, ldp)
        following = replace(
            state,
            sequence=state.sequence + 1,
            belief=self.model.following(state.belief),
            ledger=state.ledger.charged(charge, self.budget.memory),
            last=last,
        )
        return event, following


@dataclass(frozen=True, slots=True)
class _Ready:
    """The channel of a step, its price, and whether the allowance covers that."""

    design: Design
    charge: Charge
    covered: bool


class InstantRelease(Guarded):
    """Release a stream value by value.

    Args:
        model: What the adversary is assumed to know; full support.
        budget: What may leak: a `SIP` amount for every step, or a `Horizon`, `Window` or
            `Geometric` total.
        loss: What it costs to release one symbol when another is true.
        method: How the channel of a step is found; the optimum unless said otherwise.
        on_exhausted: What leaves when the budget is gone: refuse, suppress or repeat.
        on_unknown: What leaves for a value outside the alphabet: refuse, suppress, repeat or
            substitute.
        stream: Name of the stream.
        randomness: Coins; fresh ones from `secure()` unless given.
        state: Where to go on; a new stream if not given.
        purpose: Name a simulation to use `seeded()` coins.
        policy: Channels from `compile_policy`: a value then takes microseconds.

    Examples:
        >>> from sfumato.core.loss import hamming
        >>> from sfumato.models.markov import MarkovChain
        >>> chain = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> release = InstantRelease(chain, budget=SIP(0.5), loss=hamming(chain.alphabet))
        >>> private = [release(value) for value in [0, 0, 1, 1]]
        >>> release.ledger.spent[0] <= SIP(2.0)
        True
    """

    def __init__(
        self,
        model: Model,
        *,
        budget: Budget | SIP,
        loss: Loss | ArrayLike,
        method: Method | str = Method.OPTIMAL,
        on_exhausted: Fallback | str = Fallback.REFUSE,
        on_unknown: Fallback | str = Fallback.REFUSE,
        stream: str = "stream",
        randomness: Randomness | None = None,
        state: StreamState | None = None,
        purpose: Purpose | str = Purpose.RELEASE,
        policy: Policy | None = None,
    ) -> None:
        self.plan = InstantPlan(
            model=model,
            budget=as_budget(budget),
            loss=loss if isinstance(loss, Loss) else Loss("matrix", np.asarray(loss)),
            method=Method(method),
            on_exhausted=Fallback(on_exhausted),
            on_unknown=Fallback(on_unknown),
            purpose=Purpose(purpose),
            policy=policy,
        )
        self._randomness = secure() if randomness is None else randomness
        self._state = self.plan.begin(stream) if state is None else state
        self.plan.check_own(self._state)
        self._solo = None if policy is None else _solo(self.plan, self._state, self._randomness)

    def __call__(self, value: object) -> Label | None:
        """Release one value; None when it was suppressed."""
        with self._lock:
            if self._solo is not None:
                place = self._quick(self._solo, value)
                if place >= 0:
                    return self.plan.model.alphabet.labels[place]
            return self._slow(value).released

    def step(self, value: object) -> Event:
        """Release one value and say what it cost."""
        with self._lock:
            if self._solo is not None:
                place = self._quick(self._solo, value)
                if place >= 0:
                    return self._solo.event(place)
            return self._slow(value)

    def _quick(self, solo: Solo, value: object) -> int:
        place = self.plan.model.alphabet.place(value)
        return place if place < 0 else solo.release(place, self._randomness)

    def _slow(self, value: object) -> Event:
        return self._gone_on(*self.plan.step(self._now(), value, self._randomness))

    def skip(self) -> Event:
        """Let a moment pass without a release."""
        with self._lock:
            return self._gone_on(*self.plan.skip(self._now()))

    def _gone_on(self, event: Event, state: StreamState) -> Event:
        if self._solo is not None:
            self._solo.put(state)
        self._state = state
        return event

    def over(self, values: Iterable[object]) -> Iterator[Event]:
        """Release many values, one by one, as they come."""
        return (self.step(value) for value in values)

    @property
    def state(self) -> StreamState:
        """Where the stream stands: store it, and go on from it later."""
        with self._lock:
            return self._now()

    def _now(self) -> StreamState:
        return self._state if self._solo is None else self._solo.state()

    @property
    def ledger(self) -> Ledger:
        """What was spent so far."""
        return self.state.ledger


def _solo(plan: InstantPlan, state: StreamState, randomness: Randomness) -> Solo:
    from sfumato.stream.single_stream import Solo

    if randomness.simulated and plan.purpose is not Purpose.SIMULATION:
        raise InsecureRandomness("a release")
    return Solo(plan, state)


def check_policy(policy: Policy, model: Model, loss: Loss, method: Method) -> None:
    """Refuse a policy that was compiled for something else, or cannot be used with this model."""
    made_for = (model.fingerprint, loss.fingerprint, method.value)
    if not isinstance(model, MarkovChain) or made_for != (
        policy.chain,
        policy.loss,
        policy.method,
    ):
        rule = "be compiled for this chain, loss and method, and this length of batch"
        raise InvalidParameter("policy", "one made for something else", rule)
    if policy.size != model.size:
        raise InvalidParameter("policy", policy.size, f"be for {model.size} symbols")
    least = min(model.floor**model.order, float(model.initial.min()))
    if least < _LEAST_MASS:
        rule = f"keep every belief above {_LEAST_MASS:g} to be used with a policy; raise its floor"
        raise InvalidParameter("model", f"{least:g}", rule)


def within(due: Allowance, policy: Policy | None) -> Allowance:
    """What a step may leak: what is due to it, and no more than its policy was compiled for."""
    if policy is None:
        return due
    sip, ldp = policy.allowed
    cap = ldp if due.ldp is None else min(due.ldp, ldp)
    return Allowance(min(due.sip, sip), None if math.isinf(cap) else cap)


def _charge(prepared: Design, belief: Belief) -> Charge:
    """Exact leakage under the exact belief; the model-free one bounds it too."""
    if prepared.channel.is_constant:
        return FREE
    sip = up(prepared.sip.epsilon + 2 * belief.error) if belief.error else prepared.sip.epsilon
    return Charge(min(sip, prepared.ldp.epsilon), prepared.ldp.epsilon)


def drawn_from(masses: Floats, coins: Randomness) -> int:
    """A symbol, or a part of batches, as the adversary expects it: one that tells him nothing."""
    cumulative = integer_weights(masses[None, :]).cumsum(axis=1)
    return int(categorical(cumulative, np.zeros(1, dtype=np.int64), coins.words(1))[0])
