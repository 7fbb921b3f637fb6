"""What every live run does before it steps: names that can be stored, ids in it, and retries.

A refusal is made once and shared: a flood of bad events makes no objects but its replies.
"""

from __future__ import annotations

import hmac
import itertools
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import add
from typing import TypeVar

from sfumato.core.errors import (
    BudgetExceeded,
    InvalidParameter,
    SfumatoError,
    SolverFailed,
    UnknownSymbol,
)
from sfumato.models.encoding import Raw, Unreadable, text
from sfumato.store.live import Answered, Reason, Refused, Reply, StreamAccount
from sfumato.store.protocol import Again, Answer, Identity, Input, Position, Store

UNSTORED = Refused(
    Reason.UNSTORED, "the store did not take the answer; ask again with the same id: it is safe"
)
NO_BUDGET = Refused(
    Reason.BUDGET, "the budget of the stream leaves nothing for this event; nothing was released"
)
NO_CHANNEL = Refused(
    Reason.UNSTORED, "no certified channel was found for this event; nothing was released"
)
CLOSED = Refused(
    Reason.CLOSED, "the release is closed: what was answered is told again, and nothing is new"
)
EARLIER = Refused(Reason.ORDER, "the time must not lie before that of the last event of the stream")

REFUSALS = (BudgetExceeded, SolverFailed, UnknownSymbol, InvalidParameter)
"""What a step of a job refuses with, before anything is drawn."""

Moment = TypeVar("Moment")
_Told = TypeVar("_Told", Reply, Answered | Refused)
_log = logging.getLogger("sfumato.live")


def begun(store: Store, source: str) -> Input:
    """The input of a live run; the same one again after a restart."""
    again = Again.RESUME if source in store.inputs() else Again.REFUSE
    return store.begin(source, Identity.EVENT, again)


def report_failure(problem: Exception) -> None:
    """Log why events got no answer; of errors that are not our own the kind alone is told."""
    told = str(problem) if isinstance(problem, SfumatoError) else "see the log of the store"
    _log.error("answers were not stored: %s: %s", type(problem).__name__, told)


def ledger_id(stream: str, id_: str) -> str:
    """What the ledger calls an event: by its stream and its id, so that askers share no names.

    It is no longer than both, but for two more bytes where the stream has a `%` or a slash.

    Examples:
        >>> ledger_id("ann", "day/1"), ledger_id("ann/day", "1")
        ('ann/day/1', 'ann%2Fday/1')
    """
    return f"{_prefix(stream)}{id_}"


def ledger_ids(streams: Sequence[str], ids: Sequence[str]) -> list[str]:
    """The same for many events."""
    return list(map(add, map(_prefix, streams), ids))


@lru_cache(maxsize=1 << 16)
def _prefix(stream: str) -> str:
    return stream.replace("%", "%25").replace("/", "%2F") + "/"


def own_id(named: str) -> str:
    """The id that the asker gave, of the name that the ledger has for an event.

    Examples:
        >>> own_id(ledger_id("ann/day", "day/1"))
        'day/1'
    """
    return named.partition("/")[2]


def own_answer(answer: Answer) -> Answer:
    """An answer of the ledger, as its asker knows it."""
    return replace(answer, id=own_id(answer.id))


def own_reply(reply: _Told) -> _Told:
    """A reply as its asker knows it: by the ids that he gave."""
    if isinstance(reply, Answered):
        return Answered(tuple(map(own_answer, reply.answers)), reply.repeated)
    return reply


def stored_account(store: Store, stream: str) -> tuple[Position, StreamAccount] | None:
    """Where a stream stands, as the store has it; None if it never had an answer."""
    (end,) = store.ends([stream])
    if end is None:
        return None
    position, last = end
    told = (position.sequence, position.leakage, position.model_free)
    return position, StreamAccount(*told, time=last.time)


