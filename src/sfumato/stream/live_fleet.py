"""Live events of streams that are released value by value under a compiled policy.

Events of one call are one turn of the store: retries get their old answers, all others go through
one fleet and one commit. What is held in memory is a copy of the store (`fleet_copy`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Ints
from sfumato.core.errors import BudgetExceeded, SolverFailed, UnknownSymbol
from sfumato.core.events import OUTCOMES
from sfumato.core.guard import Guarded, guarded
from sfumato.core.purpose import Fallback
from sfumato.core.randomness import Randomness
from sfumato.models.encoding import StreamModel, Unreadable
from sfumato.store.answer_columns import AnswerColumns, Coded
from sfumato.store.chain import value_tags
from sfumato.store.live import Answered, Asked, Reason, Refused, Reply, StreamAccount
from sfumato.store.live_columns import ReplyColumns
from sfumato.store.live_intake import (
    EARLIER,
    NO_BUDGET,
    NO_CHANNEL,
    OTHER_STREAM,
    OTHER_VALUE,
    UNSTORED,
    Retries,
    bad_time,
    event_time,
    refused_names,
    report_failure,
)
from sfumato.store.protocol import Input, Store
from sfumato.stream.column_values import PASSES
from sfumato.stream.fleet_answers import Run
from sfumato.stream.fleet_copy import FleetCopy
from sfumato.stream.live_batches import stream_account
from sfumato.stream.live_values import LiveValues
from sfumato.stream.plan import Plan
from sfumato.stream.row_run import state_kind
from sfumato.tables.cells import Late, Missing, Time

STREAMS_HELD = 1_000_000
"""Streams held in memory; with 16 symbols they take some 600 MB."""
_REFUSALS = (BudgetExceeded, SolverFailed, UnknownSymbol)


class LiveFleet(Guarded):
    """The live events of one plan with a policy, value by value; a `LiveRun`.

    Args:
        store: Where answers are kept.
        source: The input that the events are of; see `live_intake.begun`.
        model: How values become symbols.
        plan: The rule; with a policy, for single values.
        coins: Of the releases.
        missing: What becomes of a missing value.
        late: What becomes of an event that goes back in the time of its stream.
        most_streams: How many streams are held in memory.

    Examples:
        >>> import sfumato as sf
        >>> from sfumato.models.encoding import StreamModel, Symbols
        >>> from sfumato.store.live_intake import begun
        >>> from sfumato.store.memory import MemoryStore
        >>> places = sf.Alphabet(["home", "work"])
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]], alphabet=places)
        >>> loss = sf.loss.hamming(places)
        >>> policy = sf.compile_policy(chain, loss, 0.5, steps=500)
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), loss, policy=policy)
        >>> model, store = StreamModel(chain, Symbols(places)), MemoryStore(plan=plan.fingerprint)
        >>> run = LiveFleet(store, begun(store, "phones"), model, plan, sf.secure())
        >>> first, again = run.answer([Asked("e1", "ann", "home"), Asked("e1", "ann", "home")])
        >>> first.answers == again.answers, again.repeated
        (True, True)
    """

    def __init__(
        self,
        store: Store,
        source: Input,
        model: StreamModel,
        plan: Plan,
        coins: Randomness,
        *,
        missing: Missing = Missing.REFUSE,
        late: Late = Late.REFUSE,
        most_streams: int = STREAMS_HELD,
    ) -> None:
        plan.check_coins(coins)
        most = checks.count("most_streams", most_streams)
        self._store, self._source, self._model, self._plan = store, source, model, plan
        self._late = late
        self._values = LiveValues(model, missing, plan.on_unknown)
        self._retries = Retries(store, source)
        self._copy = FleetCopy(plan, coins, store, most)
        self._answered = source.answered

    def answer(self, events: Sequence[Asked]) -> list[Reply]:
        """A reply for each event, in order; all answers are durable when this returns."""
        times = [event.time for event in events]
        return self.answer_columns(
            [event.id for event in events],
            [event.stream for event in events],
            [event.value for event in events],
            times if any(time is not None for time in times) else None,
        ).replies()

    @guarded
    def answer_columns(
        self,
        ids: Sequence[str],
        streams: Sequence[str],
        values: Sequence[Any],
        times: Sequence[str | None] | None = None,
    ) -> ReplyColumns:
        """The same by columns: see `Asked`."""
        others = refused_names(ids, streams)
        cells = self._values.cells(values, others)
        group = _Group(ids, streams, cells, _moments(times, others), others)
        fresh: AnswerColumns | None = None
        try:
            with self._store.turn():
                fresh = self._in_turn(group)
        except BaseException as problem:
            self._copy.forget()
            if not isinstance(problem, Exception):
                raise
            report_failure(problem)
            fresh = None
            group.refuse(group.open(), UNSTORED)
        self._answered += 0 if fresh is None else len(fresh)
        rows = group.open()
        _repeat(group, fresh, rows)
        return ReplyColumns(len(ids), fresh, rows, others)

    def _in_turn(self, group: _Group) -> AnswerColumns | None:
        """Look up, draw and commit; what gets no new answer is in `group.others` then."""
        self._repeated(group)
        _set_doubles_aside(group)
        rows = group.open()
        if not rows.size:
            return None
        names, codes = _coded(group.taken(group.streams, rows))
        places = self._copy.places(names)
        which = places[codes]
        kept = self._in_order(group, rows, which)
        drawn = self._drawn(group, rows[kept], which[kept])
        if not drawn:
            return None
        rows = np.concatenate([rows for rows, _, _ in drawn])
        which = np.concatenate([which for _, which, _ in drawn])
        return self._committed(group, rows, which, _joined([run for _, _, run in drawn]))

    def _repeated(self, group: _Group) -> None:
        """Give events that were answered before their old answers."""
        rows = group.open()
        ids = group.taken(group.ids, rows)
        known = self._store.known(ids)
        if not known.any():
            return
        old = rows[known]
        ids, streams = group.taken(group.ids, old), group.taken(group.streams, old)
        tags = self._tags(ids, streams, group.cells[old])
        asked = zip(old.tolist(), ids, streams, tags, strict=True)
        group.settle(self._retries.replies(self._store.answers(ids), asked))

    def _tags(self, ids: Sequence[str], streams: Sequence[str], cells: Ints) -> list[bytes]:
        words = self._values.words
        return value_tags(
            self._source.secret, ids, streams, [words[cell] for cell in cells.tolist()]
        )

    def _in_order(self, group: _Group, rows: Ints, which: Ints) -> Ints:
        """Which rows do not go back in the time of their stream; the others are refused."""
        if group.times is None or self._late is Late.ACCEPT:
            return np.arange(len(rows))
        last: dict[int, Time | None] = {}
        kept: list[int] = []
        for at, (row, place) in enumerate(zip(rows.tolist(), which.tolist(), strict=True)):
            time = group.times[row]
            before = last[place] if place in last else self._copy.time(place)
            try:
                if time is not None and before is not None and time.before(before):
                    group.others[row] = EARLIER
                    continue
            except Unreadable as problem:
                group.others[row] = Refused(Reason.ORDER, f"the time {problem}")
                continue
            last[place] = time
            kept.append(at)
        return np.array(kept, dtype=np.int64)

    def _drawn(self, group: _Group, rows: Ints, which: Ints) -> list[tuple[Ints, Ints, Run]]:
        """Draw answers in the order given; rows that are refused do not touch the others."""
        if rows.size and self._plan.on_exhausted is Fallback.REFUSE:
            # By array: who asks after the end of a budget must not slow the others.
            gone = self._copy.fleet.exhausted(which) & (group.cells[rows] != PASSES)
            group.refuse(rows[gone], NO_BUDGET)
            rows, which = rows[~gone], which[~gone]
        if not rows.size:
            return []
        try:
            return [(rows, which, self._copy.fleet.run(group.cells[rows], which))]
        except _REFUSALS as problem:
            # All or none: nothing has moved. Halves find the few that are refused.
            half = len(rows) // 2
            if half:
                first = self._drawn(group, rows[:half], which[:half])
                return first + self._drawn(group, rows[half:], which[half:])
            refused = NO_BUDGET if isinstance(problem, BudgetExceeded) else NO_CHANNEL
            group.refuse(rows, refused)
            return []

    def _committed(self, group: _Group, rows: Ints, which: Ints, run: Run) -> AnswerColumns:
        """Store new answers and where their streams stand."""
        ids, streams = group.taken(group.ids, rows), group.taken(group.streams, rows)
        names, codes = _coded(streams)
        first = np.empty(len(names), dtype=np.int64)
        first[codes] = which
        times = None if group.times is None else group.taken(group.times, rows)
        answers = AnswerColumns(
            source=self._source.label,
            ids=ids,
            places=self._answered + 1 + np.arange(len(rows)),
            streams=Coded(codes, names),
            sequences=run.sequences,
            outcomes=Coded(run.outcomes.astype(np.int64), _OUTCOMES),
            released=Coded(run.released, self._model.alphabet.labels),
            leakage=run.charges[:, 0],
            model_free=run.charges[:, 1],
            tags=self._tags(ids, streams, group.cells[rows]),
            times=times and [None if time is None else time.text for time in times],
            signals=run.signals,
        )
        self._store.commit_columns(answers, self._copy.fleet.positions(first))
        self._copy.set_times(which, times)
        return answers

    def finish(self, stream: str) -> None:
        """None: values leave as they come."""

    def waiting(self) -> int:
        """None wait: values leave as they come."""
        return 0

    def account(self, stream: str) -> StreamAccount | None:
        """Where a stream stands, as the store has it; None if it never had an answer."""
        (end,) = self._store.ends([stream])
        if end is None:
            return None
        position, last = end
        state = state_kind(self._plan).read(position)
        told = (position.sequence, position.leakage, position.model_free)
        return stream_account(self._plan, state, StreamAccount(*told, time=last.time))

    @guarded
    def close(self) -> None:
        """Forget what is held in memory; the store stays open."""
        self._copy.forget()


_OUTCOMES = [one.value for one in OUTCOMES]


@dataclass(slots=True)
class _Group:
    """The events of one call; those that have a reply already are in `others`.

    Of `doubles`, events that came earlier in the same call, each has the place of the first.
    """

    ids: Sequence[str]
    streams: Sequence[str]
    cells: Ints
    times: list[Time | None] | None
    others: dict[int, Reply]
    doubles: dict[int, int] = field(default_factory=dict)

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

    def settle(self, replies: dict[int, Reply]) -> None:
        """Reply to some events."""
        self.others.update(replies)


def _moments(
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


def _set_doubles_aside(group: _Group) -> None:
    """Find new events that came earlier in the same call; those of another value are refused."""
    rows = group.open()
    ids = group.taken(group.ids, rows)
    if len({*ids}) == len(ids):
        return
    first: dict[str, int] = {}
    for row in rows.tolist():
        before = first.setdefault(group.ids[row], row)
        if before == row:
            continue
        if group.streams[before] != group.streams[row]:
            group.others[row] = OTHER_STREAM
        elif group.cells[before] != group.cells[row]:
            group.others[row] = OTHER_VALUE
        else:
            group.doubles[row] = before
            group.others[row] = UNSTORED  # until the first of them has its reply


def _repeat(group: _Group, fresh: AnswerColumns | None, rows: Ints) -> None:
    """Reply to events as to the same ones before them."""
    if not group.doubles:
        return
    answers = [] if fresh is None else fresh.answers()
    new = dict(zip(rows.tolist(), answers, strict=True))
    for row, before in group.doubles.items():
        told = group.others.get(before) or Answered((new[before],))
        if isinstance(told, Answered):
            told = Answered(told.answers, repeated=True)
        group.others[row] = told


def _coded(names: Sequence[str]) -> tuple[list[str], Ints]:
    """The different names, and the number of each."""
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(name, len(numbers)) for name in names]
    return [*numbers], np.array(codes, dtype=np.int64)


def _joined(runs: list[Run]) -> Run:
    """What left in several runs, one after the other."""
    if len(runs) == 1:
        return runs[0]
    signals = [run.signals for run in runs if run.signals is not None]
    return Run(
        sequences=np.concatenate([run.sequences for run in runs]),
        released=np.concatenate([run.released for run in runs]),
        outcomes=np.concatenate([run.outcomes for run in runs]),
        charges=np.concatenate([run.charges for run in runs]),
        signals=np.concatenate(signals) if signals else None,
    )
