"""Value functions by iteration: exactly on a grid for two symbols, on beliefs that occur for more.

Beliefs that occur are those of the far-sighted release itself. It is not known at first, so the
first beliefs come from random questions that spend the whole cap, asked from each symbol on: a
release that keeps silent would never see what telling leads to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.solver.binary_sight import swept
from sfumato.solver.far_sighted import FINE_PARTS, GROUPS, FarSight, channels_of
from sfumato.solver.optimal_channel import cheapest_outputs
from sfumato.solver.sight_loops import evaluated, followed, product, which_believed
from sfumato.solver.sight_walks import NEAR, long_run, walked
from sfumato.solver.value_function import BATCHES, CONTEXTS, SYMBOLS, ValueFunction, from_grid

_CELLS, _SWEEPS = 500, 1500
"""Cells of the grid of two symbols, and sweeps at most."""
_SETTLED = 1e-6
"""Gains of beliefs may differ by this part of the largest loss."""
_TRUSTS = (1.3, 2.0)
"""How far over the cap a vector's channel may leak and be believed; both are tried. Twice the cap
leaks no channel, whatever the belief: all vectors are believed, which few dimensions punish."""
_HELD, _AGES = 0.95, 60
"""Discount of the first vectors, the cost of one symbol released for ever, and their terms."""

_ROUGH = 0.99
"""Part of its cost on groups that the step-wise release of many symbols is taken to have."""
_ASKED = 24
"""Symbols, or groups of them, that the first questions tell apart."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is done for a value function of more than two symbols.

    Attributes:
        beliefs: Beliefs of each round of sweeps: few at first, since what matters is the scale.
        depths: Sweeps of each round, in which every belief is given its best channel.
        turns: Sweeps after each of those in which channels stay: steps that are seen ahead.
        walked: Steps of the simulations that beliefs come from.
        judged: Steps of those that decide whether it is better than seeing nothing.
    """

    beliefs: tuple[int, ...] = (40, 80, 80)
    depths: tuple[int, ...] = (4, 4, 4)
    turns: int = 8
    walked: int = 200
    judged: int = 500


_FOR_MANY = Effort(beliefs=(30, 60), depths=(3, 3), walked=100, judged=200)


def value_function(
    transition: ArrayLike,
    losses: ArrayLike,
    epsilon: float,
    *,
    price: float = 0.0,
    width: int = 1,
    names: tuple[str, str] = ("", ""),
    effort: Effort | None = None,
) -> ValueFunction:
    """The value of beliefs under a cap per step, for ever, by mean cost.

    Args:
        transition: Row = context, column = next symbol; no zeros.
        losses: Row = true symbol, or batch, column = released one.
        epsilon: What a step may leak: a batch, where values leave in batches.
        price: What a nat costs, in units of the loss.
        width: Values of a batch, for a chain of order 1.
        names: Fingerprints of the chain and the loss.
        effort: How much is done; less for many symbols, if not given.

    Returns:
        A value function; one that sees nothing ahead if in a simulation it was no better than that.

    Examples:
        >>> sticky = value_function([[0.95, 0.05], [0.05, 0.95]], [[0, 1], [1, 0]], 0.5)
        >>> round(sticky.promised, 3)  # each step at its own best: .276
        0.223
    """
    moves = checks.row_stochastic("transition", transition)
    table = np.asarray(losses, dtype=np.float64)
    contexts, size = moves.shape
    if moves.min() <= 0 or size < 2:
        raise InvalidParameter(
            "transition", moves.shape, "be without zeros, for two symbols or more"
        )
    _check_sizes(contexts, size, checks.count("width", width))
    acts = size**width
    blind = ValueFunction(
        *names,
        epsilon,
        price,
        moves,
        table,
        np.zeros((1, contexts)),
        np.ones((1, acts, 1)),
        _TRUSTS[0],
        0.0,
        width,
    )
    if blind.is_grid:
        return _on_grid(blind)
    return _on_beliefs(blind, effort or (Effort() if acts <= GROUPS else _FOR_MANY))


def _check_sizes(contexts: int, size: int, width: int) -> None:
    if contexts == size:
        if size > SYMBOLS:
            raise InvalidParameter("transition", size, f"have at most {SYMBOLS} symbols")
        if size**width > BATCHES:
            rule = f"leave at most {BATCHES} batches of {size} symbols, to look ahead"
            raise InvalidParameter("width", width, rule)
    elif contexts > CONTEXTS or width > 1:
        rule = f"have at most {CONTEXTS} contexts, and order 1 for batches, to look ahead"
        raise InvalidParameter("transition", (contexts, size), rule)


def _on_grid(blind: ValueFunction) -> ValueFunction:
    values, largest = np.zeros(_CELLS + 1), float(np.abs(blind.losses).max()) or 1.0
    parts = np.array(FINE_PARTS) if blind.price else np.ones(1)
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
    found = [_trained(replace(blind, trust=trust), pool, effort, rng) for trust in _TRUSTS]
    # The same coins for all: where they release alike, they differ by nothing.
    guide = FarSight(found[0])
    costs = [
        walked(one, effort.judged, np.random.default_rng(1), guide)[0] for one in (blind, *found)
    ]
    if len(blind.losses) > GROUPS:
        costs[0] *= _ROUGH  # it is judged on groups, which its channels do without
    best = int(np.argmin(costs))
    return replace([blind, *found][best], promised=costs[best])


def _trained(
    blind: ValueFunction, pool: Floats, effort: Effort, rng: np.random.Generator
) -> ValueFunction:
    value = _held(blind)
    for turn, (count, depth) in enumerate(zip(effort.beliefs, effort.depths, strict=True)):
        if turn:  # where its own release has led to by now
            pool = np.concatenate([walked(value, effort.walked, rng)[1], pool])
        places = _spread(pool, count)
        for _ in range(depth):
            value = _backed_up(value, places, effort.turns)
    return value


def _held(blind: ValueFunction) -> ValueFunction:
    """The vectors to begin with: what it costs to release one symbol for ever."""
    outlook = blind.outlook()
    released = np.arange(outlook.losses.shape[1])
    if len(outlook.losses) > GROUPS:
        released = FarSight(blind).centres(long_run(blind))[0]
    later = outlook.losses[outlook.symbols][:, released]
    if outlook.opens is not None:
        later = product(outlook.opens, later)
    moves = outlook.moves if outlook.opens is None else product(outlook.opens, outlook.moves)
    total = later = np.ascontiguousarray(later)
    for _ in range(_AGES):
        later = _HELD * product(moves, later)
        total = total + later
    channels = np.ones((total.shape[1], len(blind.losses), 1))
    return replace(blind, vectors=total.T - total.min(), channels=channels)


def _backed_up(value: ValueFunction, places: Floats, turns: int) -> ValueFunction:
    """At each place the vector of the best step, and what it comes to if channels stay."""
    sight = FarSight(value, near=NEAR)
    steps = [sight.step(place, value.epsilon) for place in places]
    most = max(len(step.symbols) for step in steps)
    channels = np.zeros((len(places), len(value.losses), most))
    released = np.zeros((len(places), most), dtype=np.int64)
    beliefs = np.full((len(places), most, value.vectors.shape[1]), -1.0)
    outlook, groups = sight.outlook, np.arange(len(value.losses))
    for p, (place, step) in enumerate(zip(places, steps, strict=True)):
        used = len(step.symbols)
        channels[p, :, :used], released[p, :used] = step.rows, step.symbols
        beliefs[p, :used] = followed(place, step.rows, outlook.symbols, groups, outlook.moves)[1]
    spent = value.price * np.array([step.spent for step in steps])
    limit, vectors, ahead = value.trust * value.epsilon, value.vectors, sight.ahead
    likelihoods, extremes = sight.likelihoods, sight.extremes
    for turn in range(turns + 1):
        if turn < 2:  # the first vectors have other channels
            fine = which_believed(beliefs, likelihoods, extremes, limit)
        after = evaluated(
            channels,
            released,
            beliefs,
            fine,
            spent,
            outlook.symbols,
            outlook.losses,
            ahead,
            vectors,
        )
        if outlook.opens is not None:
            after = product(after, np.ascontiguousarray(outlook.opens.T))
        vectors = after - after.min()
        ahead = product(outlook.moves, np.ascontiguousarray(vectors.T))
        if turn == 0:
            value = replace(value, vectors=vectors, channels=channels)
            likelihoods, extremes = channels_of(value)
    return replace(value, vectors=vectors)


def _explored(value: ValueFunction, steps: int, rng: np.random.Generator) -> Floats:
    """Beliefs after random questions, asked from each symbol on."""
    sight, outlook = FarSight(value), value.outlook()
    belief = long_run(value)
    met: list[Floats] = [belief]
    starts = outlook.moves
    for _ in range(value.order - 1):  # until every context is possible
        starts = product(starts, outlook.moves)
    if outlook.opens is not None:
        starts = product(value.transition, outlook.opens)
    if len(starts) > _ASKED:
        starts = starts[rng.choice(len(starts), _ASKED, replace=False)]
    each = -(-steps // len(starts))
    for start in starts:
        belief = start / start.sum()
        for _ in range(each):
            met.append(belief)
            groups = sight.groups(belief)
            count = int(groups.max()) + 1
            mass = np.bincount(groups, sight.masses(belief), count)
            costs = rng.random((count, count)) * (1 - np.eye(count))
            found = cheapest_outputs(mass, costs / mass[:, None], value.epsilon, tolerance=1e-3)
            rows = found.channel.probabilities
            chances, beliefs = followed(belief, rows, outlook.symbols, groups, outlook.moves)
            belief = beliefs[rng.choice(chances.size, p=chances / chances.sum())]
            if outlook.opens is not None:
                belief = product(belief[None, :], outlook.opens)[0]
    return np.stack(met)


def _spread(pool: Floats, count: int) -> Floats:
    """Beliefs far from each other, by log ratio, that stand for all."""
    logs = portable.log(pool)
    chosen, far = [0], np.full(len(pool), np.inf)
    while len(chosen) < min(count, len(pool)):
        far = np.minimum(far, np.abs(logs - logs[chosen[-1]]).max(axis=1))
        chosen.append(int(far.argmax()))
        if far[chosen[-1]] < 1e-6:
            break
    return np.asarray(pool[chosen])
