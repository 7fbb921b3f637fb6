"""The events of one shard in one micro-batch: which are new, which are late, and their answers.

What is decided here follows from the state, the rows and the watermark, which an engine repeats
when it does a micro-batch again; the order in which rows come does not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.core.events import OUTCOMES
from sfumato.core.randomness import Randomness
from sfumato.engines.spark.shard_state import NEVER, Answers, ShardState
from sfumato.engines.spark.shard_streams import Part, opened_streams
from sfumato.stream.plan import Plan
from sfumato.tables.cells import Late

if TYPE_CHECKING:
    import pyarrow as pa

REFUSED = len(OUTCOMES)
"""The outcome of an event without an answer, after those of `tuple(Outcome)`."""


class Refusal(StrEnum):
    """Why an event got no answer; nothing was drawn and nothing was charged for it.

    Attributes:
        LATE: It is older than the watermark: whether it was answered before is not known any more.
        ORDER: It is earlier than the last answer of its stream.
        BUDGET: The budget of the stream leaves nothing, and the rule is to refuse.
    """

    LATE = "late"
    ORDER = "order"
    BUDGET = "budget"


REFUSALS = tuple(Refusal)


@dataclass(frozen=True, slots=True, eq=False)
class AskedRows:
    """Events of one shard, by columns.

    Attributes:
        streams: Whose.
        ids: What tells each event from others of its stream.
        times: When, in microseconds.
        cells: Places of true symbols: -1 outside the alphabet, -2 where a moment passes.
        hashes: Of stream and id.
    """

    streams: pa.Array
    ids: pa.Array
    times: Ints
    cells: Ints
    hashes: Ints

    def __len__(self) -> int:
        return len(self.times)

    def sorted(self) -> AskedRows:
        """In the order of time and id; rows of one event by what would be drawn for.

        Else it would be chance which of them is answered, and another one when it is done again.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = {"time": self.times, "id": self.ids, "stream": self.streams, "cell": self.cells}
        table = pa.table(columns)
        keys = [(name, "ascending") for name in table.column_names]
        return self.at(pc.sort_indices(table, sort_keys=keys).to_numpy())

    def at(self, numbers: Ints) -> AskedRows:
        """Some of the rows, in the order of their numbers given."""
        import pyarrow as pa

        order = pa.array(numbers)
        parts = (part[numbers] for part in (self.times, self.cells, self.hashes))
        return AskedRows(self.streams.take(order), self.ids.take(order), *parts)


@dataclass(frozen=True, slots=True, eq=False)
class ShardAnswers:
    """What leaves for the events of a shard.

    Attributes:
        streams: The names of its streams.
        answers: One for each event, in the order of time and id; those that were refused have the
            outcome `REFUSED` and no sequence (-1).
        refusals: Why: places in `REFUSALS`, -1 for those that were not refused.
    """

    streams: list[str]
    answers: Answers
    refusals: Ints


class Shard:
    """One shard under its plan, from the state before a micro-batch to the one after it.

    Args:
        plan: The rule.
        coins: Of its key.
        release: Digest of the release; states of others are refused.
        late: What becomes of an event that goes back in the time of its stream.

    Examples:
        >>> import pyarrow as pa
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(chain.alphabet))
        >>> shard = Shard(plan, sf.keyed(b"sixteen bytes or more"), "digest", Late.REFUSE)
        >>> one = np.zeros(1, dtype=np.int64)
        >>> rows = AskedRows(pa.array(["ann"]), pa.array(["e1"]), one, one, one)
        >>> left, state = shard.answered(None, rows, watermark=0)
        >>> again, _ = shard.answered(state, rows, watermark=0)
        >>> bool(left.answers.released[0] == again.answers.released[0]), len(state.names)
        (True, 1)
    """

    def __init__(self, plan: Plan, coins: Randomness, release: str, late: Late) -> None:
        plan.check_coins(coins)
        self._plan, self._coins, self._release, self._late = plan, coins, release, late

    def answered(
        self, before: ShardState | None, rows: AskedRows, watermark: int
    ) -> tuple[ShardAnswers, ShardState]:
        """Answers for some events, and the shard after them.

        Args:
            before: Where the shard stood; None if it has no stream yet.
            rows: The events, in any order.
            watermark: In microseconds: earlier events are late, and their ids are forgotten.

        Raises:
            SolverFailed: If no certified channel was found; nothing leaves then.
        """
        rows = rows.sorted()
        state = before or ShardState(self._release, [], [], [], b"")
        kept = Answers.of_bytes(state.kept)
        names, which = _placed(state.names, rows.streams)
        last = np.full(len(names), NEVER)
        last[: len(state.times)] = state.times
        old = _earlier(kept, rows, which)
        doubles = _doubles(rows, which)
        refusals = self._refusals(rows, which, last, watermark)
        new = (old < 0) & (doubles == np.arange(len(rows)))
        due = np.flatnonzero(new & (refusals < 0))
        streams = opened_streams(self._plan, self._coins, state.rows, names, len(state.names))
        parts = streams.drawn(due, rows.cells, which, self._periods(rows))
        fresh = _joined(rows, which, parts)
        done = np.concatenate([one for one, _ in parts]) if parts else due[:0]
        np.maximum.at(last, which[done], rows.times[done])
        refusals[np.setdiff1d(due, done)] = REFUSALS.index(Refusal.BUDGET)
        left = _left(rows, which, kept, old, fresh, done, doubles, refusals)
        held = kept.joined(fresh)
        held = held.where(held.times >= watermark)
        times = last.tolist()
        after = ShardState(self._release, names, times, streams.rows, held.encoded)
        return ShardAnswers(names, *left), after

    def _periods(self, rows: AskedRows) -> Ints | None:
        """The period of UTC that each event lies in, if the budget is for periods."""
        period = self._plan.period
        if period is None:
            return None
        found = [period.at_microsecond(time) for time in rows.times.tolist()]
        return np.array(found, dtype=np.int64)

    def _refusals(self, rows: AskedRows, which: Ints, last: Ints, watermark: int) -> Ints:
        """Why events may not be answered, if they are new; -1 for those that may."""
        found = np.full(len(rows), -1)
        if self._late is Late.REFUSE:
            # Rows are in the order of time: none is earlier than the one before it.
            found[rows.times < last[which]] = REFUSALS.index(Refusal.ORDER)
        found[rows.times < watermark] = REFUSALS.index(Refusal.LATE)
        return found


