"""Processes of their own for executors: one dies, another is too slow, and nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
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


Trouble = Callable[[], None]


def in_trouble_once(marker: Path, trouble: Trouble) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Brings one task to grief after its first rows, in its first attempt of all.

    Attempts are counted anew where a stage is done again: a file remembers that it was done.
    """

    def passing(parts: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        for part in parts:
            yield part
            if context is not None and context.partitionId() == 0:
                try:
                    marker.touch(exist_ok=False)
                except FileExistsError:
                    continue
                trouble()

    return passing


def killing_its_executor() -> Trouble:
    """Ends the process that runs the task, and its neighbours with it."""

    def kill() -> None:
        import os
        import signal

        # The parent of a worker is the daemon, and its parent the executor.
        with open(f"/proc/{os.getppid()}/stat") as file:
            executor = int(file.read().rpartition(")")[2].split()[1])
        os.kill(executor, signal.SIGKILL)

    return kill


def waiting_to_be_overtaken() -> Trouble:
    """Takes longer than a copy of the task that is begun meanwhile."""

    def wait() -> None:
        import time

        time.sleep(60.0)

    return wait


def test_killed_executors_and_overtaken_tasks_give_the_answers_of_one_fleet(
    cluster: SparkSession, tmp_path: Path
) -> None:
    scene, rows = town(), walks([300, *[1] * 20, 40, 5])
    due = by_fleet(rows, scene.plan)
    frame = cluster.createDataFrame(rows, list(COLUMNS))
    given: dict[str, Any] = {
        "model": scene.model,
        "policy": scene.policy,
        "key": KEY,
        "order": "time",
    }
    private = sf.spark.release(frame, **given, partitions=3)
    assert answers(private.collect()) == due
    for trouble in (killing_its_executor, waiting_to_be_overtaken):
        marker = tmp_path / trouble.__name__
        again = private.mapInArrow(in_trouble_once(marker, trouble()), private.schema)
        assert answers(again.collect()) == due
        assert marker.exists()
