"""Where `sfumato spark stream` reads events, and where it writes answers and dead letters."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from os.path import realpath
from typing import TYPE_CHECKING, Any

from sfumato.cli.console import print_json, say
from sfumato.core.errors import InvalidParameter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from sfumato.cli.options import Shown
    from sfumato.engines.spark.shard_function import Malformed
    from sfumato.models.stream_model import StreamModel

FORMATS = ("json", "csv", "parquet", "kafka")
LETTERS = "dead-letters"
"""Folder of their query within the checkpoint, and the name of their count in its progress."""
_TOPIC = "kafka:"


@dataclass(frozen=True, slots=True)
class Places:
    """Both ends of a streaming release.

    Attributes:
        source: Folder of events; None for Kafka.
        source_format: What they are in.
        source_settings: For Spark's reader.
        names: Columns of ids and times.
        output: Folder of answers; None for Kafka.
        sink_format: What they are written in.
        sink_settings: For Spark's writer.
        dead_letters: Folder of, or `kafka:` and the topic for, events that cannot be read; None if
            they end the query.
        checkpoint: Folder of the state.
        trigger: When micro-batches begin, as Spark's writer takes it.
    """

    source: str | None
    source_format: str
    source_settings: dict[str, str]
    names: tuple[str, str]
    output: str | None
    sink_format: str
    sink_settings: dict[str, str]
    dead_letters: str | None
    checkpoint: str
    trigger: dict[str, Any]

    @classmethod
    def of(
        cls, *, source_option: list[str] | None, sink_option: list[str] | None, **given: Any
    ) -> Places:
        """The same from what was typed.

        Raises:
            InvalidParameter: If formats and places do not go together.
        """
        made = cls(
            source_settings=_pairs("--source-option", source_option),
            sink_settings=_pairs("--sink-option", sink_option),
            **given,
        )
        made._check()
        return made

    @property
    def malformed(self) -> Malformed:
        """What becomes of an event that cannot be read."""
        from sfumato.engines.spark.shard_function import Malformed

        return Malformed.END if self.dead_letters is None else Malformed.DROP

    def events(self, spark: SparkSession, model: StreamModel) -> DataFrame:
        """Events as a streaming frame, with the columns that the model reads, and their place."""
        return self._events(spark, model, self.source_settings)

    def check_checkpoint(self, spark: SparkSession) -> None:
        """Refuse a checkpoint that is behind what lies in the folders that it is to go on with."""
        from sfumato.engines.spark.checkpoint_identity import check_in_step

        if self.output is not None:
            check_in_step(spark, self.checkpoint, self.output)
        if self.dead_letters is not None and not self.dead_letters.startswith(_TOPIC):
            check_in_step(spark, self._letters_checkpoint, self.dead_letters)

    def answered(self, rows: DataFrame, stream: str) -> StreamingQuery:
        """The query that writes answers."""
        from sfumato.engines.spark.kafka_messages import answers_of

        rows = answers_of(rows, stream) if self.sink_format == "kafka" else rows
        writer = rows.writeStream.format(_connector(self.sink_format)).outputMode("append")
        writer = writer.options(**self.sink_settings).trigger(**self._when)
        return writer.option("checkpointLocation", self.checkpoint).start(self.output)

    def letters(
        self, spark: SparkSession, model: StreamModel, missing: str, when_unknown: str
    ) -> StreamingQuery:
        """The query that writes where events are that cannot be read; they are counted."""
        from pyspark.sql import functions as F

        from sfumato.engines.spark.kafka_messages import PLACE, from_the_beginning, letters_of
        from sfumato.engines.spark.unreadable_events import dead_letters

        assert self.dead_letters is not None
        kafka = self.source_format == "kafka"
        settings = from_the_beginning(self.source_settings) if kafka else self.source_settings
        rules = {"missing": missing, "when_unknown": when_unknown}
        id, time = self.names
        events = self._events(spark, model, settings)
        found = dead_letters(events, model=model, place=(PLACE,), id=id, time=time, **rules)
        found = found.observe(LETTERS, F.count(F.lit(1)).alias("count")).select(
            f"{PLACE}.*", "rule"
        )
        if self.dead_letters.startswith(_TOPIC):
            topic = self.dead_letters.removeprefix(_TOPIC)
            writer = letters_of(found).writeStream.format(_connector("kafka"))
            writer = writer.options(**{**self.sink_settings, "topic": topic})
        else:
            writer = found.writeStream.format("json").option("path", self.dead_letters)
        writer = writer.outputMode("append").trigger(**self._when)
        return writer.option("checkpointLocation", self._letters_checkpoint).start()

    @property
    def _letters_checkpoint(self) -> str:
        return f"{self.checkpoint.rstrip('/')}/{LETTERS}"

    @property
    def _when(self) -> dict[str, Any]:
        return self.trigger or {"processingTime": "0 seconds"}

    def _events(
        self, spark: SparkSession, model: StreamModel, settings: dict[str, str]
    ) -> DataFrame:
        from pyspark.sql import functions as F

        from sfumato.engines.spark.kafka_messages import PLACE, events_of, messages
        from sfumato.engines.spark.stream_sources import CLOCKS, event_schema

        typed = self.source_format == "parquet"
        schema = event_schema(model, *self.names, typed=typed)
        if self.source_format == "kafka":
            return events_of(messages(spark, settings), schema)
        told = settings if typed else {**CLOCKS, **settings}
        reader = spark.readStream.format(self.source_format).options(**told)
        rows = reader.schema(schema).load(self.source)
        return rows.withColumn(PLACE, F.struct(F.col("_metadata.file_path").alias("file")))

    def _check(self) -> None:
        kinds = ("--source-format", self.source_format), ("--sink-format", self.sink_format)
        for name, kind in kinds:
            if kind not in FORMATS:
                raise InvalidParameter(name, kind, f"be one of {', '.join(FORMATS)}")
        if (self.source is None) != (self.source_format == "kafka"):
            raise InvalidParameter("SOURCE", self.source, "be a folder, but for kafka")
        if (self.output is None) != (self.sink_format == "kafka"):
            raise InvalidParameter("--output", self.output, "be a folder, but for kafka")
        self._check_answers()
        self._check_letters()

    def _check_answers(self) -> None:
        """Answers must not be read as events, nor lie in the state."""
        topic = self.sink_settings.get("topic")
        if self.sink_format == "kafka" and topic is not None and self._reads(topic):
            rule = "be a topic that the source does not read: a release hears itself"
            raise InvalidParameter("--sink-option topic", topic, rule)
        if self.output is not None and _touches(self.output, self.source, self.checkpoint):
            rule = "be a folder of its own, apart from SOURCE and --checkpoint"
            raise InvalidParameter("--output", self.output, rule)
        if _touches(self.checkpoint, self.source):
            rule = "be a folder of its own, apart from SOURCE"
            raise InvalidParameter("--checkpoint", self.checkpoint, rule)

    def _reads(self, topic: str) -> bool:
        """Whether the source may read a topic of this name."""
        if self.source_format != "kafka":
            return False
        asked = self.source_settings
        if topic in map(str.strip, asked.get("subscribe", "").split(",")):
            return True
        try:
            assigned = json.loads(asked.get("assign", "{}"))
            pattern = re.compile(asked.get("subscribePattern", "(?!)"))
        except (ValueError, re.error):
            return True  # nobody here can tell
        return topic in assigned or pattern.fullmatch(topic) is not None

    def _check_letters(self) -> None:
        """Dead letters depend on values: they must not lie among answers, or be read as events."""
        name, given = "--dead-letters", self.dead_letters
        if given is None:
            return
        if not given.removeprefix(_TOPIC):
            raise InvalidParameter(name, given, "be a folder, or kafka: and a topic")
        if given.startswith(_TOPIC):
            if self.sink_format != "kafka":
                rule = "be a folder, unless answers go to kafka: its brokers are in --sink-option"
                raise InvalidParameter(name, given, rule)
            topic = given.removeprefix(_TOPIC)
            if topic == self.sink_settings.get("topic") or self._reads(topic):
                raise InvalidParameter(name, given, "be a topic of its own")
        elif _touches(given, self.output, self.source, self.checkpoint):
            rule = "be a folder of its own, apart from SOURCE, --output and --checkpoint"
            raise InvalidParameter(name, given, rule)


def follow(queries: list[StreamingQuery], shown: Shown) -> None:
    """Wait for the end of a release and of its dead letters, or end both in order.

    Args:
        queries: The release, and the query of its dead letters if there is one. If one of them
            fails, the other is ended.
        shown: How to tell of it.
    """
    counts = [_Count() for _ in queries]
    try:
        # In turns of a second: who waits in the engine hears no signal.
        while True:
            ended = [query.awaitTermination(1) for query in queries]
            for query, count in zip(queries, counts, strict=True):
                count.add(query.recentProgress)
            if all(ended):
                break
    except BaseException:
        for query in queries:
            query.stop()
        if not shown.quiet:
            say("ended; go on with the same command and the same checkpoint")
        raise
    _tell(counts, shown)


class _Count:
    """What the progress of a query says, each micro-batch once."""

    def __init__(self) -> None:
        self.rows = self.batches = self.letters = 0
        self._last = -1

    def add(self, told: list[Any]) -> None:
        for progress in told:
            if progress["batchId"] > self._last:
                self._last = progress["batchId"]
                self.rows, self.batches = self.rows + progress["numInputRows"], self.batches + 1
                observed = progress["observedMetrics"].get(LETTERS)
                self.letters += 0 if observed is None else observed["count"]


def _tell(counts: list[_Count], shown: Shown) -> None:
    release, *others = counts
    if shown.as_json:
        told = {"events": release.rows, "batches": release.batches}
        print_json(told | ({"dead_letters": others[0].letters} if others else {}))
    elif not shown.quiet:
        letters = "".join(f", {one.letters:,} dead letters" for one in others)
        say(
            f"{release.rows:,} events in {release.batches:,} micro-batches{letters}; to go on with "
            "what comes next: the same command and the same checkpoint"
        )


def _connector(kind: str) -> str:
    from sfumato.engines.spark import kafka_messages

    return kafka_messages.CONNECTOR if kind == "kafka" else kind


def _touches(path: str, *others: str | None) -> bool:
    """Whether a folder is one of others, lies in one of them, or one of them in it."""
    own = _levels(path)
    given = (_levels(other) for other in others if other is not None)
    return any(all(map(_alike, own, other)) for other in given)


def _levels(path: str) -> list[str]:
    """A folder level by level: where it is on this machine without links, or an address."""
    local = re.sub("^file:/+", "/", path)
    return (local.rstrip("/") if "://" in local else realpath(local)).split("/")


def _alike(one: str, two: str) -> bool:
    """Whether two levels may be one folder; Spark reads SOURCE as a pattern."""
    if "{" in two:  # of alternatives it cannot be told here where they end
        return True
    return one == two or fnmatchcase(one, two)


def _pairs(name: str, given: list[str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in given or ():
        key, mark, value = one.partition("=")
        if not mark or not key:
            raise InvalidParameter(name, one, "be NAME=VALUE")
        found[key] = value
    return found
