r"""Rivals that need no prior: one report a person, from which frequencies are estimated.

A report is a set of symbols: one for k-ary randomised response, any for unary encoding, a fixed
number for subset selection. In all three the true symbol is in the report with one probability
$p$ and any other symbol with another, $q$, so a count $c$ of $N$ reports estimates a frequency
without bias as $(c/N - q)/(p - q)$.

Parameters are integers out of $2^{62}$, rounded to the private side, and leakages are computed
from them: model-free, and under a prior, where less is told because something was known.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.core.guarantees import LDP, LIP
from sfumato.core.numerics import UNIT, log_up
from sfumato.core.randomness import BITS, Randomness

Reports = Bools

_WHOLE = 2**BITS
Kind = TypeVar("Kind", bound="Reporting")


@dataclass(frozen=True, slots=True)
class Reporting(ABC):
    """Reports of sets of symbols.

    Attributes:
        size: Number of symbols.
    """

    size: int

    def __post_init__(self) -> None:
        checks.count("size", self.size, at_least=2)
        self._check()
        high, low = self.odds
        if not (0 < low <= high < 1):
            rule = "favour the truth, and leave every report possible"
            raise InvalidParameter("weights", (high, low), rule)

    @abstractmethod
    def _check(self) -> None:
        """Say what the weights must be, for the odds to be those of what is drawn."""

    @property
    @abstractmethod
    def shown(self) -> tuple[float, float]:
        """Probability that a symbol is in the report: when it is true, and when another is."""

    @property
    @abstractmethod
    def odds(self) -> tuple[float, float]:
        """How much a report that has a symbol, and one that has not, favours it, up to a factor."""

    @property
    def local(self) -> LDP:
        """Exact model-free leakage, rounded up."""
        high, low = self.odds
        return LDP(log_up(high / low, self._error))

    def leakage(self, prior: ArrayLike) -> LIP:
        """Exact leakage under a prior, rounded up."""
        belief = checks.belief("prior", prior, self.size)
        high, low = self.odds
        least, most = self._masses(np.sort(belief / belief.sum()))
        above = high / (least * high + (1 - least) * low)
        below = (most * high + (1 - most) * low) / low
        return LIP(log_up(max(above, below), self._error + (4 * self.size + 8) * UNIT))

    @abstractmethod
    def _masses(self, prior: Floats) -> tuple[float, float]:
        """The least probability of a report's symbols, with one true; the largest, with none."""

    @property
    def _error(self) -> float:
        return 16 * UNIT

    @abstractmethod
    def _draw(self, values: Ints, randomness: Randomness) -> Reports:
        """Reports of checked values."""

    def report(self, values: ArrayLike, randomness: Randomness) -> Reports:
        """One report for each value, a row each: which symbols it has.

        Raises:
            UnknownSymbol: If a value is no place of a symbol; it is not quoted.
        """
        places = np.atleast_1d(np.asarray(values))
        if places.ndim != 1 or (places.size and places.dtype.kind not in "iu"):
            raise UnknownSymbol(self.size, "values")
        if places.size and not np.all((places >= 0) & (places < self.size)):
            raise UnknownSymbol(self.size, "values")
        return self._draw(places.astype(np.int64), randomness)

    def estimate_counts(self, counts: ArrayLike, people: int) -> Floats:
        """Frequencies from how many reports have each symbol: no bias, maybe outside [0, 1]."""
        shown, false = self.shown
        share = np.asarray(counts) / checks.count("people", people)
        return np.asarray((share - false) / (shown - false))

    def variance(self, frequency: float, people: int) -> float:
        """Variance of an estimate of a frequency from the reports of so many people."""
        share = checks.fraction("frequency", frequency)
        shown, false = self.shown
        each = share * shown * (1 - shown) + (1 - share) * false * (1 - false)
        return each / (checks.count("people", people) * (shown - false) ** 2)


@dataclass(frozen=True, slots=True)
class KaryResponse(Reporting):
    """K-ary randomised response: the true symbol, or any other, evenly.

    Attributes:
        other: Weight of each wrong symbol, out of 2**62.

    Examples:
        >>> response = KaryResponse.at(4, 1.0)
        >>> response.local.epsilon <= 1.0, response.shown
        (True, (0.475367, 0.174878))
    """

    other: int

    def _check(self) -> None:
        if checks.count("other", self.other) * self.size > _WHOLE:
            raise InvalidParameter("other", self.other, "be at most 2**62 over the symbols")

    @classmethod
    def at(cls, size: int, epsilon: float) -> KaryResponse:
        """The response of a given model-free leakage."""
        budget = checks.epsilon("epsilon", epsilon)
        # Rounded to the private side: wrong symbols get more.
        weight = math.ceil(_WHOLE / (portable.exp(budget) + checks.count("size", size) - 1))
        return _lowered(lambda step: cls(size, weight + step), budget)

    @property
    def shown(self) -> tuple[float, float]:
        """Of the true symbol, and of any other."""
        return (_WHOLE - (self.size - 1) * self.other) / _WHOLE, self.other / _WHOLE

    @property
    def odds(self) -> tuple[float, float]:
        """A report favours the symbol it has."""
        return self.shown

    def _masses(self, prior: Floats) -> tuple[float, float]:
        return float(prior[0]), float(prior[-1])

    def _draw(self, values: Ints, randomness: Randomness) -> Reports:
        coins = (randomness.words(values.size) >> np.uint64(64 - BITS)).astype(np.int64)
        # The lowest coins tell one of the other symbols, in turn; the rest tells the truth.
        turn = coins // self.other
        lied = turn < self.size - 1
        told = np.where(lied, (values + 1 + np.minimum(turn, self.size)) % self.size, values)
        reports = np.zeros((values.size, self.size), dtype=np.bool_)
        reports[np.arange(values.size), told] = True
        return reports


