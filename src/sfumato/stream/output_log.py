"""What single values told, in the order in which they left, while it fits into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.numerics import UNIT, up
from sfumato.models.markov import MarkovChain
from sfumato.models.stream_model import StreamModel
from sfumato.stream.audit_loops import one_value_leakages, prior_logs
from sfumato.stream.checked_columns import CheckedColumns
from sfumato.stream.evidence import Evidence, split
from sfumato.stream.hidden_chain import HiddenChain
from sfumato.stream.one_value import one_value_leakage
from sfumato.stream.recovered_loss import guesses
from sfumato.stream.recovery_loops import posteriors
from sfumato.stream.true_values import RealisedLoss, Truth, in_turn
from sfumato.stream.value_exposure import MOST_CELLS

_HELD = 1024
"""Rows that come one by one, and are held until they are an array."""
_PART = 1 << 20
"""Probabilities that are worked on at one time."""


class _Rows(NamedTuple):
    """Rows as they came: the number of their stream, what they told, whether, and the truth."""

    owners: Ints
    told: Floats
    tells: Bools
    truths: Ints


class OutputLog:
    """The likelihoods of single values that left, and their true values where these are known.

    Only plain chains are followed: of the others the sum of all steps is known.
    """

    def __init__(self, model: StreamModel) -> None:
        self._chain = model.chain if isinstance(model.chain, MarkovChain) else None
        self._cells = 0
        self._numbers: dict[str, int] = {}
        self._blocks: list[_Rows] = []
        self._held: list[tuple[int, Floats | None, int]] = []
        self._truths: list[Truth] = []

    def _fits(self, values: int) -> bool:
        """Whether so many more can be held."""
        if self._chain is not None:
            self._cells += values * (self._chain.initial.size + 1)
            if self._cells > MOST_CELLS:
                self.give_up()
        return self._chain is not None

    def give_up(self) -> None:
        """Only the sum of all steps will be known: outputs cannot be listed, or not be held."""
        self._chain, self._numbers = None, {}
        self._blocks, self._held, self._truths = [], [], []

    def add(self, stream: str, truths: Sequence[Truth | None], likelihood: Floats | None) -> None:
        """One more value: how likely every symbol made what left."""
        if not self._fits(1):
            return
        (truth,), known = truths, -1
        if likelihood is not None and not likelihood.min() < likelihood.max():
            likelihood = None
        if truth is not None:
            known = len(self._truths)
            self._truths.append(truth)
        self._held.append((self._number(stream), likelihood, known))
        if len(self._held) == _HELD:
            self._gather()

    def add_columns(self, columns: CheckedColumns) -> None:
        """Many more."""
        if not self._fits(len(columns)):
            return
        self._gather()
        followed, numbers = columns.followed, np.empty(len(columns.names), dtype=np.int64)
        numbers[columns.streams] = [self._number(stream) for stream in columns.owners()]
        told = followed.told
        tells = followed.tells & (told.min(axis=1) < told.max(axis=1))
        truths = np.full(len(columns), -1)
        if columns.truths is not None:
            truths = columns.truths.codes + len(self._truths)
            self._truths += columns.truths.truths
        self._blocks.append(_Rows(numbers[columns.left.streams], told, tells, truths))

    def _number(self, stream: str) -> int:
        return self._numbers.setdefault(stream, len(self._numbers))

    def _gather(self) -> None:
        """Make an array of what came one by one."""
        held, self._held = self._held, []
        if not held or self._chain is None:
            return
        told = np.ones((len(held), self._chain.size))
        for row, (_, likelihood, _) in enumerate(held):
            if likelihood is not None:
                told[row] = likelihood
        tells = np.array([likelihood is not None for _, likelihood, _ in held])
        owners, truths = (np.array([row[part] for row in held]) for part in (0, 2))
        self._blocks.append(_Rows(owners, told, tells, truths))

    def _sort(self, streams: Iterable[str]) -> None:
        """Number streams anew, in the order given, which names all of them."""
        turns = [self._numbers[stream] for stream in streams if stream in self._numbers]
        numbers = np.argsort(np.array(turns, dtype=np.int64))
        self._blocks = [block._replace(owners=numbers[block.owners]) for block in self._blocks]
        names = list(self._numbers)
        self._numbers = {names[turn]: place for place, turn in enumerate(turns)}

    def _parts(self) -> Iterator[tuple[_Rows, Ints]]:
        """Rows of some streams at a time, stream after stream, and where those of each begin."""
        counts = np.zeros(len(self._numbers), dtype=np.int64)
        for block in self._blocks:
            counts += np.bincount(block.owners, minlength=len(counts))
        ends, first = np.cumsum(counts), 0
        while first < len(counts):
            most = (ends[first - 1] if first else 0) + _PART // self._blocks[0].told.shape[1]
            last = max(int(np.searchsorted(ends, most, side="right")), first + 1)
            chosen = []
            for block in self._blocks:
                own = (block.owners >= first) & (block.owners < last)
                chosen.append([part[own] for part in block])
            parts: tuple[Any, ...] = tuple(map(np.concatenate, zip(*chosen, strict=True)))
            order = np.argsort(parts[0], kind="stable")
            ordered: tuple[Any, ...] = tuple(part[order] for part in parts)
            yield _Rows(*ordered), np.append(0, np.cumsum(counts[first:last]))
            first = last

    def finish(
        self, losses: RealisedLoss, streams: Iterable[str]
    ) -> tuple[dict[str, float], float | None]:
        """What each stream told about any one value, and what best guesses lose per value.

        Nothing of streams that are not followed, and None where no true value is known.

        Args:
            losses: What guesses cost.
            streams: All streams, in the order in which their losses are added up.
        """
        self._gather()
        if self._chain is None or not self._blocks:
            return {}, None
        self._sort(streams)
        exact: list[float] = []
        total, count = 0.0, 0
        for rows, starts in self._parts():
            exact += _leakages(self._chain, rows, starts)
            lost = self._losses(self._chain, rows, starts, losses)
            total, count = in_turn(total, lost), count + len(lost)
        return dict(zip(self._numbers, exact, strict=True)), total / count if count else None

    def _losses(
        self, chain: MarkovChain, rows: _Rows, starts: Ints, losses: RealisedLoss
    ) -> Floats:
        """What the best guesses of values lose whose truth is known, in order."""
        given, codes = np.unique(rows.truths, return_inverse=True)
        none = np.full(chain.size, np.nan)
        costs = np.array([self._costs(code, losses, none) for code in given.tolist()])
        if np.isnan(costs[:, 0]).all():
            return np.empty(0)
        count, size = len(rows.owners), chain.size
        moments = np.arange(count) - np.repeat(starts[:-1], np.diff(starts))
        begins = np.where(rows.tells, np.arange(count) * size, -1)
        ones = np.ones(count, dtype=np.int64)
        told = Evidence(starts, begins, ones, moments, rows.told.ravel())
        hidden, best = HiddenChain.of(chain), np.empty(count, dtype=np.int64)
        # Guesses that are sought among neighbours are sought stream by stream.
        for first, last, part in split(told, _PART if losses.priced.storable else 1, size):
            found = np.empty((last - first, size))
            posteriors(hidden.arrays, part.arrays, part.starts, hidden.span, -1, found)
            best[first:last] = guesses(found, losses.priced)
        lost = costs[codes, best]
        return np.asarray(lost[~np.isnan(lost)])

    def _costs(self, code: int, losses: RealisedLoss, none: Floats) -> Floats:
        """What each guess costs beside a true value."""
        costs = None if code < 0 else losses.costs(self._truths[code])
        return none if costs is None else costs


def _leakages(chain: MarkovChain, rows: _Rows, starts: Ints) -> list[float]:
    """What each stream told about any one value."""
    count = len(starts) - 1
    if chain.order > 1:
        return [
            one_value_leakage(
                chain,
                [
                    rows.told[row] if rows.tells[row] else None
                    for row in range(starts[stream], starts[stream + 1])
                ],
            )
            for stream in range(count)
        ]
    lengths = np.diff(starts)
    logs, worst = np.empty((int(lengths.max(initial=0)), chain.size)), np.empty(count)
    known = (chain.initial.ravel(), *chain.loop_rows)
    prior_logs(*known, logs)
    one_value_leakages(*known, logs, rows.told, rows.tells, starts, worst)
    # Forward and back, every sum and product of a step; see `one_value_leakage`.
    rounding = (32 * (lengths + 1) * (chain.size + 8) + 8 * chain.size) * UNIT
    pairs = zip(worst.tolist(), rounding.tolist(), strict=True)
    return [0.0 if most < 0.0 else up(most + error) for most, error in pairs]
