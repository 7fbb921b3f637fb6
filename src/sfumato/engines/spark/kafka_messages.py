"""Messages of Kafka as events, and answers as messages: what stands between Spark's connectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sfumato.engines.spark.stream_sources import CLOCKS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

CONNECTOR = "kafka"
"""What Spark calls its connector, in both directions."""
PLACE = "sfumato_place"
"""A column beside those of an event: topic, partition, offset and timestamp of its message."""
_STARTING = "startingOffsets"


def messages(spark: SparkSession, settings: Mapping[str, str]) -> DataFrame:
    """Messages as they come: key, value, topic, partition, offset, timestamp."""
    return spark.readStream.format(CONNECTOR).options(**settings).load()


def events_of(frame: DataFrame, schema: StructType) -> DataFrame:
    """Events from messages that are JSON objects, and the place of each.

    What is no such object has empty columns: it cannot be read. (FAILFAST would quote it in logs.)
    """
    from pyspark.sql import functions as F

    place = F.struct("topic", "partition", "offset", "timestamp").alias(PLACE)
    told = F.from_json(F.col("value").cast("string"), schema, CLOCKS).alias("event")
    return frame.select(told, place).select("event.*", PLACE)


def answers_of(rows: DataFrame, stream: str) -> DataFrame:
    """Answers as messages: the stream is the key, so that Kafka keeps the order of each stream.

    Answers of one stream leave one task in the order of their sequence; messages of one key go to
    one partition of the topic, and consumers of a partition read it in order.
    """
    from pyspark.sql import functions as F

    from sfumato.engines.spark.column_names import column

    key = column(stream).cast("string").alias("key")
    return rows.select(key, F.to_json(F.struct("*")).alias("value"))


def letters_of(rows: DataFrame) -> DataFrame:
    """Dead letters as messages, without a key."""
    from pyspark.sql import functions as F

    return rows.select(F.to_json(F.struct("*")).alias("value"))


def from_the_beginning(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings of a reader that must miss nothing which another query read before it began.

    A release may have run for days when its dead letters are first asked for, often because one
    message had ended it: a reader that begins with the latest message would never tell of that one.

    Examples:
        >>> from_the_beginning({"subscribe": "raw", "startingOffsets": "latest"})
        {'subscribe': 'raw', 'startingOffsets': 'earliest'}
        >>> from_the_beginning({"startingOffsets": '{"raw":{"0":23}}'})
        {'startingOffsets': '{"raw":{"0":23}}'}
    """
    found = dict(settings)
    if found.get(_STARTING, "latest") == "latest":
        found[_STARTING] = "earliest"
    return found
