"""The best release of a stream of two symbols, by dynamic programming on a grid of beliefs.

A channel whose leakage under the belief `b` (the chance of the second symbol) is at most `e` splits
`b` into posteriors `q` with `b/k <= q <= k b` and `(1-b)/k <= 1-q <= k (1-b)`, `k = exp(e)`, whose
mean is `b`; so the best cost is the lower convex envelope, over that interval, of
`min_z q.L(.,z) + V(q M)`. Slow and obvious: chords between a few places on either side of `b`.

Values between points of the grid are interpolated, which makes of beliefs a finite set of states
with random moves: what is solved is exactly solved, and errs by the grid alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Average:
    """What one step costs in the long run: loss, and leakage that was charged."""

    loss: float
    charge: float


@dataclass(frozen=True)
class _Split:
    """For one spend: chords `left`, `right` of every belief, and the chance of the right end.

    Both are places on the grid: whole numbers and what is missing to the next.
    """

    left: Floats
    right: Floats
    chance: Floats


@dataclass(frozen=True)
class BinaryProgramme:
    """A chain of two symbols, a loss with any number of outputs, and a grid."""

    transition: ArrayLike
    loss: ArrayLike
    points: int = 401
    sides: int = 5
    grid: Floats = field(init=False)
    instant: Floats = field(init=False)
    moved: Floats = field(init=False)

    def __post_init__(self) -> None:
        moves, costs = np.asarray(self.transition, float), np.asarray(self.loss, float)
        grid = np.linspace(0.0, 1.0, self.points)
        object.__setattr__(self, "grid", grid)
        object.__setattr__(
            self, "instant", ((1 - grid)[:, None] * costs[0] + grid[:, None] * costs[1]).min(axis=1)
        )
        object.__setattr__(self, "moved", (1 - grid) * moves[0, 1] + grid * moves[1, 1])

    @property
    def stationary(self) -> float:
        moves = np.asarray(self.transition, float)
        return float(moves[0, 1] / (moves[0, 1] + moves[1, 0]))

    def total(self, budget: float, steps: int, levels: int, most: float = np.inf) -> float:
        """Mean loss of a step under the best allocation of a total in whole `budget / levels`."""
        spends = [budget * j / levels for j in range(levels + 1)]
        splits = [self._split(spend) for spend in spends if spend <= most * (1 + 1e-9)]
        values = np.zeros((levels + 1, self.points))  # row = levels of budget left
        for _ in range(steps):
            ahead = self._ahead(values)
            best = np.full_like(values, np.inf)
            for spent, split in enumerate(splits):
                left = ahead[: levels + 1 - spent]
                best[spent:] = np.minimum(best[spent:], self._envelope(left, split))
            values = best
        return float(np.interp(self.stationary, self.grid, values[levels])) / steps

    def even(self, budget: float, steps: int) -> float:
        """The same where every step gets the same part."""
        split, values = self._split(budget / steps), np.zeros((1, self.points))
        for _ in range(steps):
            values = self._envelope(self._ahead(values), split)
        return float(np.interp(self.stationary, self.grid, values[0])) / steps

    def average(
        self, spends: Sequence[float], price: float = 0.0, tolerance: float = 1e-7
    ) -> Average:
        """Long-run averages where every step spends one of `spends`, at a price per nat."""
        splits = [self._split(spend) for spend in spends]
        values, charges = np.zeros((1, self.points)), np.zeros((1, self.points))
        gain, paid = np.full(self.points, np.nan), np.full(self.points, np.nan)
        for _ in range(20_000):
            ahead, later = self._ahead(values), self._moved(charges)
            options = [self._best_chord(ahead, split) for split in splits]
            costs = np.stack([one[0] for one, _ in options])
            costs += price * np.asarray(spends)[:, None]
            choice = costs.argmin(axis=0)
            following = np.stack(
                [
                    self._along(later, split, chord)[0] + spend
                    for split, spend, (_, chord) in zip(splits, spends, options, strict=True)
                ]
            )
            here = np.arange(self.points)
            now, next_charges = costs[choice, here], following[choice, here]
            gain, paid = now - values[0], next_charges - charges[0]
            # Bursts come back at a fixed distance: half a move at a time, or nothing settles.
            values[0] += (gain - gain[0]) / 2
            charges[0] += (paid - paid[0]) / 2
            if np.ptp(gain) < tolerance and np.ptp(paid) < 1e3 * tolerance:
                break
        charge = float(paid.mean())
        return Average(float(gain.mean()) - price * charge, charge)

    def step_wise(self, spend: float, tolerance: float = 1e-7) -> Average:
        """The same where each step takes its own best split, whatever comes after."""
        split = self._split(spend)
        now, chord = self._best_chord(self.instant[None, :], split)
        silent = now[0] >= self.instant - 1e-12
        chance = np.where(silent, 0.0, split.chance[np.arange(self.points), chord[0]])
        ends = [
            np.where(silent, np.arange(self.points), side[np.arange(self.points), chord[0]])
            for side in (split.left, split.right)
        ]
        values = np.zeros((2, self.points))
        costs = np.stack([now[0], np.where(silent, 0.0, spend)])
        gain = np.zeros_like(values)
        for _ in range(20_000):
            later = self._moved(values)
            total = costs + (1 - chance) * _read(later, ends[0]) + chance * _read(later, ends[1])
            gain = total - values
            values = values + (gain - gain[:, :1]) / 2
            if np.ptp(gain, axis=1).max() < tolerance:
                break
        return Average(float(gain[0].mean()), float(gain[1].mean()))

    def _moved(self, values: Floats) -> Floats:
        return _read(values, self.moved * (self.points - 1))

    def _ahead(self, values: Floats) -> Floats:
        return np.asarray(self.instant + self._moved(values))

    def _split(self, spend: float) -> _Split:
        k, b = np.exp(spend), self.grid
        low, high = np.maximum(b / k, 1 - k * (1 - b)), np.minimum(k * b, 1 - (1 - b) / k)
        parts = np.linspace(0.0, 1.0, self.sides)
        left = b[:, None] - (b - low)[:, None] * parts
        right = b[:, None] + (high - b)[:, None] * parts
        shape = (self.points, self.sides, self.sides)
        left = np.broadcast_to(left[:, :, None], shape).reshape(self.points, -1)
        right = np.broadcast_to(right[:, None, :], shape).reshape(self.points, -1)
        width = right - left
        chance = np.divide(b[:, None] - left, width, out=np.zeros_like(width), where=width > 1e-15)
        scale = self.points - 1
        return _Split(left * scale, right * scale, chance)

    def _envelope(self, ahead: Floats, split: _Split) -> Floats:
        return self._best_chord(ahead, split)[0]

    def _best_chord(self, ahead: Floats, split: _Split) -> tuple[Floats, Ints]:
        values = (1 - split.chance) * _read(ahead, split.left)
        values += split.chance * _read(ahead, split.right)
        chord = values.argmin(axis=2)
        return np.take_along_axis(values, chord[:, :, None], axis=2)[:, :, 0], chord

    def _along(self, later: Floats, split: _Split, chord: Ints) -> Floats:
        here = np.arange(self.points)
        left, right = split.left[here, chord], split.right[here, chord]
        chance = split.chance[here, chord]
        return np.asarray((1 - chance) * _read(later, left)[0] + chance * _read(later, right)[0])


def _read(values: Floats, places: Floats) -> Floats:
    """Interpolate the last axis of `values` at places of the grid."""
    below = np.clip(places.astype(np.int64), 0, values.shape[-1] - 2)
    part = places - below
    return np.asarray((1 - part) * values[..., below] + part * values[..., below + 1])
