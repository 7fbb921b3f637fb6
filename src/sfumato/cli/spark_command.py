"""`sfumato spark`: releases, fits, audits, recoveries and learning inside Apache Spark."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sfumato.cli import coin_options, options, value_cuts
from sfumato.cli.console import hold, print_json, print_line, progress, say
from sfumato.cli.learn_command import ORDER, OUTPUT, Learner, check_apart, read_order, write_learnt
from sfumato.cli.options import argument, option, required
from sfumato.cli.release_command import column_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sfumato.models.stream_model import StreamModel
    from sfumato.solver.policy import Policy
    from sfumato.stream.release_spec import ReleaseSpec

HELP = """Release, fit, audit, recover and learn inside Apache Spark, for tables beyond one machine.

The answers are those of `sfumato release` with the same key, bit for bit, however many workers
there are. Tables are Parquet or CSV, at any address that Spark can read. Needs the extra `spark`
(pip install "sfumato[spark]"), Java 17 or 21, and Sfumato on all workers.

Under spark-submit:

\b
  spark-submit "$(python -c 'import sfumato.cli.spark_submit as f; print(f.__file__)')" \\
    spark release s3a://city/live.parquet -m city.model --order time --epsilon 0.3 \\
    --key-file city.key -o s3a://city/private.parquet --plan private.plan.json

