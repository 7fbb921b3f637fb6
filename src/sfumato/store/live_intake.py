"""What every live run does before it steps: names that can be stored, and retries.

A refusal is made once and shared: a flood of bad events makes no objects but its replies.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from sfumato.core.errors import SfumatoError
from sfumato.models.encoding import Raw, Unreadable, text
from sfumato.store.live import Answered, Reason, Refused, Reply
from sfumato.store.protocol import Again, Answer, Identity, Input, Store

UNSTORED = Refused(
    Reason.UNSTORED, "the store did not take the answer; ask again with the same id: it is safe"
)
OTHER_VALUE = Refused(
    Reason.CONFLICT, "this event id came before, for another value; give the event an id of its own"
)
OTHER_STREAM = Refused(Reason.CONFLICT, "an event id must not occur in two streams")
NO_BUDGET = Refused(
    Reason.BUDGET, "the budget of the stream leaves nothing for this event; nothing was released"
)
NO_CHANNEL = Refused(
    Reason.UNSTORED, "no certified channel was found for this event; nothing was released"
)
EARLIER = Refused(Reason.ORDER, "the time must not lie before that of the last event of the stream")

Moment = TypeVar("Moment")
_log = logging.getLogger("sfumato.live")


def begun(store: Store, source: str) -> Input:
    """The input of a live run; the same one again after a restart."""
    again = Again.RESUME if source in store.inputs() else Again.REFUSE
    return store.begin(source, Identity.EVENT, again)


def report_failure(problem: Exception) -> None:
    """Log why events got no answer; of errors that are not our own the kind alone is told."""
    told = str(problem) if isinstance(problem, SfumatoError) else "see the log of the store"
    _log.error("answers were not stored: %s: %s", type(problem).__name__, told)


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
    """Whether events that were answered before may have their old answers.

    Args:
        store: Where the answers are.
        source: The input of the run, for the secret of its digests.
    """

    def __init__(self, store: Store, source: Input) -> None:
        self._store, self._source = store, source
        self._comparable: dict[str, bool] = {}

    def check(self, answer: Answer, stream: str, tag: bytes) -> Refused | None:
        """Why an event is no retry of another; None if it is one."""
        if answer.stream != stream:
            return OTHER_STREAM
        same = hmac.compare_digest(answer.tag, tag)
        # Without the key file of that time nobody can tell: then it is what left before.
        return None if same or not self._compared(answer.source) else OTHER_VALUE

    def replies(
        self, found: dict[str, Answer], asked: Iterable[tuple[int, str, str, bytes]]
    ) -> dict[int, Reply]:
        """Replies to events that were answered before: place, id, stream and digest of each."""
        replies: dict[int, Reply] = {}
        for place, id_, stream, tag in asked:
            refused = self.check(found[id_], stream, tag)
            replies[place] = refused or Answered((found[id_],), repeated=True)
        return replies

    def _compared(self, source: str) -> bool:
        if source not in self._comparable:
            known = self._store.compared(source, self._source.secret)
            self._comparable[source] = known
        return self._comparable[source]
