"""A session of Spark for whoever has none yet, and tables in and out of it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from sfumato.core.errors import InvalidParameter, SfumatoError
from sfumato.engines.spark.rising_order import FRAME
from sfumato.engines.spark.worker_failures import refusal_in
from sfumato.tables.problems import BadTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


class EngineFailed(SfumatoError):
    """Spark did not do what it was asked for; what it says may quote values and is not told."""


def check_installed() -> None:
    """Say what to install where pyspark, or the Java that it runs on, is missing."""
    lacking = [name for name in ("pyspark", "google.protobuf") if _missing(name)]
    if lacking:
        rule = 'be complete for Spark: pip install "sfumato[spark]"'
        raise InvalidParameter("the installation", f"no {', '.join(lacking)}", rule)
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and os.path.exists(f"{home}/bin/java")):
        rule = "have Java 17 or 21 for Spark (apt install openjdk-17-jre-headless), or a JAVA_HOME"
        raise InvalidParameter("the machine", "no java", rule)


def _missing(name: str) -> bool:
    try:
        return find_spec(name) is None
    except ModuleNotFoundError:  # the package above it
        return True


def session_of(master: str | None, settings: Sequence[str] = ()) -> SparkSession:
    """The session that runs already, as under spark-submit, or a new one.

    Args:
        master: Where it runs: `local[4]`, `yarn`, `spark://host:7077`; as configured if not given.
        settings: Of Spark, as `name=value`.
    """
    check_installed()
    from pyspark.sql import SparkSession

    # Workers on this machine must be this very installation.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("sfumato")
    if master is not None:
        builder = builder.master(master)
    for setting in settings:
        name, mark, value = setting.partition("=")
        if not mark:
            raise InvalidParameter("--conf", setting, "be like spark.executor.memory=4g")
        builder = builder.config(name, value)
    return builder.getOrCreate()


@contextmanager
def told_plainly(source: str) -> Iterator[None]:
    """Turn what Spark raises into the rule that a worker named, or into the name of its failure."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as problem:
        if (rule := refusal_in(str(problem))) is not None:
            raise BadTable(source, None, rule.removeprefix(f"{FRAME}: ")) from None
        name = problem.getCondition() if isinstance(problem, PySparkException) else None
        told = f"{source}: Spark failed ({name or type(problem).__name__})"
        raise EngineFailed(f"{told}; its own log says where") from None


def form_of(path: str) -> str:
    """Whether a table is `parquet` or `csv`, by its name."""
    for ending, form in ((".parquet", "parquet"), (".csv", "csv"), (".csv.gz", "csv")):
        if path.rstrip("/").endswith(ending):
            return form
    raise InvalidParameter("table", path, "end in .parquet or .csv")


def read_frame(session: SparkSession, path: str, schema: StructType | None = None) -> DataFrame:
    """A table as a frame; cells of CSV are texts unless a schema says otherwise."""
    if form_of(path) == "parquet":
        return session.read.parquet(path)
    reader = session.read.option("header", "true").option("enforceSchema", "false")
    return (reader if schema is None else reader.schema(schema)).csv(path)


def check_new(path: str) -> None:
    """Refuse an output that is there already, before any work; elsewhere Spark sees to it."""
    form_of(path)
    if "://" not in path and os.path.exists(path):
        raise InvalidParameter("the output", path, "not be there yet")


def write_frame(frame: DataFrame, path: str) -> None:
    """A frame as a table that must not be there yet: a folder with a file for each partition."""
    if form_of(path) == "parquet":
        frame.write.mode("errorifexists").parquet(path)
    else:
        frame.write.mode("errorifexists").option("header", "true").csv(path)