@dataclass(frozen=True, slots=True)
class UnaryEncoding(Reporting):
    """Optimised unary encoding: the true symbol with probability 1/2, each other one rarely.

    Attributes:
        false: Weight of a wrong symbol, out of 2**62.

    Examples:
        >>> UnaryEncoding.at(4, 1.0).shown
        (0.5, 0.268941)
    """

    false: int

    def _check(self) -> None:
        if checks.count("false", self.false) > _WHOLE // 2:
            raise InvalidParameter("false", self.false, "be at most 2**61")

    @classmethod
    def at(cls, size: int, epsilon: float) -> UnaryEncoding:
        """The encoding of a given model-free leakage."""
        budget = checks.epsilon("epsilon", epsilon)
        weight = math.ceil(_WHOLE / (portable.exp(budget) + 1))
        return _lowered(lambda step: cls(size, weight + step), budget)

    @property
    def shown(self) -> tuple[float, float]:
        """Of the true symbol, and of any other."""
        return 0.5, self.false / _WHOLE

    @property
    def odds(self) -> tuple[float, float]:
        """Of a symbol that is in the report, and of one that is not."""
        return (_WHOLE - self.false) / _WHOLE, self.false / _WHOLE

    def _masses(self, prior: Floats) -> tuple[float, float]:
        return float(prior[0]), float(1 - prior[0])

    def _draw(self, values: Ints, randomness: Randomness) -> Reports:
        words = randomness.words(values.size * self.size).reshape(values.size, self.size)
        coins = (words >> np.uint64(64 - BITS)).astype(np.int64)
        limit = np.full(coins.shape, self.false, dtype=np.int64)
        limit[np.arange(values.size), values] = _WHOLE // 2
        return np.asarray(coins < limit)


@dataclass(frozen=True, slots=True)
class SubsetSelection(Reporting):
    """Subset selection: a set of fixed size that has the true symbol more often than not.

    Attributes:
        chosen: Symbols in a report.
        kept: Weight of sets with the true symbol, out of 2**62.

    Examples:
        >>> selection = SubsetSelection.at(10, 1.0)
        >>> selection.chosen, selection.local.epsilon <= 1.0
        (3, True)
    """

    chosen: int
    kept: int

    def _check(self) -> None:
        if not 1 <= checks.count("chosen", self.chosen) < self.size:
            raise InvalidParameter("chosen", self.chosen, f"lie in [1, {self.size - 1}]")
        if checks.count("kept", self.kept) >= _WHOLE:
            raise InvalidParameter("kept", self.kept, "be less than 2**62")

    @classmethod
    def at(cls, size: int, epsilon: float, chosen: int | None = None) -> SubsetSelection:
        """The selection of a given model-free leakage, of the best size if not given."""
        budget = checks.epsilon("epsilon", epsilon)
        count = checks.count("size", size, at_least=2)
        best = min(max(1, round(count / (portable.exp(budget) + 1))), count - 1)
        drawn = best if chosen is None else chosen
        part = drawn * portable.exp(budget)
        weight = math.floor(_WHOLE * (part / (part + count - drawn)))
        return _lowered(lambda step: cls(count, drawn, weight - step), budget)

    @property
    def shown(self) -> tuple[float, float]:
        """Of the true symbol, and of any other."""
        true = self.kept / _WHOLE
        other = (true * (self.chosen - 1) + (1 - true) * self.chosen) / (self.size - 1)
        return true, other

    @property
    def odds(self) -> tuple[float, float]:
        """Of a symbol in the set, and of one outside."""
        true = self.kept / _WHOLE
        return true / self.chosen, (1 - true) / (self.size - self.chosen)

    @property
    def _error(self) -> float:
        # Others are drawn by sorting 64-bit words: equal ones, which are that rare, favour some.
        return 16 * UNIT + self.size**2 * 2.0**-62

    def _masses(self, prior: Floats) -> tuple[float, float]:
        return float(prior[: self.chosen].sum()), float(prior[-self.chosen :].sum())

    def _draw(self, values: Ints, randomness: Randomness) -> Reports:
        people = np.arange(values.size)
        coins = (randomness.words(values.size) >> np.uint64(64 - BITS)).astype(np.int64)
        keeps = coins < self.kept
        keys = randomness.words(values.size * self.size).reshape(values.size, self.size)
        order = np.argsort(keys, axis=1, kind="stable")
        rank = np.empty(order.shape, dtype=np.int64)
        np.put_along_axis(rank, order, np.arange(self.size)[None, :], axis=1)
        # Ranks among the others alone: the true symbol is taken out of the order.
        own = rank[people, values][:, None]
        rank -= rank > own
        reports = rank < (self.chosen - keeps)[:, None]
        reports[people, values] = keeps
        return reports


def _lowered(make: Callable[[int], Kind], epsilon: float) -> Kind:
    """The first of ever more private parameters whose exact leakage is within the budget."""
    step = 0
    while (found := make(step)).local.epsilon > epsilon:
        step = 2 * step + 2**16
    return found
