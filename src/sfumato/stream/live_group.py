"""The live events of one call: which have a reply, which came before in it, which are to be drawn.

Replies that rest on draws are taken back if those could not be stored (`LiveGroup.undo`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.models.encoding import Unreadable
from sfumato.store.answer_columns import AnswerColumns
from sfumato.store.live import Answered, Refused, Reply
from sfumato.store.live_intake import UNSTORED, bad_time, event_time, ledger_id, ledger_ids
from sfumato.tables.cells import Time


@dataclass(slots=True)
class LiveGroup:
    """The events of one call, by the ids of the ledger; those that have a reply are in `others`.

    Those that cannot be read are in `bad`: each has that reply unless its id is known. Of
    `doubles`, events that came earlier in the same call, each has the place of the first. What is
    `settled` stays true if the turn fails.
    """

    ids: Sequence[str]
    streams: Sequence[str]
    cells: Ints
    times: list[Time | None] | None
    others: dict[int, Reply]
    bad: dict[int, Reply]
    doubles: dict[int, int] = field(default_factory=dict)
    settled: dict[int, Reply] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.settled = dict(self.others)

    def open(self) -> Ints:
        """The places of events that have no reply yet, or will have a new answer."""
        rows = np.arange(len(self.ids))
        if not self.others:
            return rows
        free = np.ones(len(rows), dtype=np.bool_)
        free[[*self.others]] = False
        return rows[free]

    def taken(self, cells: Sequence[Any], rows: Ints) -> Sequence[Any]:
        """Some entries of a column."""
        if len(rows) == len(cells):
            return cells
        return [cells[row] for row in rows.tolist()]

    def refuse(self, rows: Ints, refused: Refused) -> None:
        """Refuse some events."""
        self.others.update(dict.fromkeys(rows.tolist(), refused))

    def undo(self) -> None:
        """After a turn that failed: what was decided in it rests on draws that are not stored."""
        self.doubles = {}
        self.others = self.bad | self.settled
        self.refuse(self.open(), UNSTORED)


def moments_of(
    times: Sequence[str | None] | None, refused: dict[int, Reply]
) -> list[Time | None] | None:
    """The times of events; those that cannot be read are refused."""
    if times is None:
        return None
    found: list[Time | None] = []
    for place, time in enumerate(times):
        try:
            found.append(event_time(time, Time.of))
        except Unreadable as problem:
            found.append(None)
            refused.setdefault(place, bad_time(problem))
    return found


def ledger_names(
    ids: Sequence[str], streams: Sequence[str], refused: dict[int, Reply]
) -> Sequence[str]:
    """What the ledger calls events; those without a good name are never looked at."""
    if not refused:
        return ledger_ids(streams, ids)
    pairs = enumerate(zip(streams, ids, strict=True))
    return ["" if row in refused else ledger_id(*pair) for row, pair in pairs]


def set_doubles_aside(group: LiveGroup) -> None:
    """Find new events that came earlier in the same call, and refuse what cannot be read."""
    rows = group.open()
    ids = group.taken(group.ids, rows)
    if len({*ids}) == len(ids):
        group.others = group.bad | group.others
        return
    first: dict[str, int] = {}
    for row in rows.tolist():
        before = first.get(group.ids[row])
        if before is not None:
            group.doubles[row] = before
            group.others[row] = UNSTORED  # until the first of them has its reply
        elif row in group.bad:
            group.others[row] = group.bad[row]
        else:
            first[group.ids[row]] = row


def repeat(group: LiveGroup, fresh: AnswerColumns | None, rows: Ints) -> None:
    """Reply to events as to the same ones before them, whatever their values are."""
    if not group.doubles:
        return
    answers = [] if fresh is None else fresh.answers()
    new = dict(zip(rows.tolist(), answers, strict=True))
    for row, before in group.doubles.items():
        if before in new:
            group.others[row] = Answered((new[before],), repeated=True)
        else:
            group.others[row] = group.bad.get(row) or group.others[before]
