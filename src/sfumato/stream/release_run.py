"""From a table of true values to a table of private ones, with a ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sfumato.core import checks
from sfumato.core.budgets import Horizon
from sfumato.core.errors import InvalidParameter
from sfumato.core.progress import Progress
from sfumato.core.purpose import Fallback
from sfumato.core.randomness import Randomness, secure
from sfumato.models.encoding import Grid, StreamModel
from sfumato.store.attestation import program
from sfumato.store.keys import ledger_commitment
from sfumato.store.ledgered_run import LedgeredRun
from sfumato.store.protocol import Again
from sfumato.store.sqlite import SqliteStore
from sfumato.stream.input_rows import Reading, RowChecks, RowReader
from sfumato.stream.plan import Plan
from sfumato.stream.release_spec import JOB, beside
from sfumato.stream.row_run import ReleaseReport, RowRun, state_kind
from sfumato.stream.seal import Seal, sealed
from sfumato.tables.cells import Missing
from sfumato.tables.input_groups import Interruptible
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Table, same_file
from sfumato.tables.writers import Columns, Document, Output

_RESERVED = ("sequence", "released", "x", "y", "outcome", "sip", "ldp")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """How the rows of a table are read, answered and kept.

    Attributes:
        reading: Which columns hold event ids and times, which are kept, and what becomes of missing
            values.
        wait: In batches: release a batch that is not complete so many seconds after its first
            value came; else only at the end of the input.
        document: The rules, to appear beside a file output together with it, for an audit.
        ledger: File that keeps every answer: an event that comes again gets its old answer, and
            a stream goes on from file to file.
        source_name: The name of the source in the ledger; the file name if not given.
        again: Without event ids and times nothing tells new rows from rows that were answered
            before: whether a source that the ledger knows is the same input once more
            (`RESUME`), which is checked, or new data (`APPEND`).
        randomness: Coins; fresh ones unless given.
        commitment: To their key, if they have one, to stand beside the output.
    """

    reading: Reading = field(default_factory=Reading)
    wait: float | None = None
    document: bytes | None = None
    ledger: str | Path | None = None
    source_name: str | None = None
    again: Again = Again.REFUSE
    randomness: Randomness | None = None
    commitment: str | None = None

    def __post_init__(self) -> None:
        if self.wait is not None:
            checks.finite("wait", self.wait)
        if self.ledger is None and self.again is not Again.REFUSE:
            raise InvalidParameter("ledger", None, f"be given to {self.again.value} a source")


def release_table(
    source: Table,
    output: Table,
    model: StreamModel,
    plan: Plan,
    spec: RunSpec | None = None,
    *,
    progress: Progress | None = None,
    remark: Callable[[str], None] | None = None,
) -> ReleaseReport:
    """Release a table with one row per value; rows of different streams may be interleaved.

    Args:
        source: The true values.
        output: Where the private values go; a file appears only when it is complete, or, after
            Ctrl-C, when all that was answered is in it.
        model: The model, and how the table is read for it.
        plan: The rule of the release; made for the chain of `model`.
        spec: How rows are read, answered and kept.
        progress: Called with the number of rows answered so far.
        remark: Told when the value of a retry cannot be compared with the one before.

    Raises:
        BadTable: If a row is malformed, or a retry has another value; answers committed so far stay
            in the ledger.
        LedgerMismatch: If the ledger is that of another plan, or knows the source already.
    """
    spec = spec or RunSpec()
    reading, ledger, document = spec.reading, spec.ledger, spec.document
    if plan.model.fingerprint != model.chain.fingerprint:
        raise InvalidParameter("plan", "that of another model", "be made for the given model")
    reading.check(model)
    if same_file(source.path, output.path):
        raise BadTable(output.path, None, "the output must not be the input")
    for other in (source.path, output.path, str(beside(output.path))):
        if ledger is not None and same_file(str(ledger), other):
            raise BadTable(str(ledger), None, "the ledger must be a file of its own")
    coins = secure() if spec.randomness is None else spec.randomness
    if ledger is None and reading.missing is not Missing.DROP:
        _check_horizon(source, model.stream, plan)
    columns = output_columns(model, reading, plan)
    rules = None if document is None else document.decode()
    keeping = SqliteStore(ledger, plan.fingerprint, job=JOB, rules=rules)
    with keeping as store, Interruptible() as stop:
        if remark and ledger is not None and store.anchored is None and store.front.head.entries:
            remark(
                f"{ledger}.head was not there: whether this is an older copy of the ledger, and "
                "what it spent since is forgotten, cannot be told"
            )
        name = spec.source_name or Path(source.path).name
        begun = store.begin(name, reading.identity, spec.again)
        ledgered = LedgeredRun(store, begun, state_kind(plan))
        reader = RowReader(source.path, model, reading, ledgered.source)
        row_checks = RowChecks(source.path, ledgered, reading, remark)
        run = RowRun(reader, row_checks, plan, ledgered, coins)
        papers: dict[str, Document] = {}
        if document is not None:
            papers[str(beside(output.path))] = partial(_sealed, document, run, stop, spec)
        with Output(output, columns, papers) as sink:
            if ledger is None:  # now that nobody else can write it
                _check_first(output, coins)
            chunks = source.chunks(reading.columns(model))
            # A thread that waits for rows holds them itself, until the process ends.
            with closing(chunks) if spec.wait is None else nullcontext():
                for records in run.records(chunks, stop, spec.wait):
                    sink.write(records)
                    if progress:
                        progress(run.rows)
            if not stop.requested:
                run.check_resumed()
        return run.report(interrupted=stop.requested)


def _sealed(document: bytes, run: RowRun, stop: Interruptible, spec: RunSpec, digest: str) -> bytes:
    """The rules of a release, with what they say of the file that it wrote."""
    rows, streams = run.rows, run.report(interrupted=stop.requested).streams
    complete = not stop.requested
    seal = Seal(
        rows=rows,
        streams=streams,
        sha256=digest,
        complete=complete,
        program=program(),
        commitment=spec.commitment,
        ledger_commitment=None if spec.ledger is None else ledger_commitment(Path(spec.ledger)),
    )
    return sealed(document, seal)


def _check_first(output: Table, coins: Randomness) -> None:
    """Without a ledger nothing that left is drawn anew by accident."""
    if not coins.addressed and not output.is_standard and Path(output.path).exists():
        rule = "not exist: a second release tells more about everyone (or give a ledger, or a key)"
        raise InvalidParameter("output", output.path, rule)


def _check_horizon(source: Table, stream: str, plan: Plan) -> None:
    """Refuse a file with more values of a stream than a budget is for, before anything is drawn.

    With a ledger it is refused where the budget ends: what was answered until then stays there.
    """
    budget = plan.budget
    if not isinstance(budget, Horizon) or plan.on_exhausted is not Fallback.REFUSE:
        return
    if source.is_standard or not Path(source.path).is_file():
        return  # a pipe is read once
    counts: Counter[object] = Counter()
    for chunk in source.chunks([stream]):
        for offset, owner in enumerate(chunk.columns[stream]):
            counts[owner] += 1
            if counts[owner] > budget.steps:
                rule = (
                    f"the budget is for {budget.steps} values of a stream, and this one is beyond "
                    "them; nothing was released. Give it a longer --horizon, or let nothing or the "
                    "last value leave then: --when-exhausted suppress or repeat"
                )
                raise BadTable(source.path, chunk.first + offset, rule)


def output_columns(model: StreamModel, reading: Reading, plan: Plan) -> Columns:
    """Columns of a released table, and what they hold."""
    columns: dict[str, type] = {} if reading.event is None else {"event": str}
    batch: dict[str, type] = {"batch": int} if plan.in_batches else {}
    signal: dict[str, type] = {"signal": int} if plan.sight is not None else {}
    taken = {*columns, *batch, *signal, *_RESERVED}
    for what, name in (("stream", model.stream), *(("kept", name) for name in reading.keep)):
        if name in taken:
            rule = f"not have the name of an output column ({', '.join(sorted(taken))})"
            raise InvalidParameter(f"the {what} column", name, rule)
    columns |= {
        model.stream: str,
        **dict.fromkeys(reading.keep, str),
        "sequence": int,
        **batch,
        "released": type(model.alphabet.labels[0]),
        **signal,
    }
    if isinstance(model.encoding, Grid):
        columns |= {"x": float, "y": float}
    return columns | {"outcome": str, "sip": float, "ldp": float}
