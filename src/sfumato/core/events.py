"""One entry of a ledger: public, frozen, never removed and never changed in meaning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from sfumato.core.alphabet import Label
from sfumato.core.guarantees import LDP, SIP


class Outcome(StrEnum):
    """What left at one moment of a stream.

    Examples:
        >>> Outcome("suppressed") is Outcome.SUPPRESSED
        True
    """

    RELEASED = "released"
    SUPPRESSED = "suppressed"
    REPEATED = "repeated"
    SKIPPED = "skipped"


OUTCOMES = tuple(Outcome)
"""Where outcomes stand in arrays, they are places in this."""


@dataclass(frozen=True, slots=True)
class Event:
    """What happened at one moment of one stream, and what it cost.

    Attributes:
        stream: The stream's name.
        sequence: Its moment, counted from 0.
        outcome: What left.
        released: The symbol that left; None if none did.
        sip: Exact leakage of this step under the model, rounded up.
        ldp: Exact model-free leakage of this step, rounded up.
        batch: Moment at which its batch began; None if it left alone. The leakage of a batch
            stands at its last value.
        signal: Which output of a far-sighted channel left, beside its symbol: outputs that release
            the same symbol lead to different beliefs. None for other channels.
        phase: Phase of the period that its value lies in, which is public; None under a model that
            does not change with time.
        period: Number of the period that it was charged to, which is public; None unless the
            budget is for periods of time.

    Examples:
        >>> event = Event("u4", 17, Outcome.RELEASED, "home", SIP(0.2), LDP(0.3))
        >>> print(event.released, event.sip)
        home SIP(0.2)
    """

    stream: str
    sequence: int
    outcome: Outcome
    released: Label | None
    sip: SIP
    ldp: LDP
    batch: int | None = None
    signal: int | None = None
    phase: int | None = None
    period: int | None = field(default=None, metadata={"later": True})


Events = tuple[Event, ...]
"""What left together."""


def events_of(
    stream: str,
    first: int,
    outcome: Outcome,
    labels: Sequence[Label | None],
    sip: float,
    ldp: float,
    *,
    in_batches: bool,
    signal: int | None = None,
) -> Events:
    """What left together, from moment `first` on; a batch is charged at its last value.

    Its signal stands at each of its values.
    """
    if not in_batches:
        alone = Event(stream, first, outcome, labels[0], SIP(sip), LDP(ldp), None, signal)
        return (alone,)
    final = len(labels) - 1
    return tuple(
        Event(
            stream=stream,
            sequence=first + offset,
            outcome=outcome,
            released=label,
            sip=SIP(sip if offset == final else 0.0),
            ldp=LDP(ldp if offset == final else 0.0),
            batch=first,
            signal=signal,
        )
        for offset, label in enumerate(labels)
    )
