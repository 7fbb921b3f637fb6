"""A driver of a streaming release in a process of its own, to be killed: folder, master, sink."""

import os
import sys
from pathlib import Path
from typing import Any

import sfumato as sf
from sfumato.models.stream_model import StreamModel
from sfumato.solver.policy import Policy
from sfumato.store.codec import from_bytes
from tests.engines.conftest import SOURCES, started
from tests.engines.shards import KEY

SCHEMA = "user string, id string, time timestamp, cell string"


def released(spark: Any, folder: Path, key: bytes = KEY, **settings: Any) -> Any:
    """The release of what lies in a folder, some files at a time."""
    model = from_bytes((folder / "letters.model").read_bytes(), StreamModel)
    policy = from_bytes((folder / "letters.policy").read_bytes(), Policy)
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    given: dict[str, Any] = {"watermark": "30 seconds", "shards": 4, "epsilon": 0.5} | settings
    rows = frame.json(str(folder / "in"))
    return sf.spark.release_stream(rows, model=model, policy=policy, key=key, **given)


def appended(folder: Path) -> Any:
    """A sink that writes every row it is given, as often as it is given."""

    def write(batch: Any, number: int) -> None:
        rows = batch.selectExpr("to_json(struct(*)) as row").collect()
        with (folder / "seen.jsonl").open("a") as log:
            log.writelines(f"{row['row']}\n" for row in rows)
            log.flush()
            os.fsync(log.fileno())

    return write


def writer(frame: Any, folder: Path, sink: str) -> Any:
    """A query with a sink that sees each row once, or one that may see it twice."""
    begun = frame.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    begun = begun.trigger(availableNow=True)
    if sink == "files":
        return begun.format("json").option("path", str(folder / "out"))
    return begun.foreachBatch(appended(folder))


def main(folder: Path, master: str, sink: str) -> None:
    """Release all that lies there, and end."""
    spark = started(master, folder, **{"spark.executorEnv.PYTHONPATH": SOURCES})
    query = writer(released(spark, folder), folder, sink).start()
    print("begun", flush=True)
    query.awaitTermination()
    print("ended", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
