"""Value functions by iteration: exactly on a grid for two symbols, on beliefs that occur for more.

Beliefs that occur are those of the far-sighted release itself. It is not known at first, so the
first beliefs come from random questions that spend the whole cap, asked from each symbol on: a
release that keeps silent would never see what telling leads to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.solver.far_sighted import PARTS, FarSight, SightedStep
from sfumato.solver.optimal_channel import cheapest_outputs
from sfumato.solver.sight_loops import best_vector, swept, vector_of
from sfumato.solver.value_function import ValueFunction, from_grid

_CELLS, _SWEEPS = 500, 1500
"""Cells of the grid of two symbols, and sweeps at most."""
_SETTLED = 1e-6
"""Gains of beliefs may differ by this part of the largest loss."""
_TRUSTS = (1.3, 2.0)
"""How far over the cap a vector's channel may leak and be believed; both are tried. Twice the cap
leaks no channel, whatever the belief: all vectors are believed, which few dimensions punish."""
_HELD = 0.95
"""Discount of the first vectors: the cost of one symbol, released for ever."""
_SYMBOLS = 24
"""Beyond this a step takes too long: vectors of groups are not made yet."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is done for a value function of more than two symbols.

    Attributes:
        beliefs: Beliefs of each round of sweeps: few at first, since what matters is the scale.
        depths: Sweeps of each round: steps that are seen ahead.
        walked: Steps of the simulations that beliefs come from.
        judged: Steps of those that decide whether it is better than seeing nothing.
    """

    beliefs: tuple[int, ...] = (40, 80, 80)
    depths: tuple[int, ...] = (30, 15, 15)
    walked: int = 500
    judged: int = 2500


def value_function(
    transition: ArrayLike,
    losses: ArrayLike,
    epsilon: float,
    *,
    price: float = 0.0,
    names: tuple[str, str] = ("", ""),
    effort: Effort = Effort(),  # noqa: B008 - frozen
) -> ValueFunction:
    """The value of beliefs under a cap per step, for ever, by mean cost.

    Args:
        transition: Row = current symbol, column = next one; no zeros.
        losses: Row = true symbol, column = released one.
        epsilon: What a step may leak.
        price: What a nat costs, in units of the loss.
        names: Fingerprints of the chain and the loss.
        effort: How much is done.

    Returns:
        A value function; one that sees nothing ahead if in a simulation it was no better than that.

    Examples:
        >>> sticky = value_function([[0.95, 0.05], [0.05, 0.95]], [[0, 1], [1, 0]], 0.5)
        >>> round(sticky.promised, 3)  # each step at its own best: .276
        0.223
    """
    moves = checks.row_stochastic("transition", transition)
    table = np.asarray(losses, dtype=np.float64)
    if moves.shape[0] != moves.shape[1] or moves.min() <= 0:
        raise InvalidParameter("transition", moves.shape, "be square and without zeros")
    if len(moves) > _SYMBOLS:
        raise InvalidParameter("transition", len(moves), f"have at most {_SYMBOLS} symbols")
    blind = ValueFunction(
        *names,
        epsilon,
        price,
        moves,
        table,
        np.zeros((1, len(moves))),
        np.ones((1, len(moves), 1)),
        _TRUSTS[0],
        0.0,
    )
    return _on_grid(blind) if len(moves) == 2 else _on_beliefs(blind, effort)


def _on_grid(blind: ValueFunction) -> ValueFunction:
    values, largest = np.zeros(_CELLS + 1), float(np.abs(blind.losses).max()) or 1.0
    parts = np.array(PARTS) if blind.price else np.ones(1)
    mean, _ = swept(
        blind.transition,
        blind.losses,
        blind.epsilon * parts,
        blind.price,
        values,
        _SETTLED * largest,
        _SWEEPS,
    )
    vectors = from_grid(values - values.min())
    return replace(blind, vectors=vectors, channels=np.empty((_CELLS, 2, 0)), promised=mean)


def _on_beliefs(blind: ValueFunction, effort: Effort) -> ValueFunction:
    rng = np.random.default_rng(0)
    pool = _explored(blind, effort.walked, rng)
    trained = (_trained(replace(blind, trust=trust), pool, effort, rng) for trust in _TRUSTS)
    found = [blind, *trained]
    # The same coins for all: where they release alike, they differ by nothing.
    costs = [walked(one, effort.judged, np.random.default_rng(1))[0] for one in found]
    best = int(np.argmin(costs))
    return replace(found[best], promised=costs[best]) if best == 0 else found[best]


def _trained(
    blind: ValueFunction, pool: Floats, effort: Effort, rng: np.random.Generator
) -> ValueFunction:
    held = np.linalg.solve(np.eye(blind.size) - _HELD * blind.transition, blind.losses).T
    channels = np.ones((len(held), blind.size, 1))
    value = replace(blind, vectors=held - held.min(), channels=channels)
    for count, depth in zip(effort.beliefs, effort.depths, strict=True):
        places = _spread(pool, count)
        for _ in range(depth):
            value = _backed_up(value, places)
        pool = np.concatenate([walked(value, effort.walked, rng)[1], pool])
    return value


def _backed_up(value: ValueFunction, places: Floats) -> ValueFunction:
    """One sweep: at each place the vector of the best step."""
    sight = FarSight(value)
    steps = [sight.step(place, value.epsilon) for place in places]
    vectors = np.stack([_vector(value, step) for step in steps])
    limit = value.trust * value.epsilon
    before = [best_vector(place, value.vectors, value.channels, limit)[1] for place in places]
    channels = np.zeros((*vectors.shape, max(len(step.symbols) for step in steps)))
    for channel, step in zip(channels, steps, strict=True):
        channel[:, : len(step.symbols)] = step.rows
    gain = float(np.mean([step.value for step in steps]) - np.mean(before))
    return replace(value, vectors=vectors - vectors.min(), channels=channels, promised=gain)


def _vector(value: ValueFunction, step: SightedStep) -> Floats:
    parts = (step.symbols, step.ahead, value.transition, value.losses, value.vectors)
    return np.asarray(vector_of(step.rows, *parts) + value.price * step.spent)


def walked(value: ValueFunction, steps: int, rng: np.random.Generator) -> tuple[float, Floats]:
    """Mean cost of a step in a simulation, price included, and the beliefs that it met.

    The cost of each step is the expected one under its belief, which varies less than that of a
    drawn symbol.
    """
    sight, belief = FarSight(value), _stationary(value.transition)
    total, met = 0.0, np.empty((steps, value.size))
    coins = rng.random(steps)
    for t in range(steps):
        met[t] = belief
        step = sight.step(belief, value.epsilon)
        rows, masses = step.rows, belief[:, None] * step.rows
        total += (masses * value.losses[:, step.symbols]).sum() + value.price * step.spent
        chances = masses.sum(axis=0)
        drawn = min(int((chances.cumsum() <= coins[t] * chances.sum()).sum()), chances.size - 1)
        belief = _followed(belief * rows[:, drawn], value.transition)
    return total / steps, met


def _explored(value: ValueFunction, steps: int, rng: np.random.Generator) -> Floats:
    """Beliefs after random questions, asked from each symbol on."""
    met: list[Floats] = [_stationary(value.transition)]
    each = -(-steps // value.size)
    for start in value.transition:
        belief = start
        for _ in range(each):
            met.append(belief)
            costs = rng.random((value.size, value.size)) * (1 - np.eye(value.size))
            found = cheapest_outputs(belief, costs / belief[:, None], value.epsilon, tolerance=1e-3)
            rows = found.channel.probabilities
            chances = (belief[:, None] * rows).sum(axis=0)
            drawn = rng.choice(chances.size, p=chances / chances.sum())
            belief = _followed(belief * rows[:, drawn], value.transition)
    return np.stack(met)


def _followed(masses: Floats, transition: Floats) -> Floats:
    after = (masses[:, None] * transition).sum(axis=0)
    return np.asarray(after / after.sum())


def _stationary(transition: Floats) -> Floats:
    belief = np.full(len(transition), 1 / len(transition))
    power = transition
    for _ in range(40):  # 2^40 moves
        power = power @ power
        power /= power.sum(axis=1, keepdims=True)
    return _followed(belief, power)


def _spread(pool: Floats, count: int) -> Floats:
    """Beliefs far from each other, by log ratio, that stand for all."""
    logs = np.log(pool)
    chosen, far = [0], np.full(len(pool), np.inf)
    while len(chosen) < min(count, len(pool)):
        far = np.minimum(far, np.abs(logs - logs[chosen[-1]]).max(axis=1))
        chosen.append(int(far.argmax()))
        if far[chosen[-1]] < 1e-6:
            break
    return np.asarray(pool[chosen])
