"""Messages of devices as events: value, id and time from payload and properties."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, assert_never

from sfumato.bridges.bad_messages import BadMessage, message_digest
from sfumato.bridges.topics import TopicTemplate, checked_name
from sfumato.core.errors import InvalidParameter
from sfumato.models.encoding import Unreadable
from sfumato.store.live import Asked
from sfumato.tables.cells import Time

_NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?", re.ASCII)
_LONGEST_TIME = 64


class Form(StrEnum):
    """What a payload is.

    Attributes:
        TEXT: The value itself, as text.
        NUMBER: The value itself, as a number, or several with commas between them.
        JSON: An object; some of its fields are value, id and time.
    """

    TEXT = "text"
    NUMBER = "number"
    JSON = "json"


class Source(StrEnum):
    """Where the id of an event stands.

    Attributes:
        FIELD: In a field of the payload.
        PROPERTY: In a user property of the message.
        CORRELATION: In its correlation data.
        TIME: Nowhere: an event is known by stream and time.
    """

    FIELD = "field"
    PROPERTY = "property"
    CORRELATION = "correlation"
    TIME = "time"


class Message(NamedTuple):
    """A message as a broker delivers it.

    Attributes:
        mid: What it is acknowledged by, on the connection that it came on.
        qos: 1 if it is to be acknowledged; 0 if not.
        topic: Where it was published.
        payload: What it holds.
        properties: User properties, in order.
        correlation: Correlation data; None if there are none.
        left_out: Which part was too large to be kept, and the digest of the message; None if it
            is all here.
    """

    mid: int
    qos: int
    topic: str
    payload: bytes
    properties: tuple[tuple[str, str], ...] = ()
    correlation: bytes | None = None
    left_out: tuple[str, str] | None = None

    def __repr__(self) -> str:
        """Its number alone: whoever prints a message does not print a value."""
        return f"Message({self.mid})"


@dataclass(frozen=True, slots=True)
class EventReader:
    """How messages become events.

    Attributes:
        template: Whose stream a topic is.
        form: What payloads are.
        source: Where ids stand.
        values: Fields of the value, in the order of the model; for JSON.
        id_name: The field or property of ids.
        time_field: The field of times; None if none is told.
        largest: Bytes that a payload may have, and letters that its properties may have together.

    Examples:
        >>> reader = EventReader(
        ...     TopicTemplate.of("raw/#"), Form.JSON, Source.FIELD, ("cell",), "n"
        ... )
        >>> reader.event(Message(1, 1, "raw/ann", b'{"n": 7, "cell": "home"}')).id
        'ann#7'
    """

    template: TopicTemplate
    form: Form
    source: Source
    values: tuple[str, ...] = ()
    id_name: str | None = None
    time_field: str | None = None
    largest: int = 65_536

    def __post_init__(self) -> None:
        fields = self.source is Source.FIELD or self.time_field is not None or bool(self.values)
        if fields != (self.form is Form.JSON) or (self.form is Form.JSON and not self.values):
            rule = "be given if, and only if, payloads are JSON objects"
            raise InvalidParameter("--value-field", ", ".join(self.values), rule)
        if (self.id_name is None) == (self.source in (Source.FIELD, Source.PROPERTY)):
            raise InvalidParameter("id_name", self.id_name, "name the field or property of ids")
        if self.source is Source.TIME and self.time_field is None:
            rule = "be given: without it an event cannot be known by its time"
            raise InvalidParameter("--time-field", None, rule)

    @property
    def identity(self) -> str:
        """How events are known, for the ledger: `field:n`."""
        return self.source.value if self.id_name is None else f"{self.source.value}:{self.id_name}"

    def admitted(self, message: Message, secret: bytes) -> Message:
        """A message as it may wait: of one that is too large its digest is left.

        Args:
            message: As it came.
            secret: Of the digests of dead letters.
        """
        part = self._oversized(message)
        if part is None:
            return message
        digest = message_digest(secret, message.topic, message.payload)
        bare = message._replace(payload=b"", properties=(), correlation=None)
        return bare._replace(left_out=(part, digest))

    def _oversized(self, message: Message) -> str | None:
        """The part of a message that is too large; None if none is."""
        told = sum(len(name) + len(word) for name, word in message.properties)
        if len(message.payload) > self.largest:
            return "payload"
        return "properties" if told + len(message.correlation or b"") > self.largest else None

    def event(self, message: Message) -> Asked:
        """The event of a message that was admitted.

        Raises:
            BadMessage: If it breaks a rule.
        """
        stream = self.template.stream(message.topic)
        part = self._oversized(message) if message.left_out is None else message.left_out[0]
        if part is not None:
            raise BadMessage(part, f"have at most {self.largest} bytes")
        found = self._object(message.payload) if self.form is Form.JSON else {}
        time = None if self.time_field is None else _time(_field(found, self.time_field, "time"))
        name = self._id(message, found, time)
        # A topic has no #, so no two pairs of stream and id give one name; devices that count by
        # themselves need not know of each other.
        return Asked(f"{stream}#{name}", stream, self._value(message.payload, found), time)

    def _value(self, payload: bytes, found: dict[str, Any]) -> Any:
        match self.form:
            case Form.JSON:
                parts = [_cell(_field(found, name, "value")) for name in self.values]
                return parts[0] if len(parts) == 1 else parts
            case Form.TEXT:
                return _text(payload)
            case Form.NUMBER:
                numbers = [_number(word) for word in _text(payload).split(",")]
                return numbers[0] if len(numbers) == 1 else numbers
            case _:
                assert_never(self.form)

    def _id(self, message: Message, found: dict[str, Any], time: str | None) -> str:
        match self.source:
            case Source.FIELD:
                raw = _field(found, self.id_name or "", "id")
            case Source.PROPERTY:
                named = [word for name, word in message.properties if name == self.id_name]
                raw = named[0] if len(named) == 1 else None
            case Source.CORRELATION:
                raw = None if message.correlation is None else _text(message.correlation, "id")
            case Source.TIME:
                raw = time
            case _:
                assert_never(self.source)
        if isinstance(raw, bool) or not isinstance(raw, str | int) or raw == "":
            raise BadMessage("id", "be there once, as a text or a whole number")
        try:
            return checked_name("id", str(raw))
        except ValueError:  # a whole number of thousands of digits
            raise BadMessage("id", "have fewer digits") from None

    def _object(self, payload: bytes) -> dict[str, Any]:
        try:
            found = _JSON.decode(payload.decode())
        except _Twice:
            raise BadMessage("payload", "say each key once") from None
        except (ValueError, RecursionError):
            raise BadMessage("payload", "be JSON") from None
        if not isinstance(found, dict):
            raise BadMessage("payload", "be a JSON object")
        return found


class _Twice(ValueError):
    """A key stands twice in an object: readers differ in which of the two they take."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Twice
    return found


def _no_number(word: str) -> None:
    raise ValueError  # NaN and Infinity are no JSON


_JSON = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_number)


def _field(found: dict[str, Any], path: str, part: str) -> Any:
    """A field of an object; dots lead into objects within it."""
    here: Any = found
    for name in path.split("."):
        if not isinstance(here, dict) or name not in here:
            raise BadMessage(part, f"stand in the field {path}")
        here = here[name]
    return here


def _cell(value: Any) -> str | int | float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        raise BadMessage("value", "be a text, a number or null")
    return value


def _text(payload: bytes, part: str = "payload") -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError:
        raise BadMessage(part, "be text in UTF-8") from None


def _number(word: str) -> float:
    if _NUMBER.fullmatch(word.strip()) is None:
        raise BadMessage("payload", "be a number, or several with commas between them")
    return float(word)


def _time(raw: Any) -> str:
    if isinstance(raw, str) and len(raw) > _LONGEST_TIME:
        raise BadMessage("time", f"have at most {_LONGEST_TIME} characters")
    try:
        return Time.of(raw).text
    except (Unreadable, ValueError):
        raise BadMessage("time", "be a number, or a date and time of ISO 8601") from None
