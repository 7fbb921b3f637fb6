"""Real Spark, small: one session per module, as few threads and pages as it can do with."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = str(Path(__file__).parents[2] / "src")
SMALL = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "3",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "500",
    "spark.driver.memory": "1g",
    # Engines of tests live for seconds: what they compile thoroughly they never use.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def started(master: str, folder: Path, **settings: str) -> SparkSession:
    """A session of its own; workers use this very interpreter and this very source."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master(master).appName("tests")
    own = {"spark.local.dir": str(folder / "local"), "spark.sql.warehouse.dir": str(folder / "w")}
    for name, value in {**SMALL, **own, **settings}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Two threads of one process; a task that fails is tried three times."""
    session = started("local[2,3]", tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()
