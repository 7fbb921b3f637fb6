"""Release whole batches of values: they wait for each other, and lose less.

`BatchedPlan` is the rule, frozen and public. The state of a stream is that of an instantaneous
release: the adversary's belief about the next value (or, under a library, the next pattern), the
ledger and the moment, counted in values; so batches may have different lengths. `BatchedRelease`
is a small object around the two that keeps values until a batch is complete.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _checks
from sfumato._digest import digest
from sfumato._numerics import UNIT, up
from sfumato.accounting.allocation import EXHAUSTED_BELOW, Allowance, Budget, as_budget
from sfumato.accounting.events import Event, Outcome
from sfumato.accounting.ledger import FREE, Charge, Ledger
from sfumato.alphabet import Label
from sfumato.batch_loss import BatchLoss, as_batch_loss, listed
from sfumato.design.batch import LISTED, design_batch
from sfumato.design.library import design_kept
from sfumato.design.methods import Method, design
from sfumato.design.parts import BatchDesign, Begun, Believed, Parts
from sfumato.design.policy import Policy
from sfumato.errors import BudgetExceeded, InsecureRandomness, InvalidParameter, UnknownSymbol
from sfumato.guarantees import LDP, SIP
from sfumato.loss import Loss
from sfumato.models.batches import chain_of_batches
from sfumato.models.belief import Belief
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.randomness import Randomness, categorical, integer_weights, secure
from sfumato.streaming.compiled import kept_channel
from sfumato.streaming.instant import Fallback, InstantState, Purpose, check_policy, within

_KEPT_CELLS = 8_000_000
"""How many numbers the designs may hold that a plan keeps for streams that stand alike."""


@dataclass(frozen=True, slots=True, eq=False)
class BatchedPlan:
    """The rule of a batched release: what each batch does, as a pure function.

    Under a library the belief of a state is about the pattern of the last batch.

    Attributes:
        model: What the adversary is assumed to know; full support.
        budget: What may leak; its steps are values, so a batch of 5 may leak what 5 values may.
        loss: What it costs to release one batch when another is true; a loss of single values
            adds up.
        width: Most values of a batch.
        memory: How many batches the channel looks at, the current one included. More than
            one cannot lower the loss of a batch (docs/design.md); the paper allows it.
        method: How the channel is found.
        on_exhausted: What leaves when the budget is gone.
        on_unknown: What leaves for a batch with a value outside the alphabet.
        purpose: `SIMULATION` admits `seeded()` coins; its states are no use to a real release.
        listed: Batches up to which each is a part of its own; beyond, boxes of batches are.
        policy: Channels compiled for this chain, loss, method and width; a batch then leaks at
            most what the policy was compiled for. The belief of a state is about whole batches.
        fingerprint: Identifies the plan; states carry it.
    """

    model: MarkovChain | PatternLibrary
    budget: Budget
    loss: BatchLoss
    width: int
    memory: int = 1
    method: Method = Method.OPTIMAL
    on_exhausted: Fallback = Fallback.REFUSE
    on_unknown: Fallback = Fallback.REFUSE
    purpose: Purpose = Purpose.RELEASE
    listed: int = LISTED
    policy: Policy | None = None
    fingerprint: str = field(init=False)
    _chain: MarkovChain = field(init=False, repr=False)
    _designs: Callable[..., BatchDesign] = field(init=False, repr=False)
    _whole_batches: tuple[NDArray[np.int64], Loss] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.model.full_support:
            raise InvalidParameter(
                "model", "zeros", "give every value some probability: fit it with a floor"
            )
        as_batch_loss(self.loss, len(self.model.alphabet))
        _checks.count("width", self.width)
        if self.on_exhausted is Fallback.SUBSTITUTE:
            raise InvalidParameter("on_exhausted", "substitute", "be refuse, suppress or repeat")
        object.__setattr__(self, "_chain", self._looked_back())
        if self.policy is not None:
            patterns = listed(len(self.model.alphabet), self.width)
            object.__setattr__(self, "_whole_batches", (patterns, self.loss.between(patterns)))
            check_policy(self.policy, self.chain, self._whole_batches[1], self.method)
        object.__setattr__(self, "fingerprint", self._digest())
        # Streams that stand alike share a design; it is a pure function of public things.
        held = min(self.listed, len(self.model.alphabet) ** min(self.width, 40))
        held = held * 64 + self._chain.size**self._chain.order * 200 * (held == self.listed)
        kept = lru_cache(maxsize=max(4, _KEPT_CELLS // held))(self._solve)
        object.__setattr__(self, "_designs", kept)

    @property
    def chain(self) -> MarkovChain:
        """What beliefs are about: values, kept patterns or, with a policy, whole batches."""
        return self._chain

    def _looked_back(self) -> MarkovChain:
        """The chain, told so that a belief covers all the values that a channel looks at."""
        back = (_checks.count("memory", self.memory) - 1) * self.width
        if self.policy is not None:
            if isinstance(self.model, PatternLibrary) or back:
                raise InvalidParameter("policy", "one", "not be given with a library or memory")
            return chain_of_batches(self.model, self.width)
        if isinstance(self.model, MarkovChain):
            return self.model if not back else self.model.lifted(max(self.model.order, back + 1))
        if back:
            raise InvalidParameter("memory", self.memory, "be 1 with a library")
        if self.width != self.model.width:
            rule = f"be that of the library, {self.model.width}"
            raise InvalidParameter("width", self.width, rule)
        return self.model.chain

    def _digest(self) -> str:
        return digest(
            "batched plan",
            1,
            self.model.fingerprint,
            repr(self.budget),
            self.loss.fingerprint(self._batches),
            self.width,
            self.memory,
            self.method.value,
            self.on_exhausted.value,
            self.on_unknown.value,
            self.purpose.value,
            self.listed,
            None if self.policy is None else self.policy.fingerprint,
        )

    def _batches(self) -> Iterator[NDArray[np.int64]]:
        """The batches of each length that a loss is asked about."""
        for length in range(1, self.width + 1):
            if isinstance(self.model, PatternLibrary):
                yield self.model.patterns[self.model.of_length(length), :length]
            elif self.model.size**self.width <= self.listed:
                yield listed(self.model.size, length)
            else:
                rule = f"have at most {self.listed} batches for a loss of this form"
                raise InvalidParameter("width", self.width, rule)

    def begin(self, stream: str) -> InstantState:
        """The state before the first value of a stream."""
        return InstantState(self.fingerprint, stream, 0, self._first(), Ledger())

    def _first(self) -> Belief:
        if isinstance(self.model, PatternLibrary):
            return self.model.first()
        first, more = self._chain.first(), self._chain.initial.size // self.model.initial.size
        # Probabilities of more values than the model has are products, each off by some roundings.
        return first if more == 1 else replace(first, drift=8 * more * UNIT)

    def recalled(self, state: InstantState) -> int:
        """How many past values the channel of the next batch looks at."""
        return min((self.memory - 1) * self.width, state.sequence)

    def prepare(self, state: InstantState, values: int | None = None) -> BatchDesign | None:
        """The channel of the next batch; None when the budget is gone. Public: needs no value."""
        self.check_own(state)
        length = self._length(self.width if values is None else values)
        ready = self._ready(state, length, self.allowance(state.ledger, length))
        return ready.found if ready and ready.covered else None

    def allowance(self, ledger: Ledger, values: int) -> Allowance:
        """What the next batch may leak: what the budget says, at most the policy's part."""
        return within(self.budget.allowance(ledger, values), self.policy)

    def step(
        self,
        state: InstantState,
        values: Sequence[object],
        randomness: Randomness,
        recalled: Sequence[object] = (),
    ) -> tuple[tuple[Event, ...], InstantState]:
        """Release one batch.

        Args:
            state: Where the stream stands.
            values: The true symbols of the batch, at most `width` of them.
            randomness: Coins; `seeded()` ones only in a simulation.
            recalled: The true symbols before them that the channel looks at, with a memory of
                more than one batch.

        Raises:
            BudgetExceeded: If the budget is gone and the plan says to refuse.
            UnknownSymbol: If a value is not in the alphabet and the plan says to refuse.
            InsecureRandomness: If the coins can be guessed and this is no simulation.
        """
        self.check_own(state)
        length = self._length(len(values))
        if len(recalled) != self.recalled(state):
            rule = f"be the {self.recalled(state)} true values before the batch"
            raise InvalidParameter("recalled", f"{len(recalled)} values", rule)
        if randomness.simulated and self.purpose is not Purpose.SIMULATION:
            raise InsecureRandomness("a release")
        allowance = self.allowance(state.ledger, length)
        ready = self._ready(state, length, allowance)
        if ready is None or not ready.covered:
            return self._exhausted(state, length, allowance, ready)
        coins = randomness.at(state.stream, state.sequence)
        places = [self.model.alphabet.place(value) for value in (*recalled, *values)]
        parts = ready.found.parts
        if min(places) >= 0:
            part = parts.part(places)
        elif self.on_unknown is Fallback.REFUSE:
            raise UnknownSymbol(len(self.model.alphabet))
        elif self.on_unknown is Fallback.SUBSTITUTE:
            part = _drawn_from(parts, coins)
        else:
            return self._withheld(state, length, self.on_unknown)
        output = int(ready.found.design.channel.draw(part, coins.words(1))[0])
        return self._released(state, length, ready, output)

    def skip(self, state: InstantState, values: int = 1) -> tuple[tuple[Event, ...], InstantState]:
        """Let some moments pass without a release; the belief moves on, nothing is spent."""
        self.check_own(state)
        return self._silent(state, self._length(values), Outcome.SKIPPED, None)

    def observe(
        self,
        state: InstantState,
        outputs: Sequence[Label | None],
        outcome: Outcome = Outcome.RELEASED,
    ) -> tuple[tuple[Event, ...], InstantState]:
        """What anybody can compute who sees a released batch: certificates and the belief after it.

        Raises:
            InvalidParameter: If this plan could not have produced the batch here.
        """
        self.check_own(state)
        length = self._length(len(outputs))
        if outcome is not Outcome.RELEASED:
            return self._observed_silence(state, outputs, outcome)
        ready = self._ready(state, length, self.allowance(state.ledger, length))
        if ready is None or not ready.covered:
            raise InvalidParameter("batch", "a release", "not occur: the budget was gone")
        told = self.model.alphabet.indices(outputs)
        possible = ready.found.design.channel.outputs
        same = np.flatnonzero((ready.found.patterns[possible] == told).all(axis=1))
        if not same.size:
            raise InvalidParameter("batch", "another", "be one that the channel can release")
        return self._released(state, length, ready, int(possible[same[0]]))

    def _observed_silence(
        self, state: InstantState, outputs: Sequence[Label | None], outcome: Outcome
    ) -> tuple[tuple[Event, ...], InstantState]:
        due, following = self.skip(state, len(outputs))
        if outcome is not Outcome.SKIPPED:
            gone = self.prepare(state, len(outputs)) is None
            fallback = self.on_exhausted if gone else self.on_unknown
            if fallback not in (Fallback.SUPPRESS, Fallback.REPEAT):
                raise InvalidParameter("outcome", outcome.value, "be one that the plan allows here")
            due, following = self._withheld(state, len(outputs), fallback)
        if [(label, outcome) for label in outputs] != [(e.released, e.outcome) for e in due]:
            raise InvalidParameter("batch", outcome.value, "be what the plan lets leave here")
        return due, following

    def check_own(self, state: InstantState) -> None:
        """Refuse a state that another plan made."""
        if state.plan != self.fingerprint:
            rule = "come from this model, budget, loss, method and width"
            raise InvalidParameter("state", "that of another plan", rule)

    def _length(self, values: int) -> int:
        if _checks.count("values", values) > self.width:
            raise InvalidParameter("values", values, f"be at most a batch of {self.width}")
        return values

    def _ready(self, state: InstantState, length: int, allowance: Allowance) -> _Ready | None:
        """The channel of the next batch and its price; None when the budget is gone."""
        if allowance.exhausted:
            return None
        if self.policy is not None and length == self.width:
            patterns, loss = self._whole_batches
            kept = kept_channel(self._chain, loss, self.policy, state, allowance)
            if kept is not None:
                parts = Believed(self._chain, state.belief, len(self.model.alphabet))
                found = BatchDesign(parts, kept[0], patterns, exact=True)
                return _Ready(found, kept[1], covered=True, drift=0.0)
        # What rounding does to beliefs and to masses of parts is paid for out of the allowance; in
        # powers of two, so that successive steps ask for the same epsilon.
        spare = 2 * self._rounding(state.belief, length) + 8 * UNIT * allowance.sip
        epsilon = min(allowance.sip - 2.0 ** math.ceil(math.log2(spare)), _checks.MAX_EPSILON)
        if epsilon < EXHAUSTED_BELOW / 2:
            return None
        cap = None if allowance.ldp is None else min(allowance.ldp, _checks.MAX_EPSILON)
        belief = state.belief
        found = self._designs(
            belief.joint.tobytes(), belief.axis, length, self.recalled(state), epsilon, cap
        )
        charge = _charge(found, belief.drift)
        return _Ready(found, charge, allowance.covers(charge.sip, charge.ldp), belief.drift)

    def _rounding(self, belief: Belief, length: int) -> float:
        """A bound on `Parts.error` that is known before the parts are."""
        moves = length * (6 * self._chain.size + 32) + 2 * belief.joint.size
        return 2 * (belief.drift + (moves + 64) * UNIT)

    def _solve(
        self,
        joint: bytes,
        axis: int,
        length: int,
        recalled: int,
        epsilon: float,
        cap: float | None,
    ) -> BatchDesign:
        # A design is shared by beliefs with other histories: their drift is charged on top.
        held = np.frombuffer(joint, dtype=np.float64)
        if isinstance(self.model, PatternLibrary):
            last = Belief(held)
            return design_kept(
                self.model, last, length, self.loss, epsilon, ldp=cap, method=self.method
            )
        belief = Belief(held.reshape((self._chain.size,) * self._chain.order), axis)
        if self.policy is not None:
            return self._whole(belief, length, epsilon, cap)
        return design_batch(
            self._chain,
            belief,
            length,
            self.loss,
            epsilon,
            ldp=cap,
            method=self.method,
            recalled=recalled,
            most=self.listed,
        )

    def _whole(self, belief: Belief, length: int, epsilon: float, cap: float | None) -> BatchDesign:
        """The channel under a belief about whole batches that the policy does not cover."""
        assert isinstance(self.model, MarkovChain)
        parts: Parts = Believed(self._chain, belief, self.model.size)
        if length < self.width:
            parts = Begun(self.model, belief, self.width, length)
        patterns = listed(self.model.size, length)
        loss = self.loss.between(patterns)
        found = design(self.method, parts.masses, loss, epsilon, ldp=cap)
        return BatchDesign(parts, found, patterns, exact=True)

    def _exhausted(
        self, state: InstantState, length: int, allowance: Allowance, refused: _Ready | None
    ) -> tuple[tuple[Event, ...], InstantState]:
        if self.on_exhausted is not Fallback.REFUSE:
            return self._withheld(state, length, self.on_exhausted)
        wanted: object = "something"
        if refused is not None:
            wanted = f"{SIP(refused.charge.sip)} and {LDP(refused.charge.ldp)}"
        raise BudgetExceeded(state.stream, state.sequence, wanted, allowance)

    def _withheld(
        self, state: InstantState, length: int, fallback: Fallback
    ) -> tuple[tuple[Event, ...], InstantState]:
        if fallback is Fallback.REPEAT and state.last is not None:
            return self._silent(state, length, Outcome.REPEATED, state.last)
        return self._silent(state, length, Outcome.SUPPRESSED, None)

    def _silent(
        self, state: InstantState, length: int, outcome: Outcome, told: int | None
    ) -> tuple[tuple[Event, ...], InstantState]:
        """A batch that tells nothing."""
        belief = state.belief
        if isinstance(self.model, PatternLibrary):
            masses, error = self.model.ahead(belief, length)
            belief = self.model.after(masses, length, np.ones(masses.size), error)
        elif self.policy is not None and length == self.width:
            belief = self._chain.following(belief)
        elif self.policy is not None:
            begun = Begun(self.model, belief, self.width, length)
            belief = begun.after(np.ones(begun.masses.size))
        else:
            for _ in range(length):
                belief = self._chain.following(belief)
        return self._moved(state, outcome, [told] * length, FREE, belief, state.last)

    def _released(
        self, state: InstantState, length: int, ready: _Ready, output: int
    ) -> tuple[tuple[Event, ...], InstantState]:
        places = ready.found.patterns[output].tolist()
        if ready.found.design.channel.is_constant:
            silent = self._silent(state, length, Outcome.SKIPPED, None)[1].belief
            return self._moved(state, Outcome.RELEASED, places, FREE, silent, places[-1])
        informed = ready.found.parts.after(ready.found.design.channel.likelihood(output))
        belief = replace(informed, drift=informed.drift + ready.drift)
        return self._moved(state, Outcome.RELEASED, places, ready.charge, belief, places[-1])

    def _moved(
        self,
        state: InstantState,
        outcome: Outcome,
        told: Sequence[int | None],
        charge: Charge,
        belief: Belief,
        last: int | None,
    ) -> tuple[tuple[Event, ...], InstantState]:
        labels = self.model.alphabet.labels
        events = tuple(
            Event(
                stream=state.stream,
                sequence=state.sequence + offset,
                outcome=outcome,
                released=None if place is None else labels[place],
                sip=SIP(charge.sip if offset == len(told) - 1 else 0.0),
                ldp=LDP(charge.ldp if offset == len(told) - 1 else 0.0),
                batch=state.sequence,
            )
            for offset, place in enumerate(told)
        )
        following = replace(
            state,
            sequence=state.sequence + len(told),
            belief=belief,
            ledger=state.ledger.charged(charge, self.budget.memory, len(told)),
            last=last,
        )
        return events, following


