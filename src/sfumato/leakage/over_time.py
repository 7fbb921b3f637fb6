"""What each release of a sequence really leaks of its own moment, given all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _checks
from sfumato._numerics import add_up, up
from sfumato.errors import InvalidParameter
from sfumato.guarantees import TemporalDP
from sfumato.leakage.temporal import LossFunction, checked_budgets
from sfumato.models.backward import backward_matrix
from sfumato.models.markov import MarkovChain

Floats = NDArray[np.float64]
Losses = LossFunction | Sequence[LossFunction]
"""One loss function for all steps, or one for each step from one moment to the next."""
_MOST_TUPLES = 4096


@dataclass(frozen=True, slots=True, eq=False)
class TemporalLeakage:
    """Leakage of every release of a sequence, in nats, rounded up.

    Attributes:
        epsilons: Of each release by itself, as if nothing were correlated.
        backward: Through the releases up to it (BPL).
        forward: Through the releases from it on (FPL).
        total: Through all of them (TPL).

    References:
        [TPL, Def. 5, Def. 6 and Def. 7]
    """

    epsilons: Floats
    backward: Floats
    forward: Floats
    total: Floats

    @classmethod
    def joined(cls, epsilons: Floats, backward: Floats, forward: Floats) -> TemporalLeakage:
        """Both directions together; what each release leaks by itself counts once."""
        with np.errstate(invalid="ignore"):  # an infinite leakage is one, whatever is taken off
            total = np.nextafter(backward + (forward - epsilons), np.inf)
        total = np.where(np.isinf(backward) | np.isinf(forward), np.inf, total)
        total = np.where(forward == epsilons, backward, total)
        total = np.where(backward == epsilons, forward, total)
        arrays = (epsilons, backward, forward, total)
        return cls(*(_checks.read_only(array) for array in arrays))

    @property
    def event(self) -> TemporalDP:
        """The guarantee for any single moment."""
        return TemporalDP(float(self.total.max()))

    @property
    def user(self) -> TemporalDP:
        """The guarantee for all moments of a person together: correlation adds nothing."""
        return self.window(len(self.epsilons))

    def window(self, width: int) -> TemporalDP:
        r"""The guarantee for any so many successive moments together.

        $$\alpha^B_t + \alpha^F_{t+j} + \sum_{t < k < t+j} \epsilon_k$$

        References:
            [TPL, Thm. 3 and Cor. 1]
        """
        length = _checks.count("width", width)
        if length > len(self.epsilons):
            raise InvalidParameter("width", width, f"be at most {len(self.epsilons)}, all releases")
        if length == 1:
            return self.event
        sums = np.concatenate([[0.0], np.cumsum(self.epsilons)])
        last = np.arange(length - 1, len(self.epsilons))
        first = last - length + 1
        inner = sums[last] - sums[first + 1]
        found = self.backward[first] + self.forward[last] + np.maximum(inner, 0.0)
        # Running sums are right within a unit for each term.
        slack = 1 + 4 * len(self.epsilons) * 2.0**-53
        return TemporalDP(up(float(found.max()) * slack))


def temporal_leakage(epsilons: ArrayLike, backward: Losses, forward: Losses) -> TemporalLeakage:
    """Leakage of every release of a sequence under correlation.

    The sum of both directions is a bound where their worst cases differ.

    Args:
        epsilons: Leakage of each release by itself.
        backward: Loss function of the backward matrix, where row is the later value; one, or one
            for each of the steps 1 to 2, 2 to 3, and so on.
        forward: The same of the forward matrix, where row is the earlier value.

    Examples:
        >>> chain = LossFunction.of([[0.8, 0.2], [0.0, 1.0]])
        >>> told = temporal_leakage([0.1] * 10, chain, chain)
        >>> float(told.backward[-1]), told.event.alpha, told.user.alpha
        (0.4963885, 0.6368412, 1.0)

    References:
        [TPL, Eq. 11, Eq. 13 and Eq. 15]
    """
    given = checked_budgets(epsilons)
    told = _accumulated(given, backward)
    later = _accumulated(given[::-1], _turned(forward))[::-1]
    return TemporalLeakage.joined(given, told, later)


def worst_of(leakages: Sequence[TemporalLeakage]) -> TemporalLeakage:
    """The largest leakage at each moment, of users with different chains or of possible chains.

    References:
        [TPL, Def. 5 and Sec. 3.5]
    """
    if not leakages or len({len(one.epsilons) for one in leakages}) != 1:
        raise InvalidParameter("leakages", len(leakages), "be at least one, of one length")
    return TemporalLeakage(
        *(
            _checks.read_only(np.max([getattr(one, name) for one in leakages], axis=0))
            for name in ("epsilons", "backward", "forward", "total")
        )
    )


def _turned(losses: Losses) -> Losses:
    return losses if isinstance(losses, LossFunction) else list(losses)[::-1]


def _accumulated(epsilons: Floats, losses: Losses) -> Floats:
    if isinstance(losses, LossFunction):
        return losses.accumulated(epsilons)
    if len(losses) != epsilons.size - 1:
        rule = f"be one, or {epsilons.size - 1}, one for each step between two releases"
        raise InvalidParameter("losses", len(losses), rule)
    found = [float(epsilons[0])]
    for loss, epsilon in zip(losses, epsilons[1:], strict=True):
        found.append(loss.after(found[-1], float(epsilon)))
    return np.array(found)


def chain_leakage(chain: MarkovChain, epsilons: ArrayLike) -> TemporalLeakage:
    r"""The same for a stationary chain of any order.

    At order $m$ the $m$ values before a moment say all that the past says of it. What releases
    leak of such a tuple is bounded by the sum of the budgets of its own moments and what
    carries over from the tuple before it, $m$ steps earlier; and what carries over from a
    tuple to the value beside it is again a loss function.

    Examples:
        >>> from sfumato.models.markov import MarkovChain
        >>> told = chain_leakage(MarkovChain.from_matrix([[0.8, 0.2], [0.1, 0.9]]), [0.1] * 5)
        >>> told.event.alpha
        0.3402023

    References:
        [TPL, Sec. 3.1]
    """
    given = checked_budgets(epsilons)
    told = _through_past(chain, given)
    later = _through_past(chain.reversed(), given[::-1])[::-1]
    return TemporalLeakage.joined(given, told, later)


def _through_past(chain: MarkovChain, epsilons: Floats) -> Floats:
    """Leakage of each moment through the releases up to it."""
    size, order = chain.size, chain.order
    if size**order > _MOST_TUPLES:
        raise InvalidParameter("chain", size**order, f"have at most {_MOST_TUPLES} contexts")
    share = chain.stationary().ravel()
    forward = chain.transition()
    beside = LossFunction.of(backward_matrix(forward, share))
    if order == 1:
        return beside.accumulated(epsilons)
    between = LossFunction.of(backward_matrix(_steps(forward, size, order), share))
    tuples: list[float] = []
    found: list[float] = []
    for place, epsilon in enumerate(epsilons.tolist()):
        found.append(_plus(beside(tuples[-1]) if tuples else 0.0, epsilon))
        carried = between(tuples[place - order]) if place >= order else 0.0
        tuples.append(_plus(carried, *epsilons[max(0, place - order + 1) : place + 1].tolist()))
    return np.array(found)


def _steps(forward: Floats, size: int, order: int) -> Floats:
    """From tuples of values to the next tuples that share none with them."""
    lifted = np.zeros((size**order, size**order))
    for place, row in enumerate(forward):
        start = (place * size) % size**order
        lifted[place, start : start + size] = row
    return np.asarray(np.linalg.matrix_power(lifted, order))


def _plus(*terms: float) -> float:
    total = 0.0
    for term in terms:
        total = add_up(total, term)
    return total
