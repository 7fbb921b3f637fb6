"""What the next step of a stream may leak, inside compiled loops: the rules of `budgets.py`.

The same operations in the same order, so that a loop grants what the rule grants to the last bit.
What does not change from step to step is worked out once, in Python, by the rule's own words.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.budgets import FLOOR, Budget, Geometric, Horizon, PerPeriod, PerStep, Window
from sfumato.core.bursts import Bursts, WindowBursts
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.errors import InvalidParameter
from sfumato.core.ledger import Ledger
from sfumato.core.numerics import UNIT

CONSTANT, HORIZON, GEOMETRIC, WINDOW, BURSTS = 0, 1, 2, 3, 4
_KIND, _VALUES, _STEPS, _EVERY, _WIDTH, _BATCHES = range(6)
_LIMIT, _MOST, _CAP, _EACH, _ROOM, _PART = range(6)


class AllowanceRule(NamedTuple):
    """A budget as the loops take it.

    Attributes:
        counts: Kind of the rule, values of a batch, steps of a horizon, steps from one burst to
            the next (0: there are no bursts), width of a window, batches that meet one.
        amounts: A row for each certificate: the limit, the most that any step may leak, the cap of
            a burst, the even share of a value in a window, what a window leaves before anything is
            charged, the part of what is left (or, of the first burst, how many times the others).
    """

    counts: Ints
    amounts: Floats

    @classmethod
    def of(cls, budget: Budget, most: tuple[float, float], values: int) -> AllowanceRule:
        """The rule of a budget for batches of `values`, of which none leaks more than `most`."""
        counts, amounts = np.zeros(6, dtype=np.int64), np.full((2, 6), math.inf)
        counts[_VALUES] = values
        amounts[:, _LIMIT], amounts[:, _MOST] = budget.limits, most
        match budget:
            case Bursts():
                counts[_KIND], counts[_STEPS] = BURSTS, budget.steps
                amounts[:, _PART] = budget.first
            case Horizon():
                counts[_KIND], counts[_STEPS] = HORIZON, budget.steps
            case Geometric():
                counts[_KIND] = GEOMETRIC
                amounts[:, _PART] = 1 - budget.ratio**values
            case PerPeriod():
                rule = "not be for periods of time: loops do not know when a value was"
                raise InvalidParameter("budget", budget, rule)
            case WindowBursts() | PerStep():
                # Outside of pauses these never look at what was spent.
                due = budget.allowance(Ledger(), values, values)
                amounts[:, _LIMIT] = due.sip, math.inf if due.ldp is None else due.ldp
            case Window():
                counts[_KIND], counts[_WIDTH] = WINDOW, budget.width
                counts[_BATCHES] = 1 + -(-(budget.width - 1) // values)
                amounts[:, _EACH] = budget.limits / counts[_BATCHES] / values
                amounts[:, _ROOM] = budget.limits
                if budget.width > 1:
                    kept = (budget.width - 1 + values - 1) * (FLOOR * amounts[:, _EACH])
                    with np.errstate(invalid="ignore"):
                        amounts[:, _ROOM] = budget.limits - kept
        if isinstance(budget, Bursts | WindowBursts):
            counts[_EVERY] = budget.every
            amounts[0, _CAP] = math.inf if budget.cap is None else budget.cap.epsilon * values
        return cls(counts, amounts)


@njit(**IN_PLACE, forceinline=True)
def next_up(value: float) -> float:
    """The next float above one that is not negative."""
    if not value < math.inf:
        return value
    return float(np.int64(np.float64(value).view(np.int64) + 1).view(np.float64))


@njit(**IN_PLACE, forceinline=True)
def next_down(value: float) -> float:
    """The next float below a positive one; 0 stays."""
    if not 0.0 < value < math.inf:
        return value
    return float(np.int64(np.float64(value).view(np.int64) - 1).view(np.float64))


@njit(**IN_PLACE, forceinline=True)
def pauses(counts: Ints, count: int, recent: Floats, stream: int) -> bool:
    """Whether the next step only lets the best constant leave, between two bursts."""
    back = counts[_EVERY] - counts[_VALUES]
    if back <= 0 or (counts[_KIND] == BURSTS and count >= counts[_STEPS]):
        return False
    keep = recent.shape[1]
    for place in range(max(keep - back, 0), keep):
        if recent[stream, place, 0] > 0.0 or recent[stream, place, 1] > 0.0:
            return True
    return False


@njit(**IN_PLACE, forceinline=True)
def _left(limit: float, spent: float) -> float:
    """`budgets.what_is_left`."""
    return max(0.0, limit - spent - 8 * UNIT * limit) if spent != 0.0 else limit


@njit(**IN_PLACE, forceinline=True)
def _window(
    counts: Ints, amounts: Floats, count: int, recent: Floats, stream: int, kind: int
) -> float:
    """`budgets._window_share`."""
    values, width, batches = counts[_VALUES], counts[_WIDTH], counts[_BATCHES]
    limit, each, bound = amounts[kind, _LIMIT], amounts[kind, _EACH], amounts[kind, _ROOM]
    keep, spent = recent.shape[1], 0.0
    known = min(count, keep)
    for back in range(1, known + 1):
        due = recent[stream, keep - back, kind]
        spent = spent + due if spent == 0.0 or due == 0.0 else next_up(spent + due)
        ahead = width - back - values
        reserved = (ahead + values - 1) * (FLOOR * each) if ahead > 0 else 0.0 * each
        bound = min(bound, _left(limit, spent) - reserved)
    left_over = each * known - spent
    beyond = min(0.0, each * (known + values - 1) - spent)
    wish = each * values + (left_over if left_over > 0.0 else beyond) / batches
    return float(max(0.0, min(max(wish, FLOOR * each * values), bound)))


@njit(**IN_PLACE, forceinline=True)
def allowance(
    counts: Ints,
    amounts: Floats,
    count: int,
    spent: float,
    recent: Floats,
    stream: int,
    kind: int,
) -> float:
    """What the next batch may leak under one certificate, outside of pauses.

    Args:
        counts: Those of an `AllowanceRule`.
        amounts: Those of an `AllowanceRule`.
        count: Steps of the stream so far.
        spent: What was spent so far.
        recent: The last charges of every stream.
        stream: The stream.
        kind: 0 under the model, 1 whatever the model.
    """
    limit, rule, values = amounts[kind, _LIMIT], counts[_KIND], counts[_VALUES]
    if math.isinf(limit):
        return float(amounts[kind, _MOST])
    share, left = limit, counts[_STEPS] - count
    if rule in (HORIZON, BURSTS):
        share = 0.0
        if left > 0:
            share = _left(limit, spent)
            if rule == HORIZON:
                if left > values:
                    share = next_down(share / left * values)
            else:
                bursts = -(-left // max(counts[_EVERY], values))
                if bursts > 1:
                    first = amounts[kind, _PART]
                    parts = float(bursts) if spent != 0.0 else (first + (bursts - 1)) / first
                    share = next_down(share / parts)
    elif rule == GEOMETRIC:
        share = amounts[kind, _PART] * _left(limit, spent)
    elif rule == WINDOW:
        share = _window(counts, amounts, count, recent, stream, kind)
    return float(min(share, amounts[kind, _CAP], amounts[kind, _MOST]))
