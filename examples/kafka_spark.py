r"""Kafka in, Kafka out, through Spark's connector: one topic is released to another.

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0 \
        --conf spark.io.encryption.enabled=true --conf spark.network.crypto.enabled=true \
        examples/kafka_spark.py --brokers kafka-1:9092,kafka-2:9092 \
        --incoming raw --outgoing private \
        --model city.model --key-file city.key --epsilon 0.3

Not tested here, for want of a broker; the release between the two is (`tests/engines`). Messages
are JSON: {"user": "ann", "time": 1731888000, "cell": "home"}. The offsets below are the whole topic
as it stands, once: every run begins each stream anew, so a topic is released once with a key. A
topic that goes on is for structured streaming, which keeps the state of each stream.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import sfumato as sf
from sfumato.models.stream_model import StreamModel
from sfumato.store.keys import read_key

SCHEMA = "user string, time long, cell string"


def main() -> None:
    """Release a topic."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("brokers", "incoming", "outgoing", "model", "key-file"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--epsilon", type=float, required=True)
    given = parser.parse_args()
    model = sf.load(given.model)
    assert isinstance(model, StreamModel), "fit one with `sfumato fit`"
    spark = SparkSession.builder.appName("sfumato-kafka").getOrCreate()
    messages = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", given.brokers)
        .option("subscribe", given.incoming)
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .option("failOnDataLoss", "true")
        .load()
    )
    rows = messages.select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("row"))
    private = sf.spark.release(
        rows.select("row.*"),
        model=model,
        key=read_key(given.key_file),
        stream="user",
        order="time",
        value="cell",
        epsilon=given.epsilon,
    )
    # The stream is the key of a message: Kafka then keeps the order of its answers.
    answers = private.select(
        F.col("user").alias("key"), F.to_json(F.struct(*private.columns)).alias("value")
    )
    (
        answers.write.format("kafka")
        .option("kafka.bootstrap.servers", given.brokers)
        .option("topic", given.outgoing)
        .option("kafka.acks", "all")
        .save()
    )


if __name__ == "__main__":
    main()
