r"""The best round noise of a given variance: a game between noise and attackers.

Noise of density constant on shells is a list of probabilities, one a shell, and the success of any
fixed attacker is linear in them. So is the variance. The best noise against a list of attackers is
a linear program; the best attacker against a noise is found by `best_estimates` and joins the
list, until no attacker gains. The program's value is then a lower bound for every noise of
these shells, since it faces some attackers only, and what the best attacker reaches against the
noise that was found an upper bound: the gap is certified by their difference.

Attackers who only subtract a constant give the paper's $\delta$; it alone rewards lattices and thin
rings that tell the value up to a shift. Attackers who know a prior punish them. `attacker`
bounds these while the others are minimised; without it all are minimised together.

References:
    [MDDP, Lem. 1 and Thm. 5]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog

from sfumato import _checks
from sfumato.errors import InvalidParameter
from sfumato.leakage.disclosure import Attack, Found, bayes_disclosure
from sfumato.mechanisms.round_boxes import ball_volume, box_in_ball
from sfumato.mechanisms.round_noise import RoundNoise
from sfumato.mechanisms.vector_noise import axis_scales
from sfumato.models.joint import JointMixture

Floats = NDArray[np.float64]

MOST_AXES = 2
SHELLS = 48
_REACH = 2.0
"""Outermost shell, in radii of the ball of the same variance."""
_CENTRES = {1: 256, 2: 40}
_GRID = {1: 384, 2: 28}
_ROUNDS = {1: 80, 2: 50}
_CLOSE = 5e-3
_PULL = 0.5
_INEXACT = 0.02


@dataclass(frozen=True, slots=True)
class BestRound:
    """The best round noise that was found, and how good any could be.

    Attributes:
        noise: The noise.
        delta: Its largest probability of a box, rounded up: what an attacker without a prior has.
        attacker: What the best attacker who knows the prior has; None without one.
        floor: No noise of these shells and this variance has less of what was minimised.
        gap: By how much the noise may be worse than the best, as a part of it.
        rounds: How many attackers it was trained against.
    """

    noise: RoundNoise
    delta: float
    attacker: Found | None
    floor: float
    gap: float
    rounds: int


def best_round_noise(
    sigma: ArrayLike,
    accuracy: ArrayLike,
    prior: JointMixture | None = None,
    *,
    attacker: float | None = None,
    shells: int = SHELLS,
) -> BestRound:
    """The round noise of given deviations that tells least.

    Args:
        sigma: Standard deviation of each axis.
        accuracy: How near an attacker must come, for all axes or each.
        prior: What the attacker knows. Without one only attackers who know nothing are kept
            out, which rewards noise that tells the value up to a shift: for study alone.
        attacker: Bound on the success of the best attacker who knows the prior; then that of
            attackers who know nothing is minimised. Without it, the former is.
        shells: How many.

    Raises:
        InvalidParameter: If no such noise keeps the attacker below the bound.

    Examples:
        >>> best = best_round_noise([1.0], [0.9], shells=24)  # atoms, as far apart as a box
        >>> ball = RoundNoise.ball([1.0])
        >>> best.delta < ball.largest_box([0.9])
        True
        >>> prior = JointMixture.normal([0.0], [[4.0]])
        >>> guarded = best_round_noise([1.0], [0.9], prior, shells=24)
        >>> guarded.attacker.delta < bayes_disclosure(prior, best.noise, [0.9]).delta
        True
    """
    scales = axis_scales("sigma", sigma)
    size = scales.size
    if size > MOST_AXES:
        raise InvalidParameter("noise", "best", f"be for at most {MOST_AXES} attributes")
    half = axis_scales("accuracy", accuracy, size) / scales
    if attacker is not None and prior is None:
        raise InvalidParameter("attacker", attacker, "come with a prior")
    limit = None if attacker is None else _checks.proper_fraction("attacker", attacker)
    count = _checks.count("shells", shells, at_least=4) // 2
    known = None if prior is None else prior.scaled(scales)
    game = _Game(np.linspace(0.0, _REACH * math.sqrt(size + 2), 2 * count + 1), half, limit)
    masses, floor = _played(game, known)
    noise = RoundNoise(scales, game.edges, masses)
    delta = noise.largest_box(half * scales)
    found = None if prior is None else bayes_disclosure(prior, noise, half * scales)
    if found is not None and limit is not None and found.delta > limit * (1 + _INEXACT):
        rule = f"be more: the noise that was found leaves the attacker {found.delta:.6g}"
        raise InvalidParameter("attacker", limit, rule)
    achieved = delta if found is None or limit is not None else max(found.delta, delta)
    floor *= 1 if found is None else 1 - _INEXACT  # what the grid of the game may be off by
    gap = max(achieved / floor - 1, 0.0)
    return BestRound(noise, delta, found, floor, gap, len(game.attackers))


def _played(game: _Game, prior: JointMixture | None) -> tuple[Floats, float]:
    """The best masses of shells that were found, and a bound from below on all."""
    target, floor = game.solve()
    if prior is None:
        return target, floor
    size = game.half.size
    attack = Attack.on_grid(prior, float(game.edges[-1]), game.half, _GRID[size])
    best, centre = math.inf, game.ball()
    masses = centre
    # Halfway between the best so far and what the program wants next: the program alone swings
    # from one corner to another.
    for count in range(_ROUNDS[size]):
        trial = centre if count == 0 else (1 - _PULL) * centre + _PULL * target
        reached, successes = attack.best_response(RoundNoise(np.ones(size), game.edges, trial))
        game.attackers.append(successes)
        merit = game.merit(trial, reached)
        if merit < best:
            best, masses, centre = merit, trial, trial
        target, floor = game.solve()
        if best <= floor * (1 + _CLOSE):
            break
    if best == math.inf:
        rule = "be more: no round noise of this variance that was tried keeps the attacker below it"
        raise InvalidParameter("attacker", game.limit, rule)
    return masses, floor


class _Game:
    """The linear program: the best masses of shells against the attackers so far."""

    def __init__(self, edges: Floats, half: Floats, limit: float | None) -> None:
        size = half.size
        self.edges, self.half, self.limit = edges, half, limit
        self.attackers: list[Floats] = []
        volumes = np.array([ball_volume(size, edge) for edge in edges])
        self.squares = size / (size + 2) * np.diff(edges ** (size + 2)) / np.diff(edges**size)
        axes = [np.linspace(0.0, edges[-1], _CENTRES[size])] * size
        centres = np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)
        inside = np.array([box_in_ball(centres - half, centres + half, edge) for edge in edges])
        self.shifts = (np.diff(inside, axis=0) / np.diff(volumes)[:, None]).T

    def ball(self) -> Floats:
        """The ball of this variance: half of the shells, by volume."""
        volumes = np.diff(self.edges**self.half.size)
        volumes[len(volumes) // 2 :] = 0.0
        return np.asarray(volumes / volumes.sum())

    def merit(self, masses: Floats, reached: float) -> float:
        """What is minimised; infinite where the attacker succeeds too often."""
        alone = float((self.shifts @ masses).max())
        if self.limit is None:
            return max(reached, alone)
        return alone if reached <= self.limit else math.inf

    def solve(self) -> tuple[Floats, float]:
        """Masses of the shells, and a bound from below on what is minimised."""
        shells = self.squares.size
        rows = [np.hstack([self.shifts, -np.ones((len(self.shifts), 1))])]
        limits = [np.zeros(len(self.shifts))]
        for successes in self.attackers:
            minimised = -1.0 if self.limit is None else 0.0
            rows.append(np.append(successes, minimised)[None, :])
            limits.append(np.array([0.0 if self.limit is None else self.limit]))
        equal = np.vstack([np.append(np.ones(shells), 0.0), np.append(self.squares, 0.0)])
        found = linprog(
            np.append(np.zeros(shells), 1.0),
            A_ub=np.vstack(rows),
            b_ub=np.concatenate(limits),
            A_eq=equal,
            b_eq=np.array([1.0, self.half.size]),
            bounds=[(0, None)] * shells + [(None, None)],
            method="highs",
        )
        if not found.success:
            rule = "be more: no round noise of this variance keeps the attacker below it"
            raise InvalidParameter("attacker", self.limit, rule)
        masses = np.maximum(found.x[:-1], 0.0)
        return masses / masses.sum(), float(found.fun)
