"""What outputs told, as an engine keeps it between passes, and what workers add up of it.

A row of the kept frame has some whole streams: their places in the order of names, their lengths,
and what each of their outputs told. A pass goes over these rows; what leaves a worker are sums of
whole numbers, which no order changes, or a number for each stream.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.fixed_sums import FixedSum
from sfumato.engines.spark.spark_recover import whole_streams
from sfumato.engines.spark.stream_frames import gathered
from sfumato.engines.spark.worker_failures import without_values
from sfumato.engines.spark.worker_plan import Shared, plan_of
from sfumato.models.chain_bets import BetCounts, bet_counts
from sfumato.models.emissions import Emissions
from sfumato.models.expectation import Guess, PassSums, chain_scores, order_of, pass_sums
from sfumato.models.markov import MarkovChain
from sfumato.models.output_sums import channel_outputs
from sfumato.stream.learning import told_by
from sfumato.stream.name_order import SLOTS, slot_of

if TYPE_CHECKING:
    import pyarrow as pa

KEPT = "slots array<long>, turns array<long>, lengths array<long>, begins array<long>, told binary"
FOUND = "numbers array<long>, parts array<long>, floats array<double>"
_NONE = np.empty(0, dtype=np.int64)


class Found(NamedTuple):
    """What a worker sends: arrays that mean what its task says."""

    numbers: Ints = _NONE
    parts: Ints = _NONE
    floats: Floats = np.empty(0)


class KeepOutputs:
    """Reads the released rows of a partition once; what `mapInArrow` runs.

    Args:
        shared: The rules of the release.
        channel: The one channel that all values left through; None if there is none.
    """

    def __init__(self, shared: Shared, channel: Floats | None) -> None:
        self._shared, self._channel = shared, channel

    def __call__(self, parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of whole streams."""
        with without_values():
            opened = plan_of(self._shared.value)
            seen = np.zeros(SLOTS, dtype=np.int64)
            for tracks in whole_streams(gathered(parts), opened):
                slots = np.array([slot_of(name) for name in tracks.streams], dtype=np.int64)
                turns = seen[slots] + _turns(slots)
                seen += np.bincount(slots, minlength=SLOTS)
                told = told_by(tracks, opened.plan, self._channel)
                lists = (slots, turns, np.diff(told.starts), told.begins)
                yield _batch(dict(zip(_KEPT_LISTS, lists, strict=True)), {"told": told.told})


_KEPT_LISTS = ("slots", "turns", "lengths", "begins")


def _turns(slots: Ints) -> Ints:
    """How many streams of its part of the order stand before each; parts come one after another."""
    starts = np.flatnonzero(np.diff(slots, prepend=-1))
    return np.arange(len(slots)) - np.repeat(starts, np.diff(np.append(starts, len(slots))))


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """Which streams are meant, and what their places are among all.

    Attributes:
        symbols: How many symbols a value can take.
        offsets: How many streams stand before each part of the order.
        firsts: The place of the first piece of each stream, where streams are cut; else None.
        each: Into how many pieces at most a stream is cut.
        number: What places are divided by; 1 for all streams.
        rest: What must be left, or must not.
        others: Whether those are meant that leave another rest.
    """

    symbols: int
    offsets: Ints
    firsts: Ints | None = None
    each: int = 1
    number: int = 1
    rest: int = 0
    others: bool = False

    def of(self, row: dict[str, Any]) -> tuple[Emissions, Ints]:
        """The streams of a row that are meant, and their places."""
        slots, turns, lengths, begins = (row[name] for name in _KEPT_LISTS)
        starts = np.append(0, np.cumsum(lengths))
        told = np.frombuffer(row["told"], dtype=np.float64)
        whole = Emissions(self.symbols, starts, begins, np.ones_like(begins), told)
        places = self.offsets[slots] + turns
        if self.firsts is not None:
            whole, counts = whole.in_pieces(self.each)
            before = np.cumsum(counts) - counts
            places = np.repeat(self.firsts[places] - before, counts) + np.arange(counts.sum())
        own = self.belong(places)
        return (
            (whole, places) if own.all() else (whole.of_streams(np.flatnonzero(own)), places[own])
        )

    def belong(self, places: Ints) -> Bools:
        """Which of some places are meant."""
        return np.asarray((places % self.number == self.rest) != self.others)


class Task(ABC):
    """Something that is asked of outputs: each worker finds a part of it."""

    @abstractmethod
    def of(self, emissions: Emissions, places: Ints) -> Found:
        """What some streams say."""

    def joined(self, several: list[Found]) -> Found:
        """What all streams of a worker say: numbers one after another, unless they add up."""
        return Found(*(np.concatenate(own) for own in zip(*several, strict=True)))


class Sizes(Task):
    """How many streams there are, how many values, and how many of these are told anything of."""

    def of(self, emissions: Emissions, places: Ints) -> Found:
        """One row of three numbers."""
        return Found(np.array([emissions.streams, len(emissions), emissions.telling]))