def _placed(names: list[str], streams: pa.Array) -> tuple[list[str], Ints]:
    """All names of a shard, those that are new at the end, and the place of each row's stream."""
    coded = streams.dictionary_encode()
    known = {name: place for place, name in enumerate(names)}
    places = [known.setdefault(name, len(known)) for name in coded.dictionary.to_pylist()]
    codes = coded.indices.to_numpy()
    return [*known], np.array(places, dtype=np.int64)[codes]


def _earlier(kept: Answers, rows: AskedRows, which: Ints) -> Ints:
    """The number of each row's answer among those that are kept; -1 for rows that have none."""
    found = np.full(len(rows), -1)
    likely = np.flatnonzero(np.isin(rows.hashes, kept.hashes))
    if not likely.size:
        return found
    # Hashes that agree are looked at: whoever chooses ids may make them agree.
    same = np.flatnonzero(np.isin(kept.hashes, rows.hashes[likely]))
    pairs = zip(kept.places[same].tolist(), _words(kept.ids, same), strict=True)
    numbers = dict(zip(pairs, same.tolist(), strict=True))
    asked = zip(which[likely].tolist(), _words(rows.ids, likely), strict=True)
    found[likely] = [numbers.get(one, -1) for one in asked]
    return found


def _doubles(rows: AskedRows, which: Ints) -> Ints:
    """The first row of each row's event: its own number, unless it came twice."""
    found = np.arange(len(rows))
    _, back, counts = np.unique(rows.hashes, return_inverse=True, return_counts=True)
    likely = np.flatnonzero(counts[back] > 1)
    first: dict[tuple[int, str], int] = {}
    asked = zip(which[likely].tolist(), _words(rows.ids, likely), strict=True)
    found[likely] = [
        first.setdefault(one, row) for row, one in zip(likely.tolist(), asked, strict=True)
    ]
    return found


def _words(ids: pa.Array, rows: Ints) -> list[str]:
    import pyarrow as pa

    found: list[str] = ids.take(pa.array(rows)).to_pylist()
    return found


def _joined(rows: AskedRows, which: Ints, parts: list[Part]) -> Answers:
    """New answers, in the order in which they were drawn."""
    import pyarrow as pa

    if not parts:
        return Answers.of_bytes(b"")
    done = np.concatenate([one for one, _ in parts])
    runs = [run for _, run in parts]
    signals = [np.full(len(run), -1) if run.signals is None else run.signals for run in runs]
    return Answers(
        hashes=rows.hashes[done],
        places=which[done],
        ids=rows.ids.take(pa.array(done)),
        times=rows.times[done],
        sequences=np.concatenate([run.sequences for run in runs]),
        outcomes=np.concatenate([run.outcomes for run in runs]).astype(np.int64),
        released=np.concatenate([run.released for run in runs]),
        signals=np.concatenate(signals),
        charges=np.concatenate([run.charges for run in runs]),
    )


def _left(
    rows: AskedRows,
    which: Ints,
    kept: Answers,
    old: Ints,
    fresh: Answers,
    done: Ints,
    doubles: Ints,
    refusals: Ints,
) -> tuple[Answers, Ints]:
    """One answer for each row: an old one, a new one, that of the same event, or none."""
    count = len(rows)
    none = np.full(count, -1)
    refused = Answers(
        hashes=rows.hashes,
        places=which,
        ids=rows.ids,
        times=rows.times,
        sequences=none,
        outcomes=np.full(count, REFUSED),
        released=none,
        signals=none,
        charges=np.zeros((count, 2)),
    )
    # Kept answers come first, then new ones, then refusals: each row names its own.
    source = len(kept) + len(fresh) + np.arange(count)
    source[done] = len(kept) + np.arange(len(fresh))
    source = np.where(old >= 0, old, source)
    source = source[doubles]
    why: Ints = np.where(source >= len(kept) + len(fresh), refusals[doubles], -1)
    return kept.joined(fresh).joined(refused).at(source), why
