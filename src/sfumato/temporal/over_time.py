"""What each release of a sequence really leaks of its own moment, given all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import TemporalDP
from sfumato.models.markov import MarkovChain
from sfumato.temporal.backward import backward_matrix
from sfumato.temporal.contexts import context_bounds
from sfumato.temporal.loss_function import LossFunction, checked_budgets

Losses = LossFunction | Sequence[LossFunction]
"""One loss function for all steps, or one for each step from one moment to the next."""
_MOST_VALUES = 4096
# Relative change of a distribution in one step that is rounding alone.
_SAME = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class TemporalLeakage:
    """Leakage of every release of a sequence, in nats, rounded up.

    Attributes:
        epsilons: Of each release by itself, as if nothing were correlated.
        backward: Through the releases up to it (BPL).
        forward: Through the releases from it on (FPL).
        total: Through all of them (TPL).
        narrow: Through all, of every window of 2, 3, ... moments that is not wider than what the
            chain looks back on; none at order 1.
        ends: Where they are not the backward and forward leakage: through a moment's release and
            all before it, of a wide window that begins there; and turned, one that ends there.

    References:
        [TPL, Def. 5, Def. 6 and Def. 7]
    """

    epsilons: Floats
    backward: Floats
    forward: Floats
    total: Floats
    narrow: tuple[Floats, ...] = ()
    ends: tuple[Floats, Floats] | None = None

    @classmethod
    def joined(cls, epsilons: Floats, backward: Floats, forward: Floats) -> TemporalLeakage:
        """Both directions together; what each release leaks by itself counts once."""
        with np.errstate(invalid="ignore"):  # an infinite leakage is one, whatever is taken off
            total = np.nextafter(backward + (forward - epsilons), np.inf)
        total = np.where(np.isinf(backward) | np.isinf(forward), np.inf, total)
        total = np.where(forward == epsilons, backward, total)
        total = np.where(backward == epsilons, forward, total)
        frozen = checks.read_only
        return cls(frozen(epsilons), frozen(backward), frozen(forward), frozen(total))

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
        length = checks.count("width", width)
        if length > len(self.epsilons):
            raise InvalidParameter("width", width, f"be at most {len(self.epsilons)}, all releases")
        return TemporalDP(float(self.windows(length).max()))

    def windows(self, width: int) -> Floats:
        """The leakage of every window of so many successive moments, by its first moment."""
        if width <= 1 + len(self.narrow):
            return (self.total, *self.narrow)[width - 1]
        opening, closing = self.ends or (self.backward, self.forward)
        sums = np.concatenate([[0.0], np.cumsum(self.epsilons)])
        last = np.arange(width - 1, len(self.epsilons))
        first = last - width + 1
        inner = sums[last] - sums[first + 1]
        # Running sums are right within a unit for each term.
        slack = 1 + 4 * len(self.epsilons) * 2.0**-53
        found = opening[first] + closing[last] + np.maximum(inner, 0.0)
        return np.asarray(np.nextafter(found * slack, np.inf))


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
    # The future is the past of the sequence turned around.
    later = _accumulated(given[::-1], _turned(forward))[::-1]
    return TemporalLeakage.joined(given, told, later)


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
    r"""The same for a chain of any order, that begins as the chain says.

    At order 1 the past and the future of a moment are independent given its value, and what both
    tell adds up. At order $m$ they are so only given $m$ successive values: the bound is one over
    all such contexts that agree with the moment, or the window.

    Examples:
        >>> from sfumato.models.markov import MarkovChain
        >>> told = chain_leakage(MarkovChain.from_matrix([[0.8, 0.2], [0.1, 0.9]]), [0.1] * 5)
        >>> told.event.alpha
        0.3402023
        >>> rows = [[0.48, 0.52], [0.05, 0.95], [0.22, 0.78], [0.05, 0.95]]  # after 00, 01, 10, 11
        >>> chain_leakage(MarkovChain.from_matrix(rows), [1.1, 1.8, 1.0]).event.alpha
        2.57686

    References:
        [TPL, Sec. 3.1]
    """
    given = checked_budgets(epsilons)
    if chain.order == 1 and _settled(chain):
        if chain.size > _MOST_VALUES:
            raise InvalidParameter("chain", chain.size, f"have at most {_MOST_VALUES} values")
        forward = chain.transition()
        back = backward_matrix(forward, chain.initial)
        return temporal_leakage(given, LossFunction.of(back), LossFunction.of(forward))
    found = context_bounds(chain, given)
    frozen = checks.read_only
    return TemporalLeakage(
        frozen(given),
        frozen(found.backward),
        frozen(found.forward),
        frozen(found.windows[0]),
        narrow=tuple(frozen(one) for one in found.windows[1:]),
        ends=(frozen(found.opening), frozen(found.closing)),
    )


def _settled(chain: MarkovChain) -> bool:
    """Whether the first value is already distributed as all later ones, but for rounding."""
    moved = chain.spread(chain.initial)
    return bool(np.all(np.abs(moved - chain.initial) <= _SAME * chain.initial))
