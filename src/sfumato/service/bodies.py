"""Bodies of requests and replies: the types that the service reads, writes and documents.

What is read is strict: unknown fields, a key twice, a number that is not finite, a text with
control characters are refused, each with the place and the rule and without what was there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from sfumato.service.problems import HttpProblem, Problem, of_body, problem
from sfumato.store.live_columns import EventColumns

Kind = TypeVar("Kind")
_PLAIN = {"pattern": "^[^\\u0000-\\u001f\\u007f]+$"}
# Keys of PostgreSQL and lines of logs take no control characters; 256 letters name anything.
Word = Annotated[str, Meta(min_length=1, max_length=256, extra_json_schema=_PLAIN)]
Time = Annotated[str, Meta(min_length=1, max_length=64, extra_json_schema=_PLAIN)]
Text = Annotated[str, Meta(max_length=4_096)]
Cell = Text | int | float | None
Value = (
    Text
    | int
    | float
    | Annotated[list[Cell], Meta(max_length=1_024)]
    | Annotated[dict[str, Cell], Meta(max_length=1_024)]
    | None
)
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_encode, _tree = msgspec.json.Encoder().encode, msgspec.json.Decoder().decode


class _Read(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A body that is read: trees without cycles, which no collector need look for."""


class EventBody(_Read, frozen=True):
    """One event of the stream that the address names.

    Attributes:
        id: What tells it from all others of the release: the same id gets the same answer.
        value: The true value; null lets a moment pass, where the release knows that.
        time: When it was measured.
    """

    id: Word
    value: Value
    time: Time | None = None


class EventsBody(_Read, frozen=True):
    """Several events of one stream, in order."""

    events: Annotated[list[EventBody], Meta(min_length=1)]


class StreamEventBody(_Read, frozen=True):
    """One event of any stream."""

    stream: Word
    id: Word
    value: Value
    time: Time | None = None


class StreamEventsBody(_Read, frozen=True):
    """Several events, in order."""

    events: Annotated[list[StreamEventBody], Meta(min_length=1)]


def event_columns(
    events: Sequence[EventBody | StreamEventBody | NumberedBody], streams: list[str]
) -> EventColumns:
    """Events by columns, with the stream of each."""
    times = [event.time for event in events]
    return EventColumns(
        [event.id for event in events],
        streams,
        [event.value for event in events],
        times if any(times) else None,
    )


class NumberedBody(_Read, frozen=True):
    """One event of a socket; n rises by one."""

    n: Annotated[int, Meta(ge=0, lt=2**53)]
    stream: Word
    id: Word
    value: Value
    time: Time | None = None


class AnswerBody(Struct, frozen=True, gc=False):
    """What left for one event, and what it cost at most; fields that a job lacks are left out.

    Attributes:
        event: The id that asked for it.
        stream: Whose value it is.
        sequence: The moment of the stream, counted from 0.
        released: What left; null if nothing did.
        outcome: What happened, in the words of the job.
        sip: Cost under the model (`release`).
        ldp: Cost whatever the model (`release`).
        charge: Cost of a value of a series (`realtime`).
        epsilon: Cost of a moment (`temporal release`).
        signal: Which output left, where several release the same.
        x: Middle of the released cell.
        y: Middle of the released cell.
        batch: Moment at which its batch began.
        time: When it was measured, if that was told.
    """

    event: str
    stream: str
    sequence: int
    released: str | int | float | list[int] | None
    outcome: str
    sip: float | UnsetType = UNSET
    ldp: float | UnsetType = UNSET
    charge: float | UnsetType = UNSET
    epsilon: float | UnsetType = UNSET
    signal: int | UnsetType = UNSET
    x: float | UnsetType = UNSET
    y: float | UnsetType = UNSET
    batch: int | UnsetType = UNSET
    time: str | UnsetType = UNSET


class AnsweredBody(Struct, frozen=True, gc=False, tag_field="status", tag="answered"):
    """The answer of an event, or those of the batch that it completed."""

    answers: list[AnswerBody]
    repeated: bool
    n: int | UnsetType = UNSET


class WaitingBody(Struct, frozen=True, gc=False, tag_field="status", tag="waiting"):
    """The event waits for others of its batch: keep it until it has an answer."""

    missing: int
    n: int | UnsetType = UNSET


class RefusedBody(Struct, frozen=True, gc=False, tag_field="status", tag="refused"):
    """No answer: nothing was drawn, nothing was charged."""

    problem: Problem
    n: int | UnsetType = UNSET


ReplyBody = AnsweredBody | WaitingBody | RefusedBody


class RepliesBody(Struct, frozen=True, gc=False):
    """One reply for each event, in order."""

    replies: list[ReplyBody]


def decode(decoder: msgspec.json.Decoder[Kind], body: bytes) -> Kind:
    """A body as a value of its type.

    Raises:
        HttpProblem: If it is no JSON, of another form, or says a key twice.

    Examples:
        >>> decode(msgspec.json.Decoder(EventBody), b'{"id": "e1", "value": 3}')
        EventBody(id='e1', value=3, time=None)
    """
    refused: Problem
    try:
        found = decoder.decode(body)
        # Of a key that comes twice decoders take the last, proxies and logs perhaps the first.
        if not _surely_once(body):
            _ONCE.decode(body.decode())
        return found
    except _Twice:
        refused = problem("malformed", "an object says a key twice", rule="say each key once")
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        refused = of_body(error)
    raise HttpProblem(refused)  # outside of the handler: nothing of the body hangs on to it


def _surely_once(body: bytes) -> bool:
    """Whether no key stands twice, seen by counting: a tenth of the time of looking at each.

    Outside of texts there is one `:` for each key. What is read and written again has as many,
    unless a key was read twice, of which one is left, or something in a text is escaped.
    """
    return b"\\" not in body and body.count(b":") == _encode(_tree(body)).count(b":")


class _Twice(ValueError):
    """A key stands twice in an object."""


def _once(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) < len(pairs):
        raise _Twice


_ONCE = json.JSONDecoder(object_pairs_hook=_once)


def check_words(field: str, words: Iterable[str], slug: str = "malformed") -> None:
    """Refuse names with control characters.

    Raises:
        HttpProblem: If one has any.
    """
    if _CONTROL.search("".join(words)):
        rule = "have no control characters"
        raise HttpProblem(problem(slug, f"{field} must {rule}", field=field, rule=rule))
