"""The chains that the benchmarks of streams run on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

import sfumato as sf
from sfumato.core.loss import Loss


@dataclass(frozen=True)
class Case:
    """A chain, a loss and how long to compile for them."""

    name: str
    chain: sf.MarkovChain
    loss: Loss
    steps: int


def binary() -> Case:
    """Two states that mostly stay."""
    chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
    return Case("binary, sticky", chain, sf.loss.hamming(chain.alphabet), 4_000)


def ring(size: int = 16, stay: float = 0.5) -> Case:
    """A walk on a ring; distance is along the line that the ring is cut into."""
    eye = np.eye(size)
    moves = stay * eye + (1 - stay) / 2 * (np.roll(eye, 1, axis=1) + np.roll(eye, -1, axis=1))
    chain = sf.MarkovChain.from_matrix(moves, floor=1e-4)
    return Case(f"ring of {size}", chain, sf.loss.absolute(chain.alphabet), 16_000)


def grid(side: int = 16, steps: int = 3_200, stay: float = 0.6) -> Case:
    """A walk on a grid: stay, or go to one of the eight cells around; sparse."""
    size = side * side
    row, column = np.divmod(np.arange(size), side)
    near, entries = [], []
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            there = np.clip(row + down, 0, side - 1) * side + np.clip(column + right, 0, side - 1)
            near.append(there)
            entries.append(np.full(size, stay if down == right == 0 else (1 - stay) / 8))
    whence = np.tile(np.arange(size), len(near))
    moves = sparse.csr_array(
        (np.concatenate(entries), (whence, np.concatenate(near))), shape=(size, size)
    )
    alphabet = sf.Alphabet.grid(side, side)
    chain = sf.MarkovChain.from_matrix(moves, alphabet=alphabet, floor=1e-4 / size)
    return Case(f"grid of {side} x {side}", chain, sf.loss.euclidean(alphabet), steps)


def fitted() -> Case:
    """A chain fitted to made-up days: rooms of a house, order 1, 12 symbols of uneven use."""
    rng = np.random.default_rng(3)
    rooms = [f"room{place}" for place in range(12)]
    habits = rng.dirichlet(0.3 * np.ones(12), 12) * 0.4 + 0.6 * np.eye(12)
    days = []
    for _ in range(300):
        place, day = int(rng.integers(12)), []
        for _ in range(96):
            day.append(rooms[place])
            place = int(rng.choice(12, p=habits[place]))
        days.append(day)
    chain = sf.MarkovChain.fit(days, alphabet=sf.Alphabet(rooms), floor=1e-5)
    return Case("fitted, 12 rooms", chain, sf.loss.hamming(chain.alphabet), 16_000)
