r"""Bets against fair coins: an honest release lets a fortune grow K times at most once in K.

`core.fair_coins` has the bet. Here somebody who knows the true values and all that happened before
bets on several ways to cheat, in all rows, in those of one stream, or of one true value: a fortune,
and every mixture of fortunes, is a non-negative martingale that begins with 1. So it ever reaches K
with probability at most 1/K, whenever one stops to look (Ville's inequality), and however the true
values came about.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.fair_coins import LEVEL, SHARES, log_sum, winnings
from sfumato.stream.coin_loops import LEARNT, NEAREST, add_each

WAYS = {
    "gives the nearest possible output": 0.5,
    "keeps the nearer of two draws": 0.1,
    "keeps the nearest of four draws": 0.1,
    "keeps the farther of two draws": 0.05,
    "gives the likeliest output": 0.1,
    "says again what it said last": 0.05,
    "prefers outputs by how near they are": 0.1,
}
"""Ways to cheat, in the order of the loops, and what part of the fortune is bet on each."""
_EVERYWHERE, _STREAMS, _VALUES = 0.8, 0.1, 0.1
"""What part is bet on cheating in all rows, in those of one stream, or of one true value."""
_HELD = 256
_PRINTED = (1.0, 0.5, 0.2, 0.1, 0.05)
_TAIL = 0.05
"""Where fortunes move by rare large jumps an interval holds four of five cases, not nine of ten."""
_FOLLOWED = 100_000
"""Streams, and true values, that are followed one by one."""


@dataclass(frozen=True, slots=True)
class Power:
    """After how many rows a releaser would be found that cheats in some of them.

    Attributes:
        share: In what part of the rows it gives the nearest possible output.
        rows: After how many rows it is found on average; infinite if never.
        low: In nine cases of ten, or nearly so, it is found after this,
        high: and in nine of ten before this.
    """

    share: float
    rows: float
    low: float
    high: float


class Bets:
    """The fortunes of those who bet that coins are unfair.

    Attributes:
        tested: Rows that were looked at.
        best: Logarithm of the largest fortune that was ever reached.
        crossed: The row at which it reached the alarm; None if it never did.

    Examples:
        >>> bets = Bets(level=0.01)
        >>> always_nearest = np.array([2.0, 1.5, 1.9, 0.5, 1.0, 1.0, 1.0])
        >>> for row in range(20):
        ...     bets.add(row + 1, always_nearest, nearest=0.5, stream=0, value=0)
        >>> bets.settle()
        >>> bets.crossed
        11
    """

    def __init__(self, level: float = LEVEL) -> None:
        self.level, self.tested, self.best = checks.proper_fraction("level", level), 0, 0.0
        self.crossed: int | None = None
        self._alarm = -math.log(level)
        ways = np.array(list(WAYS.values()))
        self._shares = np.log(np.outer(ways, np.full(SHARES.size, 1 / SHARES.size)))
        self._all = np.zeros(self._shares.shape)
        self._streams = _Each(self._shares)
        self._values = _Each(self._shares)
        self._ratios = np.ones((_HELD, ways.size))
        self._nearest, self._rows = np.ones(_HELD), np.zeros(_HELD, dtype=np.int64)
        self._owners = np.zeros((2, _HELD), dtype=np.int64)
        self._held = 0
        self._growth, self._squares = np.zeros(len(_PRINTED)), np.zeros(len(_PRINTED))
        self._means = np.zeros(len(_PRINTED))
        self._jumps = np.zeros((2, len(_PRINTED)))

    def add(self, row: int, ratios: Floats, nearest: float, stream: int, value: int) -> None:
        """One more output.

        Args:
            row: Its number, for messages.
            ratios: Its probability under each way to cheat over that under fair coins.
            nearest: Probability that fair coins give one of the nearest outputs.
            stream: Whose it is, counted from 0 as streams appear.
            value: Which true value it is of, counted from 0 likewise.
        """
        place = self._held
        self._ratios[place], self._nearest[place], self._rows[place] = ratios, nearest, row
        self._owners[0, place], self._owners[1, place] = stream, value
        self._held += 1
        if self._held == _HELD:
            self.settle()

    def add_rows(
        self, rows: Ints, ratios: Floats, nearest: Floats, streams: Ints, values: Ints
    ) -> None:
        """Many more outputs: `add` for each."""
        done = 0
        while done < len(rows):
            count = min(_HELD - self._held, len(rows) - done)
            here, there = slice(self._held, self._held + count), slice(done, done + count)
            self._ratios[here], self._nearest[here] = ratios[there], nearest[there]
            self._rows[here] = rows[there]
            self._owners[0, here], self._owners[1, here] = streams[there], values[there]
            self._held, done = self._held + count, done + count
            if self._held == _HELD:
                self.settle()

    def settle(self) -> None:
        """Pay out what was bet until now."""
        count, self._held = self._held, 0
        if not count:
            return
        self.tested += count
        won = winnings(self._ratios[:count])
        fortunes = self._all + np.cumsum(won, axis=0)
        self._all = fortunes[-1]
        # Bets on single streams and values are looked at now and then: a later look is as valid.
        apart = np.logaddexp(
            math.log(_STREAMS) + self._streams.paid(self._owners[0, :count], won),
            math.log(_VALUES) + self._values.paid(self._owners[1, :count], won),
        )
        path = math.log(_EVERYWHERE) + log_sum((fortunes + self._shares).reshape(count, -1))
        path[-1] = np.logaddexp(path[-1], apart)
        if self.crossed is None and path.max() >= self._alarm:
            self.crossed = int(self._rows[np.argmax(path >= self._alarm)])
        self.best = max(self.best, float(path.max()))
        self._add_growth(self._nearest[:count])

    def likeliest(self) -> tuple[str, float]:
        """The way to cheat that has won most, and the share of rows."""
        way, share = np.unravel_index(np.argmax(self._all + self._shares), self._all.shape)
        return list(WAYS)[int(way)], float(SHARES[share])

    def _add_growth(self, nearest: Floats) -> None:
        """How fast the fortune of a bet on the truth would grow, were the releaser so."""
        for place, share in enumerate(_PRINTED):
            # Drawn fairly with probability 1 - share, else one of the nearest outputs.
            hit = (1 - share) * nearest + share
            won = np.log1p(share * (1 / nearest - 1))
            lost = math.log1p(-share) if share < 1 else 0.0
            mean = hit * won + (1 - hit) * lost
            self._growth[place] += mean.sum()
            self._means[place] += (mean**2).sum()
            self._jumps[:, place] += (hit * won).sum(), (hit * won**2).sum()
            self._squares[place] += (hit * won**2 + (1 - hit) * lost**2).sum()

    def power(self, rows: int | None = None) -> list[Power]:
        """After how many rows releasers like this one would be found, by the rows seen here.

        Args:
            rows: All rows, those included that need no coins; the tested ones if not given.
        """
        self.settle()
        count = max(self.tested, rows or 0)
        return [self._found(place, count) for place in range(len(_PRINTED))]

    def _found(self, place: int, count: int) -> Power:
        share = _PRINTED[place]
        if self._growth[place] <= 0.0:
            return Power(share, math.inf, math.inf, math.inf)
        mean = self._growth[place] / count
        spread = max(self._squares[place] / count - mean**2, 0.0)
        between = max(self._means[place] / count - mean**2, 0.0)
        bet = _EVERYWHERE * float(np.exp(self._shares[NEAREST, 0]))
        # The alarm is passed by a jump, as a rule by half of one.
        needed = self._alarm - math.log(bet) + self._jumps[1, place] / self._jumps[0, place] / 2
        rows = float(needed / mean)
        # The walk of a fortune passes a height at times that are inverse Gaussian; that its
        # drift is known from some rows only makes them vary a little more.
        variance = needed * spread / mean**3 + (needed / mean**2) ** 2 * between / count
        if variance <= 0.0:
            return Power(share, rows, rows, rows)
        from scipy.stats import invgauss

        shape = rows**3 / variance
        low, high = invgauss.ppf([_TAIL, 1 - _TAIL], rows / shape, scale=shape)
        return Power(share, rows, float(low), float(high))


class _Each:
    """Bets on cheating in the rows of one owner only, whichever it is."""

    def __init__(self, weights: Floats) -> None:
        self._weights = weights
        self._fortunes = np.zeros((0, *weights.shape))
        self._parts, self._shares = np.zeros(0), np.zeros(0)

    def paid(self, owners: Ints, won: Floats) -> float:
        """Pay out; the logarithm of all fortunes together."""
        followed = owners < _FOLLOWED
        owners, won = owners[followed], won[followed]
        missing = int(owners.max(initial=-1)) + 1 - len(self._parts)
        if missing > 0:
            missing = max(missing, len(self._parts))
            new = np.zeros((missing, *self._weights.shape))
            self._fortunes = np.concatenate([self._fortunes, new])
            self._parts = np.concatenate([self._parts, np.zeros(missing)])
            place = np.arange(1.0, len(self._parts) + 1)
            self._shares = np.log(place * (place + 1))
        add_each(self._fortunes, owners, won)
        touched = np.unique(owners)
        fortunes = self._fortunes[touched] + self._weights
        self._parts[touched] = log_sum(fortunes.reshape(touched.size, -1))
        # The i-th owner to appear has 1/(i(i+1)) of the money, so all together have 1: what
        # belongs to those who have not appeared is still there.
        parts = np.append(self._parts - self._shares, -math.log(self._parts.size + 1))
        return float(log_sum(parts[None, :])[0])


assert len(WAYS) == LEARNT + 1
