"""From a table of true values to a table of private ones, with a ledger."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

from sfumato import _checks
from sfumato.alphabet import Label
from sfumato.errors import InvalidParameter
from sfumato.formats.problems import BadTable
from sfumato.formats.readers import STANDARD, Chunk, Table
from sfumato.formats.writers import Columns, Output, Record
from sfumato.jobs import Progress
from sfumato.jobs.arriving import groups, until_stopped, with_ticks
from sfumato.jobs.interrupt import Interruptible
from sfumato.jobs.runs import BatchedRun, InstantRun, ReleaseReport, Run
from sfumato.jobs.spec import beside
from sfumato.models.encoding import Grid, StreamModel
from sfumato.randomness import Randomness, secure
from sfumato.store.sqlite import Answer, SqliteStore
from sfumato.streaming.batched_plan import BatchedPlan
from sfumato.streaming.instant import InstantPlan

_RESERVED = ("sequence", "released", "x", "y", "outcome", "sip", "ldp")


def release_table(
    source: Table,
    output: Table,
    model: StreamModel,
    plan: InstantPlan | BatchedPlan,
    *,
    document: bytes | None = None,
    wait: float | None = None,
    ledger: str | Path | None = None,
    event: str | None = None,
    source_name: str | None = None,
    randomness: Randomness | None = None,
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
        document: The rules, to appear beside a file output together with it, for an audit.
        wait: In batches: release a batch that is not complete so many seconds after its first
            value came; else only at the end of the input.
        ledger: File that keeps every answer; with it a second run draws nothing anew.
        event: Column of event ids; without it an event is known by source name and row.
        source_name: The name of the source in event ids; the file name if not given.
        randomness: Coins; fresh ones unless given.
        progress: Called with the number of rows answered so far.
        remark: Told once when a row was answered before, which new data under an old name is.

    Raises:
        BadTable: If a row is malformed; answers committed so far stay in the ledger.
    """
    if wait is not None:
        _checks.finite("wait", wait)
    if plan.model.fingerprint != model.chain.fingerprint:
        raise InvalidParameter("plan", "that of another model", "be made for the given model")
    if event is not None and event in model.values:
        raise InvalidParameter("the event column", event, "not hold the values: ids are released")
    if same_file(source.path, output.path):
        raise BadTable(output.path, None, "the output must not be the input")
    for other in (source.path, output.path, str(beside(output.path))):
        if ledger is not None and same_file(str(ledger), other):
            raise BadTable(str(ledger), None, "the ledger must be a file of its own")
    name = source_name or Path(source.path).name
    with SqliteStore(ledger, plan.fingerprint) as store, Interruptible() as stop:
        batched = isinstance(plan, BatchedPlan)
        kind = BatchedRun if batched else InstantRun
        run: Run = kind(source.path, name, model, plan, store, randomness or secure(), remark)
        form = {"with_event": event is not None, "in_batches": batched}
        wanted = [model.stream, *model.values, *([event] if event else [])]
        rules = {} if document is None else {str(beside(output.path)): document}
        with Output(output, output_columns(model, **form), rules) as sink:
            for answers in _answered(run, source.chunks(wanted), stop, event, wait):
                sink.write(records(answers, model, **form))
                if progress:
                    progress(run.rows)
        return run.report(interrupted=stop.requested)


def _answered(
    run: Run, chunks: Iterator[Chunk], stop: Interruptible, event: str | None, wait: float | None
) -> Iterator[list[Answer]]:
    """Answers in the order in which they may leave; at the end of the input nothing waits."""
    arriving: Iterator[Chunk | None] = until_stopped(chunks, stop)
    if wait is not None:
        arriving = with_ticks(chunks, stop, partial(run.patience, wait))
    for group in groups(arriving, stop):
        if group is not None:
            yield run.answer(group, event)
        while wait is not None and (late := run.flush(waited=wait)):
            yield late
    while not stop.requested and (last := run.flush()):
        yield last


def output_columns(model: StreamModel, *, with_event: bool, in_batches: bool = False) -> Columns:
    """Columns of a released table, and what they hold."""
    columns: dict[str, type] = {"event": str} if with_event else {}
    batch: dict[str, type] = {"batch": int} if in_batches else {}
    taken = {*columns, *batch, *_RESERVED}
    if model.stream in taken:
        rule = f"not have the name of an output column ({', '.join(sorted(taken))})"
        raise InvalidParameter("the stream column", model.stream, rule)
    columns |= {
        model.stream: str,
        "sequence": int,
        **batch,
        "released": type(model.alphabet.labels[0]),
    }
    if isinstance(model.encoding, Grid):
        columns |= {"x": float, "y": float}
    return columns | {"outcome": str, "sip": float, "ldp": float}


def records(
    answers: Iterable[Answer], model: StreamModel, *, with_event: bool, in_batches: bool = False
) -> Iterator[Record]:
    """Answers as rows of the output: public things only."""
    alphabet = model.alphabet
    centres = alphabet.coordinates if isinstance(model.encoding, Grid) else None
    for answer in answers:
        event = answer.event
        record: list[Label | float | None] = [answer.id] if with_event else []
        record += [event.stream, event.sequence, *([event.batch] if in_batches else [])]
        record.append(event.released)
        if centres is not None:
            known = event.released is not None
            record += centres[alphabet.index(event.released)].tolist() if known else [None, None]
        yield [*record, event.outcome.value, event.sip.epsilon, event.ldp.epsilon]


def same_file(left: str, right: str) -> bool:
    """Whether two names mean one file, however they are written."""
    return left != STANDARD and os.path.realpath(left) == os.path.realpath(right)