Spark writes true values to local disks when it sorts: set spark.io.encryption.enabled=true and
spark.network.crypto.enabled=true where disks or wires are not your own.
"""
_FAILED = 1


_ORDER = required("Column of times or numbers: the order of a stream's rows.", "--order")


class _Engine(options.Options):
    master: str | None = option("Where Spark runs: local[4], yarn, spark://... [as configured].")
    conf: list[str] | None = option("A setting of Spark, as name=value; as often as needed.")
    partitions: int | None = option("Parts that streams are shared out to [by the table's size].")


class _ReleaseOptions(options.Options):
    source: str = argument("The true values: a Parquet or CSV table.", "INPUT")
    model: str = options.MODEL
    output: str = required("Private values: a folder, .parquet or .csv.", "--output", "-o")
    order: str = _ORDER
    allowed: options.Budget
    spread: options.Spread
    periods: options.Periods
    loss: str | None = options.LOSS
    way: options.Way
    policy: str | None = options.COMPILED_POLICY
    stream: str | None = options.STREAM_AS_FITTED
    value: str | None = options.VALUES_AS_FITTED
    event: str | None = option("Column of event ids: tells rows of one time apart.")
    keep: str | None = option("Columns that leave as they are, as text [that of --order].")
    independent: str | None = options.INDEPENDENT
    missing: str = options.MISSING
    when_exhausted: str = options.WHEN_EXHAUSTED
    when_unknown: str = options.WHEN_UNKNOWN
    secret: coin_options.StreamSecret
    rules: str | None = option("Where the rules go, for audits [OUTPUT.plan.json].", "--plan")
    engine: _Engine
    shown: options.Shown


def release(given: _ReleaseOptions) -> None:
    """Release a table inside Spark, value by value: any number of streams, on any number of cores.

    A key is needed (`sfumato key new`): Spark runs a task again when a worker is lost, and fresh
    coins would then release twice. A table with other values of the same streams needs another
    key. There is no ledger: every run begins each stream anew.

    Rows may be in any order; --order names the column that sorts them, and two rows of a stream
    must not be equal in it unless --event tells them apart. Whatever `sfumato release` refuses
    fails the whole job, with the rule and without the value.

    \b
    Examples:
      sfumato key new city.key
      sfumato spark release live.parquet -m city.model --order time --epsilon 0.3 \\
        --key-file city.key -o private.parquet
      sfumato spark release live.csv -m city.model --order time --budget 10 --horizon 50 \\
        --key-file city.key --master 'local[4]' -o private.csv
    """
    from sfumato.cli.rule_choice import RuleChoice
    from sfumato.core.checks import choice
    from sfumato.core.errors import InvalidParameter
    from sfumato.engines.spark.batch_release import release_document
    from sfumato.engines.spark.spark_session import (
        check_new,
        read_frame,
        session_of,
        told_plainly,
        write_frame,
    )
    from sfumato.engines.spark.worker_plan import PlanDocument
    from sfumato.store.files import write_whole
    from sfumato.stream.policy_files import load_policy
    from sfumato.stream.release_spec import ReleaseSpec
    from sfumato.tables.cells import Missing

    read = options.load_steady_model(
        given.model, "files are released with `release --time COLUMN --keep COLUMN --ledger FILE`"
    )
    check_new(given.output)
    names = read.values if given.value is None else tuple(given.value.split(","))
    read = replace(read, stream=given.stream or read.stream, values=names)
    rules = _rules_file(given.output, given.rules)
    key = given.secret.read()
    if key is None:
        rule = "be given: tasks of Spark run again, and fresh coins would release twice"
        raise InvalidParameter("--key-file", None, f"{rule} (sfumato key new)")
    policy = None if given.policy is None else load_policy(given.policy)
    spec = options.spec_from(
        ReleaseSpec,
        given,
        method="",
        missing=choice("missing", Missing, given.missing),
        keep=(given.order,) if given.keep is None else column_names(given.keep),
        independent=column_names(given.independent),
        event=given.event,
        time=None if given.periods.per is None else given.order,
        policy=None,
        model=None,
        every=None,
    )
    chosen = RuleChoice(given.model, read, given.way, given.spread, given.shown)
    spec = chosen.completed(spec, policy)
    policy = chosen.policy(spec) if policy is None else policy
    sent = PlanDocument.of(spec, read, policy)
    session = session_of(given.engine.master, given.engine.conf or ())
    with told_plainly(given.source):
        frame = read_frame(session, given.source)
        parts = given.engine.partitions
        made = release_document(frame, sent, key=key, order=given.order, partitions=parts)
        write_frame(made, given.output)
        rows, streams = _size(read_frame(session, given.output), read.stream)
    write_whole(rules, sent.rules)
    if given.shown.as_json:
        told = {"output": given.output, "rows": rows, "streams": streams, "plan": str(rules)}
        print_json(told)
    elif not given.shown.quiet:
        say(f"{rows:,} rows of {streams:,} streams; the rules are in {rules}")


class _FitOptions(options.Options):
    history: str = argument("A Parquet or CSV table.")
    output: str = options.MODEL_OUTPUT
    order: str = _ORDER
    stream: str = options.STREAM
    value: str = options.VALUE
    chain_order: int = option("How many past values the next depends on.", default=1)
    counting: value_cuts.Counting
    cells: value_cuts.Cells
    range_: str | None = value_cuts.RANGE
    units: str = value_cuts.UNITS
    missing: str = options.MISSING
    engine: _Engine
    shown: options.Shown


def fit(given: _FitOptions) -> None:
    """Fit a chain to a table inside Spark: just the model that `sfumato fit` makes of its rows.

    \b
    Examples:
      sfumato spark fit history.parquet --stream user --value cell --order time -o city.model
      sfumato spark fit gps.parquet --stream phone --order time --grid 32x32 --x lon --y lat \\
        --range 12:14,52:53 --units degrees -o town.model
    """
    from sfumato.engines.spark.spark_fit import fit as fit_frame
    from sfumato.engines.spark.spark_session import read_frame, session_of, told_plainly
    from sfumato.store.files import save

    values, cut = value_cuts.value_columns(given)
    session = session_of(given.engine.master, given.engine.conf or ())
    with told_plainly(given.history):
        model = fit_frame(
            read_frame(session, given.history),
            order=given.order,
            stream=given.stream,
            value=values,
            chain_order=given.chain_order,
            smoothing=given.counting.smoothing,
            floor=given.counting.floor,
            cut=cut,
            missing=given.missing,
            partitions=given.engine.partitions,
        )
    save(model, given.output)
    told = {
        "model": given.output,
        "symbols": len(model.alphabet),
        "transitions": model.transitions,
    }
    if given.shown.as_json:
        print_json(told)
    elif not given.shown.quiet:
        print_line(
            f"{given.output}: {told['symbols']:,} symbols, {model.transitions:,} transitions"
        )


class _Released(options.Options):
    released: str = argument("What `sfumato spark release` wrote.", "RELEASED")
    model: str = options.MODEL
    rules: str | None = options.RULES
    policy: str | None = options.RELEASE_POLICY
    stream: str | None = options.STREAM_AS_FITTED
    engine: _Engine


class _AuditOptions(options.Options):
    table: _Released
    shown: options.Shown


def audit(given: _AuditOptions) -> None:
    """Check a release inside Spark: every certificate is computed once more, to the bit.

    Needs neither key nor true values. Exit code 1 if a row is not what the rules do.

    \b
    Examples:
      sfumato spark audit private.parquet -m city.model
    """
    from sfumato.engines.spark.spark_audit import audit as audit_frame
    from sfumato.engines.spark.spark_session import told_plainly

    model, spec, policy = _release_of(given.table)
    with told_plainly(given.table.released):
        frame = _released_frame(given.table, model, spec, policy)
        found = audit_frame(
            frame,
            model=model,
            rules=spec,
            policy=policy,
            partitions=given.table.engine.partitions,
        )
    if given.shown.as_json:
        print_json({"passed": found.passed, **asdict(found)})
    else:
        for problem in found.problems:
            print_line(problem)
        print_line(
            f"{found.rows:,} rows of {found.streams:,} streams: at most {found.largest_sip:.6g} "
            f"nats under the model and {found.largest_ldp:.6g} without it, in all; "
            f"{found.problem_count:,} problems, {found.unverifiable:,} rows unverifiable"
        )
        print_line("the audit found nothing wrong" if found.passed else "the audit FAILED")
    if not found.passed:
        raise typer.Exit(_FAILED)


class _RecoverOptions(options.Options):
    table: _Released
    counts: str | None = option("Folder for counts by moment and symbol, .parquet or .csv.")
    every: int = option("For --counts: so many successive moments are one.", default=1)
    flows: str | None = option("Folder for moves from symbol to symbol, .parquet or .csv.")
    shown: options.Shown


def recover(given: _RecoverOptions) -> None:
    """Infer counts and flows of all streams from what left, inside Spark; free of privacy cost.

    \b
    Examples:
      sfumato spark recover private.parquet -m city.model --counts hours.parquet --every 60
      sfumato spark recover private.parquet -m city.model --flows moves.csv
    """
    from sfumato.core.errors import InvalidParameter
    from sfumato.engines.spark.spark_recover import recover as recover_frame
    from sfumato.engines.spark.spark_session import check_new, told_plainly, write_frame

    if given.counts is None and given.flows is None:
        raise InvalidParameter("--counts or --flows", None, "be given: else there is nothing to do")
    for path in (given.counts, given.flows):
        if path is not None:
            check_new(path)
    model, spec, policy = _release_of(given.table)
    with told_plainly(given.table.released):
        frame = _released_frame(given.table, model, spec, policy)
        found = recover_frame(
            frame,
            model=model,
            rules=spec,
            policy=policy,
            every=given.every,
            partitions=given.table.engine.partitions,
        )
        for table, path in ((found.counts, given.counts), (found.flows, given.flows)):
            if path is not None:
                write_frame(table.coalesce(1), path)
    if given.shown.as_json:
        print_json({"counts": given.counts, "flows": given.flows})
    elif not given.shown.quiet:
        written = [path for path in (given.counts, given.flows) if path is not None]
        say(f"{' and '.join(written)}: written")


class _LearnOptions(options.Options):
    table: _Released
    output: str = OUTPUT
    order: str = ORDER
    learner: Learner
    shown: options.Shown


def learn(given: _LearnOptions) -> None:
    """Learn inside Spark how values follow each other, from released values alone.

    The model, the report and the plausible set are those that `sfumato learn` makes of the same
    rows, to the byte, in any number of partitions: expected counts are added up as whole numbers,
    and which streams are held out follows from their names. Learning reads what left, and what was
    public before; it costs no privacy.

    Every pass over the outputs (EM) is a job of Spark; some dozens are usual. What outputs told is
    kept by the workers in between, in memory or on their disks: 8 bytes for each value and symbol.

    \b
    Examples:
      sfumato fit --uniform --values home,work,elsewhere --stream user -o start.model
      sfumato spark release live.parquet -m start.model --order time --epsilon 2 \\
        --method randomized-response --key-file city.key -o first.parquet
      sfumato spark learn first.parquet -m start.model -o learnt.model --plausible learnt.set
      sfumato spark release later.parquet -m learnt.model --order time --epsilon 0.5 \\
        --key-file later.key -o private.parquet
    """
    from sfumato.engines.spark.spark_learn import learn as learn_frame
    from sfumato.engines.spark.spark_session import told_plainly

    order = read_order(given.order)
    check_apart([given.table.released, given.table.model], given.output, given.learner.plausible)
    hold(given.output)
    model, spec, policy = _release_of(given.table)
    shown = progress("learning, passes", None, given.shown.no_progress)
    with told_plainly(given.table.released), shown as show:
        found = learn_frame(
            _released_frame(given.table, model, spec, policy),
            model=model,
            rules=spec,
            policy=policy,
            order=order,
            smoothing=given.learner.smoothing,
            floor=given.learner.floor,
            confidence=given.learner.confidence,
            partitions=given.table.engine.partitions,
            progress=show,
        )
    write_learnt(found.report, found.model, given.output, given.learner.plausible, given.shown)


def _release_of(given: _Released) -> tuple[StreamModel, ReleaseSpec, Policy | None]:
    """The model, the rules and the policy of a release."""
    from sfumato.cli.rule_choice import policy_of
    from sfumato.stream.release_document import read_spec

    model = options.load_steady_model(
        given.model, "files are released with `release --time COLUMN --keep COLUMN --ledger FILE`"
    )
    model = replace(model, stream=given.stream or model.stream)
    spec = read_spec(_rules_file(given.released, given.rules))
    policy, _ = policy_of(spec, given.policy, model, given.model)
    return model, spec, policy


def _released_frame(
    given: _Released, model: StreamModel, spec: ReleaseSpec, policy: Policy | None
) -> DataFrame:
    """What was released, in the types of a release also where it comes from text."""
    from sfumato.engines.spark.spark_session import read_frame, session_of
    from sfumato.engines.spark.stream_frames import frame_schema
    from sfumato.stream.input_rows import Reading
    from sfumato.stream.release_run import output_columns

    shown = Reading(None if spec.event is None else "event", None, spec.keep, spec.keep)
    schema = frame_schema(output_columns(model, shown, spec.instant(model, policy)))
    session = session_of(given.engine.master, given.engine.conf or ())
    return read_frame(session, given.released, schema)


def _rules_file(table: str, given: str | None) -> Path:
    """Where the rules of a table lie: beside it, where that is a place of this machine."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.stream.release_document import beside

    if given is None and "://" in table:
        rule = "name a file of this machine where the table is not on it"
        raise InvalidParameter("--plan", None, rule)
    return beside(table.rstrip("/")) if given is None else Path(given)


def _size(frame: DataFrame, stream: str) -> tuple[int, int]:
    from sfumato.engines.spark.column_names import column

    return frame.count(), frame.select(column(stream)).distinct().count()
