"""What the columns of live events are, as an engine must be told before it reads a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.models.encoding import Symbols
from sfumato.models.stream_model import StreamModel

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

CLOCKS = {"timeZone": "UTC"}
"""A time in text that names no zone is one of UTC, in whatever zone a driver is started: else an
event would be of another time, and of another day of its budget, on another machine."""


def event_schema(model: StreamModel, id: str, time: str, *, typed: bool) -> StructType:
    """Columns of events: names as text, the time, and values.

    Args:
        model: How values are read.
        id: Column of ids.
        time: Column of times.
        typed: Whether the source knows numbers from text, as Parquet does. Of others values are
            read as text: the engine would make a missing value of one that is no number.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> model = StreamModel(chain, Symbols(chain.alphabet), stream="user", values=("cell",))
        >>> event_schema(model, "id", "time", typed=False).simpleString()
        'struct<user:string,id:string,time:timestamp,cell:string>'
    """
    from pyspark.sql import types

    numbers = typed and not isinstance(model.encoding, Symbols)
    kind = types.DoubleType() if numbers else types.StringType()
    named = (model.stream, types.StringType()), (id, types.StringType())
    parts = (*named, (time, types.TimestampType()), *((name, kind) for name in model.values))
    return types.StructType([types.StructField(name, of) for name, of in parts])
