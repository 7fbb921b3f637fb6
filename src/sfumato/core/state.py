"""All that the next step of a release needs: what the adversary could compute, and no more."""

from __future__ import annotations

from dataclasses import dataclass, field

from sfumato.core.arrays import Floats
from sfumato.core.belief import Belief
from sfumato.core.errors import InvalidParameter
from sfumato.core.ledger import Ledger, PeriodLedger


@dataclass(frozen=True, slots=True)
class StreamState:
    """All that the next step needs to know. It holds no true value.

    Attributes:
        plan: Fingerprint of the plan that made it.
        stream: Name of the stream.
        sequence: Moment of the next value, counted from 0.
        belief: The adversary's belief about the next value.
        ledger: What was spent so far.
        last: Place of the symbol released last; None before the first.
        bounds: Under a plan for many chains: the least (first row) and the largest probability of
            each next value that the adversary may believe in; else None.
        period: Under a budget for periods of time: what was spent in the last one; else None.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(chain.alphabet))
        >>> state = plan.begin("ann")
        >>> _, later = plan.step(state, [1], sf.secure())
        >>> state.sequence, later.sequence, later.stream
        (0, 1, 'ann')
    """

    plan: str
    stream: str
    sequence: int
    belief: Belief
    ledger: Ledger
    last: int | None = None
    bounds: Floats | None = field(default=None, metadata={"later": True})
    period: PeriodLedger | None = field(default=None, metadata={"later": True})

    @property
    def counted(self) -> Ledger:
        """What the budget looks at: all that was spent or, under one for periods, in the last."""
        return self.ledger if self.period is None else self.period.ledger

    def __post_init__(self) -> None:
        if not 0 <= self.sequence < 2**63 or (self.last is not None and self.last < 0):
            raise InvalidParameter("state", "another place", "stand at a moment and symbol from 0")


@dataclass(frozen=True, slots=True, eq=False)
class SeriesState:
    """All that the next step of a series needs.

    Attributes:
        plan: Fingerprint of the method and the purpose.
        time: Moments that have passed.
        spent: The sum of the charges of all events, rounded up.
        arrays: What the method remembers; a function of what was released if its state may be
            stored (`SeriesMethod.secret` is False).
    """

    plan: str
    time: int
    arrays: dict[str, Floats]
    spent: float = 0.0
