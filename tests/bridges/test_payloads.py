"""What messages mean, and that nothing of them is said."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.bridges.bad_messages import BadMessage, message_digest
from sfumato.bridges.payloads import EventReader, Form, Message, Source
from sfumato.bridges.topics import TopicTemplate
from sfumato.core.errors import InvalidParameter
from tests.service.sentinels import NUMBER, OUTSIDE, leaks

TEMPLATE = TopicTemplate.of("raw/{stream...}")
JSON = EventReader(TEMPLATE, Form.JSON, Source.FIELD, ("data.x", "data.y"), "n", "at")
TIMED = EventReader(TEMPLATE, Form.JSON, Source.TIME, ("x",), time_field="at")
PLAIN = EventReader(TEMPLATE, Form.NUMBER, Source.CORRELATION)
ANY = st.recursive(
    st.none() | st.booleans() | st.sampled_from([OUTSIDE, NUMBER, 1, "", "e1", "2026-05-01"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["n", "x", "y", "at", "data", OUTSIDE]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


def said(given: Any, topic: str = "raw/u1", **more: Any) -> Message:
    return Message(1, 1, topic, json.dumps(given).encode(), **more)


def test_fields_lead_into_objects_and_columns_keep_their_order() -> None:
    event = JSON.event(said({"n": 3, "at": "2026-05-01 08:00", "data": {"y": 2, "x": 1.5}}))
    assert (event.id, event.stream, event.value) == ("u1#3", "u1", [1.5, 2])
    assert event.time == "2026-05-01T08:00:00"


def test_one_time_however_written_is_one_event() -> None:
    times = ["2026-05-01T10:00+02:00", "2026-05-01T08:00:00Z", "2026-05-01T08:00:00.000+00:00"]
    assert len({TIMED.event(said({"x": "home", "at": at})).id for at in times}) == 1


@given(st.text("ab/", min_size=1, max_size=6), st.text("ab#/1", min_size=1, max_size=6))
def test_no_two_events_share_a_name(stream: str, name: str) -> None:
    reader = EventReader(TEMPLATE, Form.TEXT, Source.CORRELATION)
    event = reader.event(Message(1, 1, f"raw/{stream}", b"home", (), name.encode()))
    assert tuple(event.id.split("#", 1)) == (stream, name)


@pytest.mark.parametrize(
    ("payload", "value"), [(b"1.5", 1.5), (b" -3 ", -3.0), (b"13.4,52.5", [13.4, 52.5])]
)
def test_numbers_are_read_as_they_stand(payload: bytes, value: object) -> None:
    assert PLAIN.event(Message(1, 1, "raw/u1", payload, (), b"e1")).value == value


@pytest.mark.parametrize("payload", [b"", b"nan", b"inf", b"1_0", b"0x1", b"1,,2", b"1" * 50])
def test_what_is_no_number_is_refused(payload: bytes) -> None:
    with pytest.raises(BadMessage):
        PLAIN.event(Message(1, 1, "raw/u1", payload, (), b"e1"))


@given(ANY, st.sampled_from([JSON, TIMED]))
def test_whatever_comes_is_an_event_or_a_rule_that_quotes_nothing(
    given: Any, reader: EventReader
) -> None:
    try:
        event = reader.event(said(given))
    except BadMessage as problem:
        assert not leaks(str(problem))
        assert problem.__cause__ is None
    else:
        assert event.stream == "u1" and event.id.startswith("u1#")
        assert event.id.isprintable()


@given(st.binary(max_size=60))
def test_any_bytes_are_an_event_or_a_dead_letter(payload: bytes) -> None:
    for reader in (JSON, PLAIN):
        with pytest.raises(BadMessage):
            reader.event(Message(1, 1, "raw/u1", payload))


def test_whoever_prints_a_message_or_an_event_prints_no_value() -> None:
    reader = EventReader(TEMPLATE, Form.TEXT, Source.CORRELATION)
    message = Message(1, 1, "raw/u1", OUTSIDE.encode(), (("note", OUTSIDE),), b"e1")
    assert not leaks(repr([message, reader.event(message)]))


def test_a_property_that_comes_twice_is_no_id() -> None:
    reader = EventReader(TEMPLATE, Form.TEXT, Source.PROPERTY, id_name="e")
    one = Message(1, 1, "raw/u1", b"home", (("e", "1"), ("f", "2")))
    assert reader.event(one).id == "u1#1"
    with pytest.raises(BadMessage):
        reader.event(one._replace(properties=(("e", "1"), ("e", "2"))))


def test_a_digest_tells_nothing_without_its_secret() -> None:
    digests = {message_digest(secret, "raw/u1", b"home") for secret in (b"a", b"b")}
    assert len(digests) == 2
    assert message_digest(b"a", "raw/u1", b"home") != message_digest(b"a", "raw/u", b"1home")


@pytest.mark.parametrize(
    "given",
    [
        (Form.TEXT, Source.FIELD, (), "n", None),
        (Form.JSON, Source.FIELD, (), "n", None),
        (Form.TEXT, Source.TIME, (), None, None),
        (Form.JSON, Source.TIME, ("x",), None, None),
        (Form.TEXT, Source.PROPERTY, (), None, None),
        (Form.TEXT, Source.CORRELATION, (), "n", None),
    ],
)
def test_a_reader_without_ids_is_none(given: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidParameter):
        EventReader(TEMPLATE, *given)
