"""An audit by array: many rows at once, and one by one wherever anything is unusual.

Rows are read, followed and compared as arrays. If every one of them is what the plan does where it
stands, in the spelling of a release, they are verified; if not, nothing was changed, and the very
same rows are walked along one by one, which finds out what is wrong with which.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence

import numpy as np

from sfumato.core.arrays import Bools, Ints
from sfumato.core.state import StreamState
from sfumato.store.protocol import Answer
from sfumato.stream.audit_ledger import Coverage, LedgerSide, said_by
from sfumato.stream.audit_report import StreamAudit
from sfumato.stream.audit_rows import fingerprints
from sfumato.stream.audit_walk import Walk
from sfumato.stream.checked_columns import CheckedColumns, ColumnCheck
from sfumato.stream.fleet_answers import SKIPPED
from sfumato.stream.fleet_replay import Left, NotReleased, Replay
from sfumato.stream.plan import Plan
from sfumato.stream.released_columns import ReleasedRows, as_batch, read_released, same_floats
from sfumato.tables.batches import Batch, Column
from sfumato.tables.readers import CHUNK_ROWS, Chunk

_FEW = 32
"""Rows below which arrays do not pay: those of a pipe come one by one."""
_CELLS = 1 << 21
"""Probabilities of outputs that are held at one time, for large alphabets."""


class FleetStates(MutableMapping[str, StreamState]):
    """Where streams stand, in the arrays of a fleet; it begins with the first of them."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._fleet: Replay | None = None

    def fleet(self, names: Sequence[str]) -> Replay:
        """The fleet, with these streams in it; those that are new stand at their first value."""
        if self._fleet is None:
            self._fleet = Replay(self._plan, names)
        else:
            there = self._fleet.places(names).tolist()
            new = [name for name, place in zip(names, there, strict=True) if place < 0]
            self._fleet.enlist(new)
        return self._fleet

    def _place(self, stream: str) -> int:
        return -1 if self._fleet is None else int(self._fleet.places([stream])[0])

    def __getitem__(self, stream: str) -> StreamState:
        place = self._place(stream)
        if self._fleet is None or place < 0:
            raise KeyError(stream)
        return self._fleet.state(place)

    def __setitem__(self, stream: str, state: StreamState) -> None:
        self.fleet([stream]).put(np.array([self._place(stream)]), [state])

    def __delitem__(self, stream: str) -> None:
        raise TypeError("what left has left")

    def __iter__(self) -> Iterator[str]:
        return iter(() if self._fleet is None else self._fleet.streams)

    def __len__(self) -> int:
        return 0 if self._fleet is None else len(self._fleet)


