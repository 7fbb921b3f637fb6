"""Which events stood in a table before: found by reading it once more, when one is refused.

A run that keeps nothing notices an event that comes twice by its time, where times rise, or by a
hash of its id. Which row it stands in too is said in the refusal alone: nobody has to remember it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np

from sfumato.core.arrays import Bools
from sfumato.models.encoding import Unreadable, is_missing, text
from sfumato.models.stream_model import StreamModel
from sfumato.store.protocol import Answer, Identity
from sfumato.stream.input_rows import Reading
from sfumato.stream.run_streams import RunStreams
from sfumato.stream.seen_ids import SeenIds
from sfumato.tables.cells import Late, Missing, Time
from sfumato.tables.input_groups import EventReader
from sfumato.tables.readers import Table


class EarlierRows:
    """The rows of a table that came before some row, known by an id or by stream and time.

    Args:
        source: The table; a file.
        model: Which columns hold streams and values.
        reading: Which columns hold ids and times.
        streams: The last time of each stream.

    Attributes:
        until: Number of the row before which they stand.
        seen: Hashes of their ids; None where nothing but rising times tells events apart.
    """

    def __init__(
        self, source: Table, model: StreamModel, reading: Reading, streams: RunStreams
    ) -> None:
        self._source, self._model, self._reading = source, model, reading
        self._streams = streams
        self.until = 1
        ordered = reading.identity is Identity.TIME and reading.late is Late.REFUSE
        self.seen = None if ordered or reading.identity is Identity.ROW else SeenIds()

    def add(self, ids: Sequence[str]) -> None:
        """Rows with these ids were answered."""
        if self.seen is not None:
            self.seen.add(ids)

    def __call__(self, ids: Sequence[str]) -> dict[str, Answer]:
        """What is known of events that came before, by their ids."""
        if self._reading.identity is Identity.ROW:
            return {}  # no two rows have one number
        wanted = {id_ for id_, may in zip(ids, self._perhaps(ids), strict=True) if may}
        found: dict[str, Answer] = {}
        for id_, stream, place in self._rows() if wanted else ():
            if id_ in wanted and id_ not in found:
                found[id_] = Answer(id_, self._source.path, place, stream, 0, "", None, 0.0, 0.0)
        return found

    def _perhaps(self, ids: Sequence[str]) -> Bools:
        """Which events may have come before."""
        if self.seen is not None:
            return self.seen.perhaps(ids)
        return np.array([self._is_not_later(id_) for id_ in ids], dtype=np.bool_)

    def _is_not_later(self, id_: str) -> bool:
        """Whether a time is not after the last one of its stream."""
        stream, moment = json.loads(id_)
        last = self._streams.last_time(stream)
        try:
            return last is not None and not Time.of(last).before(Time.of(moment))
        except Unreadable:
            return False  # times of two kinds are never equal

    def _rows(self) -> Iterator[tuple[str, str, int]]:
        """Id, stream and number of each row that was answered."""
        model, reading = self._model, self._reading
        events = EventReader(self._source.path, reading, self._source.path)
        with closing(self._source.chunks(reading.columns(model))) as chunks:
            for chunk in chunks:
                for offset, owner in enumerate(chunk.columns[model.stream]):
                    if chunk.first + offset >= self.until:
                        return
                    stream = text(owner)
                    value = [chunk.columns[name][offset] for name in model.values]
                    if reading.missing is Missing.DROP and any(map(is_missing, value)):
                        continue
                    id_ = events.id(chunk, offset, stream, events.time(chunk, offset))
                    yield id_, stream, chunk.first + offset
