"""The ledger's side of an audit: what it says streams did, also beyond the files at hand."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Self

from sfumato.core.errors import CorruptData
from sfumato.core.events import Event
from sfumato.store.checking import checked
from sfumato.store.reading import LedgerReader
from sfumato.store.sqlite import Answer


class Coverage(StrEnum):
    """How much of a ledger the audited files must hold.

    Attributes:
        INPUTS: All of every input that they hold anything of: a day, or several.
        PART: Whatever it is.
        WHOLE: Everything.
    """

    INPUTS = "inputs"
    PART = "part"
    WHOLE = "whole"


class LedgerSide:
    """A ledger that files are compared with; it is only read.

    Attributes:
        problems: What is wrong with the ledger itself; then nothing is taken from it.
        head: Stands for all of its rows.
        alone: How many events of each input were found in no file.
    """

    def __init__(self, path: str | Path, plan: str) -> None:
        self._closing = contextlib.ExitStack()
        self._ledger = self._closing.enter_context(LedgerReader(path, plan))
        report = checked(self._ledger)
        self.problems, self.head = report.problems, report.head
        self._held: Counter[str] = Counter()
        self.alone: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def moment(self, stream: str, sequence: int) -> Answer | None:
        """What the ledger says of a moment that a file holds."""
        with contextlib.suppress(CorruptData):  # said already, among the problems
            answer = self._ledger.moment(stream, sequence)
            if answer is not None:
                self._held[answer.source] += 1
            return answer
        return None

    def before(self, stream: str, first: int, until: int) -> Iterator[list[Event]]:
        """What a stream did from one moment until another, batch by batch."""
        if self.problems or first >= until:
            return
        for _, batch in groupby(self._ledger.rest(stream, first), key=_batch):
            told = list(batch)
            if told[0].event.sequence >= until:
                return
            self.alone.update(answer.source for answer in told)
            yield [answer.event for answer in told]

    def streams(self) -> Iterator[tuple[str, int]]:
        """The streams, and how many moments each has."""
        return iter(()) if self.problems else iter(list(self._ledger.streams()))

    def missing(self, coverage: Coverage) -> Iterator[tuple[str, int]]:
        """The inputs of which files lack events that they must hold, and how many."""
        for source, count in self.alone.items():
            if coverage is Coverage.WHOLE or (coverage is Coverage.INPUTS and self._held[source]):
                yield source, count


def _batch(answer: Answer) -> int:
    event = answer.event
    return event.sequence if event.batch is None else event.batch
