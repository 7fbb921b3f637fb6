"""What a release was asked to do: budget, loss and rules, and the plan that follows from them.

They are public, and written beside what left: see `release_document`.
"""

from __future__ import annotations

import msgspec

from sfumato.core import checks
from sfumato.core.belief import Model
from sfumato.core.budgets import Budget, Horizon, PerStep, Window
from sfumato.core.bursts import spread_out
from sfumato.core.checks import choice
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.periods import Period
from sfumato.core.purpose import Fallback, Purpose
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.periodic import PeriodicChain
from sfumato.models.plausible import PlausibleChains
from sfumato.models.stream_model import StreamModel
from sfumato.solver.design_methods import Method, method_named
from sfumato.solver.policy import Policy
from sfumato.solver.value_function import ValueFunction
from sfumato.store.protocol import Job
from sfumato.stream.chain_terms import ChainBounds, LearningSpec
from sfumato.stream.learning_rules import LearningRules
from sfumato.stream.look_ahead import look_ahead
from sfumato.stream.model_loss import default_loss, named_batch_loss
from sfumato.stream.period_rules import budget_by_time
from sfumato.stream.plan import Plan
from sfumato.stream.seal import Seal
from sfumato.tables.named_loss import named_loss

JOB = Job(
    "release",
    "model, budget, loss, method or length of batch, another --every, --first, --cap, --per, "
    "--policy, --robust, --learn (or when it learns), --when-exhausted or --when-unknown",
)


class ReleaseSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Budget, loss and rules of a release.

    Attributes:
        epsilon: Leakage per step; or
        budget: total leakage, with either
        horizon: the number of steps it is for, or
        window: the number of successive steps it is for, wherever they begin.
        per: The total is for each such period of event time: `hour`, `day`, `week`, `month` or a
            number of seconds; with a cap on each value, or a horizon: the number of values that are
            expected in a period.
        ldp: Cap on the model-free leakage, over the same steps as the budget.
        every: Spend a total in bursts, so many values apart; evenly if not given.
        first: How many times what the others get is for the first burst.
        cap: The most that a single value may leak of a total.
        loss: `hamming`, `absolute`, `squared`, `euclidean`, `great-circle` or a file with a matrix;
            for batches `histogram` too. If not given it follows the model: see `default_loss`.
        batch: Release in batches of this many values; one by one if not given.
        method: How channels are found: `optimal` is the best channel of each step, `far-sighted`
            that of the stream.
        thrift: What a nat of leakage costs a far-sighted stream, in units of the loss: it then
            spends less than it may.
        robust: How far each probability of the chain may be off, or between which bounds each lies:
            the budget is then kept for every such chain; None for the chain alone.
        when_exhausted: What leaves when the budget is gone.
        when_unknown: What leaves for a value outside the alphabet.
        missing: What became of a missing value.
        late: What became of a row that went back in time.
        keep: Columns that left as they were beside the values: knowledge of everybody.
        independent: Those of them that were declared to tell nothing of the values.
        purpose: A release, or a simulation.
        policy: Fingerprint of the compiled policy that was used, if one was.
        model: Fingerprint of the chain it was used with.
        learn: When it learns, if it starts from nothing; None for a release with a model.
        event: The input column that event ids came from; the output then has a column `event`.
        time: The column of times that phases came from, under a model that changes with time, or
            periods of the budget; it is among those that were kept.
        sealed: How the file beside the rules was when it was written.

    Examples:
        >>> ReleaseSpec(budget=10.0, horizon=50).schedule()
        Horizon(sip=SIP(epsilon=10.0, delta=0.0), steps=50, ldp=None)
        >>> ReleaseSpec(budget=5.0, window=10, every=5).schedule()
        WindowBursts(sip=SIP(epsilon=5.0, delta=0.0), width=10, ldp=None, every=5, cap=None)
    """

    epsilon: float | None = None
    budget: float | None = None
    horizon: int | None = None
    window: int | None = None
    ldp: float | None = None
    loss: str | list[list[float]] | None = None
    batch: int | None = None
    method: str = "optimal"
    when_exhausted: str = "refuse"
    when_unknown: str = "refuse"
    missing: str = "refuse"
    late: str = "refuse"
    keep: tuple[str, ...] = ()
    independent: tuple[str, ...] = ()
    purpose: str = "release"
    policy: str | None = None
    model: str | None = None
    every: int | None = None
    first: float | None = None
    cap: float | None = None
    per: str | None = None
    thrift: float | None = None
    robust: float | ChainBounds | None = None
    learn: LearningSpec | None = None
    event: str | None = None
    time: str | None = None
    sealed: Seal | None = None

    def schedule(self) -> Budget:
        """The budget, checked: exactly one of the four forms, a total perhaps in bursts."""
        if self.per is not None:
            return budget_by_time(self, Period(self.per))
        even = self._even()
        asked = {"every": self.every, "first": self.first, "cap": self.cap}
        given = [(name, value) for name, value in asked.items() if value is not None]
        if not given:
            return even
        if not isinstance(even, Horizon | Window):
            name, value = given[0]
            raise InvalidParameter(f"--{name}", value, "come with --budget: a total can be spread")
        cap = None if self.cap is None else SIP(self.cap)
        every = 1 if self.every is None else checks.count("--every", self.every)
        first = 1.0 if self.first is None else checks.positive("--first", self.first)
        return spread_out(even, every, first, cap)

    def _even(self) -> Budget:
        cap = None if self.ldp is None else LDP(self.ldp)
        match self.epsilon, self.budget, self.horizon, self.window:
            case float() | int() as epsilon, None, None, None:
                return PerStep(SIP(epsilon), cap)
            case None, float() | int() as total, int() as steps, None:
                return Horizon(SIP(total), steps, cap)
            case None, float() | int() as total, None, int() as width:
                return Window(SIP(total), width, cap)
            case _:
                rule = (
                    "be --epsilon E, or --budget B --horizon T, or --budget B --window W (or, for "
                    "`release`, --budget B --per day --cap C)"
                )
                typed = {
                    "--epsilon": self.epsilon,
                    "--budget": self.budget,
                    "--horizon": self.horizon,
                    "--window": self.window,
                }
                names = [name for name, value in typed.items() if value is not None]
                given = f"{names[0]} alone" if len(names) == 1 else " ".join(names)
                raise InvalidParameter("the budget", given or None, rule)

    def plan(self, model: StreamModel, policy: Policy | None = None) -> Plan:
        """The plan of a release with this model, and with the policy it names."""
        return self._planned(model, policy, self.width(model))

    def width(self, model: StreamModel) -> int | None:
        """Values of a batch; a library has a width of its own."""
        own = model.chain.width if isinstance(model.chain, PatternLibrary) else None
        if self.batch is None:
            return own
        if own not in (None, checks.count("--batch", self.batch)):
            raise InvalidParameter("--batch", self.batch, f"be that of the library, {own}")
        return self.batch

    def instant(self, model: StreamModel, policy: Policy | None = None) -> Plan:
        """The plan of a release value by value."""
        if self.batch is not None:
            raise InvalidParameter("batch", self.batch, "not be given here: values leave at once")
        return self._planned(model, policy, None)

    def batched(self, model: StreamModel, policy: Policy | None = None) -> Plan:
        """The plan of a release batch by batch."""
        width = self.width(model)
        if width is None:
            raise InvalidParameter("batch", None, "be given for a release in batches")
        return self._planned(model, policy, width)

    def _planned(self, model: StreamModel, policy: Policy | None, width: int | None) -> Plan:
        if self.learn is not None:
            rule = (
                "be the rules of a release with one model; a release with --learn is read by "
                "`audit`, `recover`, `learn` and `drift`, from all that it released"
            )
            raise InvalidParameter("rules", "those of a release with --learn", rule)
        self._check_made_with(model, policy)
        chain: Model | PatternLibrary | PeriodicChain = model.chain
        if width is None:
            chain = model.live_chain
        elif not isinstance(chain, PatternLibrary):
            chain = model.single_values
        named = named_loss if width is None else named_batch_loss
        return Plan(
            model=chain,
            budget=self.schedule(),
            loss=named(self.loss_for(model), model.alphabet),
            width=width or 1,
            method=self.chosen_method(),
            on_exhausted=choice("when-exhausted", Fallback, self.when_exhausted),
            on_unknown=choice("when-unknown", Fallback, self.when_unknown),
            purpose=choice("purpose", Purpose, self.purpose),
            policy=policy,
            sight=self._sight(model) if policy is None else None,
            robust=self._chains(model, width),
        )

    def learning(self, model: StreamModel) -> LearningRules:
        """The rules of a release that starts from nothing.

        Raises:
            InvalidParameter: If the model is not one that knows nothing, or anything was asked for
                that a learning release cannot do.
        """
        if self.learn is None:
            raise InvalidParameter("--learn", None, "be given")
        self.check_model(model)
        budget = self.schedule()
        if not isinstance(budget, PerStep):
            raise InvalidParameter("--learn", "a total", "come with --epsilon, a cap on each value")
        asked = {
            "--batch": self.batch,
            "--thrift": self.thrift,
            "--policy": self.policy,
            "--robust": self.robust,
        }
        for name, value in asked.items():
            if value is not None:
                raise InvalidParameter(name, "given", "not come with --learn")
        unknown = {self.when_unknown, self.when_exhausted}
        if unknown != {"refuse"} or self.missing not in ("refuse", "symbol"):
            rule = "refuse what it cannot release: bets need all outputs of a stream"
            raise InvalidParameter("--learn", "another fallback", rule)
        rules = LearningRules(
            model.alphabet,
            budget,
            named_loss(self.loss_for(model), model.alphabet),
            self.learn.first,
            self.learn.scouts,
            self.learn.confidence,
            self.learn.ready,
            choice("purpose", Purpose, self.purpose),
            self.learn.edition,
        )
        if rules.start.model.fingerprint != model.chain.fingerprint:
            rule = "be one that knows nothing, of `fit --uniform`: what is true is learnt"
            raise InvalidParameter("model", "another", rule)
        return rules

    def _chains(self, model: StreamModel, width: int | None) -> PlausibleChains | None:
        """All chains that the budget is kept for; None for the model alone."""
        if self.robust is None:
            return None
        chain = model.chain
        if width is not None or not isinstance(chain, MarkovChain) or chain.order != 1:
            rule = "come with a chain of order 1, whose values leave one by one"
            raise InvalidParameter("--robust", self.robust_words, rule)
        if self.policy is not None:
            rule = "come without a policy: its channels were made for one belief at a time"
            raise InvalidParameter("--robust", self.robust_words, rule)
        if isinstance(self.robust, ChainBounds):
            return self.robust.around(chain)
        return PlausibleChains.from_radius(chain, checks.finite("--robust", self.robust))

    @property
    def robust_words(self) -> str:
        """Which chains the budget is kept for, beside the model; "" for the model alone.

        Examples:
            >>> ReleaseSpec(epsilon=0.5, robust=0.02).robust_words
            'every chain within 0.02'
        """
        match self.robust:
            case None:
                return ""
            case ChainBounds():
                return f"every chain of a set of confidence {self.robust.confidence:g}"
            case radius:
                return f"every chain within {radius:g}"

    def _sight(self, model: StreamModel) -> ValueFunction | None:
        """The value function of a far-sighted plan without a policy; None for other plans."""
        method = self.chosen_method()
        if method is not Method.FAR_SIGHTED:
            if self.thrift is not None:
                raise InvalidParameter("--thrift", self.thrift, "come with --method far-sighted")
            return None
        self.check_sight(model)
        assert self.epsilon is not None
        loss = named_loss(self.loss_for(model), model.alphabet)
        return look_ahead(model.value_by_value, loss, self.epsilon, price=self.thrift or 0.0)

    def check_sight(self, model: StreamModel) -> None:
        """Refuse what no far-sighted release can do."""
        if self.epsilon is None:
            rule = "be another for a total; far-sighted streams have a cap on each value, --epsilon"
            raise InvalidParameter("--method", self.method, rule)
        if self.width(model) is not None:
            rule = "be another for batches; far-sighted values leave one by one"
            raise InvalidParameter("--method", self.method, rule)
        if self.thrift is not None:
            checks.finite("--thrift", self.thrift)

    def loss_for(self, model: StreamModel) -> str | list[list[float]]:
        """The loss that was asked for, or the one that suits the model."""
        return default_loss(model) if self.loss is None else self.loss

    def check_model(self, model: StreamModel) -> None:
        """Refuse another model than that of the release."""
        if self.model is not None and self.model != model.chain.fingerprint:
            raise InvalidParameter("model", "another", "be the one the release was made with")

    def _check_made_with(self, model: StreamModel, policy: Policy | None) -> None:
        self.check_model(model)
        if self.policy != (None if policy is None else policy.fingerprint):
            rule = "be the one the release was made with" if self.policy else "not be given"
            raise InvalidParameter("policy", "another" if policy else None, rule)
        if policy is None or policy.sight is None:
            return
        # Channels that look ahead are those of one cap and one price: other rules made no rows.
        if self.epsilon != policy.epsilon:
            raise InvalidParameter("--epsilon", self.epsilon, f"be the policy's, {policy.epsilon}")
        if (self.thrift or 0.0) != policy.sight.price:
            rule = f"be the policy's price of a nat, {policy.sight.price:g}"
            raise InvalidParameter("--thrift", self.thrift, rule)

    def chosen_method(self) -> Method:
        """How channels are found."""
        return method_named("method", self.method)

    def per_step(self) -> tuple[float, float | None]:
        """An even share of the budget for one step or burst: under the model, and whatever it."""
        parts: float = -(-(self.horizon or self.window or 1) // (self.every or 1))
        total = self.epsilon if self.budget is None else self.budget
        if total is None:
            raise InvalidParameter("budget", None, "be given")
        if self.per is not None and self.cap is not None:
            # Of the values that are expected; where values are few, one may get up to its cap.
            parts = max(parts, total / self.cap)
        return total / parts, None if self.ldp is None else self.ldp / parts
