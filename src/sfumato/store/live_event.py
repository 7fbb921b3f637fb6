"""A live event as a run has read it: with its name in the ledger, or with what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sfumato.models.encoding import Unreadable
from sfumato.store.chain import value_tag
from sfumato.store.live import Asked, Refused
from sfumato.store.live_intake import bad_time, bad_value, event_time, ledger_id
from sfumato.store.live_job import LiveJob, Moment


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """An event that was read; its id is that of the ledger.

    One that cannot be read has a refusal, and no digest: its id may still be one that is known.

    Attributes:
        row: Its place in the call.
        id: What the ledger calls it.
        stream: The stream that it is of.
        value: As the step wants it; None for a moment that passes.
        time: When it was measured, if that was told.
        tag: Digest of the value, which tells a retry from other data.
        bad: Why it is refused; None if it can be read.
        since: When it came, in seconds of the run's clock.
    """

    row: int
    id: str
    stream: str
    value: Any = field(repr=False)
    time: Moment | None
    tag: bytes | None = field(repr=False)
    bad: Refused | None
    since: float


def read_event(job: LiveJob[Any], secret: bytes, row: int, asked: Asked, now: float) -> LiveEvent:
    """The event that was asked for; what cannot be read of it is refused, not raised."""
    id_ = ledger_id(asked.stream, asked.id)
    value = when = tag = bad = None
    try:
        value = job.read(asked.value)
        tag = value_tag(secret, id_, asked.stream, job.written(value))
        when = event_time(asked.time, job.time)
    except Unreadable as problem:
        bad = bad_value(problem) if tag is None else bad_time(problem)
    return LiveEvent(row, id_, asked.stream, value, when, tag, bad, now)


def last_told(events: Sequence[LiveEvent], before: Moment | None) -> Moment | None:
    """The last time that was told; an event without one does not reset the order."""
    return next((event.time for event in reversed(events) if event.time is not None), before)
