"""Answers as they leave, in the words of each job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import repeat
from typing import Any, Protocol, TypeAlias, assert_never

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from sfumato.models.encoding import Grid
from sfumato.models.stream_model import StreamModel
from sfumato.service.bodies import AnswerBody, AnsweredBody, RefusedBody, ReplyBody, WaitingBody
from sfumato.service.problems import refusal
from sfumato.store.answer_columns import AnswerColumns
from sfumato.store.live import Answered, Refused, Reply, Waiting
from sfumato.store.live_columns import EventColumns, ReplyColumns
from sfumato.store.protocol import Answer

Worded: TypeAlias = AnswerBody | ReplyBody
"""What is told of one event: its new answer alone, or any other reply."""


class Wording(Protocol):
    """Answers as they leave."""

    def __call__(self, answer: Answer) -> AnswerBody:
        """One answer."""
        ...


def stream_wording(model: StreamModel | None = None) -> Wording:
    """Answers of job `release`: both certificates, and on a grid the middle of the cell.

    Examples:
        >>> answer = Answer("e1", "http", 1, "u1", 0, "released", "home", 0.5, 0.7)
        >>> stream_wording()(answer).sip
        0.5
    """
    return _StreamWording(model)


class _StreamWording:
    """The words of `stream_wording`, for one answer and for columns of them."""

    def __init__(self, model: StreamModel | None) -> None:
        self._middles = {} if model is None else _middles(model)

    def __call__(self, answer: Answer) -> AnswerBody:
        """One answer."""
        x, y = self._middles.get(answer.released, _NOWHERE)
        return AnswerBody(
            event=answer.id,
            stream=answer.stream,
            sequence=answer.sequence,
            released=answer.released,
            outcome=answer.outcome,
            sip=answer.leakage,
            ldp=answer.model_free,
            signal=UNSET if answer.signal is None else answer.signal,
            x=x,
            y=y,
            batch=UNSET if answer.batch is None else answer.batch,
            time=UNSET if answer.time is None else answer.time,
        )

    def columns(self, answers: AnswerColumns) -> list[AnswerBody]:
        """Many answers; the same as one by one, without an object for each in between."""
        released = answers.released.cells()
        unset = repeat(UNSET)
        signals = unset if answers.signals is None else _set(answers.signals.tolist(), -1)
        places = [self._middles.get(one, _NOWHERE) for one in released] if self._middles else []
        made = map(
            AnswerBody,  # its fields in their order
            answers.ids,
            answers.streams.cells(),
            answers.sequences.tolist(),
            released,
            answers.outcomes.cells(),
            answers.leakage.tolist(),
            answers.model_free.tolist(),
            unset,
            unset,
            signals,
            [x for x, _ in places] or unset,
            [y for _, y in places] or unset,
            unset,
            unset if answers.times is None else _set(answers.times, None),
        )
        return list(made)


_Place: TypeAlias = tuple[float | UnsetType, float | UnsetType]
_NOWHERE: _Place = (UNSET, UNSET)


def _set(cells: Sequence[Any], nothing: object) -> list[Any]:
    return [UNSET if cell == nothing else cell for cell in cells]


def _middles(model: StreamModel) -> dict[object, _Place]:
    if not isinstance(model.encoding, Grid) or model.alphabet.coordinates is None:
        return {}
    places = model.alphabet.coordinates.tolist()
    return {label: (x, y) for label, (x, y) in zip(model.alphabet.labels, places, strict=True)}


def series_wording(answer: Answer) -> AnswerBody:
    """Answers of job `realtime`: what the value was charged."""
    return replace(_bare(answer), charge=answer.leakage)


def temporal_wording(answer: Answer) -> AnswerBody:
    """Answers of job `temporal release`: the budget of the moment; several counts are a list."""
    return replace(_bare(answer), epsilon=answer.leakage)


def _bare(answer: Answer) -> AnswerBody:
    released: str | int | float | list[int] | None = answer.released
    if isinstance(released, str) and released.startswith("["):
        released = json.loads(released)  # the ledger keeps several counts as one text
    return AnswerBody(
        event=answer.id,
        stream=answer.stream,
        sequence=answer.sequence,
        released=released,
        outcome=answer.outcome,
        batch=UNSET if answer.batch is None else answer.batch,
        time=UNSET if answer.time is None else answer.time,
    )


def reply_body(reply: Reply, worded: Wording, event: str | None = None) -> ReplyBody:
    """A reply as it leaves.

    Args:
        reply: What the live run said.
        worded: The words of the job.
        event: The id of the event, for a refusal.
    """
    match reply:
        case Answered():
            return AnsweredBody([worded(one) for one in reply.answers], reply.repeated)
        case Waiting():
            return WaitingBody(reply.missing)
        case Refused():
            return RefusedBody(refusal(reply, event))
        case _:
            assert_never(reply)


def worded_replies(worded: Wording, events: EventColumns, replies: ReplyColumns) -> list[Worded]:
    """The replies to a group of events, in order, as they leave.

    Args:
        worded: The words of the job.
        events: Who asked.
        replies: What the live run said.
    """
    new: list[AnswerBody] = []
    if replies.fresh is not None and isinstance(worded, _StreamWording):
        new = worded.columns(replies.fresh)
    elif replies.fresh is not None:
        new = [worded(answer) for answer in replies.fresh.answers()]
    if not replies.others:
        return [*new]
    found: dict[int, Worded] = {
        place: reply_body(reply, worded, events.ids[place])
        for place, reply in replies.others.items()
    }
    found.update(zip(replies.rows.tolist(), new, strict=True))
    return [found[place] for place in range(len(replies))]


def whole_reply(told: Worded, n: int | UnsetType = UNSET) -> ReplyBody:
    """A reply with all that belongs to it.

    Args:
        told: What was told of the event.
        n: Its number on a socket.
    """
    if isinstance(told, AnswerBody):
        return AnsweredBody([told], False, n)
    return told if n is UNSET else replace(told, n=n)
