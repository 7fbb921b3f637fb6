"""What a release leaked to an adversary whose chain is not the model of the release."""

from __future__ import annotations

from dataclasses import dataclass, field

from sfumato.core.numerics import add_up
from sfumato.stream.worst_chain import BadChain


@dataclass(frozen=True, slots=True)
class StepUnderTruth:
    """What one step leaked, by several measures.

    Attributes:
        sip: Under the model of the release: what was stated.
        truth: Under the other chain, given all outputs before.
        over_set: Under the worst of the chains near it; None if there are none.
        transfer: What the stated leakage can be under the other belief, whatever the channel.
        ldp: Whatever is believed.
    """

    sip: float
    truth: float
    over_set: float | None
    transfer: float
    ldp: float


@dataclass(slots=True)
class TruthAudit:
    """What one stream leaked, summed over its steps.

    Attributes:
        steps: Moments of the stream.
        sip: Under the model of the release: what was stated.
        truth: Under the other chain: exact, as the stated one, rounded up.
        over_set: Under the worst of the chains near it, at every step anew: a bound; None if
            there are none.
        transfer: The bound of LIP on leakage under another prior, step by step: the stated leakage
            and the gap between the two beliefs, at most twice the stated one.
        ldp: Whatever is believed.
        worst_step: Largest leakage of one step under the other chain.
        worst_at: The moment of that step.
        worst_over_set: Largest leakage of one step under the worst of the chains near it.
        telling: Steps that told something.
        unbounded: Those of them at which the set allows no less than the model-free leakage.
    """

    steps: int = 0
    sip: float = 0.0
    truth: float = 0.0
    over_set: float | None = None
    transfer: float = 0.0
    ldp: float = 0.0
    worst_step: float = 0.0
    worst_at: int = 0
    worst_over_set: float = 0.0
    telling: int = 0
    unbounded: int = 0

    def add(self, step: StepUnderTruth, moment: int) -> None:
        """Add what a step leaked that told something."""
        self.telling += 1
        self.sip = add_up(self.sip, step.sip)
        self.truth = add_up(self.truth, step.truth)
        self.transfer = add_up(self.transfer, step.transfer)
        self.ldp = add_up(self.ldp, step.ldp)
        if step.over_set is not None:
            self.over_set = add_up(self.over_set or 0.0, step.over_set)
            self.worst_over_set = max(self.worst_over_set, step.over_set)
            self.unbounded += step.over_set >= step.ldp
        if step.truth > self.worst_step:
            self.worst_step, self.worst_at = step.truth, moment

    def include(self, other: TruthAudit) -> None:
        """Add what the same stream leaked at other moments."""
        self.steps += other.steps
        self.telling += other.telling
        self.unbounded += other.unbounded
        self.worst_over_set = max(self.worst_over_set, other.worst_over_set)
        if other.over_set is not None:
            self.over_set = add_up(self.over_set or 0.0, other.over_set)
        for name in ("sip", "truth", "transfer", "ldp"):
            setattr(self, name, add_up(getattr(self, name), getattr(other, name)))
        if other.worst_step > self.worst_step:
            self.worst_step, self.worst_at = other.worst_step, other.worst_at


@dataclass(slots=True)
class TruthReport:
    """What all streams leaked to an adversary who knows another chain.

    Attributes:
        model: Fingerprint of that chain.
        widest: Of the set of chains near it, the width of the widest interval of a probability;
            None without a set.
        confidence: Probability that the true chain lies in the set; 1 where that is assumed.
        streams: What each stream leaked.
        phases: What comes again under that chain, in words; None if it does not change with time.
        bad: A chain of the set that was found by search to be told much by the stream that leaked
            most over the set: a lower bound beside the upper one; None where none was sought.
    """

    model: str
    widest: float | None = None
    confidence: float | None = None
    streams: dict[str, TruthAudit] = field(default_factory=dict)
    phases: str | None = None
    bad: BadChain | None = None

    @property
    def worst(self) -> str | None:
        """The stream that leaked most under that chain, or under the worst one near it."""
        told = self.streams
        return max(told, key=lambda name: told[name].over_set or told[name].truth, default=None)
