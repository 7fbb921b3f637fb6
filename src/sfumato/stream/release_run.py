"""From a table of true values to a table of private ones, with a ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from sfumato.core import checks
from sfumato.core.errors import InvalidParameter
from sfumato.core.progress import Progress
from sfumato.core.randomness import Randomness, secure
from sfumato.models.encoding import Grid
from sfumato.models.stream_model import StreamModel
from sfumato.store.attestation import program
from sfumato.store.chain import answer_of
from sfumato.store.keys import ledger_commitment
from sfumato.store.ledgered_run import LedgeredRun
from sfumato.store.protocol import Again, Identity
from sfumato.store.sqlite import SqliteStore
from sfumato.store.unkept import UnkeptStore
from sfumato.stream.audit_ledger import When
from sfumato.stream.column_rows import ColumnReader
from sfumato.stream.column_run import Answered, ColumnRun, OneByOne
from sfumato.stream.earlier_rows import EarlierRows
from sfumato.stream.horizon_check import check_horizon
from sfumato.stream.input_rows import Reading, RowChecks, RowReader
from sfumato.stream.kept_columns import check_copies
from sfumato.stream.learning_plan import LearningPlan, signal_column
from sfumato.stream.learning_run import LearningRowRun, recall
from sfumato.stream.plan import Plan
from sfumato.stream.release_document import beside
from sfumato.stream.release_report import ReleaseReport
from sfumato.stream.release_spec import JOB
from sfumato.stream.row_run import RowRun, state_kind
from sfumato.stream.run_streams import RunStreams
from sfumato.stream.seal import Seal, sealed
from sfumato.stream.true_values import knows_nothing
from sfumato.stream.version_files import check_versions, versions_beside, versions_bytes
from sfumato.stream.version_history import VersionHistory
from sfumato.stream.worth_run import RobustRowRun, WorthRowRun
from sfumato.tables.arrow_memory import returned_memory
from sfumato.tables.cells import Missing
from sfumato.tables.input_groups import Interruptible
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Table, same_file
from sfumato.tables.writers import Columns, Document, Output

_MOST_THREADS = 256
"""Work space is set aside for each: a slip of the keyboard must not take all memory."""
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
        threads: How many threads share the streams of a release by a policy; the answers are the
            same.

    Examples:
        >>> RunSpec(ledger="city.ledger").again
        <Again.REFUSE: 'refuse'>
    """

    reading: Reading = field(default_factory=Reading)
    wait: float | None = None
    document: bytes | None = None
    ledger: str | Path | None = None
    source_name: str | None = None
    again: Again = Again.REFUSE
    randomness: Randomness | None = None
    commitment: str | None = None
    threads: int = 1

    def __post_init__(self) -> None:
        checks.count("threads", self.threads, at_most=_MOST_THREADS)
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
    r"""Release a table with one row per value; rows of different streams may be interleaved.

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

    Examples:
        >>> import sfumato as sf
        >>> from sfumato.tables.readers import Table
        >>> folder = getfixture("tmp_path")
        >>> live, private = (Table.at(str(folder / name)) for name in ("live.csv", "private.csv"))
        >>> _ = (folder / "live.csv").write_text("stream,value\n" + 20 * "ann,home\nann,work\n")
        >>> model, _ = sf.stream.fit_table(live)
        >>> plan = sf.Plan(model.chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(model.alphabet))
        >>> release_table(live, private, model, plan).rows
        40
    """
    spec = spec or RunSpec()
    reading, ledger, document = spec.reading, spec.ledger, spec.document
    if plan.model.fingerprint != model.chain.fingerprint:
        raise InvalidParameter("plan", "that of another model", "be made for the given model")
    reading.check(model, plan.period)
    if same_file(source.path, output.path):
        raise BadTable(output.path, None, "the output must not be the input")
    others = [source.path, output.path, str(beside(output.path))]
    if isinstance(plan, LearningPlan):
        others.append(str(versions_beside(output.path)))
    if ledger is not None and any(same_file(str(ledger), other) for other in others):
        raise BadTable(str(ledger), None, "the ledger must be a file of its own")
    check_copies(source, model, reading)
    coins = secure() if spec.randomness is None else spec.randomness
    if isinstance(plan, LearningPlan) and ledger is None:
        _check_order_kept(coins)
    if ledger is None and reading.missing is not Missing.DROP:
        check_horizon(source, model.stream, plan)
    columns = output_columns(model, reading, plan)
    with returned_memory(), _store(source, plan, spec) as store, Interruptible() as stop:
        if isinstance(plan, LearningPlan):
            _recall(plan, store, ledger)
        if remark and isinstance(store, SqliteStore) and store.headless:
            remark(
                f"{ledger}.head was not there: whether this is an older copy of the ledger, and "
                "what it spent since is forgotten, cannot be told"
            )
        run = _begun(source, model, plan, spec, store, coins, remark)
        papers: dict[str, Document] = {}
        if document is not None:
            papers[str(beside(output.path))] = partial(_sealed, document, run, stop, spec)
        if isinstance(plan, LearningPlan):
            papers[str(versions_beside(output.path))] = partial(_learnt, plan.history)
        with Output(output, columns, papers) as sink:
            if ledger is None:  # now that nobody else can write it
                _check_first(output, coins)
            with _answers(run, source, reading.columns(model), stop, spec.wait) as parts:
                for answered in parts:
                    if isinstance(answered, dict):
                        sink.write_columns(answered)
                    else:
                        sink.write(answered)
                    if progress:
                        progress(run.rows)
            if not stop.requested:
                run.check_resumed()
        if remark and (told := run.remark()) is not None:
            remark(told)
        return run.report(interrupted=stop.requested)


