"""Live events of streams that are released value by value under a compiled policy.

Events of one call are one turn of the store: retries get their old answers, all others go through
one fleet and one commit. What is held in memory is a copy of the store (`fleet_copy`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Ints
from sfumato.core.errors import BudgetExceeded, SolverFailed, UnknownSymbol
from sfumato.core.events import OUTCOMES
from sfumato.core.guard import Guarded, guarded
from sfumato.core.purpose import Fallback
from sfumato.core.randomness import Randomness
from sfumato.models.encoding import Unreadable
from sfumato.models.stream_model import StreamModel
from sfumato.store.answer_columns import AnswerColumns, Coded
from sfumato.store.chain import value_tags
from sfumato.store.live import Answered, Asked, Reason, Refused, Reply, StreamAccount
from sfumato.store.live_columns import ReplyColumns
from sfumato.store.live_intake import (
    CLOSED,
    EARLIER,
    NO_BUDGET,
    NO_CHANNEL,
    Retries,
    own_answer,
    refused_names,
    report_failure,
    stored_account,
)
from sfumato.store.protocol import Input, Store
from sfumato.stream.column_values import PASSES
from sfumato.stream.fleet_answers import Run
from sfumato.stream.fleet_copy import FleetCopy
from sfumato.stream.live_batches import stream_account
from sfumato.stream.live_group import (
    LiveGroup,
    ledger_names,
    moments_of,
    repeat,
    set_doubles_aside,
)
from sfumato.stream.live_values import LiveValues
from sfumato.stream.plan import Plan
from sfumato.stream.row_run import state_kind
from sfumato.tables.cells import Late, Missing, Time

_NO_ROWS: Ints = np.empty(0, dtype=np.int64)
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
        >>> from sfumato.models.encoding import Symbols
        >>> from sfumato.models.stream_model import StreamModel
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
        self._answered: int | None = source.answered

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
        named = ledger_names(ids, streams, others)
        bad: dict[int, Reply] = {}
        cells = self._values.cells(values, bad)
        group = LiveGroup(named, streams, cells, moments_of(times, bad), others, bad)
        fresh: AnswerColumns | None = None
        rows = _NO_ROWS
        try:
            with self._store.turn():
                fresh, rows = self._in_turn(group)
        except BaseException as problem:
            self._copy.forget()
            if not isinstance(problem, Exception):
                raise
            report_failure(problem)
            # Nobody knows whether it is stored: places are counted anew, too.
            fresh, rows, self._answered = None, _NO_ROWS, None
            group.undo()
        if fresh is not None and self._answered is not None:
            self._answered += len(fresh)
            fresh = replace(fresh, ids=group.taken(ids, rows))
        repeat(group, fresh, rows)
        return ReplyColumns(len(ids), fresh, rows, group.others)

    def _in_turn(self, group: LiveGroup) -> tuple[AnswerColumns | None, Ints]:
        """Look up, draw and commit; new answers, and the event of each, in the order drawn.

        What gets no new answer is in `group.others` then.
        """
        self._repeated(group)
        if self._store.ended:
            group.refuse(group.open(), CLOSED)
        group.settled = dict(group.others)
        set_doubles_aside(group)
        for row, before in group.doubles.items():
            if group.cells[row] != group.cells[before]:
                self._retries.count()
        rows = group.open()
        if not rows.size:
            return None, rows
        names, codes = _coded(group.taken(group.streams, rows))
        places = self._copy.places(names)
        which = places[codes]
        drawn = self._drawn_in_order(group, rows, which)
        if not drawn:
            return None, _NO_ROWS
        rows = np.concatenate([rows for rows, _, _ in drawn])
        which = np.concatenate([which for _, which, _ in drawn])
        run = _joined([run for _, _, run in drawn])
        return self._committed(group, rows, which, run), rows

    def _repeated(self, group: LiveGroup) -> None:
        """Give events that were answered before their old answers, whatever their values are."""
        rows = group.open()
        ids = group.taken(group.ids, rows)
        known = self._store.known(ids)
        if not known.any():
            return
        old = rows[known]
        ids, streams = group.taken(group.ids, old), group.taken(group.streams, old)
        # What cannot be read has some cell, too: so all take one way.
        tags = self._tags(ids, streams, np.maximum(group.cells[old], PASSES))
        found = self._store.answers(ids)
        for row, id_, tag in zip(old.tolist(), ids, tags, strict=True):
            self._retries.compare(found[id_], tag if group.cells[row] >= PASSES else None)
            group.others[row] = Answered((own_answer(found[id_]),), repeated=True)

    def _tags(self, ids: Sequence[str], streams: Sequence[str], cells: Ints) -> list[bytes]:
        words = self._values.words
        return value_tags(
            self._source.secret, ids, streams, [words[cell] for cell in cells.tolist()]
        )

    def _drawn_in_order(
        self, group: LiveGroup, rows: Ints, which: Ints
    ) -> list[tuple[Ints, Ints, Run]]:
        """Draw answers of events that do not go back in the time of their stream."""
        if group.times is None or self._late is Late.ACCEPT:
            return self._drawn(group, rows, which)
        drawn: list[tuple[Ints, Ints, Run]] = []
        last: dict[int, Time] = {}
        while rows.size:
            rows, which = self._affordable(group, rows, which)
            found = self._early(group, rows, which, dict(last))
            early = np.array([row in found for row in rows.tolist()], dtype=np.bool_)
            now, on_time = self._drawn(group, rows[~early], which[~early]), rows[~early]
            drawn += now
            for taken, places, _ in now:
                for row, place in zip(taken.tolist(), places.tolist(), strict=True):
                    if (time := group.times[row]) is not None:
                        last[place] = time
            if all(row not in group.others for row in on_time.tolist()):
                group.others.update(found)
                break
            # The time of an event that was refused does not count: the others are judged again.
            rows, which = rows[early], which[early]
        return drawn

    def _early(
        self, group: LiveGroup, rows: Ints, which: Ints, last: dict[int, Time]
    ) -> dict[int, Refused]:
        """Which rows go back in time, if all others are taken."""
        assert group.times is not None
        early: dict[int, Refused] = {}
        for row, place in zip(rows.tolist(), which.tolist(), strict=True):
            time = group.times[row]
            if time is None:
                continue
            before = last.get(place) or self._copy.time(place, group.streams[row])
            try:
                if before is not None and time.before(before):
                    early[row] = EARLIER
            except Unreadable as problem:
                early[row] = Refused(Reason.ORDER, f"the time {problem}")
            if row not in early:
                last[place] = time
        return early

    def _affordable(self, group: LiveGroup, rows: Ints, which: Ints) -> tuple[Ints, Ints]:
        """The rows of streams that have budget left; the others are refused."""
        if not rows.size or self._plan.on_exhausted is not Fallback.REFUSE:
            return rows, which
        # By array: who asks after the end of a budget must not slow the others.
        gone = self._copy.fleet.exhausted(which) & (group.cells[rows] != PASSES)
        group.refuse(rows[gone], NO_BUDGET)
        return rows[~gone], which[~gone]

    def _drawn(self, group: LiveGroup, rows: Ints, which: Ints) -> list[tuple[Ints, Ints, Run]]:
        """Draw answers in the order given; rows that are refused do not touch the others."""
        rows, which = self._affordable(group, rows, which)
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

    def _committed(self, group: LiveGroup, rows: Ints, which: Ints, run: Run) -> AnswerColumns:
        """Store new answers and where their streams stand."""
        ids, streams = group.taken(group.ids, rows), group.taken(group.streams, rows)
        names, codes = _coded(streams)
        first = np.empty(len(names), dtype=np.int64)
        first[codes] = which
        times = None if group.times is None else group.taken(group.times, rows)
        if self._answered is None:
            self._answered = self._store.inputs().get(self._source.label, 0)
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
        self._copy.committed()
        if times is not None:
            self._copy.set_times(which, times)
        return answers

    def finish(self, stream: str) -> None:
        """None: values leave as they come."""

    def waiting(self) -> int:
        """None wait: values leave as they come."""
        return 0

    @property
    def conflicts(self) -> int:
        """How many events came again with another value."""
        return self._retries.conflicts

    def account(self, stream: str) -> StreamAccount | None:
        """Where a stream stands, as the store has it; None if it never had an answer."""
        found = stored_account(self._store, stream)
        if found is None:
            return None
        position, account = found
        return stream_account(self._plan, state_kind(self._plan).read(position), account)

    @guarded
    def close(self) -> None:
        """Forget what is held in memory; the store stays open."""
        self._copy.forget()


_OUTCOMES = [one.value for one in OUTCOMES]


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
