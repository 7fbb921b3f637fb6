"""Answers as they leave, in the words of each job."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeAlias, assert_never

from msgspec import UNSET
from msgspec.structs import replace

from sfumato.models.encoding import Grid, StreamModel
from sfumato.service.bodies import AnswerBody, AnsweredBody, RefusedBody, ReplyBody, WaitingBody
from sfumato.service.problems import refusal
from sfumato.store.live import Answered, Refused, Reply, Waiting
from sfumato.store.protocol import Answer

Wording: TypeAlias = Callable[[Answer], AnswerBody]
"""An answer as it leaves."""


def stream_wording(model: StreamModel | None = None) -> Wording:
    """Answers of job `release`: both certificates, and on a grid the middle of the cell.

    Examples:
        >>> answer = Answer("e1", "http", 1, "u1", 0, "released", "home", 0.5, 0.7)
        >>> stream_wording()(answer).sip
        0.5
    """
    middles = {} if model is None else _middles(model)

    def worded(answer: Answer) -> AnswerBody:
        x, y = middles.get(answer.released, (UNSET, UNSET)) if middles else (UNSET, UNSET)
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

    return worded


def _middles(model: StreamModel) -> dict[object, tuple[float, float]]:
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


def reply_body(
    reply: Reply, worded: Wording, event: str | None = None, n: int | None = None
) -> ReplyBody:
    """A reply as it leaves.

    Args:
        reply: What the live run said.
        worded: The words of the job.
        event: The id of the event, for a refusal.
        n: Its number on a socket.
    """
    number = UNSET if n is None else n
    match reply:
        case Answered():
            return AnsweredBody([worded(one) for one in reply.answers], reply.repeated, number)
        case Waiting():
            return WaitingBody(reply.missing, number)
        case Refused():
            return RefusedBody(refusal(reply, event), number)
        case _:
            assert_never(reply)
