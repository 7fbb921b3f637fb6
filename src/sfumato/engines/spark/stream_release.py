"""A release of live streams, inside Apache Spark's structured streaming."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from sfumato.core import checks
from sfumato.core.errors import InvalidParameter
from sfumato.engines.spark.batch_release import Rules, completed, named_model
from sfumato.engines.spark.checkpoint_identity import release_digest, state_type
from sfumato.engines.spark.column_names import NamedFrames, column, numbered, quoted
from sfumato.engines.spark.partition_release import reading_of
from sfumato.engines.spark.shard_function import (
    HASH,
    MICROS,
    SHARD,
    EventColumns,
    Malformed,
    ShardFunction,
    check_missing,
)
from sfumato.engines.spark.stream_frames import (
    StreamColumns,
    check_repeatable,
    frame_schema,
)
from sfumato.engines.spark.worker_plan import PlanDocument, WorkerPlan, plan_of
from sfumato.models.encoding import Symbols
from sfumato.models.stream_model import StreamModel
from sfumato.solver.policy import Policy
from sfumato.stream.release_run import output_columns
from sfumato.stream.release_spec import ReleaseSpec

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SHARDS = 128
_SCHEMA_CHECK = "spark.sql.streaming.stateStore.stateSchemaCheck"


def release_stream(
    frame: DataFrame,
    *,
    model: StreamModel,
    key: bytes,
    watermark: str,
    policy: Policy | None = None,
    stream: str | None = None,
    value: str | tuple[str, ...] | None = None,
    id: str = "id",
    time: str = "time",
    late: str = "refuse",
    malformed: str = "end",
    shards: int = SHARDS,
    **rules: Unpack[Rules],
) -> DataFrame:
    """Release the events of a streaming frame value by value, as they come.

    Every event has one answer: coins depend on key, query, plan, stream and sequence alone, and
    where a stream stands is in the state store of the engine. A micro-batch that is done again,
    after a crash or on another machine, gives the same rows. Within a micro-batch events are taken
    in the order of time and id.

    A query is known by the id that Spark keeps in its checkpoint: two queries share no coins,
    whatever their key. But a new checkpoint begins every stream with its whole budget.

    An event that comes again under its id has its old answer while its time is not before the
    watermark. What is older than that, or earlier than the last answer of its stream, leaves with
    the outcome `refused` and its `reason`, and nothing is drawn for it. What cannot be read ends
    the query, as it ends a release of a table: a row that said so would tell of the value. Or it is
    left out (`malformed`).

    Args:
        frame: A streaming frame, one row per event.
        model: What `sfumato fit` wrote: `sf.load("city.model")`.
        key: Secret of the coins, 32 random bytes, as `sfumato key new` makes them.
        watermark: How long ids are kept, and how late events may be: `"10 minutes"`.
        policy: Channels compiled for it. If not given and the release looks ahead, they are
            compiled here, on the driver; else every step is solved, which is slow.
        stream: Column that tells streams apart; as fitted if not given.
        value: Column of values, two for a grid; as fitted if not given.
        id: Column that tells the events of a stream apart.
        time: Column of timestamps.
        late: What becomes of an event that is earlier than the last answer of its stream: `refuse`,
            or `accept` to release it as the next value.
        malformed: What becomes of an event that cannot be read: `end` the query, or `drop` it:
            nothing leaves for it, and `sf.spark.dead_letters` says in a query of its own which.
            The gap shows that something was wrong with it; `when_unknown` leaves none.
        shards: How many keys of the state store the streams are shared out to: one for some hundred
            streams that are expected. Fixed for the life of a checkpoint.
        rules: Budget, loss and rules, as in `ReleaseSpec`. Without a budget it is that of the
            policy for each value.

    Returns:
        A streaming frame: event, stream, time, sequence, released, signal where there is one,
        outcome, reason, and both certificates, sip and ldp. Its output mode is append.

    Raises:
        InvalidParameter: If columns, rules, model and policy do not go together.

    Examples:
        With a session at hand, `spark`:

        ```python
        import secrets
        import sfumato as sf
        rows = [("ann", time, "home" if time % 5 else "work") for time in range(40)]
        frame = spark.createDataFrame(rows, ["user", "time", "cell"])
        model = sf.spark.fit(frame, order="time", stream="user", value="cell")
        events = spark.readStream.format("rate").load().selectExpr(
            "'ann' AS user", "CAST(value AS STRING) AS id", "timestamp AS time", "'home' AS cell"
        )
        asked = {"epsilon": 0.5, "method": "step-wise", "watermark": "10 minutes"}
        private = sf.spark.release_stream(events, model=model, key=secrets.token_bytes(32), **asked)
        assert private.isStreaming and "released" in private.columns
        ```
    """
    named = named_model(model, stream, value)
    timed = None if rules.get("per") is None else time
    spec = ReleaseSpec(**rules, keep=(time,), event=id, late=late, time=timed)
    # What is wrong with the frame is said before channels are compiled for it.
    _check(frame, StreamColumns(named.stream, time, (id, *named.values)))
    check_missing(spec.missing)
    spec, policy = completed(spec, named, policy, asked="method" in rules)
    sent = PlanDocument.of(spec, named, policy)
    return stream_document(
        frame,
        sent,
        key=key,
        watermark=watermark,
        time=time,
        shards=shards,
        malformed=checks.choice("malformed", Malformed, malformed),
    )


def stream_document(
    frame: DataFrame,
    sent: PlanDocument,
    *,
    key: bytes,
    watermark: str,
    time: str,
    shards: int = SHARDS,
    malformed: Malformed = Malformed.END,
) -> DataFrame:
    """The same by a document of rules, model and policy."""
    opened = plan_of(sent)
    reading = reading_of(opened.spec, time)
    reading.check(opened.model, opened.plan.period)
    assert opened.spec.event is not None
    given = StreamColumns(opened.model.stream, time, (opened.spec.event, *opened.model.values))
    _check(frame, given)
    if malformed is Malformed.DROP:
        for name in (given.stream, given.order, opened.spec.event):
            frame = frame.where(column(name).isNotNull())
    left = {**output_columns(opened.model, reading, opened.plan), "reason": str}
    columns = EventColumns(opened.spec.event, time, {**left, time: int})
    worker = WorkerPlan(frame.sparkSession.sparkContext.broadcast(sent), key)
    names = (opened.spec.event, time)
    release = release_digest(sent, key, checks.count("shards", shards), names)
    rows = _sharded(frame.withWatermark(quoted(time), watermark), given, opened.model, shards)
    function: Any = ShardFunction(worker, columns, release, malformed)
    rows, odd = numbered(rows)
    if odd is not None:
        function = NamedFrames(function, odd)
    answers = rows.groupBy(rows.columns[-1]).applyInPandasWithState(
        function,
        frame_schema(columns.left),
        state_type(release),
        "append",
        "NoTimeout",
    )
    return answers.select(*(_told(name, time) for name in left))


def _check(frame: DataFrame, given: StreamColumns) -> None:
    """Refuse a frame without an end or a clock, or with columns that cannot be read."""
    if not frame.isStreaming:
        raise InvalidParameter("frame", "a whole one", "be a streaming one: use `sf.spark.release`")
    given.check(frame)
    kinds = dict(frame.dtypes)
    if kinds[given.order] != "timestamp":
        raise InvalidParameter(
            f"the time column {given.order!r}", kinds[given.order], "hold a timestamp: cast it"
        )
    id = given.others[0]
    if kinds[id] not in ("string", "int", "bigint"):
        raise InvalidParameter(f"the id column {id!r}", kinds[id], "hold text or whole numbers")
    if frame.sparkSession.conf.get(_SCHEMA_CHECK, "true") != "true":
        rule = "be true: by it a checkpoint knows its release"
        raise InvalidParameter(_SCHEMA_CHECK, "false", rule)
    check_repeatable(frame, (given.stream, given.order, *given.others))
    if "reason" in (given.stream, given.order):
        raise InvalidParameter("column", "reason", "have another name: an output column has it")


def _sharded(frame: DataFrame, given: StreamColumns, model: StreamModel, shards: int) -> DataFrame:
    """What workers are given: names as text, times as whole numbers, and which shard it is."""
    from pyspark.sql import functions as F

    stream, id = column(given.stream).cast("string"), column(given.others[0]).cast("string")
    # Times in whole numbers: workers see clocks of a session's zone, which go back in autumn.
    return frame.select(
        stream.alias(given.stream),
        id.alias(given.others[0]),
        column(given.order),
        F.unix_micros(column(given.order)).alias(MICROS),
        F.xxhash64(stream, id).alias(HASH),
        *(value_column(frame, name, model) for name in given.others[1:]),
        F.pmod(F.xxhash64(stream), F.lit(shards)).alias(SHARD),
    )


def value_column(frame: DataFrame, name: str, model: StreamModel) -> Column:
    """A column of values; whole numbers that name symbols as text.

    Beside a missing one, data frames would hold them as floats: large ones would become others.
    """
    whole = dict(frame.dtypes)[name] in ("tinyint", "smallint", "int", "bigint")
    if whole and isinstance(model.encoding, Symbols):
        return column(name).cast("string").alias(name)
    return column(name)


def _told(name: str, time: str) -> Column:
    from pyspark.sql import functions as F

    return F.timestamp_micros(column(name)).alias(name) if name == time else column(name)
