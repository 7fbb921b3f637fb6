"""What goes over the wire, as both clients know it; see `docs/design/service.md`."""

from __future__ import annotations

from typing import Any, Literal
from uuid import uuid4

from msgspec import Struct, field

MOST_EVENTS = 1000
"""Events of one request."""
_SLUG = "urn:sfumato:problem:"


def fresh_id() -> str:
    """An id that no other event has; it is made before the first attempt, and kept for all."""
    return uuid4().hex


class LiveEvent(Struct, frozen=True, omit_defaults=True):
    """One true value on its way to the service; its repr does not show it.

    Attributes:
        stream: Whose value it is.
        value: The true value: text, a number, a list or a mapping of them; None lets a moment
            pass, where the release knows that.
        id: What tells the event from all others of its release. Sent again under the same id, it
            gets the same answer; made once, here, if it is not given.
        time: When it was measured, if that is told.

    Examples:
        >>> LiveEvent("u1", "home", id="e1")
        LiveEvent(stream='u1', id='e1')
        >>> LiveEvent("u1", "home").id == LiveEvent("u1", "home").id
        False
    """

    stream: str
    value: Any
    id: str = field(default_factory=fresh_id)
    time: str | None = None

    def __repr__(self) -> str:
        return f"LiveEvent(stream={self.stream!r}, id={self.id!r})"


class GivenAnswer(Struct, frozen=True, kw_only=True):
    """What may leave for one event; fields that a release does not have are None.

    Attributes:
        event: The id that it answers.
        stream: Whose value was asked about.
        sequence: The moment of the stream, counted from 0.
        outcome: What happened: released, suppressed, ... in the words of the job.
        released: What left.
        signal: Which output of its channel left, where several release the same.
        x: Place of what left, on a grid.
        y: The other coordinate.
        batch: Moment at which its batch began.
        time: When the value was measured, if that was told.
        sip: What it leaked under the model; at most this, as all charges here.
        ldp: What it leaked whatever the model.
        charge: What it cost a series (`realtime`).
        epsilon: What it cost a release over time (`temporal release`).

    Examples:
        >>> told = {"event": "e1", "stream": "ann", "sequence": 0, "outcome": "released"}
        >>> GivenAnswer(**told, released="home", sip=0.5).sip
        0.5
    """

    event: str
    stream: str
    sequence: int
    outcome: str
    released: Any = None
    signal: int | None = None
    x: float | None = None
    y: float | None = None
    batch: int | None = None
    time: str | None = None
    sip: float | None = None
    ldp: float | None = None
    charge: float | None = None
    epsilon: float | None = None


class Problem(Struct, frozen=True):
    """Why something was refused, in the words of the service (RFC 9457); it quotes no value.

    Attributes:
        type: A URN whose last part names the kind of problem.
        title: The kind of problem, for people.
        status: HTTP status.
        detail: What must hold.
        field: The field of the request that broke the rule.
        rule: The rule that it broke.
        event: The id of the event that it is about.

    Examples:
        >>> Problem("urn:sfumato:problem:budget", "Budget gone", 403).slug
        'budget'
    """

    type: str = "about:blank"
    title: str = ""
    status: int = 0
    detail: str = ""
    field: str | None = None
    rule: str | None = None
    event: str | None = None

    @property
    def slug(self) -> str:
        """The short name of the kind of problem: value, budget, order, unstored, ..."""
        return self.type.removeprefix(_SLUG)

    @property
    def passing(self) -> bool:
        """Whether asking again with the same id may help, and is safe."""
        return self.status in RETRIED


RETRIED = (429, 502, 503, 504)
"""Statuses of a service that is there but has no room, or not yet, or no longer."""


class Reply(Struct, frozen=True):
    """What the service says of one event.

    Attributes:
        status: Whether there are answers, or the event waits for others of its batch, or nothing
            was drawn for it.
        repeated: Whether the answers had left before: nothing was drawn for them now.
        answers: Its own answer, or those of the whole batch that it completed, in order.
        missing: How many values its batch still lacks.
        problem: Why it was refused.

    Examples:
        >>> answer = GivenAnswer(event="e1", stream="u", sequence=0, outcome="ok", released="work")
        >>> Reply("answered", answers=(answer,)).released
        'work'
    """

    status: Literal["answered", "waiting", "refused"]
    repeated: bool = False
    answers: tuple[GivenAnswer, ...] = ()
    missing: int = 0
    problem: Problem | None = None

    def __post_init__(self) -> None:
        if (self.status == "answered") != bool(self.answers):
            raise ValueError("answered must come with answers, and nothing else")
        if (self.status == "refused") != (self.problem is not None):
            raise ValueError("refused must come with a problem, and nothing else")

    def answer_to(self, event: str) -> GivenAnswer | None:
        """The answer to one event, by its id."""
        return next((answer for answer in self.answers if answer.event == event), None)

    @property
    def released(self) -> Any:
        """What left last, which is the event's own where it left alone; None if nothing did."""
        return self.answers[-1].released if self.answers else None
