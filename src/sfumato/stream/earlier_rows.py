"""Which events stood in a table before: found by reading it once more, when one is refused.

A run that keeps nothing notices an event that comes twice by its time. Which row it stands in too
is said in the refusal alone, so nobody has to remember it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing

from sfumato.models.encoding import StreamModel, Unreadable, is_missing, text
from sfumato.store.protocol import Answer
from sfumato.stream.input_rows import Reading
from sfumato.stream.run_streams import RunStreams
from sfumato.tables.cells import Missing, Time
from sfumato.tables.input_groups import EventReader
from sfumato.tables.readers import Table


class EarlierRows:
    """The rows of a table, known by stream and time, that came before some row.

    Args:
        source: The table; a file.
        model: Which columns hold streams and values.
        reading: Which column holds times.
        streams: The last time of each stream.

    Attributes:
        until: Number of the row before which they stand.
    """

    def __init__(
        self, source: Table, model: StreamModel, reading: Reading, streams: RunStreams
    ) -> None:
        self._source, self._model, self._reading = source, model, reading
        self._streams = streams
        self.until = 1

    def __call__(self, ids: Sequence[str]) -> dict[str, Answer]:
        """What is known of events that came before, by their ids."""
        wanted = {id_ for id_ in ids if self._may_have_come(id_)}
        found: dict[str, Answer] = {}
        if not wanted:
            return found
        names = {json.loads(id_)[0] for id_ in wanted}
        for id_, stream, place in self._rows(names):
            if id_ in wanted and id_ not in found:
                found[id_] = Answer(id_, self._source.path, place, stream, 0, "", None, 0.0, 0.0)
        return found

    def _may_have_come(self, id_: str) -> bool:
        """Whether a time is not after the last one of its stream."""
        stream, moment = json.loads(id_)
        last = self._streams.last_time(stream)
        try:
            return last is not None and not Time.of(last).before(Time.of(moment))
        except Unreadable:
            return False  # times of two kinds are never equal

    def _rows(self, names: set[str]) -> Iterator[tuple[str, str, int]]:
        """Id, stream and number of the rows of some streams."""
        model, reading = self._model, self._reading
        events = EventReader(self._source.path, reading, self._source.path)
        with closing(self._source.chunks(reading.columns(model))) as chunks:
            for chunk in chunks:
                for offset, owner in enumerate(chunk.columns[model.stream]):
                    if chunk.first + offset >= self.until:
                        return
                    stream = text(owner)
                    value = [chunk.columns[name][offset] for name in model.values]
                    left_out = reading.missing is Missing.DROP and any(map(is_missing, value))
                    if stream in names and not left_out:
                        time = events.time(chunk, offset)
                        id_ = events.id(chunk, offset, stream, time)
                        yield id_, stream, chunk.first + offset
