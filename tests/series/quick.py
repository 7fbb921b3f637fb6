"""Many short simulations: coins from large blocks, and a plan that is hashed once."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Address, Randomness, seeded
from sfumato.series.series_methods import AnyMethod


class Quick:
    """Coins for many short simulations: drawn from a large block of seeded ones."""

    simulated = True
    addressed = False

    def __init__(self, seed: int) -> None:
        self._source = seeded(seed)
        self._ready = self._source.words(0)

    def words(self, count: int) -> NDArray[np.uint64]:
        if count > self._ready.size:
            self._ready = self._source.words(1 << 16)
        taken, self._ready = self._ready[:count], self._ready[count:]
        return taken

    def word(self) -> int:
        return int(self.words(1)[0])

    def at(self, address: Address) -> Randomness:
        return self


def simulations(method: AnyMethod, series: Iterable[float], count: int, seed: int = 1) -> Floats:
    """Independent releases of one series, one row each."""
    coins = method.own_coins(Quick(seed), "simulated", Purpose.SIMULATION)
    values = [float(value) for value in series]
    runs = (method.answers(method.memory(), 0, values, coins) for _ in range(count))
    return np.array([[event.released for event in run] for run in runs], dtype=np.float64)
