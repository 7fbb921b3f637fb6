"""A release of the streams of a frame, inside Apache Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, TypedDict, Unpack

from sfumato.core.errors import InvalidParameter
from sfumato.engines.spark.column_names import column, mapped
from sfumato.engines.spark.partition_release import PartitionRelease, reading_of
from sfumato.engines.spark.rising_order import FRAME
from sfumato.engines.spark.stream_frames import (
    StreamColumns,
    check_repeatable,
    frame_schema,
)
from sfumato.engines.spark.worker_plan import PlanDocument, WorkerPlan, plan_of
from sfumato.models.stream_model import StreamModel
from sfumato.solver.design_methods import Method
from sfumato.solver.policy import Policy
from sfumato.stream.policy_files import compile_for
from sfumato.stream.release_defaults import with_method
from sfumato.stream.release_run import output_columns
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.tables.problems import BadTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Rules(TypedDict, total=False):
    """Fields of `ReleaseSpec` that a release of a frame takes, as they are explained there."""

    epsilon: float
    budget: float
    horizon: int
    window: int
    ldp: float
    every: int
    first: float
    cap: float
    per: str
    loss: str | list[list[float]]
    method: str
    thrift: float
    when_exhausted: str
    when_unknown: str
    missing: str


def release(
    frame: DataFrame,
    *,
    model: StreamModel,
    key: bytes,
    order: str,
    policy: Policy | None = None,
    stream: str | None = None,
    value: str | tuple[str, ...] | None = None,
    id: str | None = None,
    keep: tuple[str, ...] | None = None,
    independent: tuple[str, ...] = (),
    partitions: int | None = None,
    **rules: Unpack[Rules],
) -> DataFrame:
    """Release the streams of a frame value by value; rows are drawn when Spark runs the plan.

    The answers are those of `sfumato release` with the same key, bit for bit, however the frame is
    cut into partitions and however often a task runs: coins depend on key, plan, stream and
    sequence alone. The frame must be the same whenever it is read; what is drawn at random, or
    depends on the order in which rows arrive, is to be written down before.

    Args:
        frame: One row per value; rows in any order.
        model: What `sfumato fit` wrote: `sf.load("city.model")`.
        key: Secret of the coins, 32 random bytes, as `sfumato key new` makes them. A frame with
            other values of the same streams needs another key: equal coins would tell both.
        order: Column of times or numbers that gives the rows of a stream their order.
        policy: Channels compiled for it. If not given and the release looks ahead, they are
            compiled here, on the driver; else every step is solved, which is slow.
        stream: Column that tells streams apart; as fitted if not given.
        value: Column of values, two for a grid; as fitted if not given.
        id: Column of event ids, each of which must stand there once: tells rows of one time apart.
            They are counted first, in a job of its own.
        keep: Columns that leave as they are, as text: the column of order if not given.
        independent: Those of them that are declared to tell nothing of the values.
        partitions: Parts that streams are shared out to; by the size of the frame if not given.
        rules: Budget, loss and rules, as in `ReleaseSpec`. Without a budget it is that of the
            policy for each value.

    Returns:
        The columns that `sfumato release` writes: stream, kept columns, sequence, released, signal
        where there is one, outcome, and both certificates, sip and ldp.

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
        asked = {"epsilon": 0.5, "method": "step-wise"}
        key = secrets.token_bytes(32)
        private = sf.spark.release(frame, model=model, key=key, order="time", **asked)
        assert private.count() == 40
        ```
    """
    named = named_model(model, stream, value)
    kept = (order,) if keep is None else keep
    # Periods of a budget follow from the column of order, and audits read them there.
    time = None if rules.get("per") is None else order
    spec = ReleaseSpec(**rules, keep=kept, independent=independent, event=id, time=time)
    spec, policy = completed(spec, named, policy, asked="method" in rules)
    sent = PlanDocument.of(spec, named, policy)
    return release_document(frame, sent, key=key, order=order, partitions=partitions)


def release_document(
    frame: DataFrame, sent: PlanDocument, *, key: bytes, order: str, partitions: int | None = None
) -> DataFrame:
    """The same by a document of rules, model and policy."""
    opened = plan_of(sent)
    spec, reading = opened.spec, reading_of(opened.spec, order)
    reading.check(opened.model, opened.plan.period)
    others = tuple(dict.fromkeys((*opened.model.values, *reading.names, *spec.keep)))
    columns = StreamColumns(opened.model.stream, order, others, tie=spec.event)
    columns.check(frame)
    check_repeatable(frame, (columns.stream, order, *others))
    schema = frame_schema(output_columns(opened.model, reading, opened.plan))
    if spec.event is not None:
        _check_once(frame, spec.event)
    _check_copies(frame, opened.model.values, [name for name in spec.keep if name != order])
    worker = WorkerPlan(frame.sparkSession.sparkContext.broadcast(sent), key)
    rows = columns.arranged(frame, partitions)
    return mapped(rows, PartitionRelease(worker, order), schema)


def completed(
    spec: ReleaseSpec, model: StreamModel, policy: Policy | None, *, asked: bool
) -> tuple[ReleaseSpec, Policy | None]:
    """Rules with a budget and a method, and the channels that they need.

    Args:
        spec: What was given.
        model: The model.
        policy: Its channels, if they were compiled.
        asked: Whether a method was named.
    """
    from msgspec.structs import replace as with_fields

    if policy is not None and spec.epsilon is None and spec.budget is None:
        spec = with_fields(spec, epsilon=policy.epsilon, ldp=policy.ldp)
    if policy is not None and policy.sight is not None and spec.thrift is None:
        spec = with_fields(spec, thrift=policy.sight.price or None)
    if not asked:
        spec = with_method(spec, model, policy)
    if policy is None and spec.chosen_method() is Method.FAR_SIGHTED:
        policy = compile_for(model, spec)
    return spec, policy


def named_model(
    model: StreamModel, stream: str | None, value: str | tuple[str, ...] | None
) -> StreamModel:
    """The model, read from columns of other names."""
    if not isinstance(model, StreamModel):
        rule = "be a `StreamModel`, which says how values are read: fit one with `sfumato fit`"
        raise InvalidParameter("model", type(model).__name__, rule)
    values = (value,) if isinstance(value, str) else value
    return replace(model, stream=stream or model.stream, values=values or model.values)


def _check_copies(frame: DataFrame, values: Sequence[str], kept: Sequence[str]) -> None:
    """Refuse to keep a column that holds the very values, whatever was declared of it."""
    for name, value in product(kept, values):
        pair = [column(one).cast("string") for one in (name, value)]
        # It ends with the first row that differs; a column of one value alone tells nothing.
        same = frame.where(~pair[0].eqNullSafe(pair[1])).isEmpty()
        if same and frame.select(pair[1]).distinct().limit(2).count() > 1:
            raise BadTable(FRAME, None, f"column {name!r} must not hold the very values")


def _check_once(frame: DataFrame, id: str) -> None:
    """Refuse an event id that stands in two rows: the event would be answered twice."""
    twice = frame.groupBy(column(id)).count().where("count > 1")
    if not twice.isEmpty():
        raise InvalidParameter(f"the id column {id!r}", "an id twice", "hold each id once")
