"""What the outputs of streams told about their values: likelihoods under the channels as released.

Everything is a function of public things: the plan, and what left. Beliefs are followed as an audit
follows them; with a compiled policy all streams are followed together by the loops of a fleet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import OUTCOMES
from sfumato.core.progress import Progress
from sfumato.core.unbiased import unbiased_weights
from sfumato.models.library import PatternLibrary
from sfumato.models.periodic import PeriodicChain
from sfumato.stream.learning_plan import signal_column
from sfumato.stream.partition.batch_loss import listed
from sfumato.stream.partition.cells import Partition, StepDesign
from sfumato.stream.partition.patterns import Patterns, ShortBatches, WholeBatches
from sfumato.stream.plan import Plan
from sfumato.stream.recovery_loops import Told
from sfumato.stream.released_tracks import ReleasedTracks

_LISTED = 4096
"""Batches of which each has a likelihood of its own."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What was told about each value, stream after stream.

    Attributes:
        starts: Where the values of each stream begin, and the end.
        begins: Where the likelihood of the output that ends at a value begins in `told`; -1 where
            nothing was told.
        reaches: Over how many values, up to this one, it is.
        ends: The last value of its batch, counted within the stream.
        told: The likelihoods: of each symbol, or of each combination of symbols, the first value
            most significant.
        unbiased: For each value, an estimate of which symbol it had that is right on average
            whatever is true, and needs no model; not a number where the channel allows none. None
            if it was not asked for.
    """

    starts: Ints
    begins: Ints
    reaches: Ints
    ends: Ints
    told: Floats
    unbiased: Floats | None = None

    @property
    def span(self) -> int:
        """The most values that one output tells about together."""
        return int(self.reaches.max(initial=1))

    @property
    def arrays(self) -> Told:
        """What the loops read."""
        return self.begins, self.reaches, self.ends, self.told

    def __len__(self) -> int:
        return int(self.starts[-1])

    def in_parts(self, which: Ints, parts: int, symbols: int) -> Evidence:
        """The same about pairs of part and symbol: each value is known to be of one part.

        Args:
            which: The part of each value; all of them left alone.
            parts: How many there are.
            symbols: How many symbols a value can take.
        """
        own, tells = np.ones((len(self), symbols)), self.begins >= 0
        own[tells] = self.told[self.begins[tells][:, None] + np.arange(symbols)]
        told, places = np.zeros((len(self), parts, symbols)), np.arange(len(self))
        told[places, which] = own
        begins = places * (parts * symbols)
        return replace(self, begins=begins, told=told.ravel())


class _Collector:
    """Likelihoods as they come, value after value."""

    def __init__(self, values: int, symbols: int, *, unbiased: bool) -> None:
        self.begins = np.full(values, -1)
        self.reaches = np.ones(values, dtype=np.int64)
        self.ends = np.zeros(values, dtype=np.int64)
        self._told: list[Floats] = []
        self._size, self._symbols = 0, symbols
        self.unbiased = np.full((values, symbols), np.nan) if unbiased else None
        self._inverses: dict[int, tuple[Channel, Floats | None]] = {}

    def add(self, first: int, length: int, design: StepDesign | None, output: int | None) -> None:
        """What an output told about the batch that begins at a value."""
        if design is None or output is None:
            return
        channel, last = design.design.channel, first + length - 1
        if self.unbiased is not None:
            self._debias(first, length, design, output)
        if channel.is_constant:
            return
        told, reach = over_batches(
            design.partition, channel.likelihood(output), length, self._symbols
        )
        self.begins[last], self.reaches[last] = self._size, reach
        self._told.append(told)
        self._size += told.size

    def _debias(self, first: int, length: int, design: StepDesign, output: int) -> None:
        channel = design.design.channel
        kept = self._inverses.get(id(channel))
        if kept is None:
            cells = cells_of(design.partition, length, self._symbols)
            fits = cells.size == self._symbols**length  # no past values are looked at
            masses = design.partition.masses
            found = estimates(channel, masses, cells, self._symbols) if fits else None
            kept = (channel, found)
            self._inverses[id(channel)] = kept
        assert self.unbiased is not None
        if kept[1] is not None:
            place = channel.column(output)
            self.unbiased[first : first + length] = kept[1][place].reshape(length, self._symbols)

    def whole(self, starts: Ints) -> Evidence:
        """All of it."""
        told = np.concatenate(self._told) if self._told else np.empty(0)
        return Evidence(starts, self.begins, self.reaches, self.ends, told, self.unbiased)


def evidence(
    tracks: ReleasedTracks,
    plan: Plan,
    *,
    unbiased: bool = False,
    progress: Progress | None = None,
) -> Evidence:
    """What released streams told, recomputed from the plan.

    Args:
        tracks: What left.
        plan: The rule of the release.
        unbiased: Also estimates that need no model, where channels allow them.
        progress: Called with the number of values done so far.

    Raises:
        InvalidParameter: If the plan could not have released this, or batches cannot be listed.
    """
    if isinstance(plan.model, PatternLibrary):
        raise InvalidParameter("model", "a library of patterns", "be a chain of values")
    if plan.period is not None:
        rule = "be one that counts values, because times are not read here; `audit` reads them"
        raise InvalidParameter("the budget", f"one for each {plan.period}", rule)
    if plan.policy is not None and not unbiased and not plan.in_batches:
        from sfumato.stream.fleet_replay import replayed

        return replayed(tracks, plan, progress)
    found = _Collector(len(tracks.places), len(plan.model.alphabet), unbiased=unbiased)
    for stream, name in enumerate(tracks.streams):
        _follow(tracks, stream, name, plan, found)
        if progress:
            progress(int(tracks.starts[stream + 1]))
    return found.whole(tracks.starts)


def check_steady(plan: Plan, what: str) -> None:
    """Refuse a model that changes with time, where nothing is known of its phases.

    Args:
        plan: The rule of a release.
        what: What it is refused for.
    """
    if isinstance(plan.model, PeriodicChain):
        rule = f"be a chain that does not change with time, {what}; what left can be audited and "
        rule += "recovered"
        raise InvalidParameter("model", "a chain with phases", rule)


def _follow(tracks: ReleasedTracks, stream: int, name: str, plan: Plan, found: _Collector) -> None:
    """Follow one stream, batch by batch."""
    labels, state = plan.model.alphabet.labels, plan.begin(name)
    timed = isinstance(plan.model, PeriodicChain) and not plan.model.cycle.in_turn
    phases = tracks.value_phases(plan.model.cycle) if timed else None  # type: ignore[union-attr]
    for first, length in tracks.batches(stream):
        values = slice(first, first + length)
        places = tracks.places[values]
        outcome = OUTCOMES[int(tracks.outcomes[first])]
        found.ends[values] = first + length - 1 - tracks.starts[stream]
        left = [None if place < 0 else labels[place] for place in places.tolist()]
        named = int(tracks.signals[first])
        signal = None if named < 0 else named
        try:
            phase = None if phases is None else int(phases[first])
            seen = plan.observed(state, left, outcome, signal, phase)
            if seen.events[0].signal != signal:
                rule = "be the one that outputs before it lead to"
                raise InvalidParameter(signal_column(plan) or "signal", signal, rule)
            found.add(first, length, seen.design, seen.output)
        except InvalidParameter as problem:
            row = tracks.rows[first + length - 1]
            raise tracks.refusal(int(row), f"the {problem.name} must {problem.rule}") from None
        state = seen.following


def over_batches(
    partition: Partition, likelihood: Floats, length: int, symbols: int
) -> tuple[Floats, int]:
    """The likelihood of each combination of values, and over how many values it is."""
    if isinstance(partition, Patterns | ShortBatches | WholeBatches):
        # A cell is a combination; of more values than the batch has where past ones are looked at.
        reach = (
            round(portable.log(likelihood.size) / portable.log(symbols)) if symbols > 1 else length
        )
        return likelihood, max(reach, 1)
    return likelihood[cells_of(partition, length, symbols)], length


def cells_of(partition: Partition, length: int, symbols: int) -> Ints:
    """The cell of each combination of the values of a batch."""
    if isinstance(partition, Patterns | ShortBatches | WholeBatches):
        return np.arange(partition.masses.size)
    if symbols**length > _LISTED:
        rule = f"have at most {_LISTED:,} combinations of values to be told apart"
        raise InvalidParameter("batch", f"{symbols}^{length}", rule)
    return np.array([partition.cell(places) for places in listed(symbols, length).tolist()])


def estimates(channel: Channel, masses: Floats, cells: Ints, symbols: int) -> Floats | None:
    r"""For each output, an estimate of the symbols that is right on average whatever is true.

    $$\sum_y a(y \mid x)\, g(y) = e_x \quad \text{for every } x$$

    where $a$ is the channel, $e_x$ has a 1 at symbol $x$ (of each value of a batch) and $g$ is the
    result. Of all such $g$ it is the one of least variance under the masses. There is one if and
    only if the channel has as many independent rows as there are things to tell apart.

    Args:
        channel: Rows are cells.
        masses: Probability of each cell.
        cells: The cell of each combination of values.
        symbols: How many symbols a value can take.

    Returns:
        One row per column of the channel; None if there is no such estimate.

    Examples:
        >>> noisy = Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]])
        >>> estimates(noisy, np.array([0.5, 0.5]), np.arange(2), 2)
        array([[ 1.5, -0.5],
               [-0.5,  1.5]])
    """
    length = round(portable.log(cells.size) / portable.log(symbols)) if symbols > 1 else 1
    rows = channel.probabilities
    if len(channel.outputs) < min(symbols, len(rows)) or cells.size > _LISTED:
        return None
    combinations, sizes = listed(symbols, length), np.bincount(cells, minlength=len(rows))
    wanted = np.zeros((len(rows), length * symbols))
    for position in range(length):
        for symbol in range(symbols):
            inside = combinations[:, position] == symbol
            share = np.bincount(cells, inside, minlength=len(rows))
            wanted[:, position * symbols + symbol] = share / np.maximum(sizes, 1)
    if not np.all((wanted == 0) | (wanted == 1)):
        return None  # a cell of several combinations tells no one of them
    return unbiased_weights(rows, masses / masses.sum() @ rows, wanted)


def split(evidence: Evidence, cells: int, width: int) -> Iterator[tuple[int, int, Evidence]]:
    """Parts of some streams each, of at most about `cells` numbers at `width` numbers a value."""
    starts, first = evidence.starts, 0
    while first < starts.size - 1:
        last = int(np.searchsorted(starts, starts[first] + max(1, cells // width), side="right"))
        last = min(max(last - 1, first + 1), starts.size - 1)
        own = slice(int(starts[first]), int(starts[last]))
        yield (
            own.start,
            own.stop,
            Evidence(
                starts[first : last + 1] - starts[first],
                evidence.begins[own],
                evidence.reaches[own],
                evidence.ends[own],
                evidence.told,
            ),
        )
        first = last


def of_likelihoods(
    streams: Sequence[Sequence[tuple[int, Floats | None]]], symbols: int
) -> Evidence:
    """What was told, given as likelihoods: for each batch its length, and those of its values."""
    starts = np.cumsum([0, *(sum(length for length, _ in batches) for batches in streams)])
    found, told, size = _Collector(int(starts[-1]), symbols, unbiased=False), [np.empty(0)], 0
    for start, batches in zip(starts.tolist(), streams, strict=False):
        first = start
        for length, likelihood in batches:
            last = first + length - 1
            found.ends[first : last + 1] = last - start
            if likelihood is not None:
                found.begins[last], found.reaches[last] = size, length
                told.append(likelihood)
                size += likelihood.size
            first += length
    return Evidence(starts, found.begins, found.reaches, found.ends, np.concatenate(told))
