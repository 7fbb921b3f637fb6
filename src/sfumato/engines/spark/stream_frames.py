"""Frames of an engine as streams: the rows of each in one partition, in their order.

Spark may join partitions that are small and may split those that are large, but never those whose
number was asked for (`repartition(n, column)`). So the number is always given: a stream in two
partitions would be begun twice, with the same coins. Workers see to the rest: streams must come one
after another, in rising order of their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Ints
from sfumato.core.errors import InvalidParameter
from sfumato.engines.spark.column_names import column
from sfumato.engines.spark.worker_failures import WorkerFailure
from sfumato.stream.name_order import SLOT_SHIFT, name_key
from sfumato.tables.batches import BATCH_ROWS, Batch, Column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from sfumato.tables.writers import Columns

_BYTES = 64 << 20
"""Of a partition, about: a million rows, some seconds of work to do again if a task is lost."""
_UNKNOWN = 1 << 60
"""From here on what Spark says of a size means that it has no idea."""
_MOST = 20_000
_ZONED = r"(?i)(Z|UTC|[+-]\d\d:?\d\d)\s*$"
"""How a moment ends that names its zone."""
_NAMES = ("string", "tinyint", "smallint", "int", "bigint")
_ORDERS = (*_NAMES, "float", "double", "date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True, slots=True)
class StreamColumns:
    """Which columns of a frame say whose a row is, when it was, and what.

    Attributes:
        stream: Whose.
        order: What the rows of a stream are sorted by: times, or numbers.
        others: Columns that are taken along.
        tie: Tells rows of one time apart, and puts them in order; None if there are none.
    """

    stream: str
    order: str
    others: tuple[str, ...]
    tie: str | None = None

    def check(self, frame: DataFrame) -> None:
        """Refuse a frame that lacks a column, or whose columns have no names or no order."""
        kinds = dict(frame.dtypes)
        for name in (self.stream, self.order, *self.others):
            if frame.columns.count(name) != 1:
                there = ", ".join(map(repr, frame.columns))
                raise InvalidParameter("column", name, f"be one of those of the frame: {there}")
        for what, name, allowed in (
            ("stream", self.stream, _NAMES),
            ("order", self.order, _ORDERS),
        ):
            if kinds[name].partition(" ")[0] not in allowed:
                rule = f"hold one of {', '.join(allowed)}"
                raise InvalidParameter(f"the {what} column {name!r}", kinds[name], rule)

    def arranged(
        self, frame: DataFrame, partitions: int | None, *, together: bool = False
    ) -> DataFrame:
        """The rows of each stream in one partition, one stream after another, each in its order.

        Streams come in the order of their names (`name_order`): checksums are told apart at once,
        where names begin with the same letters.

        Args:
            frame: The rows.
            partitions: Parts that streams are shared out to; by the size of the frame if None.
            together: Whether streams whose names are in one slot are in one partition, too.
        """
        from pyspark.sql import functions as F

        self.check(frame)
        number = partitions_of(frame) if partitions is None else partitions
        names = dict.fromkeys((self.order, *self.others))
        names.pop(self.stream, None)
        chosen = frame.select(self._name(frame), *(column(name) for name in names))
        # A column, not an expression: that would be computed for each pair that is compared.
        check = "checksum of the name"
        while check in chosen.columns:
            check += "'"
        marked = chosen.withColumn(check, F.crc32(column(self.stream)))
        part = F.shiftright(column(check), SLOT_SHIFT) if together else column(self.stream)
        parted = marked.repartition(checks.count("partitions", number), part)
        sorts = [column(check), column(self.stream), *self._sorts(frame)]
        return parted.sortWithinPartitions(*sorts).drop(column(check))

    def _name(self, frame: DataFrame) -> Expression:
        """The name of a stream as text, compared byte by byte whatever collation it has."""
        from pyspark.sql import functions as F

        name = column(self.stream).cast("string")
        if " collate " in f"{dict(frame.dtypes)[self.stream]} ":
            name = F.collate(name, "UTF8_BINARY")
        return name.alias(self.stream)

    def _sorts(self, frame: DataFrame) -> list[Expression]:
        from pyspark.sql import functions as F

        own = column(self.order)
        sorts = [own]
        if dict(frame.dtypes)[self.order].startswith("string"):
            # Text that is a number is sorted as one: "9" comes before "10". A clock without a zone
            # is read without one: that of the session may leave out an hour in spring.
            moment = F.when(own.rlike(_ZONED), own.try_cast("timestamp"))
            clock = own.try_cast("timestamp_ntz")
            sorts = [own.try_cast("decimal(38,9)"), moment, clock, own]
        return sorts if self.tie is None else [*sorts, column(self.tie).cast("string")]


def check_repeatable(frame: DataFrame, names: Sequence[str]) -> None:
    """Refuse a frame that Spark itself calls one of chance, or of the order in which rows arrive.

    A task that runs again would draw the coins of another value, and whoever sees both answers
    would see where the values differ. What does not tell (a sample, a limit) is for the caller.

    Args:
        frame: The rows.
        names: The columns that are read; others may be what they like in a table.
    """
    chosen: Any = frame.select(*map(column, dict.fromkeys(names)))
    made = chosen._jdf.queryExecution()
    # Of a stream without its sink nothing but the analysed plan can be had.
    plan = made.analyzed() if frame.isStreaming else made.optimizedPlan()
    if not plan.deterministic():
        rule = (
            "be the same whenever it is read, which Spark does not say of rand(), uuid(), "
            "monotonically_increasing_id() and the like: write it to a table first"
        )
        raise InvalidParameter("frame", "one that may change", rule)


def partitions_of(frame: DataFrame) -> int:
    """How many partitions a frame is worth: by its size, and at least one for each core."""
    session = frame.sparkSession
    cores = int(session.sparkContext.defaultParallelism)
    plan: Any = frame
    size = int(str(plan._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    if size >= _UNKNOWN:
        return max(cores, int(session.conf.get("spark.sql.shuffle.partitions") or 0))
    return min(max(cores, -(-size // _BYTES)), _MOST)


def frame_schema(columns: Columns) -> StructType:
    """The columns of a released table as Spark calls them."""
    from pyspark.sql import types

    kinds: dict[type, Any] = {
        str: types.StringType(),
        int: types.LongType(),
        float: types.DoubleType(),
    }
    return types.StructType(
        [types.StructField(name, kinds[kind]) for name, kind in columns.items()]
    )


def gathered(parts: Iterator[pa.RecordBatch], rows: int = BATCH_ROWS) -> Iterator[Batch]:
    """What a worker is given, in batches that are worth their while; never more at one time."""
    held: list[pa.RecordBatch] = []
    count = 0
    for part in parts:
        held.append(part)
        count += part.num_rows
        if count >= rows:
            yield _joined(held)
            held, count = [], 0
    if count:
        yield _joined(held)


def check_together(names: Sequence[str], codes: Ints, before: str | None) -> None:
    """Refuse rows of a stream that do not come together: it would be begun twice.

    Streams rise in the order of their names, so none comes back.

    Args:
        names: The streams of some rows, in the order of their first ones.
        codes: The place of the stream of each row among them.
        before: The last stream of the rows before; it may go on.
    """
    keys = list(map(name_key, names))
    rising = all(one < other for one, other in pairwise(keys))
    if before is not None and keys:
        rising = rising and name_key(before) <= keys[0]
    if not rising or (np.diff(codes) < 0).any():
        told = "the rows of a stream must come together, in the order of their names"
        raise WorkerFailure(f"{told}; the engine gave them otherwise, and nothing was done")


def _joined(parts: Sequence[pa.RecordBatch]) -> Batch:
    import pyarrow as pa

    table = pa.Table.from_batches(parts).combine_chunks()
    return Batch(1, {name: Column(_array(table[name])) for name in table.column_names})


def _array(chunked: Any) -> Any:
    import pyarrow as pa

    array = chunked.chunk(0)
    kind = array.type
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        # A moment is written alike whatever zone a session shows it in.
        return array.cast(pa.timestamp("us", tz="UTC"))
    return array
