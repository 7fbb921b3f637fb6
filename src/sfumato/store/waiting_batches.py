"""Values that wait in memory until their batch is complete; what waits is in no store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sfumato.core import checks
from sfumato.store.live_event import LiveEvent


class WaitingBatches:
    """The batches that are not complete yet, a stream each, in the order in which they began.

    Args:
        most: How many values may wait, of all streams together.
    """

    def __init__(self, most: int) -> None:
        self._room = checks.count("most_waiting", most)
        self._batches: dict[str, list[LiveEvent]] = {}
        self._held: dict[str, LiveEvent] = {}

    def __len__(self) -> int:
        return len(self._held)

    @property
    def full(self) -> bool:
        """Whether no other value may wait."""
        return len(self._held) >= self._room

    def of(self, stream: str) -> Sequence[LiveEvent]:
        """What waits of a stream, in order."""
        return self._batches.get(stream, ())

    def event(self, id_: str) -> LiveEvent | None:
        """The event of that id, if it waits."""
        return self._held.get(id_)

    def add(self, event: LiveEvent) -> None:
        """Let an event wait, as the last one of its batch."""
        self._batches.setdefault(event.stream, []).append(event)
        self._held[event.id] = event

    def take(self, stream: str) -> list[LiveEvent]:
        """The batch of a stream, which waits no more."""
        batch = self._batches.pop(stream, [])
        for event in batch:
            self._held.pop(event.id, None)
        return batch

    def forget(self) -> None:
        """Let go of everything."""
        self._batches, self._held = {}, {}

    def forget_before(self, since: float) -> None:
        """Let go of batches that began earlier: whoever sent their values has them still."""
        while self._batches:
            stream, batch = next(iter(self._batches.items()))  # they stand in the order begun
            if batch[0].since >= since:
                return
            self.take(stream)

    def copied(self, streams: Iterable[str]) -> dict[str, list[LiveEvent]]:
        """What waits of some streams now, to be put back."""
        return {stream: [*self.of(stream)] for stream in streams}

    def put_back(self, before: Mapping[str, list[LiveEvent]], drawn: Iterable[str]) -> None:
        """Make streams wait for what they waited for before.

        Args:
            before: What waited of them.
            drawn: Streams of which a batch was drawn: nobody knows whether it is stored, so none of
                its values waits, and it is asked for again.
        """
        gone = set(drawn)
        for stream, waited in before.items():
            self.take(stream)
            if waited and stream not in gone:
                self._batches[stream] = waited
                self._held |= {event.id: event for event in waited}
        begun = sorted(self._batches.items(), key=lambda batch: batch[1][0].since)
        self._batches = dict(begun)