@dataclass(frozen=True, slots=True)
class _Ready:
    """The channel of a batch, its price, and whether the allowance covers that.

    Attributes:
        drift: That of the state's belief, where the parts do not know it.
    """

    found: BatchDesign
    charge: Charge
    covered: bool
    drift: float


class BatchedRelease:
    """Release a stream in batches: a value waits until its batch is complete.

    Args:
        model: What the adversary is assumed to know; full support.
        width: Values of a batch.
        budget: What may leak, in values: a `SIP` amount for every value, or a `Horizon`, `Window`
            or `Geometric` total. A batch may leak what its values could have leaked one by one.
        loss: What it costs to release one batch when another is true; a loss of single values
            adds up.
        memory: How many batches the channel looks at.
        method: How the channel of a batch is found; the optimum unless said otherwise.
        on_exhausted: What leaves when the budget is gone: refuse, suppress or repeat.
        on_unknown: What leaves for a batch with a value outside the alphabet.
        stream: Name of the stream.
        randomness: Coins; fresh ones from `secure()` unless given.
        state: Where to go on; a new stream if not given.
        recalled: With a memory of more than one batch, the true values before that state.
        purpose: Name a simulation to use `seeded()` coins.
        listed: Batches up to which each is a part of its own.
        policy: Channels from `compile_policy(..., width=)`: a batch then takes microseconds.

    Examples:
        >>> from sfumato.loss import hamming
        >>> chain = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> release = BatchedRelease(chain, width=3, budget=SIP(0.5), loss=hamming(chain.alphabet))
        >>> [len(release.add(value)) for value in [0, 0, 1, 1]]
        [0, 0, 3, 0]
        >>> release.waiting, len(release.flush())
        (1, 1)
        >>> release.ledger.spent[0] <= SIP(2.0)
        True
    """

    def __init__(
        self,
        model: MarkovChain | PatternLibrary,
        *,
        width: int,
        budget: Budget | SIP,
        loss: BatchLoss | Loss | ArrayLike,
        memory: int = 1,
        method: Method | str = Method.OPTIMAL,
        on_exhausted: Fallback | str = Fallback.REFUSE,
        on_unknown: Fallback | str = Fallback.REFUSE,
        stream: str = "stream",
        randomness: Randomness | None = None,
        state: InstantState | None = None,
        recalled: Sequence[object] = (),
        purpose: Purpose | str = Purpose.RELEASE,
        listed: int = LISTED,
        policy: Policy | None = None,
    ) -> None:
        self.plan = BatchedPlan(
            model=model,
            budget=as_budget(budget),
            loss=as_batch_loss(loss, len(model.alphabet)),
            width=width,
            memory=memory,
            method=Method(method),
            on_exhausted=Fallback(on_exhausted),
            on_unknown=Fallback(on_unknown),
            purpose=Purpose(purpose),
            listed=listed,
            policy=policy,
        )
        self._randomness = secure() if randomness is None else randomness
        self._state = self.plan.begin(stream) if state is None else state
        self.plan.check_own(self._state)
        # True values live here alone, never in a state: those that wait, and those recalled.
        self._waiting: list[object] = []
        self._recalled = list(recalled)
        self._lock = threading.Lock()

    def add(self, value: object) -> tuple[Event, ...]:
        """Take one value; return the events of its batch when that is complete, else nothing.

        On an error the value is not taken, and those that waited go on waiting.
        """
        with self._lock:
            if self.plan.on_unknown is Fallback.REFUSE and value not in self.plan.model.alphabet:
                raise UnknownSymbol(len(self.plan.model.alphabet))
            batch = [*self._waiting, value]
            if len(batch) == self.plan.width:
                return self._release(batch)
            self._waiting = batch
            return ()

    def flush(self) -> tuple[Event, ...]:
        """Release the values that wait as a shorter batch; at the end, or when time is up."""
        with self._lock:
            return self._release(self._waiting) if self._waiting else ()

    def over(self, values: Iterable[object]) -> Iterator[Event]:
        """Release many values as they come, and the last of them as a shorter batch."""
        for value in values:
            yield from self.add(value)
        yield from self.flush()

    def skip(self) -> tuple[Event, ...]:
        """Let a moment pass without a release; what waits must be flushed first."""
        with self._lock:
            if self.plan.memory > 1:
                raise InvalidParameter("memory", self.plan.memory, "be 1 to skip a moment")
            if self._waiting:
                what = f"{len(self._waiting)} values"
                raise InvalidParameter("waiting", what, "be flushed before a moment is skipped")
            events, self._state = self.plan.skip(self._state)
            return events

    def _release(self, batch: list[object]) -> tuple[Event, ...]:
        events, state = self.plan.step(self._state, batch, self._randomness, self._recalled)
        kept = self.plan.recalled(state)
        self._recalled = [*self._recalled, *batch][-kept:] if kept else []
        self._waiting = []
        self._state = state
        return events

    @property
    def waiting(self) -> int:
        """How many values wait for their batch to be complete."""
        return len(self._waiting)

    @property
    def state(self) -> InstantState:
        """Where the stream stands after its last batch: store it, and go on from it later.

        Values that wait are not in it.
        """
        return self._state

    @property
    def ledger(self) -> Ledger:
        """What was spent so far."""
        return self._state.ledger


def _charge(found: BatchDesign, drift: float) -> Charge:
    """Exact leakage under the exact belief; the model-free one bounds it too."""
    if found.design.channel.is_constant:
        return FREE
    ldp = found.design.ldp.epsilon
    sip = up(found.design.sip.epsilon + up(2 * (found.parts.error + drift)))
    return Charge(min(sip, ldp), ldp)


def _drawn_from(parts: Parts, coins: Randomness) -> int:
    masses = parts.masses / parts.masses.sum()
    cumulative = integer_weights(masses[None, :]).cumsum(axis=1)
    return int(categorical(cumulative, np.zeros(1, dtype=np.int64), coins.words(1))[0])
