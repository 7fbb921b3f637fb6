"""Events that cannot be read: where they are and which rule they break, never what they say.

A release that leaves such events out (`malformed="drop"`) has no row for them: that would tell of
the value without a certificate. A query of its own reads the same source, judges by the same code
and writes to a place that operators read, not those whom the release is for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from sfumato.core.checks import choice
from sfumato.core.errors import InvalidParameter
from sfumato.core.purpose import Fallback
from sfumato.engines.spark.batch_release import named_model
from sfumato.engines.spark.column_names import column, mapped
from sfumato.engines.spark.event_reading import EventReader
from sfumato.engines.spark.shard_function import check_missing
from sfumato.engines.spark.stream_frames import StreamColumns
from sfumato.engines.spark.stream_release import value_column
from sfumato.engines.spark.worker_failures import without_values
from sfumato.models.stream_model import StreamModel
from sfumato.store.codec import from_bytes, to_bytes
from sfumato.tables.cells import Missing

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

RULE = "rule"
_STREAM, _ID, _TIMELESS = "sfumato_stream", "sfumato_id", "sfumato_timeless"


def dead_letters(
    frame: DataFrame,
    *,
    model: StreamModel,
    place: Sequence[str],
    stream: str | None = None,
    value: str | tuple[str, ...] | None = None,
    id: str = "id",
    time: str = "time",
    missing: str = "refuse",
    when_unknown: str = "refuse",
) -> DataFrame:
    """The events of a frame that `release_stream` cannot read, without what they say.

    Run it as a query of its own beside a release with `malformed="drop"`, over the same source and
    with the same rules: both judge by the same code, each event by itself. Write it where operators
    read. That an event is here depends on its value, so it must not lie beside the answers.

    Args:
        frame: The frame that is released.
        model: The model of the release.
        place: Columns that say where an event is: topic, partition and offset of Kafka, a file.
            They leave as they are; names, ids, times and values of such events do not.
        stream: As of the release.
        value: As of the release.
        id: As of the release.
        time: As of the release.
        missing: As of the release.
        when_unknown: As of the release.

    Returns:
        The columns of `place`, and `rule`: what the event must be, and is not.

    Raises:
        InvalidParameter: If columns, rules and model do not go together, or the place is one of
            stream, id, time and value.

    Examples:
        With a session at hand, `spark`:

        ```python
        import sfumato as sf
        rows = [("ann", time, "home" if time % 5 else "work") for time in range(40)]
        frame = spark.createDataFrame(rows, ["user", "time", "cell"])
        model = sf.spark.fit(frame, order="time", stream="user", value="cell")
        events = frame.selectExpr("*", "user AS id", "time AS offset").replace("work", "wrok")
        found = sf.spark.dead_letters(events, model=model, place=("offset",))
        assert found.columns == ["offset", "rule"] and found.count() == 8
        ```
    """
    named = named_model(model, stream, value)
    check_missing(missing)
    unknown = choice("when_unknown", Fallback, when_unknown)
    given = StreamColumns(named.stream, time, (id, *named.values))
    given.check(frame)
    for name in place:
        if name in (named.stream, time, id, *named.values, RULE):
            raise InvalidParameter("place", name, "not be a column of the event, nor `rule`")
    sent = frame.sparkSession.sparkContext.broadcast(to_bytes(named.steady))
    # Whether there is a time is all that is asked of it.
    asked = frame.select(
        column(named.stream).cast("string").alias(_STREAM),
        column(id).cast("string").alias(_ID),
        column(time).isNull().alias(_TIMELESS),
        *(value_column(frame, name, named) for name in named.values),
        *(column(name) for name in place),
    )
    told = LetterFunction(sent, (named.stream, id, time), tuple(place), Missing(missing), unknown)
    schema = asked.select(*(column(name) for name in place)).schema.add(RULE, "string")
    return mapped(asked, told, schema)


class Sent(Protocol):
    """A model as bytes, as `Broadcast` of pyspark holds it."""

    @property
    def value(self) -> bytes:
        """What was sent."""


class LetterFunction:
    """Picks the events that cannot be read; what `mapInArrow` runs.

    Args:
        model: The model, broadcast.
        names: What the columns of stream, id and time are called.
        place: The columns that leave.
        missing: What becomes of a missing value.
        unknown: What leaves for a value outside the alphabet.
    """

    def __init__(
        self,
        model: Sent,
        names: tuple[str, str, str],
        place: tuple[str, ...],
        missing: Missing,
        unknown: Fallback,
    ) -> None:
        self._model, self._names, self._place = model, names, place
        self._rules = missing, unknown

    def __call__(self, parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Where such events are, and the rule that each breaks."""
        import pyarrow as pa

        for part in parts:
            with without_values():
                rules = self._broken(part)
                rows = pa.array(sorted(rules), pa.int64())
                left = [part[name].take(rows) for name in self._place]
                told = pa.array([rules[row] for row in rows.to_pylist()], pa.string())
                made = pa.RecordBatch.from_arrays([*left, told], names=[*self._place, RULE])
            yield made

    def _broken(self, part: pa.RecordBatch) -> dict[int, str]:
        model, reader = _reader(self._model.value, *self._rules)
        streams, ids = (part[name].to_pylist() for name in (_STREAM, _ID))
        found: dict[int, str] = {}
        for name, gone in zip(
            self._names,
            (part[_STREAM].is_null(), part[_ID].is_null(), part[_TIMELESS]),
            strict=True,
        ):
            for row in gone.to_numpy(zero_copy_only=False).nonzero()[0].tolist():
                found.setdefault(row, f"column {name!r} must not be empty")
        values = [part[name].to_pandas() for name in model.values]
        _, bad = reader.read([one or "" for one in streams], [one or "" for one in ids], values)
        return bad | found


@lru_cache(maxsize=8)
def _reader(sent: bytes, missing: Missing, unknown: Fallback) -> tuple[StreamModel, EventReader]:
    """Once for a process."""
    model = from_bytes(sent, StreamModel)
    return model, EventReader(model, missing, unknown)