def last_time(store: Store, stream: str, answers: int) -> str | None:
    """The time of the last answer that has one, of a stream of so many answers."""
    first, width = answers, _LOOKED_BACK
    while first > 0:
        end, first = first, max(first - width, 0)
        rows = itertools.islice(store.rest(stream, first), end - first)
        told = [row.time for row in rows if row.time is not None]
        if told:
            return told[-1]
        width *= 2
    return None


_LOOKED_BACK = 16


def refusal(problem: Exception) -> Refused:
    """Why a step was refused, without what was given."""
    match problem:
        case BudgetExceeded():
            return NO_BUDGET
        case SolverFailed():
            return NO_CHANNEL
        case InvalidParameter():
            return Refused(Reason.VALUE, f"{problem.name} must {problem.rule}")
        case _:
            return Refused(Reason.VALUE, f"the {problem}")


def bad_value(problem: Unreadable) -> Refused:
    """The refusal of a value that breaks a rule."""
    return Refused(Reason.VALUE, f"the value {problem}")


def bad_time(problem: Unreadable) -> Refused:
    """The refusal of a time that breaks a rule."""
    return Refused(Reason.VALUE, f"the time {problem}")


def event_time(time: object, read: Callable[[str], Moment]) -> Moment | None:
    """The time of an event, if it has one; an `Unreadable` if it breaks a rule."""
    if time is None:
        return None
    if not isinstance(time, str):
        raise Unreadable("must be a text")
    return read(time)


def refused_names(ids: Sequence[str], streams: Sequence[str]) -> dict[int, Reply]:
    """The events whose id or stream cannot be stored in every kind of store, each with why.

    Examples:
        >>> refused_names(["e1", ""], ["ann", "bob"])[1].detail
        'the id must not be empty'
    """
    if _plain(ids) and _plain(streams):
        return {}
    refused: dict[int, Reply] = {}
    for place, names in enumerate(zip(ids, streams, strict=True)):
        for what, name in zip(("id", "stream"), names, strict=True):
            if (rule := _broken(name)) is not None:
                refused.setdefault(place, Refused(Reason.VALUE, f"the {what} {rule}"))
    return refused


def _plain(names: Sequence[str]) -> bool:
    """Whether all names are good at first sight."""
    try:
        joined = "".join(names)
    except TypeError:
        return False
    # Names are looked at one by one where any could be too long, or be no name at all.
    short = max(map(len, names), default=0) <= _SHORT and all(names)
    return short and joined.isascii() and joined.isprintable() and "nan" not in joined.lower()


_SHORT = 200


def _broken(name: Raw) -> str | None:
    """The rule that a name breaks; None if it is good."""
    if not isinstance(name, str):
        return "must be a text"
    try:
        text(name).encode()
    except Unreadable as problem:
        return str(problem)
    except UnicodeEncodeError:
        return "must be valid Unicode"
    return "must not have a NUL character" if "\0" in name else None


class Retries:
    """Counts events that came again with another value: their replies do not depend on it.

    Args:
        store: Where the answers are.
        source: The input of the run, for the secret of its digests.
    """

    def __init__(self, store: Store, source: Input) -> None:
        self._store, self._source = store, source
        self._comparable: dict[str, bool] = {}
        self.conflicts = 0

    def compare(self, answer: Answer, tag: bytes | None) -> None:
        """Count an event that comes again, if its value is another, or (None) cannot be read."""
        same = tag is not None and hmac.compare_digest(answer.tag, tag)
        # Without the key file of that time nobody can tell.
        if not same and (tag is None or self._compared(answer.source)):
            self.count()

    def count(self) -> None:
        """One event came again with another value."""
        self.conflicts += 1
        if self.conflicts == 1:
            # Once: how long a reply takes must not tell, again and again, that a value differs.
            _log.warning("an event came again with another value; it had the answer of the first")

    def _compared(self, source: str) -> bool:
        if source not in self._comparable:
            known = self._store.compared(source, self._source.secret)
            self._comparable[source] = known
        return self._comparable[source]