def _by_columns(source: Table, plan: Plan, spec: RunSpec) -> bool:
    """Whether many rows are read and answered together: value by value, by a policy."""
    there = source.is_standard or Path(source.path).is_file()
    return plan.by_fleet and spec.wait is None and there


def _store(source: Table, plan: Plan, spec: RunSpec) -> SqliteStore | UnkeptStore:
    """Where answers are kept; nowhere, if the source itself tells what came before."""
    # Whoever sends rows through a pipe may send one again, and nobody can read it once more.
    readable = not source.is_standard or spec.reading.identity is Identity.ROW
    if spec.ledger is None and readable and _by_columns(source, plan, spec):
        return UnkeptStore(plan.fingerprint, JOB)
    rules = None if spec.document is None else spec.document.decode()
    return SqliteStore(spec.ledger, plan.fingerprint, job=JOB, rules=rules)


def _begun(
    source: Table,
    model: StreamModel,
    plan: Plan,
    spec: RunSpec,
    store: SqliteStore | UnkeptStore,
    coins: Randomness,
    remark: Callable[[str], None] | None,
) -> RowRun | ColumnRun:
    """A run over a source that nothing has been read of."""
    reading, path, kind = spec.reading, source.path, state_kind(plan)
    begun = store.begin(spec.source_name or Path(path).name, reading.identity, spec.again)
    reader = RowReader(path, model, reading, begun, plan.period)
    if isinstance(plan, LearningPlan):
        ledgered = LedgeredRun(store, begun, kind)
        checks = RowChecks(path, ledgered, reading, remark)
        file = None if spec.ledger is None else versions_beside(spec.ledger)
        return LearningRowRun(reader, checks, plan, ledgered, coins, file, remark)
    if not _by_columns(source, plan, spec):
        ledgered = LedgeredRun(store, begun, kind)
        run: type[RowRun] = WorthRowRun if plan.robust is None else RobustRowRun
        blind = plan.sight is None or plan.robust is not None
        if plan.in_batches or plan.policy is not None or not blind:
            run = RowRun  # what a channel costs is not what its value loses, or is not at hand
        elif plan.robust is None and knows_nothing(plan.model):
            run = RowRun  # all constants are alike to it, and a blind one is no rival
        timed = When.under(model.cycle, plan.period).asked
        checks = RowChecks(path, ledgered, reading, remark, in_order=timed)
        return run(reader, checks, plan, ledgered, coins)
    streams = RunStreams(plan, coins, spec.threads)
    ledgered = LedgeredRun(store, begun, kind, streams)
    if store.front.head.entries:
        streams.stored = ledgered.stored
    earlier = EarlierRows(source, model, reading, streams)
    if isinstance(store, UnkeptStore):
        store.earlier, store.added = earlier, earlier.add
    checks = RowChecks(path, ledgered, reading, remark, streams.last_time)
    rows = RowRun(reader, checks, plan, ledgered, coins)
    columns = ColumnReader(model, reading, begun.label)
    kept = None if isinstance(store, UnkeptStore) else store
    one_by_one = OneByOne(rows, checks, streams, earlier)
    return ColumnRun(one_by_one, columns, streams, ledgered, kept, reading, model)


@contextmanager
def _answers(
    run: RowRun | ColumnRun,
    source: Table,
    wanted: list[str],
    stop: Interruptible,
    wait: float | None,
) -> Iterator[Iterator[Answered]]:
    """What may leave; the source is let go of at the end, however that comes."""
    if isinstance(run, ColumnRun):
        with closing(source.batches(wanted)) as batches:
            yield run.answers(batches, stop)
        return
    chunks = source.chunks(wanted)
    # A thread that waits for rows holds them itself, until the process ends.
    with closing(chunks) if wait is None else nullcontext():
        yield run.records(chunks, stop, wait)


def _recall(
    plan: LearningPlan, store: SqliteStore | UnkeptStore, ledger: str | Path | None
) -> None:
    """Learn again what the answers of a ledger taught, and hold it against the versions kept."""
    assert isinstance(store, SqliteStore)  # a learning plan has no policy
    recall(plan.history, map(answer_of, store.rows()))
    if ledger is not None:
        check_versions(plan.history, versions_beside(ledger))


def _learnt(history: VersionHistory, _: str) -> bytes:
    """The versions that a release made, to lie beside its output."""
    return versions_bytes(history)


def _sealed(
    document: bytes, run: RowRun | ColumnRun, stop: Interruptible, spec: RunSpec, digest: str
) -> bytes:
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


def _check_order_kept(coins: Randomness) -> None:
    """Versions follow from the order of rows: in another, values would be drawn once more."""
    if coins.addressed and not coins.simulated:
        rule = "be given for a key with --learn: rows in another order would get other answers"
        raise InvalidParameter("ledger", None, rule)


def _check_first(output: Table, coins: Randomness) -> None:
    """Without a ledger nothing that left is drawn anew by accident."""
    if not coins.addressed and not output.is_standard and Path(output.path).exists():
        rule = "not exist: a second release tells more about everyone (or give a ledger, or a key)"
        raise InvalidParameter("output", output.path, rule)


def output_columns(model: StreamModel, reading: Reading, plan: Plan) -> Columns:
    """Columns of a released table, and what they hold."""
    columns: dict[str, type] = {} if reading.event is None else {"event": str}
    batch: dict[str, type] = {"batch": int} if plan.in_batches else {}
    named = signal_column(plan)
    signal: dict[str, type] = {} if named is None else {named: int}
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
