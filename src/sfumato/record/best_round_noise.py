r"""The best round noise of a given variance: a game between noise and attackers.

Noise of density constant on shells is a list of probabilities, one a shell, and the success of any
fixed attacker is linear in them. So is the variance. The best noise against a list of attackers is
a linear program; the best attacker against a noise is found on a lattice and joins the list, until
no attacker gains.

The program's value is a lower bound for every noise of these shells, since it faces some attackers
only. For that they must be real (`round_attackers`): those that count in the end are weighed again
with all cells halved along each axis, and what that changes is taken off.

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
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.printed import shown_down, shown_up
from sfumato.record.attack.bayes_attack import Found, bayes_disclosure
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.round_attackers import Attackers, in_shells
from sfumato.record.round_noise import RoundNoise
from sfumato.record.vector_noise import axis_scales, grid_points

MOST_AXES = 2
SHELLS = 48
_REACH = 2.0
"""Outermost shell, in radii of the ball of the same variance."""
_CENTRES, _ALONG = {1: 256, 2: 40}, 256
"""Centres of boxes of who knows nothing: along each axis, and more along the first alone."""
_ROUNDS, _CLOSE = {1: 120, 2: 80}, 5e-3
"""Rounds of the game by the number of axes, at most, and the gap at which it is over."""
_PULL = 0.5
"""How far from the best masses so far towards what the program wants a round goes."""
# How far below a bound the lattice must say an attacker is to go on from there at once, how often
# masses retreat towards those, and what a search in single precision may miss; parts of the whole.
_ROOM, _RETREATS, _SINGLE = 0.02, 4, 1e-5
_COUNTS = 1e-9
"""Least weight with which an attacker counts in a program."""


@dataclass(frozen=True, slots=True)
class BestRound:
    """The best round noise that was found, and how good any could be.

    Attributes:
        noise: The noise.
        delta: Its largest probability of a box, rounded up: what an attacker without a prior has.
        attacker: What the best attacker who knows the prior has.
        floor: No noise of these shells and this variance has less of what was minimised.
        gap: By how much the noise may be worse than the best, as a part of it.
        rounds: How many attackers it was trained against.
    """

    noise: RoundNoise
    delta: float
    attacker: Found
    floor: float
    gap: float
    rounds: int


def best_round_noise(
    sigma: ArrayLike,
    accuracy: ArrayLike,
    prior: JointMixture,
    *,
    attacker: float | None = None,
    shells: int = SHELLS,
) -> BestRound:
    """The round noise of given deviations that tells least.

    Args:
        sigma: Standard deviation of each axis.
        accuracy: How near an attacker must come, for all axes or each.
        prior: What the attacker knows.
        attacker: Bound on the success of the best attacker who knows the prior, as
            `bayes_disclosure` finds it; then that of attackers who know nothing is minimised.
            Without it, the former is.
        shells: How many.

    Raises:
        InvalidParameter: If no noise was found that keeps the attacker below the bound. The error
            says how far down any could bring the attacker.

    Examples:
        >>> prior = JointMixture.normal([0.0], [[4.0]])
        >>> best = best_round_noise([1.0], [0.9], prior, shells=24)
        >>> best.attacker.delta < bayes_disclosure(prior, RoundNoise.ball([1.0]), [0.9]).delta
        True
    """
    scales = axis_scales("sigma", sigma)
    size = scales.size
    if size > MOST_AXES:
        raise InvalidParameter("noise", "best", f"be for at most {MOST_AXES} attributes")
    half = axis_scales("accuracy", accuracy, size) / scales
    limit = None if attacker is None else checks.proper_fraction("attacker", attacker)
    count = checks.count("shells", shells, at_least=4) // 2
    program = _Program(np.linspace(0.0, _REACH * math.sqrt(size + 2), 2 * count + 1), half)
    game = _Game(program, prior.scaled(scales))
    masses, found = game.won() if limit is None else game.won_within(limit)
    noise = RoundNoise(scales, program.edges, masses)
    delta, floor = noise.largest_box(half * scales), game.floor(limit)
    achieved = delta if limit is not None else max(found.delta, delta)
    return BestRound(noise, delta, found, floor, max(achieved / floor - 1, 0.0), len(game.boxes))


@dataclass(frozen=True, slots=True, eq=False)
class _Solved:
    """What a program says.

    Attributes:
        masses: Of the shells.
        value: No masses have less of what is minimised, against these attackers.
        weights: How much each attacker counts.
    """

    masses: Floats
    value: float
    weights: Floats


def _grown(edges: Floats, power: int) -> Floats:
    """By how much powers of radii grow from one to the next."""
    return np.diff(portable.raised(edges, power))


class _Program:
    """The linear program: the best masses of shells against some attackers."""

    def __init__(self, edges: Floats, half: Floats) -> None:
        size = half.size
        self.edges, self.half = edges, half
        # Mean squared distance of each shell: the variance is linear in the masses, too.
        self.squares = size / (size + 2) * _grown(edges, size + 2) / _grown(edges, size)
        centres = grid_points([np.linspace(0.0, edges[-1], _CENTRES[size])] * size)
        along = np.zeros((_ALONG, size))  # so close that a narrow box meets every shell
        along[:, 0] = np.linspace(0.0, edges[-1], _ALONG)
        self.shifts = in_shells(np.vstack([centres, along]), half, edges)
        self.unit = self.alone(self.ball())

    def ball(self) -> Floats:
        """The ball of this variance: half of the shells, by volume."""
        volumes = _grown(self.edges, self.half.size)
        volumes[len(volumes) // 2 :] = 0.0
        return np.asarray(volumes / volumes.sum())

    def alone(self, masses: Floats) -> float:
        """What attackers without a prior reach, at the centres that are tried."""
        return float((portable.dot(self.shifts, masses)).max())

    def solve(self, attackers: list[Floats], limit: float | None) -> _Solved:
        """The best masses; with a limit, those that keep all attackers who know a prior below."""
        shells, count = self.squares.size, len(attackers)
        minimised = np.ones(len(self.shifts) + count)
        if limit is not None:
            minimised[len(self.shifts) :] = 0.0
        # In units of what the ball has, since the solver's tolerances are absolute.
        successes = np.vstack([self.shifts, *attackers]) / self.unit
        found = linprog(
            np.append(np.zeros(shells), 1.0),
            A_ub=np.column_stack([successes, -minimised]),
            b_ub=(1 - minimised) * (limit or 0.0) / self.unit,
            A_eq=np.column_stack([np.vstack([np.ones(shells), self.squares]), np.zeros(2)]),
            b_eq=np.array([1.0, self.half.size]),
            bounds=[(0, None)] * shells + [(None, None)],
            method="highs",
        )
        if not found.success:
            rule = "be more: no round noise of this variance keeps the attacker below it"
            raise InvalidParameter("attacker", limit, rule)
        masses = np.maximum(found.x[:-1], 0.0)
        weights = -found.ineqlin.marginals[len(self.shifts) :]
        return _Solved(masses / masses.sum(), self.unit * float(found.fun), weights)


class _Game:
    """Noise and attackers who know a prior, in turn."""

    def __init__(self, program: _Program, prior: JointMixture) -> None:
        self.program, self.prior = program, prior
        self.attackers = Attackers(prior, program.half, program.edges)
        self.boxes: list[Ints] = []
        self.successes: list[Floats] = []

    def won(self) -> tuple[Floats, Found]:
        """The masses against which the best attacker has least, and what it has."""
        ball = self.program.ball()
        masses = self._least(ball, None, 0.0)
        found = self._disclosed(masses)
        # Boxes much narrower than a shell see more than the lattice: then it may be no gain.
        half = self.program.half
        plain = bayes_disclosure(self.prior, RoundNoise.ball(np.ones(half.size)), half)
        return (masses, found) if found.delta <= plain.delta else (ball, plain)

    def won_within(self, limit: float) -> tuple[Floats, Found]:
        """The best masses against attackers without a prior that keep those with one below."""
        start = self.program.ball()
        # Far enough below is soon found; near the least that can be reached, it takes the game.
        for enough in (limit * (1 - _ROOM), 0.0):
            start = self._least(start, None, enough)
            first = self._disclosed(start)
            if first.delta <= limit:
                return self._retreat(start, first, limit)
        rule = (
            f"be more: the noise that was found leaves the attacker {shown_up(first.delta)}, and "
            f"none of this variance less than {shown_down(self.floor(None))}"
        )
        raise InvalidParameter("attacker", limit, rule)

    def _retreat(self, start: Floats, first: Found, limit: float) -> tuple[Floats, Found]:
        """From masses within the limit to better ones, and back as far as the limit asks for.

        Success is convex in the masses: between two of them it is at most what a line says.
        """
        exact = self._answered(start) / first.delta
        masses = self._least(start, limit * exact * (1 + _SINGLE), 0.0)
        for _ in range(_RETREATS):
            found = self._disclosed(masses)
            if found.delta <= limit:
                return masses, found
            share = (limit - first.delta) / (found.delta - first.delta)
            masses = start + (1 - _CLOSE) * share * (masses - start)
        return start, first

    def floor(self, limit: float | None) -> float:
        """A bound from below for all masses, by attackers that were weighed with care."""
        weights = self.program.solve(self.successes, limit).weights
        careful = []
        for place in np.flatnonzero(weights > _COUNTS):
            # What halving the cells changes is taken off: a bound must not rest on their width.
            fine = self.attackers.successes(self.boxes[place], 2)
            careful.append(np.maximum(fine - np.abs(fine - self.successes[place]), 0.0))
        return self.program.solve(careful, limit).value

    def _disclosed(self, masses: Floats) -> Found:
        half = self.program.half
        noise = RoundNoise(np.ones(half.size), self.program.edges, masses)
        return bayes_disclosure(self.prior, noise, half)

    def _answered(self, masses: Floats) -> float:
        """Success of the best attacker against some masses, which joins the others."""
        boxes = self.attackers.best(masses)
        self.boxes.append(boxes)
        self.successes.append(self.attackers.successes(boxes, 1))
        return float(portable.dot(self.successes[-1], masses))

    def _least(self, centre: Floats, limit: float | None, enough: float) -> Floats:
        """The best masses that were found, or the first that are good enough."""
        best, trial = math.inf, centre
        for _ in range(_ROUNDS[self.program.half.size]):
            reached, merit = self._answered(trial), self.program.alone(trial)
            if limit is None:
                merit = max(reached, merit)
            if merit < best and (limit is None or reached <= limit):
                best, centre = merit, trial
            if best <= enough:
                break
            solved = self.program.solve(self.successes, limit)
            if best <= solved.value * (1 + _CLOSE):
                break
            # Halfway between the best so far and what the program wants next: the program alone
            # swings from one corner to another.
            trial = (1 - _PULL) * centre + _PULL * solved.masses
        return centre
