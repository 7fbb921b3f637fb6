"""Events come in, replies leave: the operations that the service is there for."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sfumato.service.application import Application
from sfumato.service.bodies import (
    AnsweredBody,
    EventBody,
    EventsBody,
    RefusedBody,
    RepliesBody,
    ReplyBody,
    StreamEventBody,
    StreamEventsBody,
    Time,
    Value,
    WaitingBody,
    Word,
    check_words,
    decode,
    event_columns,
)
from sfumato.service.gatherer import QueueFull, Stopped
from sfumato.service.operations import Call, Operation, Result, in_time, refused_with
from sfumato.service.problems import HttpProblem, busy, problem
from sfumato.service.releases import OpenRelease
from sfumato.service.wording import Worded, reply_body, whole_reply
from sfumato.store.live import Answered
from sfumato.store.live_columns import EventColumns
from sfumato.store.live_intake import ledger_id, own_answer
from sfumato.store.protocol import Answer


class ReleaseQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which release is asked.

    Attributes:
        release: Its name; where the stream began, or the default, if not given.
    """

    release: Word | None = None


class _Posted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An event, or several: which of the two is seen by the fields."""

    id: Word | UnsetType = UNSET
    value: Value | UnsetType = UNSET
    time: Time | UnsetType | None = UNSET
    events: Annotated[list[EventBody], Meta(min_length=1)] | UnsetType = UNSET


_posted = msgspec.json.Decoder(_Posted)
_many = msgspec.json.Decoder(StreamEventsBody)


def _one_or_many(content: bytes) -> EventBody | EventsBody:
    found = decode(_posted, content)
    alone = (found.id, found.value, found.time)
    if found.events is not UNSET and all(each is UNSET for each in alone):
        return EventsBody(found.events)
    if found.events is UNSET and found.id is not UNSET and found.value is not UNSET:
        return EventBody(found.id, found.value, None if found.time is UNSET else found.time)
    rule = "have `id` and `value`, or `events` alone"
    raise HttpProblem(problem("malformed", f"the body must {rule}", field="$", rule=rule))


def _room(call: Call) -> None:
    """Refuse before a body is read, where it is known which queue it would wait in."""
    releases = call.application.releases
    try:
        if call.query.release is not None or releases.single:
            releases.named(call.query.release).gatherer.check_room()
    except QueueFull as full:
        raise busy(full.seconds, str(full)) from None
    except Stopped:
        raise _stopped() from None


def _stopped() -> HttpProblem:
    detail = "the service takes no more events here; asking elsewhere with the same id is safe"
    return HttpProblem(problem("unavailable", detail), {"retry-after": "1"})


async def _stream_events(call: Call) -> Result:
    stream, body = call.path["stream"], call.body
    if isinstance(body, EventBody):
        [told] = await answered(call, event_columns([body], [stream]))
        return _alone(whole_reply(told))
    return await _replies(call, event_columns(body.events, [stream] * len(body.events)))


def _alone(made: ReplyBody) -> Result:
    """The reply of one event, which its status tells, too."""
    if isinstance(made, RefusedBody):
        return refused_with(made.problem)
    return Result(made, 202 if isinstance(made, WaitingBody) else 200)


async def _events(call: Call) -> Result:
    events: list[StreamEventBody] = call.body.events
    return await _replies(call, event_columns(events, [event.stream for event in events]))


async def _replies(call: Call, asked: EventColumns) -> Result:
    return Result(RepliesBody([whole_reply(told) for told in await answered(call, asked)]))


async def answered(call: Call, asked: EventColumns) -> list[Worded]:
    """What is told of each event."""
    application, limits = call.application, call.application.limits
    if len(asked) > limits.request_events:
        rule = f"have at most {limits.request_events:,} events"
        detail = f"a request must {rule}; none of them was taken"
        raise HttpProblem(problem("too-large", detail, field="events", rule=rule))
    check_asked(asked)
    for stream in call.known.outside("release", asked.streams):
        call.known.require("release", stream)  # refuses all of them, for one
    application.gate.charge(call.known, len(asked))
    waiting = await placed(application, asked, call.query.release)
    return await in_time(waiting, limits.reply_seconds)  # type: ignore[no-any-return]


def check_asked(asked: EventColumns) -> None:
    """Refuse events whose names no ledger and no log could take."""
    check_words("id", asked.ids)
    check_words("stream", asked.streams)
    if asked.times is not None:
        check_words("time", (time for time in asked.times if time is not None))


async def placed(
    application: Application, asked: EventColumns, name: str | None
) -> asyncio.Future[list[Worded]]:
    """Put events into the queues of their releases; the future brings all their replies, in order.

    Raises:
        HttpProblem: If a release is not there, or has no room; then none of them was taken, unless
            they belong to several releases: those that were taken get their answers by their ids.
    """
    try:
        if (common := application.releases.of_all(asked.streams, name)) is not None:
            return common.gatherer.ask(asked)
        parts = _shares(await application.releases.of_streams(asked.streams, name))
        if len(parts) == 1:
            return parts[0][0].gatherer.ask(asked)
        for release, places in parts:
            release.gatherer.check_room(len(places))
        taken = [(places, release.gatherer.ask(asked.taken(places))) for release, places in parts]
    except QueueFull as full:
        raise busy(full.seconds, str(full)) from None
    except Stopped:
        raise _stopped() from None
    return asyncio.ensure_future(_together(len(asked), taken))


def _shares(releases: Sequence[OpenRelease]) -> list[tuple[OpenRelease, list[int]]]:
    """Which places go to each release."""
    shares: dict[str, tuple[OpenRelease, list[int]]] = {}
    for place, release in enumerate(releases):
        shares.setdefault(release.name, (release, []))[1].append(place)
    return list(shares.values())


async def _together(
    count: int, parts: Sequence[tuple[list[int], asyncio.Future[list[Worded]]]]
) -> list[Worded]:
    found: dict[int, Worded] = {}
    for places, replies in parts:
        found.update(zip(places, await replies, strict=True))
    return [found[place] for place in range(count)]


async def _finish(call: Call) -> Result:
    stream, application = call.path["stream"], call.application
    [release] = await application.releases.of_streams([stream], call.query.release)
    try:
        future = release.gatherer.finish(stream)
        found = await in_time(future, application.limits.reply_seconds)
    except QueueFull as full:
        raise busy(full.seconds, str(full)) from None
    except Stopped:
        raise _stopped() from None
    if found is None:
        return Result(status=204)
    return _alone(reply_body(found, release.worded))


async def _event(call: Call) -> Result:
    stream, id_ = call.path["stream"], call.path["event"]
    releases = call.application.releases
    named = ledger_id(stream, id_)

    def looked_up() -> tuple[OpenRelease, Answer | None]:
        release = releases.of_stream(stream, call.query.release)
        return release, release.opened.store.answers([named]).get(named)

    release, found = await call.application.reading.read(call.known.id, looked_up)
    if found is None:
        raise HttpProblem(problem("not-found", "no such event of this stream was answered"))
    return Result(reply_body(Answered((own_answer(found),), repeated=True), release.worded))


_ASKING = ("value", "budget", "order", "closed", "unstored", "busy", "rate", "unavailable")
EVENT_OPERATIONS = (
    Operation(
        name="post_stream_events",
        method="POST",
        path="/v1/streams/{stream}/events",
        summary="Release one value of a stream, or several in order",
        handler=_stream_events,
        action="release",
        query=ReleaseQuery,
        body=(EventBody, EventsBody),
        decoder=_one_or_many,
        replies={200: (AnsweredBody, RepliesBody), 202: WaitingBody},
        problems=_ASKING,
        precheck=_room,
    ),
    Operation(
        name="post_events",
        method="POST",
        path="/v1/events",
        summary="Release values of several streams, in order",
        handler=_events,
        action="release",
        query=ReleaseQuery,
        body=StreamEventsBody,
        decoder=lambda content: decode(_many, content),
        replies={200: RepliesBody},
        problems=_ASKING,
        precheck=_room,
    ),
    Operation(
        name="finish_stream",
        method="POST",
        path="/v1/streams/{stream}/finish",
        summary="Release what waits of a stream as a shorter batch",
        handler=_finish,
        action="release",
        query=ReleaseQuery,
        replies={200: AnsweredBody, 204: None},
        problems=_ASKING,
    ),
    Operation(
        name="get_event",
        method="GET",
        path="/v1/streams/{stream}/events/{event}",
        summary="The answer that an event got",
        handler=_event,
        action="read",
        query=ReleaseQuery,
        replies={200: AnsweredBody},
        problems=("busy", "unavailable"),
    ),
)
