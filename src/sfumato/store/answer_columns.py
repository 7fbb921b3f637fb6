"""A batch of fresh answers by columns: arrays and lists with one entry per row.

What repeats is coded: a number for each row, and the list of what the numbers stand for.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Generic, TypeVar

from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.store.protocol import Answer, Position, Released

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

    def cells(self) -> list[Word | None]:
        """The cells one by one."""
        words = [*self.words, None]
        return [words[code] for code in self.codes.tolist()]


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

    def answers(self) -> list[Answer]:
        """The same, one by one."""
        count = len(self)
        signals = [None] * count
        if self.signals is not None:
            signals = [None if one < 0 else one for one in self.signals.tolist()]
        return [
            Answer(*fields)
            for fields in zip(
                self.ids,
                [self.source] * count,
                self.places.tolist(),
                self.streams.cells(),
                self.sequences.tolist(),
                self.outcomes.cells(),
                self.released.cells(),
                self.leakage.tolist(),
                self.model_free.tolist(),
                [None] * count,
                [None] * count if self.times is None else self.times,
                self.tags,
                signals,
                strict=True,
            )
        ]


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

    def positions(self) -> list[Position]:
        """The same, one by one."""
        return [
            Position(*fields)
            for fields in zip(
                self.streams,
                self.sequences.tolist(),
                self.leakage.tolist(),
                self.model_free.tolist(),
                self.states,
                strict=True,
            )
        ]
