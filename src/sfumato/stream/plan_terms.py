"""What a release is made of: terms that are completed, checked, and identified by a fingerprint."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from sfumato.core import checks, limits
from sfumato.core.belief import Belief, Model
from sfumato.core.budgets import Allowance, Budget, PerPeriod, PerStep
from sfumato.core.digest import digest
from sfumato.core.errors import InsecureRandomness, InvalidParameter
from sfumato.core.ledger import Ledger, PeriodLedger
from sfumato.core.loss import Loss, as_loss
from sfumato.core.periods import Period
from sfumato.core.purpose import Fallback, Purpose
from sfumato.core.randomness import Address, Domain, Randomness
from sfumato.core.state import StreamState
from sfumato.models.belief_sets import first_beliefs
from sfumato.models.library import PatternLibrary
from sfumato.models.periodic import PeriodicChain
from sfumato.models.plausible import PlausibleChains
from sfumato.solver.design_methods import Method, check_cap
from sfumato.solver.policy import Policy
from sfumato.solver.value_function import ValueFunction
from sfumato.stream.look_ahead import look_ahead, own_sight
from sfumato.stream.partition.batch_design import LISTED
from sfumato.stream.partition.batch_loss import BatchLoss, as_batch_loss
from sfumato.stream.partition.belief_space import BeliefSpace
from sfumato.stream.partition.robust_sight import Repair
from sfumato.stream.partition.space_choice import space_of
from sfumato.stream.partition.value_spaces import NextValue, NextValueAhead


@dataclass(frozen=True, slots=True, eq=False)
class PlanTerms:
    """The terms of a plan: its attributes are explained where its rule is, in `Plan`."""

    model: Model | PatternLibrary | PeriodicChain
    budget: Budget
    loss: Loss | BatchLoss
    width: int = 1
    memory: int = 1
    method: Method = Method.OPTIMAL
    on_exhausted: Fallback = Fallback.REFUSE
    on_unknown: Fallback = Fallback.REFUSE
    purpose: Purpose = Purpose.RELEASE
    listed: int = LISTED
    policy: Policy | None = None
    sight: ValueFunction | None = None
    robust: PlausibleChains | None = None
    repair: Repair = Repair.WHOLE
    space: BeliefSpace = field(init=False, repr=False)
    in_batches: bool = field(init=False, repr=False)
    period: Period | None = field(init=False, repr=False)
    fingerprint: str = field(init=False)
    _first: Belief = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.model.full_support:
            raise InvalidParameter(
                "model", "zeros", "give every value some probability: fit it with a floor"
            )
        checks.count("width", self.width, at_most=limits.BATCH)
        checks.count("memory", self.memory)
        if self.on_exhausted is Fallback.SUBSTITUTE:
            raise InvalidParameter("on_exhausted", "substitute", "be refuse, suppress or repeat")
        check_cap(self.method, None if self.budget.ldp is None else self.budget.ldp.epsilon)
        object.__setattr__(self, "loss", self._own_loss())
        # Asked at every step: an attribute is found in a quarter of the time of a property.
        object.__setattr__(self, "in_batches", isinstance(self.loss, BatchLoss))
        object.__setattr__(self, "period", self._own_period())
        object.__setattr__(self, "sight", own_sight(self.method, self._given(), self._seen))
        asked = (self.model, self.loss, self.width, self.memory, self.method, self.listed)
        object.__setattr__(self, "space", space_of(*asked, self.policy, self.sight))
        if self.robust is not None:
            self._check_robust(self.robust)
        ahead = self.robust is not None and isinstance(self.space, NextValueAhead)
        if self.repair is not Repair.WHOLE and not ahead:
            rule = f"be {Repair.WHOLE} unless a far-sighted stream keeps its budget for many chains"
            raise InvalidParameter("repair", self.repair, rule)
        object.__setattr__(self, "_first", self.space.first())
        object.__setattr__(self, "fingerprint", self._digest())

    def _own_period(self) -> Period | None:
        """The periods of time that the budget is for, if it is for such."""
        if not isinstance(self.budget, PerPeriod):
            return None
        if self.in_batches:
            rule = "be 1, without a memory: a batch might lie in two periods of the budget"
            raise InvalidParameter("width", self.width, rule)
        return self.budget.period

    def _given(self) -> ValueFunction | None:
        """The value function of the policy, or of the plan itself."""
        kept = None if self.policy is None else self.policy.sight
        if kept is None or self.sight is None:
            return kept or self.sight
        if kept.fingerprint != self.sight.fingerprint:
            raise InvalidParameter("sight", "another", "be that of the policy")
        return kept

    def _seen(self) -> ValueFunction:
        """The value function of a plan that was given none."""
        if not isinstance(self.budget, PerStep):
            raise InvalidParameter("sight", None, "be given, unless there is a budget per step")
        # A batch may leak what its values may.
        cap = self.budget.sip.epsilon * self.width
        return look_ahead(self.model, self.loss, cap, width=self.width)

    @property
    def value_loss(self) -> Loss | None:
        """What an error in one value costs; None where a loss looks at whole batches."""
        return self.loss.each if isinstance(self.loss, BatchLoss) else self.loss

    def _own_loss(self) -> Loss | BatchLoss:
        symbols = len(self.model.alphabet)
        alone = self.width == 1 and self.memory == 1 and not isinstance(self.model, PatternLibrary)
        if alone and not isinstance(self.loss, BatchLoss):
            return as_loss(self.loss, symbols)
        return as_batch_loss(self.loss, symbols)

    def _digest(self) -> str:
        # Coins are addressed by this: two kinds of plan, so that equal ones stay what they were.
        common = (
            self.method.value,
            self.on_exhausted.value,
            self.on_unknown.value,
            self.purpose.value,
        )
        policy = None if self.policy is None else self.policy.fingerprint
        model, budget = self.model.fingerprint, repr(self.budget)
        # Plans without sight keep the digests, and so the coins, that they had.
        ahead = [] if self.sight is None else [self.sight.fingerprint]
        ahead += [] if self.robust is None else [self.robust.fingerprint]
        ahead += [] if self.repair is Repair.WHOLE else [self.repair.value]
        if isinstance(self.loss, Loss):
            loss = self.loss.fingerprint
            return digest("instant plan", 2, model, budget, loss, *common, policy, *ahead)
        loss = self.loss.fingerprint(self.space.batches)
        shape = (self.width, self.memory)
        rest = (*common, self.listed, policy, *ahead)
        return digest("batched plan", 2, model, budget, loss, *shape, *rest)

    def _check_robust(self, chains: PlausibleChains) -> None:
        """Refuse a set of chains that beliefs cannot be followed under."""
        alone = type(self.space) in (NextValue, NextValueAhead) and self.policy is None
        own = chains.estimate.fingerprint == self.model.fingerprint
        if not alone or not own or chains.estimate.order != 1:
            rule = "be put around the plan's chain, of order 1, whose values leave one by one, "
            rule += "without a policy"
            raise InvalidParameter("robust", "others", rule)
        first_beliefs(chains)

    def address(
        self, stream: str, sequence: int, phase: int | None = None, period: int | None = None
    ) -> Address:
        """Where the coins of a step are; another plan has others.

        So has another phase, where phases follow from times, and another period of the budget: they
        shape the answer, and a key that meets the values again, at other times, must not draw from
        other channels with equal coins.
        """
        plan = self.fingerprint
        if phase is not None and not self._in_turn:
            plan = digest("plan in a phase", plan, phase)
        if period is not None:
            plan = digest("plan in a period", plan, period)
        return Address(Domain.STREAM, plan, stream, sequence)

    @property
    def _in_turn(self) -> bool:
        """Whether the phase of a value follows from its place in the stream."""
        return isinstance(self.model, PeriodicChain) and self.model.cycle.in_turn

    @property
    def by_fleet(self) -> bool:
        """Whether many streams are stepped together by compiled loops, value by value.

        They do not know when a value was, so a budget for periods of time goes row by row.
        """
        return self.policy is not None and not self.in_batches and self.period is None

    def recalled(self, state: StreamState) -> int:
        """How many past values the channel of the next step looks at."""
        return 0 if self.memory == 1 else min((self.memory - 1) * self.width, state.sequence)

    def phase(self, state: StreamState, phase: int | None) -> int | None:
        """The phase of the next value, as given or in turn; None if the model has no phases.

        Raises:
            InvalidParameter: If a phase is missing, or is given and there is none.
        """
        model = self.model
        if not isinstance(model, PeriodicChain):
            if phase is not None:
                rule = "not be given: the model does not change with time"
                raise InvalidParameter("phase", phase, rule)
            return None
        due = model.cycle.turn(state.sequence) if model.cycle.in_turn else phase
        if due is None:
            rule = f"be given with each value: the model has {model.cycle}"
            raise InvalidParameter("phase", None, rule)
        if phase not in (None, due) or not 0 <= due < model.cycle.phases:
            raise InvalidParameter("phase", phase, "be that of the value")
        return due

    def period_begun(self, state: StreamState, period: int | None) -> PeriodLedger | None:
        """What was spent in the period of the next value: nothing, if it is a new one.

        Args:
            state: Where the stream stands.
            period: Number of the period, under a budget for periods of time.

        Raises:
            InvalidParameter: If a period is missing, is no whole number or lies before the last
                one, or is given and there is none.
        """
        if self.period is None:
            if period is not None:
                rule = "not be given: the budget is not for periods of time"
                raise InvalidParameter("period", period, rule)
            return None
        if period is None:
            rule = f"be given with each value: the budget is for each {self.period}"
            raise InvalidParameter("period", None, rule)
        own, last = PeriodLedger(period), state.period
        if last is None or own.index > last.index:
            return own
        if own.index < last.index:
            raise InvalidParameter("period", period, "not lie before that of the value before it")
        return last

    def allowance(self, ledger: Ledger, values: int) -> Allowance:
        """What the next step may leak: what the budget says, and at most the policy's part.

        The ledger is that which counts: `StreamState.counted`.
        """
        # A window must know how long batches can get, to leave room for those to come.
        due = self.budget.allowance(ledger, values, self.width)
        if self.policy is None or due.pause:
            return due
        sip, ldp = self.policy.allowed
        cap = ldp if due.ldp is None else min(due.ldp, ldp)
        return Allowance(min(due.sip, sip), None if math.isinf(cap) else cap)

    def check_coins(self, randomness: Randomness) -> None:
        """Refuse coins that can be guessed, unless this is a simulation."""
        if randomness.simulated and self.purpose is not Purpose.SIMULATION:
            raise InsecureRandomness("a release")

    def check_own(self, state: StreamState) -> None:
        """Refuse a state that another plan made."""
        if state.plan != self.fingerprint:
            rule = "come from this model, budget, loss, method and length of batch"
            raise InvalidParameter("state", "that of another plan", rule)
        ledger = state.ledger
        if len(ledger.recent) != min(ledger.count, self.budget.memory):
            # Charges that are missing from a window would be spent again.
            rule = "have the last charges of its window one by one"
            raise InvalidParameter("ledger", f"{len(ledger.recent)} charges", rule)
        if (state.period is not None) != (self.period is not None and ledger.count > 0):
            # A stream that has lost its period would have all of its budget again.
            rule = "say what was spent in the last period, if the budget is for periods"
            raise InvalidParameter("state", "another account", rule)
        if (state.bounds is None) != (self.robust is None):
            raise InvalidParameter("state", "other bounds", "say what may be believed, if many may")
        joint, drift, first = state.belief.joint, state.belief.drift, self._first.joint
        if joint.shape != first.shape or not 0 <= drift < math.inf:
            raise InvalidParameter("belief", joint.shape, f"be one of shape {first.shape}")
        if not self.in_batches:
            return  # the design of a single value checks its belief, and is found in microseconds
        checks.probabilities("belief", joint.ravel())
        if first.min() > 0 and joint.min() < checks.MIN_PROBABILITY:
            rule = f"be at least {checks.MIN_PROBABILITY:g}: every value has a floor"
            raise InvalidParameter("belief", "less", rule)

    def _length(self, values: int) -> int:
        if values == 1:
            return values  # the commonest length fits every width
        if checks.count("values", values) > self.width:
            raise InvalidParameter("values", values, f"be at most a batch of {self.width}")
        return values
