"""A batch of fresh answers by columns: arrays and lists with one entry per row.

What repeats is coded: a number for each row, and the list of what the numbers stand for.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.store.chain import Commit, apart
from sfumato.store.protocol import Answer, Released

Word = TypeVar("Word", bound=Released)


@dataclass(frozen=True, slots=True)
class Coded(Generic[Word]):
    """One column of few different cells.

    Attributes:
        codes: The number of each cell in the list of words; -1 for nothing.
        words: The different cells.

    Examples:
        >>> import numpy as np
        >>> Coded(np.array([1, 0, -1]), ["home", "work"]).cells()
        ['work', 'home', None]
    """

    codes: Ints
    words: Sequence[Word]

    def cells(self, order: Ints | None = None) -> list[Word | None]:
        """The cells one by one, in another order if one is given."""
        codes = self.codes if order is None else self.codes[order]
        every: list[Word | None] = _objects([*self.words, None])[codes].tolist()
        return every


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerColumns:
    """Answers that are given together, in the order of their input; see `Answer`.

    Attributes:
        source: The input that asked.
        ids: What tells each event from all others.
        places: Rows of the input.
        streams: Whose values they are; every word of it has a row.
        sequences: Moments of the streams.
        outcomes: What happened.
        released: What left; -1 where nothing did.
        leakage: What each cost under the guarantee of the job.
        model_free: What each cost whatever the model.
        tags: Keyed digests of the true values (`value_tags`).
        times: When the values were measured, if a time column was named.
        signals: Which outputs of their channels left, -1 for none; None where no channel has any.
    """

    source: str
    ids: Sequence[str]
    places: Ints
    streams: Coded[str]
    sequences: Ints
    outcomes: Coded[str]
    released: Coded[Released]
    leakage: Floats
    model_free: Floats
    tags: Sequence[bytes]
    times: Sequence[str | None] | None = None
    signals: Ints | None = None

    def __post_init__(self) -> None:
        coded = (self.streams.codes, self.outcomes.codes, self.released.codes)
        numbers = (self.places, self.sequences, self.leakage, self.model_free)
        columns: list[Sized] = [self.ids, self.tags, *coded, *numbers]
        columns += [one for one in (self.times, self.signals) if one is not None]
        if {len(column) for column in columns} != {len(self.ids)}:
            raise InvalidParameter("answers", "columns of different lengths", "have one length")

    def __len__(self) -> int:
        return len(self.ids)

    def columns(self, order: Ints) -> list[list[Any]]:
        """The fields of `Answer`, column by column, in another order."""
        count = len(self)
        signals: list[int | None] = [None] * count
        if self.signals is not None:
            signals = [None if one < 0 else one for one in self.signals[order].tolist()]
        return [
            _taken(self.ids, order),
            [self.source] * count,
            self.places[order].tolist(),
            self.streams.cells(order),
            self.sequences[order].tolist(),
            self.outcomes.cells(order),
            self.released.cells(order),
            self.leakage[order].tolist(),
            self.model_free[order].tolist(),
            [None] * count,
            [None] * count if self.times is None else _taken(self.times, order),
            _taken(self.tags, order),
            signals,
        ]

    def answers(self) -> list[Answer]:
        """The same, one by one."""
        columns = self.columns(np.arange(len(self)))
        return [Answer(*fields) for fields in zip(*columns, strict=True)]


@dataclass(frozen=True, slots=True)
class PositionColumns:
    """Where streams stand after their last answers; see `Position`.

    Attributes:
        streams: Their names: the words of the streams of the answers, in the same order.
        sequences: The moments that come next.
        leakage: What they cost so far under the guarantee of the job.
        model_free: What they cost so far whatever the model.
        states: What the next steps need, as bytes.
    """

    streams: Sequence[str]
    sequences: Ints
    leakage: Floats
    model_free: Floats
    states: Sequence[bytes]

    def rows(self) -> list[tuple[Any, ...]]:
        """The fields of `Position`, stream by stream."""
        numbers = (self.sequences.tolist(), self.leakage.tolist(), self.model_free.tolist())
        return list(zip(self.streams, *numbers, self.states, strict=True))


def committed(answers: AnswerColumns, positions: PositionColumns) -> Commit:
    """Answers and positions that are committed together, as `by_stream` puts them.

    Raises:
        LedgerMismatch: If a stream has one and not the other.
    """
    codes, streams = answers.streams.codes, answers.streams.words
    counts = np.bincount(codes, minlength=len(streams)) if len(codes) else np.array([], dtype=int)
    if list(positions.streams) != list(streams) or len(counts) != len(streams) or not counts.all():
        raise apart()
    order = np.argsort(codes, kind="stable")
    return Commit(answers.columns(order), np.cumsum(counts).tolist(), positions.rows())


def _taken(cells: Sequence[Any], order: Ints) -> list[Any]:
    every: list[Any] = _objects(cells)[order].tolist()
    return every


def _objects(cells: Sequence[Any]) -> NDArray[np.object_]:
    """An array that holds what the list holds."""
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array
