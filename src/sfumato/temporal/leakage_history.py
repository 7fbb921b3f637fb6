"""Leakage under correlation as releases happen: nothing is computed twice."""

from __future__ import annotations

import numpy as np

from sfumato.core import checks
from sfumato.core.guard import Guarded, guarded
from sfumato.temporal.loss_function import LossFunction
from sfumato.temporal.over_time import TemporalLeakage

_FIRST = 64


class LeakageHistory(Guarded):
    """What every release of a stream leaks so far, kept up to date release by release.

    A new release adds one backward leakage, and raises the forward leakage of those before it:
    the latest most, earlier ones less and less. It is carried back only until a value stays as it
    is; all before it stay, too. (Where two rows of the chain share nothing it never does: then the
    forward leakage is a plain sum, kept as one.)

    Attributes:
        backward: Loss function of the backward matrix.
        forward: Loss function of the forward matrix.

    Examples:
        >>> chain = LossFunction.of([[0.8, 0.2], [0.1, 0.9]])
        >>> history = LeakageHistory(chain, chain)
        >>> for _ in range(5):
        ...     history.charge(0.1)
        >>> history.leakage().event
        TemporalDP(alpha=0.340202)

    References:
        [TPL, Eq. 13 and Eq. 15]
    """

    def __init__(self, backward: LossFunction, forward: LossFunction) -> None:
        self.backward = backward
        self.forward = forward
        self._count = 0
        self._tables = np.zeros((3, _FIRST))
        self._whole = forward.disjoint is not None
        self._revised = 0

    def __len__(self) -> int:
        return self._count

    @property
    def latest(self) -> float:
        """Backward leakage of the last release; 0 before the first."""
        with self._lock:
            return self._latest()

    def _latest(self) -> float:
        return float(self._tables[1, self._count - 1]) if self._count else 0.0

    @property
    def revised(self) -> int:
        """How many forward leakages the last release changed."""
        return self._revised

    @guarded
    def charge(self, epsilon: float) -> None:
        """A release of this leakage by itself has happened."""
        budget = checks.leakage("epsilon", epsilon)
        if self._count == self._tables.shape[1]:
            self._tables = np.concatenate([self._tables, np.zeros_like(self._tables)], axis=1)
        epsilons, told, later = self._tables
        told[self._count] = self.backward.after(self._latest(), budget)
        epsilons[self._count] = budget
        later[self._count] = budget
        self._count += 1
        if not self._whole:
            seen = slice(self._count)
            self._revised = self.forward.carried_back(epsilons[seen], later[seen])

    @guarded
    def leakage(self) -> TemporalLeakage:
        """The leakage of every release so far."""
        epsilons, told, later = (table[: self._count].copy() for table in self._tables)
        if self._whole:
            later = np.cumsum(epsilons[::-1])[::-1] * (1 + self._count * 2.0**-53)
        return TemporalLeakage.joined(epsilons, told, later)
