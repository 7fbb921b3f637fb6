"""`sfumato spark stream`: a live release inside Apache Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.cli import coin_options, options
from sfumato.cli.options import argument, flag, option, required
from sfumato.cli.spark_stream_places import Places, follow

if TYPE_CHECKING:
    from sfumato.engines.spark.worker_plan import PlanDocument
    from sfumato.models.stream_model import StreamModel
    from sfumato.solver.policy import Policy
    from sfumato.stream.release_spec import ReleaseSpec


class _Source(options.Options):
    source: str | None = argument("Folder that files of events are put into.", "SOURCE", None)
    source_format: str = option("json (lines), csv, parquet or kafka.", default="json")
    source_option: list[str] | None = option(
        "Handed to Spark's reader, NAME=VALUE: header=true, kafka.bootstrap.servers=..., "
        "subscribe=raw. Messages of Kafka are JSON objects."
    )
    stream: str | None = options.STREAM_AS_FITTED
    value: str | None = options.VALUES_AS_FITTED
    event: str = option("Column that tells the events of a stream apart.", default="id")
    time: str = option("Column of times, as 2024-05-01T08:00:00Z.", default="time")
    watermark: str = option(
        "How late an event may be, and how long its id is known: an event that comes again within "
        "this time has its old answer, beyond it is refused.",
        default="10 minutes",
    )


class _Sink(options.Options):
    output: str | None = option("Folder of released rows.", "-o", "--output")
    sink_format: str = option("parquet, json, csv or kafka.", default="parquet")
    sink_option: list[str] | None = option("Handed to Spark's writer, NAME=VALUE: topic=private.")
    dead_letters: str | None = option(
        "Leave out events that cannot be read, and write where each is and which rule it breaks, "
        "without what it says: a folder of JSON lines, or kafka:TOPIC with the brokers of "
        "--sink-option. For operators: keep it apart from the output. Else such an event ends the "
        "query."
    )
    checkpoint: str = required(
        "Folder of the state: budgets, beliefs and answers. A new one begins every stream with its "
        "whole budget, and draws other coins also with the same key.",
        "--checkpoint",
    )
    trigger: str | None = option("Begin a micro-batch so often: '10 seconds' [as soon as it can].")
    once: bool = flag("--once", "Answer what is there, and end.")


class _StreamOptions(options.Options):
    source: _Source
    model: str = options.MODEL
    allowed: options.Budget
    spread: options.Spread
    periods: options.Periods
    loss: str | None = options.LOSS
    way: options.Way
    policy: str | None = options.COMPILED_POLICY
    late: str = option(
        "An event is earlier than the last answer of its stream: refuse, or accept.",
        default="refuse",
    )
    missing: str = options.MISSING
    when_exhausted: str = options.WHEN_EXHAUSTED
    when_unknown: str = options.WHEN_UNKNOWN
    key_file: str = required("Secret of the coins, as `sfumato key new` makes it.", "--key-file")
    shared_key: bool = coin_options.SHARED_KEY
    shards: int = option(
        "Keys of the state store: one for some hundred streams. Fixed with the checkpoint.",
        default=128,
    )
    sink: _Sink
    master: str | None = option("Of Spark [as configured, else local[*]].")
    conf: list[str] | None = option("A setting of Spark, NAME=VALUE; may be given several times.")
    shown: options.Shown


def stream(given: _StreamOptions) -> None:
    """Release events as they come, inside Apache Spark's structured streaming.

    Files that appear in SOURCE, or messages of Kafka, are answered micro-batch by micro-batch, in
    the order of time and id within each. Every event has one answer, also after a crash: where
    streams stand lies in the checkpoint, coins depend on key, checkpoint, rules, stream and
    sequence alone, so what Spark does again it does alike. Go on with the same command and the same
    checkpoint.

    An event leaves as event, stream, time, sequence, released, signal where there is one, outcome,
    reason, sip and ldp. One that is older than the watermark, earlier than the last answer of its
    stream, or beyond the budget has the outcome `refused` and the reason late, order or budget.
    A value that cannot be read ends the query, as it ends `sfumato release`: a row about it would
    tell of it. Choose --when-unknown and --missing, or leave such events out with --dead-letters.

    To Kafka an answer goes as a JSON object with its stream as key, so that the answers of a stream
    stay in order. After a crash some may come twice, and equal: drop what has the same stream,
    event and sequence.

    A checkpoint belongs to one model, policy, rules, key, columns and number of shards; others are
    refused.
    The rules are written beside the output as OUTPUT.plan.json: `sfumato audit` checks rows that
    were not refused.

    Ctrl-C or SIGTERM ends the query; what it had begun is done again at the next start.

    \b
    Examples:
      sfumato key new city.key
      sfumato spark stream incoming -m city.model --epsilon 0.5 --key-file city.key \\
        --checkpoint city-state -o private
      sfumato spark stream incoming --source-format csv --source-option header=true --once \\
        -m city.model --epsilon 0.5 --key-file city.key --checkpoint city-state -o private
      sfumato spark stream incoming -m city.model --budget 10 --per day --cap 0.5 \\
        --key-file city.key --checkpoint city-state -o private
      sfumato spark stream --source-format kafka --source-option subscribe=raw \\
        --source-option kafka.bootstrap.servers=broker:9092 --sink-format kafka \\
        --sink-option topic=private --sink-option kafka.bootstrap.servers=broker:9092 \\
        --dead-letters kafka:unreadable \\
        --conf spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 \\
        -m city.model --epsilon 0.5 --key-file city.key --checkpoint city-state
    """
    from sfumato.engines.spark.checkpoint_identity import refused_checkpoint
    from sfumato.engines.spark.spark_session import session_of, told_plainly
    from sfumato.engines.spark.stream_release import stream_document
    from sfumato.store.keys import read_key

    asked, places = given.source, _places(given)
    public = [given.model, given.policy]
    key = read_key(given.key_file, public=public, shared=given.shared_key)
    model, sent = _document(given)
    spark = session_of(given.master, given.conf or ())
    try:
        with told_plainly(asked.source or asked.source_format), refused_checkpoint():
            rows = stream_document(
                places.events(spark, model),
                sent,
                key=key,
                watermark=asked.watermark,
                time=asked.time,
                shards=given.shards,
                malformed=places.malformed,
            )
            places.check_checkpoint(spark)
            _write_rules(given.sink, sent)
            begun = [places.answered(rows, model.stream)]
            if places.dead_letters is not None:
                begun.append(places.letters(spark, model, given.missing, given.when_unknown))
            follow(begun, given.shown)
    finally:
        spark.stop()


def _places(given: _StreamOptions) -> Places:
    """Where events come from, and where answers go."""
    asked, sink = given.source, given.sink
    return Places.of(
        source=asked.source,
        source_format=asked.source_format,
        source_option=asked.source_option,
        names=(asked.event, asked.time),
        output=sink.output,
        sink_format=sink.sink_format,
        sink_option=sink.sink_option,
        dead_letters=sink.dead_letters,
        checkpoint=sink.checkpoint,
        trigger=_trigger(sink),
    )


def _trigger(asked: _Sink) -> dict[str, bool | str]:
    if asked.once:
        return {"availableNow": True}
    return {} if asked.trigger is None else {"processingTime": asked.trigger}


def _document(given: _StreamOptions) -> tuple[StreamModel, PlanDocument]:
    """Model, policy and rules, chosen as `sfumato release` chooses them."""
    from sfumato.cli.rule_choice import RuleChoice
    from sfumato.engines.spark.batch_release import named_model
    from sfumato.engines.spark.shard_function import check_missing
    from sfumato.engines.spark.worker_plan import PlanDocument
    from sfumato.stream.policy_files import load_policy
    from sfumato.stream.release_spec import ReleaseSpec

    asked = given.source
    values = None if asked.value is None else tuple(asked.value.split(","))
    model = named_model(
        options.load_steady_model(
            given.model,
            "files are released with `release --time COLUMN --keep COLUMN --ledger FILE`",
        ),
        asked.stream,
        values,
    )
    policy: Policy | None = None if given.policy is None else load_policy(given.policy)
    spec: ReleaseSpec = options.spec_from(
        ReleaseSpec,
        given,
        method="",
        keep=(asked.time,),
        event=asked.event,
        time=None if given.periods.per is None else asked.time,
        policy=None,
        every=None,
    )
    check_missing(spec.missing)
    chosen = RuleChoice(given.model, model, given.way, given.spread, given.shown)
    spec = chosen.completed(spec, policy)
    if policy is None:
        policy = chosen.policy(spec)
    return model, PlanDocument.of(spec, model, policy)


def _write_rules(asked: _Sink, sent: PlanDocument) -> None:
    """The rules beside the output, for an audit; those of answers that lie there stay."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.files import write_whole
    from sfumato.stream.release_document import beside, parse_spec, read_spec

    if asked.output is None or "://" in asked.output:
        return
    path = beside(asked.output.rstrip("/"))
    if path.exists() and Path(asked.output).exists():
        if read_spec(path) != parse_spec(sent.rules, "the rules"):
            rule = f"be another folder, or the rules those of {path}: its answers are by them"
            raise InvalidParameter("--output", asked.output, rule)
        return
    write_whole(path, sent.rules)