class Lengths(Task):
    """How many values each stream has."""

    def of(self, emissions: Emissions, places: Ints) -> Found:
        """Places and lengths."""
        return Found(places, np.diff(emissions.starts))


@dataclass(frozen=True, slots=True, eq=False)
class Scores(Task):
    """Log probability of the outputs of each stream."""

    guess: Guess

    def of(self, emissions: Emissions, places: Ints) -> Found:
        """Places and scores."""
        return Found(places, floats=chain_scores(self.guess, emissions))


@dataclass(frozen=True, slots=True, eq=False)
class Score(Task):
    """Log probability of all outputs."""

    guess: Guess

    def of(self, emissions: Emissions, places: Ints) -> Found:
        """One sum."""
        return _sums([FixedSum.of(chain_scores(self.guess, emissions))])

    def joined(self, several: list[Found]) -> Found:
        """One sum."""
        return _sums([FixedSum.added(FixedSum(*one[:2]) for one in several)])


@dataclass(frozen=True, slots=True, eq=False)
class Pass(Task):
    """What is expected of hidden values, given all outputs."""

    guess: Guess

    def of(self, emissions: Emissions, places: Ints) -> Found:
        """All cells of all sums, one after another."""
        return _sums(pass_sums(self.guess, emissions))

    def joined(self, several: list[Found]) -> Found:
        """The same cells."""
        return _sums([FixedSum.added(FixedSum(*one[:2]) for one in several)])

    def sums(self, found: Found) -> PassSums:
        """The sums of these cells."""
        contexts, symbols = self.guess.moves.shape
        span = order_of(self.guess, symbols)
        edges = np.cumsum([span * contexts, contexts * symbols])
        shapes = ((span, contexts), (contexts, symbols), ())
        cells = [np.split(one, edges) for one in found[:2]]
        return PassSums(
            *(
                FixedSum(whole.reshape(shape), parts.reshape(shape))
                for whole, parts, shape in zip(*cells, shapes, strict=True)
            )
        )


@dataclass(frozen=True, slots=True, eq=False)
class Bets(Task):
    """What bets on a chain need of outputs that all left through one channel."""

    channel: Floats
    guide: MarkovChain | None

    def of(self, emissions: Emissions, places: Ints) -> Found:
        """Counts of pairs, then of beginnings."""
        found = bet_counts(channel_outputs(emissions, self.channel), self.guide)
        return Found(np.append(found.tables, found.beginnings).astype(np.int64))

    def joined(self, several: list[Found]) -> Found:
        """The same counts."""
        return Found(np.sum([one.numbers for one in several], axis=0))

    def counts(self, found: Found) -> BetCounts:
        """The counts by their names."""
        counts, outputs = found.numbers.astype(np.float64), self.channel.shape[1]
        shape = (2, len(self.channel), -1, outputs, outputs)
        return BetCounts(self.channel, counts[:-outputs].reshape(shape), counts[-outputs:])


class CountSlots:
    """How many streams each part of the order has; what `mapInArrow` runs over the kept frame."""

    def __call__(self, parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row of counts."""
        with without_values():
            counts = np.zeros(SLOTS, dtype=np.int64)
            for part in parts:
                for row in kept_rows(part):
                    counts += np.bincount(row["slots"], minlength=SLOTS)
            yield _batch(Found(counts)._asdict(), {})


class AskOutputs:
    """Asks the streams of a partition; what `mapInArrow` runs over the kept frame."""

    def __init__(self, chosen: Chosen, task: Task) -> None:
        self._chosen, self._task = chosen, task

    def __call__(self, parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row, or none where no stream was meant."""
        with without_values():
            found = list[Found]()
            for part in parts:
                for row in kept_rows(part):
                    emissions, places = self._chosen.of(row)
                    if places.size:
                        found.append(self._task.of(emissions, places))
            if found:
                yield _batch(self._task.joined(found)._asdict(), {})


def _sums(sums: Any) -> Found:
    """Cells of several sums, one after another."""
    whole, parts = (np.concatenate([np.ravel(one[side]) for one in sums]) for side in (0, 1))
    return Found(whole, parts)


def found_in(table: pa.Table) -> list[Found]:
    """What workers sent."""
    columns = (table[name] for name in Found._fields)
    return [Found(*(cell.values.to_numpy() for cell in row)) for row in zip(*columns, strict=True)]


def kept_rows(part: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Rows of the kept frame, as arrays."""
    for row in range(part.num_rows):
        lists = {name: part[name][row].values.to_numpy() for name in _KEPT_LISTS}
        yield {**lists, "told": part["told"][row].as_buffer()}


def _batch(lists: dict[str, Any], raw: dict[str, Floats]) -> pa.RecordBatch:
    """One row of arrays."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name, values in lists.items():
        ends = pa.array([0, len(values)], pa.int32())
        columns[name] = pa.ListArray.from_arrays(ends, pa.array(values))
    for name, values in raw.items():
        columns[name] = pa.array([values.tobytes()], pa.binary())
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