class ColumnWalk(Walk):
    """A walk that takes many rows at once where it can.

    Only for single values under a compiled policy.
    """

    @property
    def _most(self) -> int:
        """Rows that are looked at together."""
        assert self._plan.policy is not None  # `_walk_under` saw to it
        return max(CHUNK_ROWS, _CELLS // max(len(self._model.alphabet), self._plan.policy.width))

    def take(self, rows: Batch | Chunk) -> None:
        """Take successive rows."""
        most = self._most
        if len(rows) > most or not self._verified(rows):
            part = most if len(rows) > most else CHUNK_ROWS
            if len(rows) <= part:
                super().take(rows)
                return
            for start in range(0, len(rows), part):
                self.take(_part(rows, start, part))

    def _verified(self, given: Batch | Chunk) -> bool:
        """Whether rows are all what the plan does; if not, nothing was changed."""
        checks = [check for check in self._checks if isinstance(check, ColumnCheck)]
        if len(given) < _FEW or len(checks) < len(self._checks):
            return False
        if self.ledger is not None and self.ledger.problems:
            return False
        batch = as_batch(given)
        rows = None if batch is None else read_released(batch, self._model, text=self._text)
        if rows is None:
            return False
        truths = None
        if self._truths is not None:
            truths = self._truths.ahead(rows.names, rows.owners)
            if truths is None:
                return False
        kept = self._kept(rows)
        if not kept.any():
            self._pass_by(rows, kept)
            return True
        states = self._states
        assert isinstance(states, FleetStates)
        fleet = states.fleet([name for name, own in zip(rows.names, kept, strict=True) if own])
        places = np.where(kept, fleet.places(rows.names), -1)[rows.owners]
        if not self._caught_up(self._gaps(rows, kept, fleet), fleet):
            return False
        new = self._new(rows, places, fleet.moments)
        if new is None:
            return False
        left = Left(places[new], rows.released[new], rows.outcomes[new], rows.signals[new])
        if (left.outcomes == SKIPPED).any() and not self._skips:
            return False
        before = fleet.backup(np.unique(left.streams))
        try:
            followed = fleet.follow(left, whole=self._truths is not None)
        except NotReleased:
            return False
        sequences, numbers = rows.sequences[new], rows.first + np.flatnonzero(new)
        known = None if truths is None else truths.of(new)
        columns = CheckedColumns(
            fleet.names, left, sequences, numbers, followed, fleet.totals, known
        )
        same = same_floats(rows.leakages[new], followed.charges).all()
        answers = self._answers(columns, rows, new) if same else None
        if answers is None or not all(check.covers(columns) for check in checks):
            fleet.restore(before)
            return False
        if self.ledger is not None:
            self.ledger.hold(answers)
        if self._truths is not None:
            self._truths.pass_by(len(rows))
        self._count(rows, kept, places, new)
        self.report.withheld += int(followed.withheld.sum())
        for check in checks:
            check.see_columns(columns)
        self._remember(columns)
        return True

    def _pass_by(self, rows: ReleasedRows, kept: Bools) -> None:
        """Count rows of which none is looked at; there may be no stream yet."""
        if self._truths is not None:
            self._truths.pass_by(len(rows))
        nowhere = np.full(len(rows), -1, dtype=np.int64)
        self._count(rows, kept, nowhere, nowhere >= 0)

    def _answers(
        self, columns: CheckedColumns, rows: ReleasedRows, new: Bools
    ) -> list[Answer] | None:
        """What the ledger says of rows; None if it says anything else than they do."""
        if self.ledger is None:
            return []
        firsts = columns.sequences[columns.order[columns.starts]].tolist()
        spans = zip(columns.owners(), firsts, columns.counts.tolist(), strict=True)
        answers = self.ledger.answers((name, first, first + n) for name, first, n in spans)
        said = None if answers is None else said_by(answers, self._model.alphabet)
        if answers is None or said is None:
            return None
        left, order = columns.left, columns.order
        due = (left.released[order], left.outcomes[order], left.signals[order])
        if any((one != other).any() for one, other in zip(said[:3], due, strict=True)):
            return None
        if not same_floats(said.leakages, columns.followed.charges[order]).all():
            return None
        if rows.ids is not None:
            ids = np.array(rows.ids.cells(), dtype=object)[new][order].tolist()
            pairs = zip(ids, answers, strict=True)
            if any(one is not None and one != answer.id for one, answer in pairs):
                return None
        return answers

    def _gaps(self, rows: ReleasedRows, kept: Bools, fleet: Replay) -> list[tuple[str, int, int]]:
        """What the ledger must tell before rows begin: streams, from which moment until which."""
        if self.ledger is None:
            return []
        _, first = np.unique(rows.owners, return_index=True)
        reached, begins = fleet.moments[fleet.places(rows.names)], rows.sequences[first]
        spans = zip(rows.names, reached.tolist(), begins.tolist(), kept.tolist(), strict=True)
        return [(name, here, there) for name, here, there, own in spans if own and here < there]

    def _caught_up(self, spans: Sequence[tuple[str, int, int]], fleet: Replay) -> bool:
        """Let streams do what the ledger says they did; if not, nothing was changed."""
        checks = [check for check in self._checks if isinstance(check, ColumnCheck)]
        if not spans or self.ledger is None:
            return True
        answers = self.ledger.answers(spans)
        said = None if answers is None else said_by(answers, self._model.alphabet)
        if answers is None or said is None or len(checks) < len(self._checks):
            return False
        lengths = [until - first for _, first, until in spans]
        streams = np.repeat(fleet.places([name for name, _, _ in spans]), lengths)
        left = Left(streams, said.released, said.outcomes, said.signals)
        before = fleet.backup(np.unique(streams))
        try:
            followed = fleet.follow(left, whole=False)
        except NotReleased:
            return False
        sequences = np.array([answer.sequence for answer in answers], dtype=np.int64)
        columns = CheckedColumns(fleet.names, left, sequences, sequences, followed, fleet.totals)
        same = same_floats(said.leakages, followed.charges).all()
        if not same or not all(check.covers(columns) for check in checks):
            fleet.restore(before)
            return False
        for name, _, _ in spans:
            self.report.streams.setdefault(name, StreamAudit())
        for check in checks:
            check.see_columns(columns)
        self.ledger.alone.update(answer.source for answer in answers)
        return True

    def _end_ledger(self, ledger: LedgerSide, coverage: Coverage) -> None:
        """Many events at once that stand in the ledger alone; then what is left of them."""
        states, held, most = self._states, 0, self._most
        assert isinstance(states, FleetStates)
        spans: list[tuple[str, int, int]] = []
        for stream, moments in ledger.streams():
            if self._only is not None and stream not in self._only:
                continue
            fleet = states.fleet([stream])
            first = int(fleet.moments[fleet.places([stream])[0]])
            # A long stream is followed in parts.
            for start in range(first, moments, most):
                until = min(start + most, moments)
                spans.append((stream, start, until))
                held += until - start
                if held >= most:
                    self._caught_up(spans, fleet)
                    spans, held = [], 0
        if spans:
            self._caught_up(spans, states.fleet([]))
        super()._end_ledger(ledger, coverage)

    def _kept(self, rows: ReleasedRows) -> Bools:
        """Which of some streams are looked at: asked for, and not lost."""
        wanted = [self._only is None or name in self._only for name in rows.names]
        lost = [name in self._lost for name in rows.names]
        return np.array(wanted, dtype=np.bool_) & ~np.array(lost, dtype=np.bool_)

    def _new(self, rows: ReleasedRows, places: Ints, moments: Ints) -> Bools | None:
        """Which rows say something new; None if one neither does nor says what was said before."""
        looked_at = places >= 0
        if not self._rising(rows):
            return None
        reached = np.where(looked_at, moments[places], 0)
        new = looked_at & (rows.sequences >= reached)
        due = reached[new] + _turns(places[new])
        if (rows.sequences[new] != due).any():
            return None
        again = looked_at & ~new
        return new if self._said_again(rows, again) else None

    def _rising(self, rows: ReleasedRows) -> bool:
        """Whether the rows of each stream rise, and follow those before them in the file."""
        order = np.argsort(rows.owners, kind="stable")
        owners, moments = rows.owners[order], rows.sequences[order]
        starts = np.flatnonzero(np.diff(owners, prepend=-1))
        before = np.concatenate([[-1], moments[:-1]])
        names = [rows.names[owner] for owner in owners[starts].tolist()]
        before[starts] = [self._last_here.get(name, -1) for name in names]
        return bool((moments > before).all())

    def _said_again(self, rows: ReleasedRows, again: Bools) -> bool:
        """Whether rows only say what was said before them, by a row that may be said again."""
        for row in np.flatnonzero(again).tolist():
            stream, moment = rows.names[rows.owners[row]], int(rows.sequences[row])
            may = rows.ids is not None or moment < self._began.get(stream, 0)
            if self.ledger is not None or moment < 0 or not may:
                return False
        said = fingerprints(
            rows.released[again],
            rows.signals[again],
            rows.outcomes[again],
            rows.leakages[again],
        )
        owners, moments = rows.owners[again].tolist(), rows.sequences[again].tolist()
        return all(
            self._fingerprints[rows.names[owner]][moment] == one
            for owner, moment, one in zip(owners, moments, said.tolist(), strict=True)
        )

    def _count(self, rows: ReleasedRows, kept: Bools, places: Ints, new: Bools) -> None:
        """Count rows that were verified, and those of streams not asked for, or lost."""
        counts = np.bincount(rows.owners, minlength=len(rows.names)).tolist()
        last = np.zeros(len(rows.names), dtype=np.int64)
        np.maximum.at(last, rows.owners, rows.sequences)
        self._last_here.update(zip(rows.names, last.tolist(), strict=True))
        self.file_rows += len(rows)
        self.file_streams.update(rows.names)
        for name, own, count in zip(rows.names, kept.tolist(), counts, strict=True):
            if own:
                self.report.streams.setdefault(name, StreamAudit())
            elif name in self._lost:
                self._unverifiable[name] += count
            else:
                self._left_out[name] += count
                continue
            self.report.rows += count
        self.report.repeated += int((places >= 0).sum() - new.sum())

    def _remember(self, columns: CheckedColumns) -> None:
        """Keep eight bytes of what each row says, where it may be said again."""
        if not self._may_recur:
            return
        left, order = columns.left, columns.order
        said = fingerprints(left.released, left.signals, left.outcomes, columns.followed.charges)
        sorted_ = said[order]
        for stream, start, count in columns.parts():
            self._said(stream).frombytes(sorted_[start : start + count].tobytes())


def _turns(streams: Ints) -> Ints:
    """How many rows of its stream stand before each."""
    order = np.argsort(streams, kind="stable")
    starts = np.flatnonzero(np.diff(streams[order], prepend=-1))
    turns = np.empty(len(streams), dtype=np.int64)
    counts = np.diff(starts, append=len(order))
    turns[order] = np.arange(len(order)) - np.repeat(starts, counts)
    return turns


def _part(rows: Batch | Chunk, start: int, count: int) -> Batch | Chunk:
    """Some of the rows."""
    if isinstance(rows, Batch):
        arrays = {name: column.array.slice(start, count) for name, column in rows.columns.items()}
        return Batch(rows.first + start, {name: Column(array) for name, array in arrays.items()})
    columns = {name: cells[start : start + count] for name, cells in rows.columns.items()}
    return Chunk(rows.first + start, columns)
