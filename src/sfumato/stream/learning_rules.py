"""The rules of a release that starts from nothing and learns from what left.

Time is counted in values that left, of all streams together. At public counts (`cut`) a version of
the model is made from outputs alone; which streams move over to it, and when, follows from outputs
and from these rules. Whoever has both knows all of it, so nothing of it costs privacy.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from sfumato.core import checks
from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats
from sfumato.core.budgets import PerStep
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP
from sfumato.core.loss import Loss
from sfumato.core.purpose import Fallback, Purpose
from sfumato.models.chain_bets import SYMBOLS, inverse_weights
from sfumato.models.markov import MarkovChain
from sfumato.models.plausible import PlausibleChains
from sfumato.solver.design_methods import Method
from sfumato.solver.value_function import ValueFunction
from sfumato.stream.look_ahead import look_ahead
from sfumato.stream.partition.robust_sight import Repair
from sfumato.stream.plan import Plan

FIRST, SCOUTS, CONFIDENCE, READY = 1_000, 20, 0.95, 0.5
"""A move at half of what can be saved: at nine tenths none of 80,000 values of a bit had moved."""
EDITIONS = (2, 3, 4)
"""Rules by which releases have learnt. 2: bounds from bets on pairs of outputs, for each version
anew; channels that look at one step. 3: bounds from bets on blocks of outputs that all versions
share, and far-sighted channels for up to 8 symbols. 4: outputs of these are made to keep the budget
one by one (`Repair.BY_OUTPUT`)."""
_SIGHTED, _OUTPUTS = 8, 1_000
"""Symbols up to which a far-sighted step for many chains gains, and what signals of a version count
from: more outputs than a channel has."""
ALARM = 0.01
"""Probability that a release ever starts anew while the sets of its versions hold the truth."""
_LOOKS = 4
"""Looks for a change from one version to the next: pairs of outputs count within one look alone."""


@dataclass(frozen=True, slots=True, eq=False)
class VersionPlan(Plan):
    """The plan of one version of a learning release; its coins are those of no other release.

    Attributes:
        learning: Fingerprint of the rules that it is a version under.
    """

    learning: str = ""

    def _digest(self) -> str:
        return digest("version", Plan._digest(self), self.learning)


@dataclass(frozen=True, slots=True, eq=False)
class LearningRules:
    """What a learning release may leak, and when it learns.

    Attributes:
        alphabet: The symbols.
        budget: What each value may leak: before anything is known under whatever chain, later under
            every chain that outputs have not ruled out.
        loss: What it costs to release one symbol when another is true.
        first: Values of all streams before the first version; each later one comes when there are
            twice as many. Where learning starts anew it is twice what it was before.
        scouts: One stream in so many, chosen by name, stays context-free for ever: what is proven
            after others have moved comes from these. 0 for none: bounds then stay as they were, and
            no change is noticed any more.
        confidence: Probability that the true chain is in the sets of all versions, as long as
            streams have followed one chain since learning started, or started anew.
        ready: Streams move once they save at least this part of what knowing the chain for sure
            would save of the context-free loss.
        purpose: A release, or a simulation.
        edition: By which rules it learns and releases; those of before are for releases that began
            with them.
        start: The plan of version 0: randomised response, whatever is true.
        fingerprint: Identifies the rules.

    Examples:
        >>> import sfumato as sf
        >>> bit = sf.Alphabet.of_size(2)
        >>> rules = LearningRules(bit, sf.PerStep(sf.SIP(1.0)), sf.loss.hamming(bit))
        >>> rules.cut(1), rules.cut(2), rules.cut(2, restarts=1)
        (1000, 2000, 4000)
        >>> rules.look(0), rules.look(1_000), rules.look(3_100)
        (1000, 1250, 3500)
    """

    alphabet: Alphabet
    budget: PerStep
    loss: Loss
    first: int = FIRST
    scouts: int = SCOUTS
    confidence: float = CONFIDENCE
    ready: float = READY
    purpose: Purpose = Purpose.RELEASE
    edition: int = EDITIONS[-1]
    start: Plan = field(init=False, repr=False)
    fingerprint: str = field(init=False)
    _channel: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.edition not in EDITIONS:
            raise InvalidParameter("edition", self.edition, f"be one of {EDITIONS}")
        checks.count("first", self.first)
        checks.count("scouts", self.scouts, at_least=0)
        checks.proper_fraction("confidence", self.confidence)
        checks.proper_fraction("ready", self.ready)
        if not 2 <= len(self.alphabet) <= SYMBOLS:
            rule = f"have 2 to {SYMBOLS} symbols, for bounds to be proven"
            raise InvalidParameter("alphabet", len(self.alphabet), rule)
        start = self._start()
        told = (self.first, self.scouts, self.confidence, self.ready)
        own = digest("learning", self.edition, start.fingerprint, *told)
        object.__setattr__(self, "fingerprint", own)
        object.__setattr__(self, "start", replace(start, learning=self.fingerprint))
        object.__setattr__(self, "_channel", _columns(self.start))
        if inverse_weights(self._channel) is None:
            rule = "be enough for outputs that tell all symbols apart"
            raise InvalidParameter("budget", self.budget.sip.epsilon, rule)

    def _start(self) -> VersionPlan:
        size = len(self.alphabet)
        even = MarkovChain.from_matrix(
            np.full((size, size), 1 / size), np.full(size, 1 / size), self.alphabet
        )
        # What holds whatever is true must keep the budget by itself: the cap is part of the rule.
        cap = min(self.budget.sip.epsilon, (self.budget.ldp or LDP(np.inf)).epsilon)
        return VersionPlan(
            even,
            PerStep(self.budget.sip, LDP(cap)),
            self.loss,
            method=Method.RANDOMIZED_RESPONSE,
            purpose=self.purpose,
        )

    @property
    def channel(self) -> Floats:
        """The one channel of context-free values: row = value, column = the symbol that leaves."""
        return self._channel

    @property
    def far_sighted(self) -> bool:
        """Whether streams that moved look ahead, and a signal leaves with each value."""
        few = len(self.alphabet) <= _SIGHTED and self.budget.ldp is None
        return few and self.edition >= 3

    @property
    def _repair(self) -> Repair:
        """How channels of streams that moved are made to keep the budget for all chains."""
        return Repair.BY_OUTPUT if self.far_sighted and self.edition >= 4 else Repair.WHOLE

    def plan(self, chains: PlausibleChains) -> Plan:
        """The plan that keeps the budget for every chain of a set."""
        sight = None
        if self.far_sighted:
            sight = _ahead(chains.estimate, self.loss, self.budget.sip.epsilon)
        return VersionPlan(
            chains.estimate,
            self.budget,
            self.loss,
            method=Method.FAR_SIGHTED if self.far_sighted else Method.OPTIMAL,
            on_exhausted=Fallback.REFUSE,
            purpose=self.purpose,
            sight=sight,
            robust=chains,
            repair=self._repair,
            learning=self.fingerprint,
        )

    def signal(self, version: int, output: int | None) -> int:
        """What a value says of its version, and of which output of its channel it is."""
        if output is None or not self.far_sighted:
            return version * (_OUTPUTS if self.far_sighted else 1)
        if not 0 <= output < _OUTPUTS:
            raise InvalidParameter("output", output, f"be one of at most {_OUTPUTS}")
        return version * _OUTPUTS + output

    def told_by(self, signal: int) -> tuple[int, int | None]:
        """The version that a signal names, and the output of a far-sighted channel.

        Examples:
            >>> import sfumato as sf
            >>> bit = sf.Alphabet.of_size(2)
            >>> rules = LearningRules(bit, sf.PerStep(sf.SIP(1.0)), sf.loss.hamming(bit))
            >>> rules.signal(3, 1), rules.told_by(3_001), rules.told_by(0)
            (3001, (3, 1), (0, None))
        """
        if not self.far_sighted:
            return signal, None
        version, output = divmod(signal, _OUTPUTS)
        return version, output if version else None

    def cut(self, version: int, restarts: int = 0) -> int:
        """How many values have left, since learning started, when a version of it is made."""
        return self.first << (restarts + version - 1) if version else 0

    def look(self, values: int, restarts: int = 0) -> int:
        """The next number of values, since learning started, at which outputs are looked at."""
        first = self.first << restarts
        if values < first:
            return first
        last = first << ((values // first).bit_length() - 1)
        parts = (last + last * part // _LOOKS for part in range(1, _LOOKS + 1))
        return next(count for count in parts if count > values)

    def alarm(self, restarts: int) -> float:
        """The part of the probability of a false alarm for the time until the next restart."""
        return ALARM / ((restarts + 1) * (restarts + 2))

    def is_scout(self, stream: str) -> bool:
        """Whether a stream stays context-free for ever: a matter of its name alone."""
        if not self.scouts:
            return False
        return int(digest("scout", self.fingerprint, stream)[:15], 16) % self.scouts == 0

    def lasting_failure(self, restarts: int) -> float:
        """The part of the failure probability for all bounds until the next restart, together.

        It is paid twice: for bounds from all streams, and from scouts. Over all restarts that sums
        to the whole.
        """
        part = 0.75 if not restarts else 0.25 / (restarts * (restarts + 1))
        return part * (1 - self.confidence) / 2

    def failure(self, version: int) -> float:
        """The part of the failure probability that is for the bounds of one version, in edition 2.

        It is paid twice: for the bounds of all streams and for those of scouts. Only one of the two
        is used, but which one follows from outputs. Over all versions that sums to the whole.
        """
        return (1 - self.confidence) / (2 * version * (version + 1))


@lru_cache(maxsize=2)
def _ahead(chain: MarkovChain, loss: Loss, epsilon: float) -> ValueFunction:
    """What lies ahead of a version: asked for twice, for its forecast and for the release."""
    return look_ahead(chain, loss, epsilon)


def _columns(plan: Plan) -> Floats:
    """The channel of a plan's first step, its columns in the order of the symbols."""
    step = plan.prepare(plan.begin(""), 1)
    assert step is not None  # nothing was spent
    outputs = [step.output(np.array([place])) for place in range(len(plan.model.alphabet))]
    channel = step.design.channel
    found = [channel.likelihood(output) for output in outputs if output is not None]
    return checks.read_only(np.stack(found, axis=1))
