r"""How many streams were where: counts, flows, means and quantiles of populations, with errors.

Counting best guesses is biased: who is a little likelier at home is counted at home for sure. What
is counted here are probabilities. Two estimators, and what each assumes:

- **By the model** (`counts`, `flows`, `means`, `quantiles`, `top`): expectations given all outputs.
  Right on average, with errors that are those of the truth, *if values move as the model says* and
  streams are independent given it. A wrong model pulls them towards itself.
- **Without the model** (`unbiased_counts`): each output weighted by the inverse of its channel.
  Its errors are larger, and there must be an inverse: channels of a response have one, those that
  tell few outputs have none. It is right on average whatever is true *where no stream is in a group
  twice*: whether a channel has an inverse follows from the outputs before it, so a group that holds
  those too would be seen only when they came out in some way. Only if the channel never changes may
  a group hold several moments of a stream; else that is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.models.pair_chain import PairChain
from sfumato.stream.hidden_chain import DENSE
from sfumato.stream.learning_plan import LearningPlan
from sfumato.stream.one_channel import has_one_channel
from sfumato.stream.plan import Plan
from sfumato.stream.recovery import Recovery
from sfumato.stream.recovery_loops import gather, moved_counts

BY_MODEL = "values move as the model says, and streams are independent of each other"
BY_ESTIMATE = (
    "values move as was learnt last (those before a change that the release noticed: as was "
    "learnt before it), and streams are independent of each other"
)
_SELECTED = (
    "hold each stream once, unless every step has the same channel (randomized-response with a "
    "budget per step): whether a channel has an inverse depends on earlier outputs of the group"
)
MODEL_FREE = "nothing about values: the channels alone"
_FLOWS = 400
"""Symbols up to which all pairs of them are counted."""
_DRAWS = 200
"""Tracks drawn of each stream where an error has no closed form: it is right within 5 %."""

_RARE = 10
"""Times below which drawn tracks do not tell a variance."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Numbers with their standard errors.

    Attributes:
        groups: What each row is about: a moment, or a group of them.
        values: One row per group.
        errors: Standard errors, alike.
        weights: How many values each row is about.
        assumes: What must hold for values and errors to be right on average.
    """

    groups: Ints
    values: Floats
    errors: Floats
    weights: Floats
    assumes: str

    def interval(self, deviations: float = 1.96) -> tuple[Floats, Floats]:
        """From where to where, so many standard errors around the values."""
        reach = deviations * self.errors
        return self.values - reach, self.values + reach


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """What many recovered streams say together.

    Attributes:
        recovery: The streams.
        groups: The group of each value: its moment, if not given; an hour of several moments, say.
        lag: Outputs that are used: as in `Recovery.posterior`; None is all of them.
        draws: Tracks drawn of each stream where an error has no closed form.
        seed: Of those.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(1.0)), sf.loss.hamming(chain.alphabet))
        >>> left = {}
        >>> for name in ("ann", "bob", "eve"):
        ...     left[name] = plan.step(plan.begin(name), [1], sf.secure())[0]
        >>> counts = Population(sf.stream.recover(left, plan)).counts()
        >>> counts.values.shape, round(float(counts.values.sum()), 9)
        ((1, 2), 3.0)
    """

    recovery: Recovery
    groups: Ints | None = None
    lag: int | None = None
    draws: int = _DRAWS
    seed: int = 1

    def __post_init__(self) -> None:
        if self.groups is not None and self.groups.shape != (len(self.recovery.evidence),):
            rule = f"be one for each of {len(self.recovery.evidence)} values"
            raise InvalidParameter("groups", self.groups.shape, rule)

    @property
    def assumes(self) -> str:
        """What must hold for estimates by the model to be right on average."""
        return BY_ESTIMATE if isinstance(self.recovery.plan, LearningPlan) else BY_MODEL

    def _grouped(self) -> tuple[Ints, Ints, Bools]:
        """The groups, the place of each value among them, and which hold a stream only once."""
        own = self.recovery.released.moments if self.groups is None else self.groups
        names, places = np.unique(own, return_inverse=True)
        streams = np.repeat(
            np.arange(len(self.recovery.released.streams)), np.diff(self.recovery.evidence.starts)
        )
        pairs, times = np.unique(places * streams[-1] + places + streams, return_counts=True)
        single = np.ones(names.size, dtype=np.bool_)
        single[pairs[times > 1] // (streams[-1] + 1)] = False
        return names, places, single

    def counts(self) -> Estimate:
        """Values of each symbol, group by group; a column per symbol."""
        size = len(self.recovery.labels)
        return self._summed(np.eye(size))

    def means(self) -> Estimate:
        """Mean of the symbols' coordinates, group by group; a column per axis."""
        found = self._summed(self._coordinates())
        each = found.weights[:, None]
        return Estimate(
            found.groups, found.values / each, found.errors / each, found.weights, self.assumes
        )

    def quantiles(
        self, shares: tuple[float, ...] = (0.25, 0.5, 0.75), deviations: float = 1.96
    ) -> tuple[Floats, Floats, Floats]:
        """Quantiles of the symbols' coordinate, group by group, with where they may lie.

        Args:
            shares: Parts of the values that lie below; a column each.
            deviations: Standard errors that an interval reaches to either side.

        Returns:
            The quantiles, and both ends of their intervals: those points at which the share of
            values below, give or take its error, may be the one asked for.
        """
        for one in shares:
            checks.proper_fraction("shares", one)
        where = self._coordinates()
        if where.shape[1] != 1:
            raise InvalidParameter("quantiles", f"{where.shape[1]} axes", "be of one number each")
        points, order = np.sort(where[:, 0]), np.argsort(where[:, 0], kind="stable")
        below = np.zeros((order.size, order.size))
        for rank, place in enumerate(order):
            below[place, rank:] = 1.0
        found = self._summed(below)
        share = found.values / found.weights[:, None]
        error = deviations * found.errors / found.weights[:, None]

        def first(reached: Bools) -> Floats:
            # Everything lies below the last point, rounding aside.
            reached[:, -1] = True
            return np.asarray(points[reached.argmax(axis=1)])

        asked = [
            [first(reached >= one - 1e-9) for reached in (share, share + error, share - error)]
            for one in shares
        ]
        middle, low, high = (np.stack([each[k] for each in asked], axis=1) for k in range(3))
        return middle, low, high

    def flows(self) -> Estimate:
        """Moves from each symbol to each, over all values: a matrix, with its errors."""
        chain, size = self.recovery.chain, len(self.recovery.labels)
        if size > _FLOWS:
            raise InvalidParameter("flows", f"{size} symbols", f"be of at most {_FLOWS} symbols")
        if not chain.dense:
            over = "over the pairs that occur"
            is_paired = isinstance(self.recovery.plan.model, PairChain)
            what = over if is_paired else f"of {chain.contexts:,} contexts, sparse"
            rule = f"be of a chain with a matrix: dense, or of at most {DENSE} contexts of values"
            raise InvalidParameter("flows", f"a chain {what}", rule)
        told, pairs = self.recovery.evidence, np.zeros((chain.symbols, chain.symbols))
        moved_counts(chain.arrays, told.arrays, told.starts, chain.span, chain.symbols, pairs)
        parts = chain.symbols // size
        flows = pairs.reshape(parts, size, parts, size).sum(axis=(0, 2))
        variance, seen, moves = np.zeros(size * size), np.zeros(size * size), 0
        for _, _, tracks in self.recovery.draws(self.draws, self.seed):
            moves += max(0, tracks.shape[1] - 1)
            codes = tracks[:, :-1] * size + tracks[:, 1:]
            variance += _variance(codes, size * size)
            seen += np.bincount(codes.ravel(), minlength=size * size)
        # What was hardly ever drawn is rare, and the variance of rare moves is their number.
        variance = np.where(seen < _RARE, flows.ravel(), variance)
        groups, errors = np.arange(size), np.sqrt(variance).reshape(size, size)
        return Estimate(groups, flows, errors, np.full(size, float(moves)), self.assumes)

    def top(self, most: int) -> tuple[Ints, Floats]:
        """The symbols of the largest counts in each group, and how probably each belongs there.

        Returns:
            Places of symbols, a row for each group, the largest count first; and the probability
            that the true count of each is among the `most` largest, from drawn tracks.
        """
        size = len(self.recovery.labels)
        if checks.count("most", most) > size:
            raise InvalidParameter("most", most, f"be at most the number of symbols, {size}")
        names, places, _ = self._grouped()
        drawn = np.zeros((self.draws, names.size, size))
        rows = np.arange(self.draws)[:, None]
        for first, stop, tracks in self.recovery.draws(self.draws, self.seed):
            np.add.at(drawn, (rows, places[first:stop][None, :], tracks), 1.0)
        largest = np.argsort(-self.counts().values, axis=1, kind="stable")[:, :most]
        # A tie at the edge belongs: nobody could say which of the two is the larger.
        edge = np.sort(drawn, axis=2)[:, :, size - most]
        inside = (drawn >= edge[:, :, None]).mean(axis=0)
        return largest, np.take_along_axis(inside, largest, axis=1)

    def unbiased_counts(self) -> Estimate:
        r"""The same counts without the model.

        For a value whose output is $y$, $g(y)$ estimates which symbol it had without bias, and
        $g(y)^2 - g(y)$ estimates the variance of that, also without bias: outputs are independent
        given the truth and the past. Not a number where a channel has no inverse, or nothing left;
        which of the two it is follows from earlier outputs of the stream, not from the group's own.
        So what is a number is right on average whatever is true. In a group of several moments of a
        stream it would not be: it is refused unless every step has the same channel. Errors of
        values of one batch depend on each other, so no group may hold two of them.

        Raises:
            InvalidParameter: If a group holds a stream several times, and its channels may differ.
        """
        own = self.recovery.evidence.unbiased
        if own is None:
            raise InvalidParameter("unbiased", False, "be asked for when streams are recovered")
        names, places, single = self._grouped()
        if self.recovery.plan.in_batches and not single.all():
            raise InvalidParameter("groups", "several moments", "be single moments, for batches")
        if not single.all():
            check_unselected("groups", "several moments", self.recovery.plan)
        sums = np.zeros((2, names.size, own.shape[1]))
        np.add.at(sums[0], places, own)
        np.add.at(sums[1], places, own * own - own)
        weights = np.bincount(places, minlength=names.size).astype(np.float64)
        errors = np.sqrt(np.maximum(sums[1], 0.0))
        return Estimate(names, sums[0], errors, weights, MODEL_FREE)

    def _coordinates(self) -> Floats:
        where = self.recovery.plan.model.alphabet.coordinates
        if where is None:
            rule = "have numbers or places for its symbols"
            raise InvalidParameter("model", "names alone", rule)
        return where

    def _summed(self, functions: Floats) -> Estimate:
        """Sums of functions of values, a row per symbol, with errors from posteriors or draws."""
        names, places, single = self._grouped()
        sums = np.zeros((names.size, functions.shape[1]))
        variance = np.zeros_like(sums)
        for first, stop, found in self.recovery.blocks(self.lag):
            mean = found @ functions
            gather(places[first:stop], mean, found @ (functions * functions), sums, variance)
        if not single.all():
            if self.lag is not None:
                rule = "be all outputs where a group holds a stream several times"
                raise InvalidParameter("lag", self.lag, rule)
            variance[~single] = self._drawn(functions, places, names.size)[~single]
        weights = np.bincount(places, minlength=names.size).astype(np.float64)
        return Estimate(names, sums, np.sqrt(np.maximum(variance, 0.0)), weights, self.assumes)

    def _drawn(self, functions: Floats, places: Ints, groups: int) -> Floats:
        """Variance of sums over groups, stream by stream, from drawn tracks."""
        variance = np.zeros((groups, functions.shape[1]))
        for first, stop, tracks in self.recovery.draws(self.draws, self.seed):
            own = places[first:stop]
            for group in np.unique(own):
                sums = functions[tracks[:, own == group]].sum(axis=1)
                variance[group] += sums.var(axis=0, ddof=1)
        return variance


def check_unselected(name: str, value: object, plan: Plan) -> None:
    """Refuse model-free sums over moments of a stream unless all have the same channel."""
    if not has_one_channel(plan):
        raise InvalidParameter(name, value, _SELECTED)


def _variance(codes: Ints, kinds: int) -> Floats:
    """Variance over rows of how often each code stands in one."""
    rows = len(codes)
    mean, square = np.zeros(kinds), np.zeros(kinds)
    for row in codes:
        kind, times = np.unique(row, return_counts=True)
        mean[kind] += times
        square[kind] += times.astype(np.float64) ** 2
    return np.asarray((square - mean**2 / rows) / (rows - 1))
