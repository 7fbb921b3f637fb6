"""What left in one step of many streams, and in many steps of them, as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.events import OUTCOMES, Event, Outcome, events_of

Codes = NDArray[np.uint8]
RELEASED, SUPPRESSED, REPEATED, SKIPPED = map(OUTCOMES.index, Outcome)
"""Outcomes, as places in `OUTCOMES`."""


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What left in one step of many streams.

    Attributes:
        streams: Names of the streams.
        sequences: The moment of each, or at which its batch began.
        released: Places in the alphabet of the symbols that left, -1 for none; in the shape of the
            values: one place per stream or, in batches, a row.
        codes: What left: places in `tuple(Outcome)`.
        charges: Both certificates of each: under the model, and whatever the model.
        alphabet: The symbols.
        signals: Which output of its channel left, -1 where none did; None unless the plan is
            far-sighted.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> loss = sf.loss.hamming(chain.alphabet)
        >>> policy = sf.compile_policy(chain, loss, 0.5, steps=500)
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), loss, policy=policy)
        >>> step = sf.Fleet(plan, ["ann", "bob"]).step([0, 1])
        >>> list(step.streams), step.sequences.tolist(), step.charges.shape
        (['ann', 'bob'], [0, 0], (2, 2))
    """

    streams: Sequence[str]
    sequences: Ints
    released: Ints
    codes: Codes
    charges: Floats
    alphabet: Alphabet
    signals: Ints | None = None

    @property
    def outcomes(self) -> list[Outcome]:
        """What left, by name: a list that is made when it is asked for."""
        outcomes = [Outcome.RELEASED] * len(self.codes)
        for row in np.flatnonzero(self.codes != RELEASED).tolist():
            outcomes[row] = OUTCOMES[self.codes[row]]
        return outcomes

    def labels(self) -> list[Any]:
        """The symbols that left, a list per stream in batches; None where none did."""
        symbols = self.alphabet.labels
        found = [symbols[place] if place >= 0 else None for place in self.released.ravel().tolist()]
        if self.released.ndim == 1:
            return found
        width = self.released.shape[1]
        return [found[row : row + width] for row in range(0, len(found), width)]

    def __len__(self) -> int:
        return len(self.streams)

    def __iter__(self) -> Iterator[tuple[Event, ...]]:
        """The events of each stream; the leakage of a batch stands at its last value."""
        in_batches = self.released.ndim > 1
        rows = zip(
            self.streams,
            self.sequences.tolist(),
            self.labels(),
            self.outcomes,
            self.charges.tolist(),
            [-1] * len(self) if self.signals is None else self.signals.tolist(),
            strict=True,
        )
        for stream, began, left, outcome, charge, sent in rows:
            labels, signal = left if in_batches else [left], None if sent < 0 else sent
            began_at = (stream, began, outcome, labels, *charge)
            yield events_of(*began_at, in_batches=in_batches, signal=signal)


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What left in many steps of many streams, one entry per value in the order they were given.

    Attributes:
        sequences: The moment of each value in its stream.
        released: Places in the alphabet of the symbols that left, -1 for none.
        outcomes: What left: places in `tuple(Outcome)`.
        charges: Both certificates of each: under the model, and whatever the model.
        signals: Which output of its channel left, -1 where none did; None unless the plan is
            far-sighted.
    """

    sequences: Ints
    released: Ints
    outcomes: Codes
    charges: Floats
    signals: Ints | None

    def __len__(self) -> int:
        return len(self.sequences)


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What anybody can compute of values that were seen to leave, in the order they were given.

    Attributes:
        sequences: The moment of each value in its stream.
        charges: Both certificates of each: under the model, and whatever the model.
        possible: Whether the plan can have let it leave there. From the first that it cannot on,
            no later value of its stream is looked at, and the stream stands before that one.
        withheld: Whether nothing new left although the plan had a channel for it: for a value
            outside the alphabet, says the plan.
    """

    sequences: Ints
    charges: Floats
    possible: Bools
    withheld: Bools

    def __len__(self) -> int:
        return len(self.sequences)
