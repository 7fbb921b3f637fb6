"""The gate of the service: access control and limits, in the words of HTTP.

Who has a valid key is let in whatever others did from his address; who has none is told so, and to
wait if his address fails too often. What he is told never says why: the log does.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from sfumato.service.access import AccessControl
from sfumato.service.access_keys import Action
from sfumato.service.application import Visitor
from sfumato.service.callers import Caller, Denial, Forbidden, Unauthenticated
from sfumato.service.problems import HttpProblem, problem
from sfumato.service.rate_limits import FailedAttempts, KeyRates, retry_after
from sfumato.service.request_log import note_key, note_reason

Shown = TypeVar("Shown")
_ACTIONS: dict[str, Action] = {action.value: action for action in Action}


@dataclass(frozen=True, slots=True)
class Admitted:
    """A caller whose refusals are replies of HTTP.

    Attributes:
        caller: Who it is.
    """

    caller: Caller

    @property
    def id(self) -> str:
        """The id of the key, for logs and the registry."""
        return self.caller.id

    def require(self, action: str, stream: str | None = None) -> None:
        """Refuse what the key does not allow, whether or not there is such a stream."""
        try:
            self.caller.require(_ACTIONS[action], stream)
        except Forbidden as refused:
            raise forbidden(refused) from None

    def outside(self, action: str, streams: Iterable[str]) -> set[str]:
        """Those of some streams on which the key does not allow an action."""
        return self.caller.key.outside(_ACTIONS[action], streams)

    def require_everywhere(self, action: str) -> None:
        """Refuse what is about all streams to whoever may not touch each of them."""
        try:
            self.caller.require_everywhere(_ACTIONS[action])
        except Forbidden as refused:
            raise forbidden(refused) from None

    def may(self, action: str) -> bool:
        """Whether the key allows an action, on whatever streams."""
        return self.caller.may(_ACTIONS[action])

    def may_everywhere(self, action: str) -> bool:
        """Whether it does on all streams that are, or will be."""
        return self.caller.key.may_everywhere(_ACTIONS[action])

    @property
    def streams(self) -> tuple[str, ...]:
        """The patterns of the streams in its scope; a listing shows no others."""
        return self.caller.key.streams

    @property
    def releases(self) -> tuple[str, ...] | None:
        """Names of the releases that the key may know of; None for all."""
        return self.caller.key.releases

    def require_unlimited(self, action: str) -> None:
        """Refuse what is about all releases to whoever may know of some."""
        try:
            self.caller.require_unlimited(_ACTIONS[action])
        except Forbidden as refused:
            raise forbidden(refused) from None


def forbidden(refused: Forbidden) -> HttpProblem:
    """A refusal as a reply; the same whatever was asked for."""
    note_reason("forbidden")
    return HttpProblem(problem("forbidden", str(refused)))


class AccessGate:
    """Lets in who has an access key, at the rate that the key allows.

    Attributes:
        control: The access keys.
    """

    def __init__(
        self, control: AccessControl, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        """Guard a service.

        Args:
            control: The access keys.
            clock: Nanoseconds that never go back.
        """
        self.control, self._clock = control, clock
        self._rates, self._attempts = KeyRates(), FailedAttempts()

    def admit(self, header: str | None, peer: str | None) -> Admitted:
        """Who asks, by the header `Authorization`; a request is counted."""
        return self._admitted(self.control.identify, header, peer)

    def admit_key(self, key: str, peer: str | None) -> Admitted:
        """The same by the text of a key."""
        return self._admitted(self.control.identify_text, key, peer)

    def _admitted(
        self, identify: Callable[[Shown], Caller], shown: Shown, peer: str | None
    ) -> Admitted:
        try:
            caller = identify(shown)
        except Unauthenticated as refused:
            raise self._turned_away(refused, peer) from None
        note_key(caller.id)
        self._count_request(caller)
        return Admitted(caller)

    def _turned_away(self, refused: Unauthenticated, peer: str | None) -> HttpProblem:
        note_key(refused.key)
        note_reason(refused.why.value)
        if refused.why is Denial.STALE:
            detail = "who may ask is not known now; ask again in a moment"
            return HttpProblem(problem("unavailable", detail), {"retry-after": "1"})
        if wait := self._attempts.failed(peer, self._clock()):
            detail = "too many requests without a valid access key came from this address"
            return HttpProblem(problem("rate", detail), {"retry-after": retry_after(wait)})
        return HttpProblem(problem("unauthorized", str(refused)))

    def message(self, visitor: Visitor, events: int) -> Admitted:
        """The visitor of a socket as he is now; a message of so many events is counted."""
        try:
            caller = self.control.current(_caller(visitor))
        except Unauthenticated as refused:
            raise self._turned_away(refused, None) from None
        self._count_request(caller)
        self._count_events(caller, events)
        return Admitted(caller)

    def charge(self, visitor: Visitor, events: int) -> None:
        """Count events against the rate of a key; all or none."""
        self._count_events(_caller(visitor), events)

    def _count_request(self, caller: Caller) -> None:
        wait = self._rates.request(caller.id, caller.key.rate, self._clock())
        if wait:
            raise _too_often(wait, "requests", caller.key.rate.requests.per_second)

    def _count_events(self, caller: Caller, events: int) -> None:
        if not events:
            return
        wait = self._rates.events(caller.id, caller.key.rate, self._clock(), events)
        if wait:
            raise _too_often(wait, "events", caller.key.rate.events.per_second)


def _too_often(wait: int, what: str, per_second: int) -> HttpProblem:
    note_reason("rate")
    detail = f"the access key must ask for at most {per_second:,} {what} a second; none was taken"
    return HttpProblem(problem("rate", detail), {"retry-after": retry_after(wait)})


def _caller(visitor: Visitor) -> Caller:
    assert isinstance(visitor, Admitted)  # whoever comes through this gate is
    return visitor.caller
