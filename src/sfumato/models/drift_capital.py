r"""Capital of those who bet that a model is wrong, since some block: large is proof, at any look.

Let $p_t(y) = \sum_x b_t(x) a_t(y \mid x)$ be the probability of output $y$ under a model given all
that left before, and $q_t$ any distribution chosen before $y_t$ left. Then

$$E\left[\frac{q_t(y_t)}{p_t(y_t)} \,\middle|\, y_1 \dots y_{t-1}\right]
  = \sum_y p_t(y) \frac{q_t(y)}{p_t(y)} \le 1$$

under the model, so the product $M_t^{(c)}$ of these quotients from block $c$ on never grows on
average: a nonnegative supermartingale that begins with 1. So is any mixture of them,

$$E_t = 1 - \sum_{c \le t} w_c + \sum_{c \le t} w_c \sum_j \pi_j M_t^{(c, j)}, \qquad
  w_c = \frac{1}{\log_2(c+2)} - \frac{1}{\log_2(c+3)}$$

where $j$ are bettors with shares $\pi_j$ (`drift_bets.py`) and $w_c$, of sum 1, is the share of the
capital that waits until block $c$. By Ville's inequality $E_t$ ever reaches $1/\alpha$ with
probability at most $\alpha$: over the whole life of a release, and however often somebody looks.
What waits is what makes a late change visible: capital that was lost before it is not missed.

For a set of models $p_t$ is the largest over the set: then no model of the set is far from any
capital, and an alarm says that streams follow none of them. It is assumed that streams do not
depend on each other and that neither the order of rows nor what was suppressed comes from coins.

References: [Ville1939], [Shafer2021], [Shin2024]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.models.drift_bets import Bettor


@dataclass(frozen=True, slots=True, eq=False)
class DriftCapital:
    """What bets against a model made.

    Attributes:
        log_capital: Logarithm of the capital after each block, rounded down.
        alpha: Most probable a false alarm ever is.
        since: The block from which on the change most likely is, seen from the block at which the
            capital was largest.
        best: The bettor that has most of it there.
    """

    log_capital: Floats
    alpha: float
    since: int
    best: Bettor

    @property
    def threshold(self) -> float:
        """Logarithm of the capital at which an alarm is raised."""
        return -portable.log(self.alpha)

    @property
    def alarm(self) -> int | None:
        """The block at whose end the alarm was raised; None if there was none."""
        over = np.flatnonzero(self.log_capital >= self.threshold)
        return int(over[0]) if over.size else None


def drift_capital(
    scores: Floats, bets: Sequence[Bettor], alpha: float, allowance: Floats
) -> DriftCapital:
    """The capital of all bettors together, after each block.

    Args:
        scores: Log probability of each block under the model, given all that left before, or the
            largest over a set of models.
        bets: Who bets against it.
        alpha: Most probable a false alarm may ever be.
        allowance: What rounding may have added to any logarithm until the end of each block.

    Examples:
        >>> other = Bettor("other", 1.0, np.array([0.0, 4.0, 4.0]))
        >>> found = drift_capital(np.zeros(3), [other], 0.01, np.zeros(3))
        >>> found.log_capital[1:].round(2), found.alarm, found.since
        (array([3.33, 7.31]), 2, 0)
    """
    checks.proper_fraction("alpha", alpha)
    if not scores.size or any(one.scores.shape != scores.shape for one in bets):
        raise InvalidParameter("scores", scores.size, "be one for each block, and at least one")
    gains = np.array([one.scores - scores for one in bets])
    shares = portable.log(np.array([one.share for one in bets]))
    waits = _waiting(scores.size)
    weights = portable.log(-np.diff(waits))
    made = _restarted(gains, weights) + shares[:, None]
    total = _log_sum(np.vstack([made, portable.log(waits[1:])]))
    last = int(np.argmax(total))
    ends = np.cumsum(gains, axis=1)
    # What each start would have made until then: that of most capital is the likeliest change.
    begun = ends[:, last : last + 1] - ends[:, : last + 1] + gains[:, : last + 1]
    since = int(np.argmax(_log_sum(begun + shares[:, None]) + weights[: last + 1]))
    best = bets[int(np.argmax(begun[:, since] + shares))]
    return DriftCapital(total - allowance, alpha, since, best)


def _waiting(blocks: int) -> Floats:
    """Share of the capital that no bettor has before the first block, and after each."""
    return 1 / portable.log2(np.arange(2.0, blocks + 3.0))


def _restarted(gains: Floats, weights: Floats) -> Floats:
    """Log capital of each bettor after each block, fresh capital coming at the start of each."""
    made, held = np.empty_like(gains), np.full(len(gains), -np.inf)
    for block in range(weights.size):
        fresh = np.full_like(held, weights[block])
        held = _log_sum(np.stack([held, fresh])) + gains[:, block]
        made[:, block] = held
    return made


def _log_sum(logs: Floats) -> Floats:
    """Logarithm of the sum over rows of what these are logarithms of."""
    most = logs.max(axis=0)
    return np.asarray(most + portable.log(portable.exp(logs - most).sum(axis=0)))
