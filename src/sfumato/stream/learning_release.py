"""Release many streams without a model: context-free at first, by what was learnt later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.core.alphabet import Alphabet
from sfumato.core.budgets import Budget, PerStep, as_budget
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.guard import Guarded, guarded
from sfumato.core.loss import Loss
from sfumato.core.numerics import add_up
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness, secure
from sfumato.core.state import StreamState
from sfumato.stream.learning_plan import LearningPlan
from sfumato.stream.learning_rules import CONFIDENCE, FIRST, READY, SCOUTS, LearningRules
from sfumato.stream.model_versions import ModelVersion
from sfumato.stream.version_history import VersionHistory


@dataclass(frozen=True, slots=True)
class ThreeLeakages:
    """What a stream has leaked: three numbers, always.

    Attributes:
        estimate: Under the estimate of the version of each step, added up; context-free steps under
            any. Once a stream has moved on to a later version it is the leakage under no single
            chain: each step weighs outputs by what was known then. `audit` follows who knows the
            last estimate through all outputs.
        over_set: Under the worst chain of those that are left; after a change that was noticed, of
            those that are left of each start.
        confidence: Probability that the true chain is one of them.
        ldp: Whatever is true.
    """

    estimate: SIP
    over_set: SIP
    confidence: float
    ldp: LDP


class LearningRelease(Guarded):
    """Release streams from nothing: what their values do is learnt from what left.

    Every value leaves by randomised response until enough is known; from then on by channels whose
    budget is kept for every chain that outputs have not ruled out. Nothing but outputs is learnt
    from. All streams must follow one chain of order 1, not depend on each other, and not end
    because of their last output; if they do not, what holds whatever is true (LDP) still does.

    Args:
        alphabet: The values a stream can take; at most 64.
        budget: What each value may leak.
        loss: What it costs to release one symbol when another is true.
        first: Values of all streams before anything is learnt; again at each doubling.
        scouts: One stream in so many stays context-free for ever; 0 for none.
        confidence: Probability that the true chain is in the sets of all versions.
        ready: Streams move once they save this part of what knowing the chain would.
        purpose: Name a simulation to use `seeded()` coins.
        randomness: Coins; fresh ones from `secure()` unless given. Not keyed ones: they would come
            again for the values of the next release.

    Examples:
        >>> import sfumato as sf
        >>> bit = sf.Alphabet.of_size(2)
        >>> release = LearningRelease(bit, budget=sf.SIP(1.0), loss=sf.loss.hamming(bit), first=20)
        >>> left = [release("ann", moment // 10 % 2) for moment in range(20)]
        >>> (version,) = release.versions
        >>> version.values, version.moves, round(release.spent("ann").over_set.epsilon, 9)
        (20, False, 20.0)
    """

    def __init__(
        self,
        alphabet: Alphabet,
        *,
        budget: Budget | SIP,
        loss: Loss,
        first: int = FIRST,
        scouts: int = SCOUTS,
        confidence: float = CONFIDENCE,
        ready: float = READY,
        purpose: Purpose = Purpose.RELEASE,
        randomness: Randomness | None = None,
    ) -> None:
        each = as_budget(budget)
        if not isinstance(each, PerStep):
            rule = "be one for each value: a learning release lasts, and bets need one channel"
            raise InvalidParameter("budget", type(each).__name__, rule)
        told = (first, scouts, confidence, ready, purpose)
        self._history = VersionHistory(LearningRules(alphabet, each, loss, *told))
        self.plan = LearningPlan.under(self._history)
        self._randomness = secure() if randomness is None else randomness
        if self._randomness.addressed and not self._randomness.simulated:
            # Nothing goes on with what an earlier one left: its coins would come again.
            rule = "not be keyed: the next release would draw the same coins for other values"
            raise InvalidParameter("randomness", "a key", rule)
        self._states: dict[str, StreamState] = {}
        self._estimates: dict[str, float] = {}

    @guarded
    def __call__(self, stream: str, value: object) -> Event:
        """Release the next value of a stream."""
        state = self._states.get(stream) or self.plan.begin(stream)
        under = self.plan.under_estimate(state)
        (event,), following = self.plan.step(state, [value], self._randomness)
        assert event.released is not None  # a budget for each value never ends
        # In this order: an interrupt in between leaves a state that is refused, not a wrong box.
        self._states[stream] = following
        self._history.add(stream, self.plan.model.alphabet.index(event.released))
        self._estimates[stream] = add_up(self._estimates.get(stream, 0.0), under.epsilon)
        return event

    @property
    def versions(self) -> tuple[ModelVersion, ...]:
        """The versions of the model so far."""
        return self._history.versions()

    @guarded
    def spent(self, stream: str) -> ThreeLeakages:
        """What a stream has leaked so far."""
        if stream not in self._states:
            raise InvalidParameter("stream", stream, "have released something")
        ledger, sure = self._states[stream].ledger, self.plan.rules.confidence
        under = SIP(min(self._estimates[stream], ledger.sip))
        return ThreeLeakages(under, SIP(ledger.sip), sure, LDP(ledger.ldp))

    @property
    def states(self) -> Mapping[str, StreamState]:
        """Where streams stand: what an adversary could compute, and no more."""
        with self._lock:
            return dict(self._states)
