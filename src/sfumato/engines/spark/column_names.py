"""Columns of any name: Spark takes a dot in one for a path, and a backtick for its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import Column as Expression
    from pyspark.sql import DataFrame

Worker = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]
"""What `mapInArrow` runs."""


def quoted(name: str) -> str:
    """The name of a column as Spark reads it back.

    Examples:
        >>> quoted("cell.now")
        '`cell.now`'
    """
    return f"`{name.replace('`', '``')}`"


def column(name: str) -> Expression:
    """A column by its name."""
    from pyspark.sql import functions as F

    return F.col(quoted(name))


def mapped(frame: DataFrame, worker: Worker, schema: Any) -> DataFrame:
    """The same as `mapInArrow`, which looks up columns by names that are not quoted.

    Args:
        frame: The rows.
        worker: Runs in workers.
        schema: Of what it gives.
    """
    plain, names = numbered(frame)
    return plain.mapInArrow(worker if names is None else NamedBatches(worker, names), schema)


def numbered(frame: DataFrame) -> tuple[DataFrame, tuple[str, ...] | None]:
    """A frame whose names need no quotes, and those that it had; None if none of them did."""
    names = tuple(frame.columns)
    if not any(set(name) & {".", "`"} for name in names):
        return frame, None
    return frame.toDF(*(f"column_{place}" for place in range(len(names)))), names


@dataclass(frozen=True, slots=True, repr=False)
class NamedBatches:
    """A worker that reads columns by the names that they had.

    Attributes:
        worker: Runs in workers.
        names: Of all columns, in order.
    """

    worker: Worker
    names: tuple[str, ...]

    def __call__(self, parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the worker gives."""
        return self.worker(part.rename_columns(list(self.names)) for part in parts)


@dataclass(frozen=True, slots=True, repr=False)
class NamedFrames:
    """The same for a worker that is called with a key and a state.

    Attributes:
        worker: Runs in workers.
        names: Of all columns, in order.
    """

    worker: Callable[[Any, Iterator[pd.DataFrame], Any], Iterator[pd.DataFrame]]
    names: tuple[str, ...]

    def __call__(
        self, key: Any, frames: Iterator[pd.DataFrame], state: Any
    ) -> Iterator[pd.DataFrame]:
        """What the worker gives."""
        named = (frame.set_axis(list(self.names), axis=1) for frame in frames)
        return self.worker(key, named, state)
