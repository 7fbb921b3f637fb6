"""Check a released table from public things alone: what it leaked, and whether it says so."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from sfumato.core import checks
from sfumato.core.errors import InvalidParameter
from sfumato.core.progress import Progress
from sfumato.models.encoding import Grid, StreamModel
from sfumato.stream.audit_checks import Check, Exposure, Losses, Totals
from sfumato.stream.audit_ledger import Coverage, LedgerSide
from sfumato.stream.audit_report import AuditReport
from sfumato.stream.audit_walk import Walk
from sfumato.stream.coin_bets import LEVEL
from sfumato.stream.coin_test import FairCoins
from sfumato.stream.plan import Plan
from sfumato.stream.true_values import RealisedLoss, Truths
from sfumato.tables.cells import Missing
from sfumato.tables.readers import Table


def audit_table(
    released: Table | Sequence[Table],
    model: StreamModel,
    plan: Plan,
    *,
    ledger: str | Path | None = None,
    coverage: Coverage = Coverage.INPUTS,
    against: Table | Sequence[Table] | None = None,
    missing: Missing = Missing.REFUSE,
    window: int | None = None,
    level: float = LEVEL,
    also: Sequence[Check] = (),
    progress: Progress | None = None,
) -> AuditReport:
    """Recompute the adversary's belief and the exact leakage of every row of a released table.

    Args:
        released: What `release_table` wrote: a file, or several in the order in which they were
            written; none of them for a ledger alone.
        model: The public model.
        plan: The public rule of the release.
        ledger: Compare with this ledger too, and check all of it. It is only read. What streams
            did before a file begins is taken from it.
        coverage: How much of the ledger the files must hold.
        against: The true values, row by row like the released ones, or for batches, those of each
            stream in order; stays on this machine.
        missing: What the release did with missing values.
        window: Also report the worst window of this many steps; a batch counts in every window
            that has one of its values.
        level: How often an honest release may be said to have tossed unfair coins, when true
            values are given.
        also: Further checks, which see every batch after the audit's own.
        progress: Called with the number of rows checked so far.
    """
    if window is not None:
        checks.count("window", window)
    columns = [model.stream, "sequence", "released", "outcome", "sip", "ldp"]
    columns += ["x", "y"] if isinstance(model.encoding, Grid) else []
    columns += ["batch"] if plan.in_batches else []
    columns += ["signal"] if plan.sight is not None else []
    tables = [released] if isinstance(released, Table) else list(released)
    true = [against] if isinstance(against, Table) else against
    truths = None if true is None else Truths(true, model, missing)
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
    walk = Walk(model, plan, report, seeing, truths, skips=missing is Missing.SKIP)
    with contextlib.ExitStack() as stack:
        if ledger is not None:
            walk.ledger = stack.enter_context(LedgerSide(ledger, plan.fingerprint))
        for table in tables:
            report.file = f"{table.path}, " if len(tables) > 1 else ""
            _audit_file(walk, table, columns, progress)
        walk.end(coverage)
    if truths is not None:
        truths.check_used_up()
    for check in seeing:
        check.finish(report)
    return report


def _audit_file(
    walk: Walk, table: Table, columns: Sequence[str], progress: Progress | None
) -> None:
    done = walk.report.rows
    walk.begin()
    for chunk in table.chunks(columns, optional=["event"]):
        for offset in range(len(chunk)):
            fields = {name: column[offset] for name, column in chunk.columns.items()}
            walk.row(chunk.first + offset, fields)
        if progress:
            progress(done + chunk.first + len(chunk) - 1)
    walk.rest()
