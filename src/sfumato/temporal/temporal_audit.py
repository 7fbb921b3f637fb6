"""An audit of released streams from public things alone: the rows, and the rules beside them.

Every budget follows from the rules and from what was released before, and every leakage from the
mechanism that is made for it. So each row is computed anew, and must say the same to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.core.certificate import Certificate
from sfumato.core.errors import SfumatoError
from sfumato.core.progress import Progress
from sfumato.store.ledger_check import checked
from sfumato.store.ledger_reader import LedgerReader
from sfumato.store.protocol import Answer
from sfumato.tables.cells import stream_name
from sfumato.tables.readers import Table
from sfumato.temporal.temporal_certificate import Moment, StreamTotals
from sfumato.temporal.temporal_plan import TemporalPlan, TemporalState
from sfumato.temporal.temporal_rows import RELEASED, SKIPPED, read_value, whole_number
from sfumato.temporal.temporal_spec import JOB, Released, TemporalSpec

_SHOWN = 20


@dataclass(frozen=True, slots=True)
class ReleasedRow:
    """One row of a released table, or of a ledger.

    Attributes:
        where: What messages call it.
        stream: Whose it is.
        sequence: Which moment it says it is.
        outcome: What it says happened.
        value: What left; None if nothing did.
        epsilon: What it says that it leaks by itself.
    """

    where: str
    stream: str
    sequence: int
    outcome: str
    value: list[int] | str | None
    epsilon: float


@dataclass(slots=True)
class TemporalAudit:
    """What an audit found.

    Attributes:
        rows: Rows that were checked: of the ledger, or without one of the files.
        covered: With a ledger and files: how many rows of the ledger stand in the files.
        leakages: Largest leakage of a moment of each stream, against its own matrices.
        certificate: What all of it leaks and costs, computed anew.
        ledger_head: Stands for all rows of the ledger, if one was given.
        problems: What is wrong, the first few.
        problem_count: How many things are wrong in all.
    """

    certificate: Certificate
    rows: int = 0
    covered: int | None = None
    leakages: dict[str, float] = field(default_factory=dict)
    ledger_head: str | None = None
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0

    @property
    def passed(self) -> bool:
        """Whether everything fits."""
        return self.problem_count == 0


def audit_streams(
    released: Sequence[Table],
    spec: TemporalSpec,
    *,
    ledger: str | Path | None = None,
    simulation: bool = False,
    parts: bool = False,
    progress: Progress | None = None,
) -> TemporalAudit:
    r"""Compute anew what released streams leak, and compare it with what their rows say.

    Args:
        released: What `release_streams` wrote: a file, or several in their order.
        spec: The rules.
        ledger: All of it is checked, and the files are compared with it.
        simulation: Whether coins that can be guessed are what was meant.
        parts: Whether other moments of the streams stand elsewhere: each is followed from its first
            row as far as it goes, and the rest passed over.
        progress: Called with the number of rows so far.

    Examples:
        >>> from sfumato.temporal.temporal_run import release_streams
        >>> from sfumato.tables.readers import Table
        >>> folder, chain = getfixture("tmp_path"), [[0.8, 0.2], [0.2, 0.8]]
        >>> names = ("counts.csv", "private.csv")
        >>> counts, private = (Table.at(str(folder / name)) for name in names)
        >>> _ = (folder / "counts.csv").write_text("stream,value\nhill,7\nhill,9\n")
        >>> spec = TemporalSpec(alpha=1.0, steps=2, backward=[chain])
        >>> _ = release_streams(counts, private, spec)
        >>> found = audit_streams([private], spec)
        >>> found.rows, found.problems
        (2, [])
    """
    walk = _Walk(spec.check(), progress, parts)
    if spec.purpose != "release" and not simulation:
        walk.note("its coins can be guessed: it protects nobody's values (a simulation)")
    if ledger is None:
        for table in released:
            for row in file_rows(table, spec, walk.note):
                walk.follow(row)
        return walk.result()
    with LedgerReader(ledger, spec.fingerprint, JOB) as kept:
        report = checked(kept)
        for problem in report.problems:
            walk.note(f"the ledger: {problem}")
        walk.problem_count += report.problem_count - len(report.problems)
        for stream, _ in kept.streams():
            for one in kept.rest(stream, 0):
                where = f"the ledger, moment {one.sequence} of stream {stream!r}"
                walk.follow(ReleasedRow(where, stream, one.sequence, *_told(one, spec)))
        covered = _compare(released, kept, walk)
        found = walk.result()
        found.ledger_head, found.covered = report.head, covered if released else None
        return found


def _compare(released: Sequence[Table], kept: LedgerReader, walk: _Walk) -> int:
    """Compare files with the ledger; how many of its rows they hold.

    Files of some days are not the whole ledger, so where they begin and end is free; between,
    every moment of a stream must be there, once and in its turn.
    """
    due: dict[str, int] = {}
    covered = 0
    for table in released:
        for row in file_rows(table, walk.spec, walk.note):
            answer = kept.moment(row.stream, row.sequence)
            told = None if answer is None else _told(answer, walk.spec)
            if told != (row.outcome, row.value, row.epsilon):
                walk.note(f"{row.where}: the ledger does not say the same")
            elif row.sequence != due.get(row.stream, row.sequence):
                expected = due[row.stream]
                walk.note(f"{row.where}: moment {row.sequence}, where {expected} is due")
            else:
                covered += 1
            due[row.stream] = row.sequence + 1
    return covered


def _told(answer: Answer, spec: TemporalSpec) -> tuple[str, list[int] | str | None, float]:
    return answer.outcome, read_value(answer.released, spec), answer.leakage


class _Walk:
    """Follows every stream from its first row on."""

    def __init__(self, spec: TemporalSpec, progress: Progress | None, parts: bool) -> None:
        self.spec, self._progress, self._parts = spec, progress, parts
        self._plans: dict[str, TemporalPlan] = {}
        self._states: dict[str, TemporalState] = {}
        self._moments: dict[str, list[Moment]] = {}
        self.rows = self.problem_count = 0
        self.problems: list[str] = []

    def note(self, problem: str) -> None:
        """Remember a problem."""
        self.problem_count += 1
        if len(self.problems) < _SHOWN:
            self.problems.append(problem)

    def follow(self, row: ReleasedRow) -> None:
        """Compute one row anew."""
        self.rows += 1
        if self._progress:
            self._progress(self.rows)
        try:
            self._follow(row)
        except SfumatoError as problem:
            self.note(f"{row.where}: {problem}")

    def _follow(self, row: ReleasedRow) -> None:
        if row.stream not in self._plans:
            self._plans[row.stream] = self.spec.plan(row.stream)
            self._states[row.stream] = self._plans[row.stream].begin(row.stream)
        plan, state = self._plans[row.stream], self._states[row.stream]
        if row.sequence != state.sequence:
            if self._parts:
                return
            hint = "" if state.sequence else " (earlier files, or the ledger, are needed too)"
            wrong = f"moment {row.sequence} of its stream, where {state.sequence} is due{hint}"
            self.note(f"{row.where}: {wrong}")
            return
        due = 0.0
        match row.outcome, row.value:
            case outcome, None if outcome == SKIPPED:
                pass
            case outcome, value if outcome == RELEASED and value is not None:
                assert plan.make is not None
                due = plan.make(plan.account(state).allowance).epsilon
                self._check_value(row)
            case _:
                self.note(f"{row.where}: a value must leave if, and only if, it was released")
        if row.epsilon != due:
            self.note(f"{row.where}: leaks {due!r} by itself, and says {row.epsilon!r}")
        self._states[row.stream] = plan.charged(state, due)
        # A value that left for nothing was noted above, and is no release.
        value = row.value if due else None
        self._moments.setdefault(row.stream, []).append((due, value))

    def _check_value(self, row: ReleasedRow) -> None:
        if self.spec.released is Released.RESPONSE:
            if row.value not in self.spec.symbols:
                self.note(f"{row.where}: what left is none of the symbols")
        elif not isinstance(row.value, list) or len(row.value) != len(self.spec.values):
            self.note(f"{row.where}: what left is not {len(self.spec.values)} whole numbers")

    def result(self) -> TemporalAudit:
        """What was found; leakages over alpha are problems."""
        totals, leakages = StreamTotals(self.spec), {}
        for stream, moments in self._moments.items():
            leakage = totals.add(stream, moments)
            leakages[stream] = 0.0 if leakage is None else leakage.event.alpha
            if leakages[stream] > self.spec.alpha:
                self.note(f"stream {stream!r}: a moment leaks more than alpha")
        return TemporalAudit(
            totals.certificate(),
            self.rows,
            leakages=leakages,
            problems=self.problems,
            problem_count=self.problem_count,
        )


def file_rows(
    table: Table, spec: TemporalSpec, note: Callable[[str], None]
) -> Iterator[ReleasedRow]:
    """The rows of a released file; one that cannot be read is noted, and passed over."""
    values = ("released",) if len(spec.values) == 1 else spec.values
    wanted = (spec.stream, "sequence", *values, "outcome", "epsilon")
    for chunk in table.chunks(wanted):
        for offset in range(len(chunk)):
            cells = {name: column[offset] for name, column in chunk.columns.items()}
            place = chunk.first + offset
            where = f"{table.path}, row {place}"
            try:
                stream = stream_name(cells[spec.stream], spec.stream, table.path, place)
                told = [cells[name] for name in values]
                epsilon = float(cells["epsilon"])
                if not (math.isfinite(epsilon) and epsilon >= 0):
                    raise ValueError("no leakage")
                value = None if all(cell in (None, "") for cell in told) else _value(told, spec)
                sequence = whole_number(cells["sequence"])
            except (ValueError, TypeError, OverflowError):
                note(f"{where}: a cell is not what `temporal release` writes")
                continue
            yield ReleasedRow(where, stream, sequence, str(cells["outcome"]), value, epsilon)


def _value(cells: list[Any], spec: TemporalSpec) -> list[int] | str:
    if spec.released is Released.RESPONSE:
        return str(cells[0])
    return [whole_number(cell) for cell in cells]
