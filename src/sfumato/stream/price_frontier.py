"""What accuracy costs in leakage: far-sighted streams at several prices of a nat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.loss import Loss
from sfumato.models.markov import MarkovChain
from sfumato.solver.value_function import ValueFunction
from sfumato.stream.look_ahead import look_ahead
from sfumato.stream.partition.batch_loss import BatchLoss

if TYPE_CHECKING:
    from sfumato.solver.value_iteration import Effort

_TIMES = (0.125, 0.25, 0.5, 1.0, 2.0)
"""Prices that are tried, as parts of what a nat buys on average without one."""
_POINTS = 401
"""Beliefs of two symbols that the long run is computed on."""


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """A stream under one price of a nat.

    Attributes:
        price: What a nat costs, in units of the loss; None for the step-wise release, which looks
            at no price.
        loss: Mean loss of a step.
        loss_error: Its standard error; 0 where it is computed.
        charge: Mean leakage of a step, in nats.
        charge_error: Its standard error.
        sight: The value function, for a plan with this price.
    """

    price: float | None
    loss: float
    loss_error: float
    charge: float
    charge_error: float
    sight: ValueFunction = field(repr=False)


@dataclass(frozen=True, slots=True)
class Frontier:
    """What streams lose and leak under one cap on each step.

    Attributes:
        step_wise: Each step at its own best.
        points: Far-sighted, by rising price.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.95, 0.05], [0.05, 0.95]])
        >>> loss = sf.loss.hamming(chain.alphabet)
        >>> found = sf.stream.frontier(chain, loss, 2.0, prices=[0.0, 0.3])
        >>> found.step_wise.charge <= 2.0, len(found.points)
        (True, 2)
    """

    step_wise: FrontierPoint
    points: tuple[FrontierPoint, ...]

    def within(self, charge: float) -> FrontierPoint:
        """The point of least loss among those, step-wise included, that leak at most `charge`.

        Where all leak more, the one that leaks least.
        """
        everything = (self.step_wise, *self.points)
        least = min(point.charge for point in everything)
        fitting = [point for point in everything if point.charge <= max(charge, least)]
        return min(fitting, key=lambda point: point.loss)


def frontier(
    model: MarkovChain,
    loss: Loss | BatchLoss,
    epsilon: float,
    prices: Sequence[float] | None = None,
    *,
    width: int = 1,
    steps: int = 600,
    effort: Effort | None = None,
) -> Frontier:
    """Loss against mean charge, price by price, on streams from the model.

    Computed for two symbols one by one, simulated with standard errors for more.

    Args:
        model: A chain that `look_ahead` takes.
        loss: Of single values, or of batches.
        epsilon: What a step may leak.
        prices: Of a nat, in units of the loss; without them, 0 and parts of what a nat buys.
        width: Values of a batch.
        steps: Steps of a simulated stream.
        effort: How much is done for each value function.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.95, 0.05], [0.05, 0.95]])
        >>> found = frontier(chain, sf.loss.hamming(chain.alphabet), 2.0, prices=[0.0, 0.3])
        >>> [(round(one.loss, 3), round(one.charge, 2)) for one in found.points]
        [(0.047, 2.0), (0.139, 0.35)]
    """
    free = _point(model, loss, epsilon, 0.0, width, steps, effort)
    zeros = np.zeros((1, free.sight.vectors.shape[1]))
    blind = replace(free.sight, vectors=zeros, channels=np.ones((1, len(free.sight.losses), 1)))
    near = replace(_measured(blind, blind, steps), price=None)
    asked = [checks.finite("prices", price) for price in prices or ()]
    if prices is None:
        silence = float((_settled(free.sight) @ free.sight.losses).min())
        bought = max(silence - free.loss, 0.0) / max(free.charge, 1e-9)
        asked = [0.0, *(part * bought for part in _TIMES)] if bought > 0 else [0.0]
    points = [
        free if price == 0 else _point(model, loss, epsilon, price, width, steps, effort)
        for price in sorted(set(asked))
    ]
    return Frontier(near, tuple(points))


def _point(
    model: MarkovChain,
    loss: Loss | BatchLoss,
    epsilon: float,
    price: float,
    width: int,
    steps: int,
    effort: Effort | None,
) -> FrontierPoint:
    sight = look_ahead(model, loss, epsilon, price=price, width=width, effort=effort)
    return _measured(sight, sight, steps)


def _measured(value: ValueFunction, guide: ValueFunction, steps: int) -> FrontierPoint:
    from sfumato.solver.far_sighted import FarSight
    from sfumato.solver.sight_walks import walk, without_luck

    if value.is_grid:
        loss, charge = long_run_of_bits(value)
        return FrontierPoint(value.price, loss, 0.0, charge, 0.0, value)
    seen = walk(value, steps, np.random.default_rng(2), FarSight(guide))
    losses, charges = without_luck(seen.losses, seen.luck), without_luck(seen.charges, seen.luck)
    return FrontierPoint(value.price, *losses, *charges, value)


def long_run_of_bits(value: ValueFunction) -> tuple[float, float]:
    """Mean loss and mean leakage of a step of two symbols, from its channels on a grid of beliefs.

    The belief after an output is read as a mixture of its neighbours on the grid: a finite chain,
    whose long run is computed.
    """
    from sfumato.solver.far_sighted import FarSight
    from sfumato.solver.sight_loops import channel_leakage

    sight, moves = FarSight(value), np.zeros((_POINTS, _POINTS))
    losses, charges = np.empty(_POINTS), np.empty(_POINTS)
    for row, chance in enumerate(np.linspace(1e-9, 1 - 1e-9, _POINTS)):
        belief = np.array([1 - chance, chance])
        step = sight.step(belief, value.epsilon)
        masses = belief[:, None] * step.rows
        losses[row] = (masses * value.losses[:, step.symbols]).sum()
        charges[row] = channel_leakage(step.rows, belief)
        for mass in masses.T:
            place = float((mass @ value.transition)[1] / mass.sum()) * (_POINTS - 1)
            left = min(int(place), _POINTS - 2)
            moves[row, left] += mass.sum() * (left + 1 - place)
            moves[row, left + 1] += mass.sum() * (place - left)
    far = np.linalg.matrix_power(moves / moves.sum(axis=1, keepdims=True), 2**14)
    shares = far.mean(axis=0)
    return float(shares @ losses), float(shares @ charges)


def _settled(value: ValueFunction) -> Floats:
    from sfumato.solver.far_sighted import FarSight
    from sfumato.solver.sight_walks import long_run

    return FarSight(value).masses(long_run(value))
