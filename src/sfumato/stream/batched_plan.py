"""The rule of a batched release: frozen, public, a pure function of state, values and coins.

The state of a stream is that of an instantaneous release: the adversary's belief, the ledger and
the moment, counted in values; so batches may have different lengths.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from sfumato.core import checks, limits
from sfumato.core.alphabet import Label
from sfumato.core.belief import Belief
from sfumato.core.budgets import USELESS_BELOW, Allowance, Budget
from sfumato.core.digest import digest
from sfumato.core.errors import BudgetExceeded, InsecureRandomness, InvalidParameter, UnknownSymbol
from sfumato.core.events import Event, Outcome
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.ledger import FREE, Charge, Ledger
from sfumato.core.numerics import UNIT, up
from sfumato.core.purpose import Fallback, Purpose
from sfumato.core.randomness import Address, Domain, Randomness
from sfumato.core.state import StreamState
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.solver.design_methods import Method
from sfumato.solver.policy import Policy
from sfumato.stream.compiled_steps import kept_channel
from sfumato.stream.instant import check_policy, drawn_from, within
from sfumato.stream.partition.batch_design import LISTED
from sfumato.stream.partition.batch_loss import BatchLoss, as_batch_loss
from sfumato.stream.partition.outlooks import OfBatches, OfPatterns, OfValues, Outlook, Task
from sfumato.stream.partition.patterns import BatchDesign, muted

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
    _outlook: Outlook = field(init=False, repr=False)
    _first: Belief = field(init=False, repr=False)
    _designs: Callable[[Task], BatchDesign] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.model.full_support:
            raise InvalidParameter(
                "model", "zeros", "give every value some probability: fit it with a floor"
            )
        as_batch_loss(self.loss, len(self.model.alphabet))
        checks.count("width", self.width, at_most=limits.BATCH)
        checks.count("memory", self.memory)
        if self.on_exhausted is Fallback.SUBSTITUTE:
            raise InvalidParameter("on_exhausted", "substitute", "be refuse, suppress or repeat")
        object.__setattr__(self, "_outlook", self._looked_at())
        object.__setattr__(self, "_first", self._outlook.first())
        if self.policy is not None:
            assert isinstance(self._outlook, OfBatches)
            check_policy(self.policy, self.chain, self._outlook.loss, self.method)
        object.__setattr__(self, "fingerprint", self._digest())
        # Streams that stand alike share a design; it is a pure function of public things.
        held = min(self.listed, len(self.model.alphabet) ** min(self.width, 40))
        contexts = self.chain.size**self.chain.order
        held = held * 64 + contexts * 200 * (held == self.listed)
        kept = lru_cache(maxsize=max(4, _KEPT_CELLS // held))(self._outlook.design)
        object.__setattr__(self, "_designs", kept)

    @property
    def chain(self) -> MarkovChain:
        """What beliefs are about: values, kept patterns or, with a policy, whole batches."""
        return self._outlook.chain

    def _looked_at(self) -> Outlook:
        model, rest = self.model, (self.loss, self.width)
        special = (self.memory > 1) + (self.policy is not None)
        if special > 1 or (special and isinstance(model, PatternLibrary)):
            field = "memory" if self.memory > 1 else "policy"
            rule = "be 1 with a library or a policy" if field == "memory" else "be one of a chain"
            raise InvalidParameter(field, self.memory if field == "memory" else "one", rule)
        if isinstance(model, PatternLibrary):
            return OfPatterns(model, *rest, self.method)
        if self.policy is not None:
            return OfBatches(model, *rest, self.method)
        return OfValues(model, *rest, self.memory, self.method, self.listed)

    def _digest(self) -> str:
        return digest(
            "batched plan",
            2,
            self.model.fingerprint,
            repr(self.budget),
            self.loss.fingerprint(self._outlook.batches),
            self.width,
            self.memory,
            self.method.value,
            self.on_exhausted.value,
            self.on_unknown.value,
            self.purpose.value,
            self.listed,
            None if self.policy is None else self.policy.fingerprint,
        )

    def address(self, stream: str, sequence: int) -> Address:
        """Where the coins of a batch are; another plan has others."""
        return Address(Domain.STREAM, self.fingerprint, stream, sequence)

    def begin(self, stream: str) -> StreamState:
        """The state before the first value of a stream."""
        return StreamState(self.fingerprint, stream, 0, self._first, Ledger())

    def recalled(self, state: StreamState) -> int:
        """How many past values the channel of the next batch looks at."""
        return min((self.memory - 1) * self.width, state.sequence)

    def prepare(self, state: StreamState, values: int | None = None) -> BatchDesign | None:
        """The channel of the next batch; None when the budget is gone. Public: needs no value."""
        self.check_own(state)
        length = self._length(self.width if values is None else values)
        ready = self._ready(state, length, self.allowance(state.ledger, length))
        return ready.found if ready and ready.covered else None

    def allowance(self, ledger: Ledger, values: int) -> Allowance:
        """What the next batch may leak: what the budget says, at most the policy's part."""
        return within(self.budget.allowance(ledger, values, self.width), self.policy)

    def step(
        self,
        state: StreamState,
        values: Sequence[object],
        randomness: Randomness,
        recalled: Sequence[object] = (),
    ) -> tuple[tuple[Event, ...], StreamState]:
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
        coins = randomness.at(self.address(state.stream, state.sequence))
        places = [self.model.alphabet.place(value) for value in (*recalled, *values)]
        parts = ready.found.parts
        if min(places) >= 0:
            part = parts.part(places)
        elif self.on_unknown is Fallback.REFUSE:
            raise UnknownSymbol(len(self.model.alphabet))
        elif self.on_unknown is Fallback.SUBSTITUTE:
            part = drawn_from(parts.masses / parts.masses.sum(), coins)
        else:
            return self._withheld(state, length, self.on_unknown)
        output = int(ready.found.design.channel.draw(part, coins.words(1))[0])
        return self._released(state, length, ready, output)

    def skip(self, state: StreamState, values: int = 1) -> tuple[tuple[Event, ...], StreamState]:
        """Let some moments pass without a release; the belief moves on, nothing is spent."""
        self.check_own(state)
        return self._silent(state, self._length(values), Outcome.SKIPPED, None)

    def observe(
        self,
        state: StreamState,
        outputs: Sequence[Label | None],
        outcome: Outcome = Outcome.RELEASED,
    ) -> tuple[tuple[Event, ...], StreamState]:
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
        self, state: StreamState, outputs: Sequence[Label | None], outcome: Outcome
    ) -> tuple[tuple[Event, ...], StreamState]:
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

    def check_own(self, state: StreamState) -> None:
        """Refuse a state that another plan made."""
        if state.plan != self.fingerprint:
            rule = "come from this model, budget, loss, method and length of batch"
            raise InvalidParameter("state", "that of another plan", rule)
        joint, drift = state.belief.joint, state.belief.drift
        first = self._first.joint
        if joint.shape != first.shape or not 0 <= drift < math.inf:
            raise InvalidParameter("belief", joint.shape, f"be one of shape {first.shape}")
        checks.probabilities("belief", joint.ravel())
        if first.min() > 0 and joint.min() < checks.MIN_PROBABILITY:
            rule = f"be at least {checks.MIN_PROBABILITY:g}: every value has a floor"
            raise InvalidParameter("belief", "less", rule)

    def _length(self, values: int) -> int:
        if checks.count("values", values) > self.width:
            raise InvalidParameter("values", values, f"be at most a batch of {self.width}")
        return values

    def _ready(self, state: StreamState, length: int, allowance: Allowance) -> _Ready | None:
        """The channel of the next batch and its price; None when the budget is gone."""
        if allowance.exhausted:
            return None
        by_policy = self.policy is not None and length == self.width and allowance.useful
        if by_policy and isinstance(self._outlook, OfBatches) and self.policy is not None:
            chain, loss = self._outlook.chain, self._outlook.loss
            kept = kept_channel(chain, loss, self.policy, state, allowance)
            if kept is not None:
                parts = self._outlook.believed(state.belief)
                found = BatchDesign(parts, kept[0], self._outlook.patterns, exact=True)
                return _Ready(found, kept[1], covered=True, drift=0.0)
        # What rounding does to beliefs and to masses of parts is paid for out of the allowance; in
        # powers of two, so that successive steps ask for the same epsilon.
        spare = 2 * self._rounding(state.belief, length) + 8 * UNIT * allowance.sip
        epsilon = min(allowance.sip - 2.0 ** math.ceil(math.log2(spare)), checks.MAX_EPSILON)
        cap = None if allowance.ldp is None else min(allowance.ldp, checks.MAX_EPSILON)
        useful = allowance.useful and epsilon >= USELESS_BELOW / 2
        if not useful:
            epsilon, cap = USELESS_BELOW, None
        belief, back = state.belief, self.recalled(state)
        # A design is shared by beliefs with other histories: their drift is charged on top.
        task = Task(belief.joint.tobytes(), belief.axis, length, back, epsilon, cap)
        # With too little to tell anything a constant leaves, which is free, and the stream goes on.
        found = self._designs(task) if useful else muted(self._designs(task))
        charge = _charge(found, belief.drift)
        return _Ready(found, charge, allowance.covers(charge.sip, charge.ldp), belief.drift)

    def _rounding(self, belief: Belief, length: int) -> float:
        """A bound on `Parts.error` that is known before the parts are."""
        moves = length * (6 * self.chain.size + 32) + 2 * belief.joint.size
        return 2 * (belief.drift + (moves + 64) * UNIT)

    def _exhausted(
        self, state: StreamState, length: int, allowance: Allowance, refused: _Ready | None
    ) -> tuple[tuple[Event, ...], StreamState]:
        if self.on_exhausted is not Fallback.REFUSE:
            return self._withheld(state, length, self.on_exhausted)
        wanted: object = "something"
        if refused is not None:
            wanted = f"{SIP(refused.charge.sip)} and {LDP(refused.charge.ldp)}"
        raise BudgetExceeded(state.stream, state.sequence, wanted, allowance)

    def _withheld(
        self, state: StreamState, length: int, fallback: Fallback
    ) -> tuple[tuple[Event, ...], StreamState]:
        if fallback is Fallback.REPEAT and state.last is not None:
            return self._silent(state, length, Outcome.REPEATED, state.last)
        return self._silent(state, length, Outcome.SUPPRESSED, None)

    def _silent(
        self, state: StreamState, length: int, outcome: Outcome, told: int | None
    ) -> tuple[tuple[Event, ...], StreamState]:
        """A batch that tells nothing."""
        belief = self._outlook.passed(state.belief, length)
        return self._moved(state, outcome, [told] * length, FREE, belief, state.last)

    def _released(
        self, state: StreamState, length: int, ready: _Ready, output: int
    ) -> tuple[tuple[Event, ...], StreamState]:
        places = ready.found.patterns[output].tolist()
        if ready.found.design.channel.is_constant:
            passed = self._outlook.passed(state.belief, length)
            return self._moved(state, Outcome.RELEASED, places, FREE, passed, places[-1])
        informed = ready.found.parts.after(ready.found.design.channel.likelihood(output))
        belief = replace(informed, drift=informed.drift + ready.drift)
        return self._moved(state, Outcome.RELEASED, places, ready.charge, belief, places[-1])

    def _moved(
        self,
        state: StreamState,
        outcome: Outcome,
        told: Sequence[int | None],
        charge: Charge,
        belief: Belief,
        last: int | None,
    ) -> tuple[tuple[Event, ...], StreamState]:
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


def _charge(found: BatchDesign, drift: float) -> Charge:
    """Exact leakage under the exact belief; the model-free one bounds it too."""
    if found.design.channel.is_constant:
        return FREE
    ldp = found.design.ldp.epsilon
    sip = up(found.design.sip.epsilon + up(2 * (found.parts.error + drift)))
    return Charge(min(sip, ldp), ldp)
