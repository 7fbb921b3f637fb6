"""Processes of their own for executors: one dies, another is too slow, and nothing changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import sfumato as sf
from tests.engines.conftest import SOURCES, started
from tests.engines.scene import COLUMNS, KEY, answers, by_fleet, town, walks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.engines, pytest.mark.filterwarnings("ignore:PySpark does not yet")]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    quick = {
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.multiplier": "1.1",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.minTaskRuntime": "1s",
        "spark.executorEnv.PYTHONPATH": SOURCES,
        "spark.executorEnv.OPENBLAS_NUM_THREADS": "1",
    }
    folder = tmp_path_factory.mktemp("cluster")
    session = started("local-cluster[2,1,1024]", folder, **quick)
    yield session
    session.stop()


def killing_its_executor(parts: Iterator[Any]) -> Iterator[Any]:
    """The first attempt of one task ends the process that runs it, and its neighbours with it."""
    import os
    import signal

    from pyspark import TaskContext

    context = TaskContext.get()
    for part in parts:
        yield part
        if context is not None and context.attemptNumber() == 0 and context.partitionId() == 0:
            # The parent of a worker is the daemon, and its parent the executor.
            with open(f"/proc/{os.getppid()}/stat") as file:
                executor = int(file.read().rpartition(")")[2].split()[1])
            os.kill(executor, signal.SIGKILL)


def slow_at_first(parts: Iterator[Any]) -> Iterator[Any]:
    """The first attempt of one task waits for another to overtake it."""
    import time

    from pyspark import TaskContext

    context = TaskContext.get()
    for part in parts:
        if context is not None and context.attemptNumber() == 0 and context.partitionId() == 0:
            time.sleep(60.0)
        yield part


def test_killed_executors_and_overtaken_tasks_give_the_answers_of_one_fleet(
    cluster: SparkSession,
) -> None:
    import cloudpickle

    scene, rows = town(), walks([300, *[1] * 20, 40, 5])
    due = by_fleet(rows, scene.plan)
    frame = cluster.createDataFrame(rows, list(COLUMNS))
    given: dict[str, Any] = {"model": scene.model, "policy": scene.policy, "key": KEY, "order": "time"}
    private = sf.spark.release(frame, **given, partitions=3)
    assert answers(private.collect()) == due
    cloudpickle.register_pickle_by_value(__import__(__name__, fromlist=["_"]))
    for trouble in (killing_its_executor, slow_at_first):
        again = private.mapInArrow(trouble, private.schema)
        assert answers(again.collect()) == due
