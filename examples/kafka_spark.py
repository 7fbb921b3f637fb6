r"""Kafka in, Kafka out, through Spark's connector: one topic is released to another.

Live, for as long as it runs; go on with the same command after a crash:

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 \
        --conf spark.io.encryption.enabled=true --conf spark.network.crypto.enabled=true \
        examples/kafka_spark.py --brokers kafka-1:9092,kafka-2:9092 \
        --incoming raw --outgoing private --unreadable unreadable --checkpoint /srv/city-state \
        --model city.model --key-file city.key --epsilon 0.3

Without --checkpoint the whole topic as it stands is released once: such a run begins each stream
anew, so a topic is released once with a key.

Messages are JSON: {"user": "ann", "id": "e-17", "time": "2024-05-01T08:00:00Z", "cell": "home"}.
Answers have their stream as key. There was no broker to try it with; all that stands between the
two connectors is run by `tests/engines/test_kafka_messages.py`, this file included, with files in
the place of topics. `sfumato spark stream --source-format kafka` does the same without Python.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

import sfumato as sf
from sfumato.engines.spark import kafka_messages as kafka
from sfumato.engines.spark.stream_sources import event_schema
from sfumato.models.stream_model import StreamModel
from sfumato.store.keys import read_key

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


def live(spark: SparkSession, given: argparse.Namespace, model: StreamModel) -> None:
    """Release what comes, until something ends it."""
    source = {
        "kafka.bootstrap.servers": given.brokers,
        "subscribe": given.incoming,
        "startingOffsets": "earliest",
        # Offsets that are gone must end the query, not shorten streams.
        "failOnDataLoss": "true",
        # A micro-batch of bounded size, also after a night without a reader.
        "maxOffsetsPerTrigger": "200000",
    }
    schema = event_schema(model, "id", "time", typed=False)
    events = kafka.events_of(kafka.messages(spark, source), schema)
    private = sf.spark.release_stream(
        events,
        model=model,
        key=read_key(given.key_file),
        watermark="10 minutes",
        malformed="drop",
        epsilon=given.epsilon,
    )
    # Events that cannot be read: where they are and why, for operators alone.
    letters = sf.spark.dead_letters(events, model=model, place=(kafka.PLACE,))
    letters = letters.select(f"{kafka.PLACE}.*", "rule")
    begin(kafka.answers_of(private, model.stream), given, given.outgoing, "answers")
    begin(kafka.letters_of(letters), given, given.unreadable, "dead-letters")
    spark.streams.awaitAnyTermination()


def begin(rows: DataFrame, given: argparse.Namespace, topic: str, name: str) -> StreamingQuery:
    """A query that writes messages to a topic."""
    return (
        rows.writeStream.format(kafka.CONNECTOR)
        .option("kafka.bootstrap.servers", given.brokers)
        .option("topic", topic)
        .option("kafka.acks", "all")
        .option("kafka.enable.idempotence", "true")
        .option("checkpointLocation", f"{given.checkpoint}/{name}")
        .outputMode("append")
        .start()
    )


def once(spark: SparkSession, given: argparse.Namespace, model: StreamModel) -> None:
    """Release the whole topic as it stands, once."""
    messages = (
        spark.read.format(kafka.CONNECTOR)
        .option("kafka.bootstrap.servers", given.brokers)
        .option("subscribe", given.incoming)
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .option("failOnDataLoss", "true")
        .load()
    )
    events = kafka.events_of(messages, event_schema(model, "id", "time", typed=False))
    private = sf.spark.release(
        events,
        model=model,
        key=read_key(given.key_file),
        order="time",
        id="id",
        epsilon=given.epsilon,
    )
    (
        kafka.answers_of(private, model.stream)
        .write.format(kafka.CONNECTOR)
        .option("kafka.bootstrap.servers", given.brokers)
        .option("topic", given.outgoing)
        .option("kafka.acks", "all")
        .save()
    )


def main() -> None:
    """Release a topic."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("brokers", "incoming", "outgoing", "model", "key-file"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--checkpoint", help="release live; where streams stand")
    parser.add_argument("--unreadable", help="topic for events that cannot be read, if live")
    given = parser.parse_args()
    if (given.checkpoint is None) != (given.unreadable is None):
        parser.error("--checkpoint and --unreadable come together")
    model = sf.load(given.model)
    assert isinstance(model, StreamModel), "fit one with `sfumato fit`"
    spark = SparkSession.builder.appName("sfumato-kafka").getOrCreate()
    (once if given.checkpoint is None else live)(spark, given, model)


if __name__ == "__main__":
    main()
