"""Release batches of many streams together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core import checks
from sfumato.core.alphabet import Alphabet, Label
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event, Outcome
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.randomness import Randomness
from sfumato.core.state import StreamState
from sfumato.stream.batched_plan import BatchedPlan
from sfumato.stream.fleet import Fleet


@dataclass(frozen=True, slots=True, eq=False)
class BatchStep:
    """What left in one batch of many streams.

    Attributes:
        streams: Names of the streams.
        sequences: The moment at which each batch began.
        released: Places in the alphabet of the symbols that left, a row per stream; -1 for none.
        outcomes: What left.
        charges: Both certificates of each batch: under the model, and whatever the model.
        alphabet: The symbols.
    """

    streams: Sequence[str]
    sequences: Ints
    released: Ints
    outcomes: Sequence[Outcome]
    charges: Floats
    alphabet: Alphabet

    def labels(self) -> list[list[Label | None]]:
        """The symbols that left, a list per stream; None where none did."""
        known = self.alphabet.labels
        rows = self.released.tolist()
        return [[known[place] if place >= 0 else None for place in row] for row in rows]

    def __len__(self) -> int:
        return len(self.streams)

    def __iter__(self) -> Iterator[tuple[Event, ...]]:
        """The events of each stream's batch; its leakage stands at its last value."""
        rows = zip(
            self.streams,
            self.sequences.tolist(),
            self.labels(),
            self.outcomes,
            self.charges.tolist(),
            strict=True,
        )
        for stream, began, labels, outcome, (sip, ldp) in rows:
            free = [(0.0, 0.0)] * (len(labels) - 1)
            yield tuple(
                Event(stream, began + offset, outcome, label, SIP(cost), LDP(cap), began)
                for offset, (label, (cost, cap)) in enumerate(
                    zip(labels, [*free, (sip, ldp)], strict=True)
                )
            )


class BatchedFleet(Fleet):
    """Streams whose batches are released together under one plan with a compiled policy.

    Args:
        plan: The rule; with a policy from `compile_policy(..., width=)`.
        streams: Names of new streams; or
        states: where streams stand that were begun before.
        randomness: Coins; fresh ones from `secure()` unless given.
        threads: How many threads share the work of a step.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> loss = sf.batch_loss.additive(sf.loss.hamming(chain.alphabet))
        >>> policy = sf.compile_policy(chain, loss, 1.5, width=3, steps=500)
        >>> plan = sf.BatchedPlan(chain, sf.PerStep(sf.SIP(0.5)), loss, 3, policy=policy)
        >>> fleet = sf.BatchedFleet(plan, ["ann", "bob"])
        >>> step = fleet.step([[0, 0, 1], [1, 1, 1]])
        >>> step.released.shape, bool((step.charges[:, 0] <= 1.5).all())
        ((2, 3), True)
    """

    def __init__(
        self,
        plan: BatchedPlan,
        streams: Sequence[str] = (),
        *,
        states: Sequence[StreamState] = (),
        randomness: Randomness | None = None,
        threads: int = 1,
    ) -> None:
        super().__init__(plan, plan.chain, plan.width, streams, states, randomness, threads)
        self.plan = plan
        symbols = len(plan.model.alphabet)
        self._powers = symbols ** np.arange(plan.width - 1, -1, -1)

    def step(
        self, values: Sequence[Sequence[object]] | Ints, which: Ints | None = None
    ) -> BatchStep:
        """Release a whole batch of every stream, or of some; all of them or, on an error, none.

        Args:
            values: The true symbols: a row of `plan.width` for each stream.
            which: Places of the streams that they belong to, each at most once; all in order if
                not given.

        Raises:
            BudgetExceeded: If the budget of a stream is gone and the plan says to refuse.
            UnknownSymbol: If a value is not in the alphabet and the plan says to refuse.
            InterruptedStep: If Ctrl-C or the like broke into an earlier step.
        """
        with self._lock:
            self._check_whole()
            streams = self._chosen(which, len(values))
            places = self._codes(values)
            prepared, quick = self._prepared(streams, places)
            step = self._blank(streams)
            slow = [
                (
                    row,
                    *self.plan.step(self._state(int(streams[row])), values[row], self._randomness),
                )
                for row in np.flatnonzero(~quick).tolist()
            ]
            # Nothing has changed so far: an error above leaves every stream where it was.
            self._torn = True
            rows = slice(None) if not slow else quick
            some = prepared[rows]
            step.charges[rows] = some.charges
            told = self._released(streams[rows], some, places[rows])
            step.released[rows] = told[:, None] // self._powers % len(step.alphabet)
            self._last[streams[rows]] = step.released[rows, -1]
            for row, events, state in slow:
                self._put(int(streams[row]), state)
                self._tell(step, row, events)
            self._torn = False
            return step

    def flush(self, stream: int, values: Sequence[object]) -> tuple[Event, ...]:
        """Release a shorter batch of one stream, at its end or when time is up."""
        if checks.count("stream", stream, at_least=0) >= len(self):
            raise InvalidParameter("stream", stream, f"be the place of one of {len(self)}")
        with self._lock:
            events, state = self.plan.step(self._state(stream), values, self._randomness)
            self._torn = True
            self._put(stream, state)
            self._torn = False
            return events

    def _codes(self, values: Sequence[Sequence[Any]] | Ints) -> Ints:
        """Number of each batch; -1 where a value is outside the alphabet."""
        table = values if isinstance(values, np.ndarray) else _rows(values, self.plan.width)
        if table.ndim != 2 or table.shape[1] != self.plan.width:
            rule = f"have {self.plan.width} values for each stream; flush shorter batches"
            raise InvalidParameter("values", table.shape, rule)
        places = self._numbers(table)
        return np.where((places >= 0).all(axis=1), places @ self._powers, -1)

    def _blank(self, streams: Ints) -> BatchStep:
        return BatchStep(
            streams=[self.streams[place] for place in streams.tolist()],
            sequences=self._crowd.moments[streams],
            released=np.empty((len(streams), self.plan.width), dtype=np.int64),
            outcomes=[Outcome.RELEASED] * len(streams),
            charges=np.zeros((len(streams), 2)),
            alphabet=self.plan.model.alphabet,
        )

    def _tell(self, step: BatchStep, row: int, events: Sequence[Event]) -> None:
        step.released[row] = [step.alphabet.place(event.released) for event in events]
        step.outcomes[row] = events[-1].outcome  # type: ignore[index]
        step.charges[row] = events[-1].sip.epsilon, events[-1].ldp.epsilon


def _rows(values: Sequence[Sequence[Any]], width: int) -> NDArray[Any]:
    if any(not isinstance(row, Sized) or len(row) != width for row in values):
        rule = f"have {width} values for each stream; flush shorter batches"
        raise InvalidParameter("values", "rows of other lengths", rule)
    table = np.empty((len(values), width), dtype=object)
    for place, row in enumerate(values):
        table[place] = list(row)
    return table
