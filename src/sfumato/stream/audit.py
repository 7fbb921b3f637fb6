"""Check a released table from public things alone: what it leaked, and whether it says so."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from sfumato.core import checks
from sfumato.core.errors import InvalidParameter
from sfumato.core.fair_coins import LEVEL
from sfumato.core.progress import Progress
from sfumato.core.state import StreamState
from sfumato.models.stream_model import StreamModel
from sfumato.store.ledger_reader import LedgerReader
from sfumato.stream.audit_checks import Check, Exposure, Losses, Totals
from sfumato.stream.audit_columns import ColumnWalk, FleetStates
from sfumato.stream.audit_ledger import Coverage, LedgerSide, When
from sfumato.stream.audit_promise import Allow, Required, broken_promises, promise_of
from sfumato.stream.audit_report import AuditReport, Kind
from sfumato.stream.audit_walk import Walk
from sfumato.stream.coin_test import FairCoins
from sfumato.stream.input_rows import Reading
from sfumato.stream.plan import Plan
from sfumato.stream.release_run import output_columns
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.stream.remarks import phases_assumed
from sfumato.stream.true_values import RealisedLoss
from sfumato.stream.truth_reader import Truths
from sfumato.tables.canonical import Finding, column_names, spelled_otherwise, unseen
from sfumato.tables.cells import Missing
from sfumato.tables.readers import Table
from sfumato.tables.writers import Columns, file_digest

_MOST = 1000
"""Misspelled lines after which a file is not looked at further."""


def audit_table(
    released: Table | Sequence[Table],
    model: StreamModel,
    plan: Plan,
    *,
    ledger: str | Path | LedgerReader | None = None,
    coverage: Coverage = Coverage.INPUTS,
    against: Table | Sequence[Table] | None = None,
    missing: Missing = Missing.REFUSE,
    window: int | None = None,
    level: float = LEVEL,
    rules: Sequence[ReleaseSpec] = (),
    required: Required = Required(),  # noqa: B008  frozen
    columns: Sequence[str] = (),
    only: Sequence[str] | None = None,
    also: Sequence[Check] = (),
    time: str | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    r"""Recompute the adversary's belief and the exact leakage of every row of a released table.

    Args:
        released: What `release_table` wrote: a file, or several in the order in which they were
            written; none of them for a ledger alone.
        model: The public model.
        plan: The public rule of the release.
        ledger: Compare with this ledger too, and check all of it. It is only read. What streams
            did before a file begins is taken from it. A reader shows it as it was when opened.
        coverage: How much of the ledger the files must hold.
        against: The true values, row by row like the released ones, or for batches, those of each
            stream in order; stays on this machine.
        missing: What the release did with missing values.
        window: Also report the worst window of this many steps; a batch counts in every window
            that has one of its values.
        level: How often an honest release may be said to have tossed unfair coins, when true
            values are given.
        rules: The documents beside the files, one for each or one for all: what they promise is
            reported and compared with what is required, and how the files were with how they are.
        required: What those rules must say.
        columns: Columns that the files may hold beyond those of the rules; they are not looked at.
        only: Look at these streams alone.
        also: Further checks, which see every batch after the audit's own.
        time: The column of times that was kept, for checks that ask for times where the rules name
            none.
        progress: Called with the number of rows checked so far.

    Examples:
        >>> import sfumato as sf
        >>> from sfumato.tables.readers import Table
        >>> folder = getfixture("tmp_path")
        >>> live, private = (Table.at(str(folder / name)) for name in ("live.csv", "private.csv"))
        >>> _ = (folder / "live.csv").write_text("stream,value\n" + 20 * "ann,home\nann,work\n")
        >>> model, _ = sf.stream.fit_table(live)
        >>> plan = sf.Plan(model.chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(model.alphabet))
        >>> _ = sf.stream.release_table(live, private, model, plan)
        >>> found = audit_table(private, model, plan)
        >>> found.rows, found.passed
        (40, True)
    """
    if window is not None:
        checks.count("window", window)
    tables = [released] if isinstance(released, Table) else list(released)
    true = [against] if isinstance(against, Table) else against
    compared = _compared_times(true, plan, model, rules)
    truths = None if true is None else Truths(true, model, missing, compared)
    if not tables and ledger is None:
        raise InvalidParameter("released", "no file", "be some files, or come with a ledger")
    report, losses = AuditReport(), RealisedLoss(model, plan.value_loss)
    seeing: list[Check] = [
        Exposure(model, plan, losses),
        Losses(plan, report, losses),
        Totals(plan, report, window),
    ]
    if truths is not None:
        seeing.append(FairCoins(plan, report, level))
    seeing += also
    chosen = None if only is None else frozenset(only)
    skips = missing is Missing.SKIP
    kind, states = _walk_under(plan)
    walk = kind(model, plan, report, seeing, truths, skips=skips, only=chosen, states=states)
    walk.repeats_allowed = Allow.REPEATED in required.allow
    walk.timed = any(getattr(check, "needs_times", False) for check in also)
    if ledger is not None:  # it tells a part from the whole
        required = replace(required, allow=required.allow | {Allow.UNSEALED})
    _check_promises(report, rules, model, required)
    with contextlib.ExitStack() as stack:
        if ledger is not None:
            walk.ledger = stack.enter_context(LedgerSide(ledger, plan.fingerprint, walk.when))
        for place, table in enumerate(tables):
            report.file = f"{table.path}, " if len(tables) > 1 else ""
            own = rules[min(place, len(rules) - 1)] if rules else None
            there = _columns(table, model, plan, own, columns)
            recurs = "event" in there.due or place < len(tables) - 1
            kept = _time_column(walk.when, own, there)
            if walk.timed:
                kept = _kept_times(kept or time, there)
            walk.begin(text=table.format == "csv", recurs=recurs, time=kept)
            _audit_file(walk, table, there, own, compared, progress)
        walk.end(Coverage.PART if chosen is not None else coverage)
    if report.left_out:
        report.unchecked.append(f"{report.left_out:,} rows of streams that --only leaves out")
    for stream in sorted(chosen or ()):
        if stream not in report.streams:
            raise InvalidParameter("only", stream, "be a stream of the files, or of the ledger")
    if report.withheld and rules and truths is None and Allow.WITHHELD not in required.allow:
        told = f"{report.withheld:,} rows released nothing although there was budget"
        report.note_all(f"{told} (or --allow withheld, or give --against)", Kind.VALUES)
    if truths is not None:
        truths.check_used_up()
    for check in seeing:
        check.finish(report)
    return report


def _walk_under(plan: Plan) -> tuple[type[Walk], MutableMapping[str, StreamState]]:
    """How rows are looked at: many at once where there are loops for it."""
    if plan.by_fleet:
        return ColumnWalk, FleetStates(plan)
    return Walk, {}


def _check_promises(
    report: AuditReport, rules: Sequence[ReleaseSpec], model: StreamModel, required: Required
) -> None:
    """Say what the rules promise, and what of it is not as it must be; the same once only."""
    if not rules:
        return
    report.promise = promise_of(rules[0], model)
    for rule in dict.fromkeys(
        rule for own in rules for rule in broken_promises(own, model, required)
    ):
        report.note_all(rule, Kind.PROMISE)


def _columns(
    table: Table,
    model: StreamModel,
    plan: Plan,
    rules: ReleaseSpec | None,
    allowed: Sequence[str],
) -> _Columns:
    """What a file holds, and must hold."""
    there = column_names(table)
    keep = () if rules is None else rules.keep
    shows_ids = "event" in there if rules is None else rules.event is not None
    reading = Reading("event" if shows_ids else None, None, keep, keep)
    due = output_columns(model, reading, plan)
    return _Columns(due, there, [name for name in there if name in allowed and name not in due])


def _time_column(when: When, rules: ReleaseSpec | None, there: _Columns) -> str | None:
    """The column that phases or periods follow from; None where nothing follows from times."""
    if not when.asked:
        return None
    name = None if rules is None else rules.time
    if name is None or name not in there.due:
        because = "the model changes with time"
        if when.period is not None:
            because = f"the budget is for each {when.period}"
        rule = f"name the column of times that was kept: {because}"
        raise InvalidParameter("rules", "none" if rules is None else "others", rule)
    if name not in there.there:
        told = "phases" if when.period is None else "periods of the budget"
        rule = f"hold the times that were released: without them nobody can tell the {told}"
        raise InvalidParameter(f"column {name!r}", None, rule)
    return name


def _compared_times(
    true: Sequence[Table] | None, plan: Plan, model: StreamModel, rules: Sequence[ReleaseSpec]
) -> str | None:
    """The column of times in which true tables are compared with what was released.

    None where nothing follows from times, or where the true tables have none.
    """
    names = {own.time for own in rules}
    if not true or not When.under(model.cycle, plan.period).asked or len(names) != 1:
        return None
    (name,) = names
    there = all(not table.is_standard and name in column_names(table) for table in true)
    return name if there else None


def _kept_times(name: str | None, there: _Columns) -> str:
    """The column that phases of another chain than the model follow from."""
    if name is None or name not in there.due or name not in there.there:
        rule = "name the column of times that left beside the values (--time): the chain that is "
        rule += "compared changes with time"
        raise InvalidParameter("time", name, rule)
    return name


class _Columns(NamedTuple):
    """Columns of a file: those due, those there, and those that need not be looked at."""

    due: Columns
    there: list[str]
    allowed: list[str]


def _audit_file(
    walk: Walk,
    table: Table,
    columns: _Columns,
    rules: ReleaseSpec | None,
    compared: str | None,
    progress: Progress | None,
) -> None:
    report, done = walk.report, walk.report.rows
    for rows in table.batches(list(columns.due)):
        walk.take(rows)
        if progress:
            progress(done + rows.first + len(rows) - 1)
    walk.rest()
    for row, rule in _misshapen(table, columns):
        if row is None:
            report.note_all(f"{report.file}the file: {rule}", Kind.FORMAT)
        else:
            report.note(row, rule, Kind.FORMAT)
    kept = () if rules is None else rules.keep
    own = [name for name in ("event", *kept) if name in columns.due and name != compared]
    for name in (
        unseen(table),
        *(f"what column {name!r} says: it leaves as it is" for name in own),
        *(phases_assumed(rules.time) if rules is not None and rules.time is not None else ()),
        *(f"column {name!r}, which was allowed" for name in columns.allowed),
    ):
        if name is not None:
            report.unchecked.append(f"{report.file}{name}")
    if rules is not None and rules.sealed is not None:
        digest = None if table.is_standard else file_digest(table.path)
        for rule in rules.sealed.broken(walk.file_rows, len(walk.file_streams), digest):
            report.note_all(f"{report.file}{rule}", Kind.FILE)


def _misshapen(table: Table, columns: _Columns) -> Iterator[Finding]:
    """What of a file is not as a release writes it, whatever it says."""
    if table.is_standard:
        return
    extra = [name for name in columns.there if name not in (*columns.due, *columns.allowed)]
    for name in extra:
        yield None, f"there must be no column {name!r} (or --allow-column)"
    own = [name for name in columns.there if name in columns.due]
    if not extra and own != list(columns.due) and set(own) == set(columns.due):
        yield None, "the columns must be in the order of the release"
    if columns.allowed:
        return  # who adds a column writes the file anew: its spelling is not the release's
    yield from islice(spelled_otherwise(table, columns.due), _MOST)
