"""Compile a policy: collect the beliefs that occur, keep channels for them, plant a tree.

Simulated streams are released through the best channel of every step, and their beliefs are
collected. A tree splits these beliefs, the dearest leaf first; each leaf keeps the best channel
for its mean belief, and tries the few that suit its beliefs best. Nothing here can harm
the guarantee, since each use of a kept channel is certified anew: it decides how much is lost,
and a second simulation, under the policy itself, measures that.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

import numpy as np

from sfumato.core import checks, limits, portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss
from sfumato.core.randomness import seeded
from sfumato.models.markov import MarkovChain
from sfumato.solver.design_methods import Method
from sfumato.solver.policy import Policy, PolicyChannel, Tables, Tree, tabulated
from sfumato.solver.solving_tables import PolicyKind, solving_tables
from sfumato.solver.value_function import ValueFunction
from sfumato.stream.compile_problem import WALKS, Problem, Sighted, StepWise
from sfumato.stream.look_ahead import look_ahead
from sfumato.stream.partition.batch_beliefs import chain_of_batches
from sfumato.stream.partition.batch_loss import BatchLoss, as_batch_loss, listed
from sfumato.stream.sighted_tree import sighted_tables

Progress = Callable[[int, int], None]
_MOST_KEPT, _MOST_SOLVED = 32, 2_048
"""Symbols up to which channels are kept unless asked otherwise, and up to which they may be solved
at each step: there the loss is a table of 32 MB."""
_FEWEST_OUTPUTS, _MOST_OUTPUTS = 8, 32
"""Columns of a solved channel. At half a nat 8 lose .5 % more than the best channel and 16 .4 %, in
half as much time again; at 3 nats 8 are far too few, and 16 as good as 24."""
_SOLVED_STEPS, _SIZE_IN_FULL = 16_384, 64
"""Steps of which an eighth measures a policy that solves at each step, and symbols up to which the
floor of each of those is sought: with 1,024 symbols it takes .3 s, and one step of 16 has to do."""
_MAX_EPSILON = 20.0
"""Beyond this the least probabilities of a channel are below weights of 2**-40."""
_SMALLEST_LEAF = 4
"""Beliefs of a leaf; a channel for fewer would fit their noise."""
_CHECKED_PART = 8
"""A second simulation, of this part of the first, measures the policy on other beliefs."""
_CHECKED_SIGHTED = 16
"""Rounds of it at most where every step of it is far-sighted."""
_LIMITS = {False: 0.2, True: 0.1}
"""By what part mixing may make channels dearer: step-wise ones, and far-sighted ones. These spend
all of the cap, so most beliefs need some mixing, and it costs more: recorded activities lost 20 %
more than solved steps with a limit of 1, and 5 % with .1, which solves four steps of ten."""
_MOST_PAIRED, _MOST_LEAVES = 24, 500
"""Symbols up to which far-sighted steps are solved by a small program, with a row for each; and
leaves with outputs for it: 150 lose as little, where streams are like the model."""
_MOST_BATCHES = 512
"""Batches that a policy may be compiled for; the chain of batches is a dense matrix."""


def compile_policy(
    chain: MarkovChain,
    loss: Loss | BatchLoss,
    epsilon: float,
    *,
    width: int = 1,
    every: int = 1,
    ldp: float | None = None,
    method: Method | str = Method.OPTIMAL,
    kind: PolicyKind | str | None = None,
    tolerance: float = 0.005,
    repair_limit: float | None = None,
    max_channels: int = 2_000,
    steps: int | None = None,
    seed: int = 0,
    sight: ValueFunction | None = None,
    price: float = 0.0,
    progress: Progress | None = None,
) -> Policy:
    """Compile a chain, a loss and a budget into channels for the beliefs that occur.

    Args:
        chain: What the adversary is assumed to know; full support.
        loss: What it costs to release one symbol, or one batch, when another is true.
        epsilon: What a step, or a whole batch, may leak under the model.
        width: Compile for batches of so many values; a loss of values then adds up.
        every: Steps from one release that tells something to the next: beliefs fade in between.
        ldp: Cap on what it may leak whatever the model.
        method: How channels are found; model-free ones need but one. `far-sighted` ones see what
            follows a step: the policy then holds its value function, so that
            `Plan(..., method=Method.FAR_SIGHTED, policy=policy)` needs nothing else, and events
            carry a `signal`.
        kind: `kept` channels, found now and mended at each step: up to a microsecond a step, but
            beyond some dozen symbols beliefs are too many for them; or channels that are `solved`
            at each step, a small program of tens of microseconds. If not given, solved for 33 to
            2,048 symbols value by value; and far-sighted for 3 to 24, in some microseconds, unless
            a nat has a price or there is a `repair_limit`. Kept where a cap binds, and for other
            methods.
        tolerance: A leaf that loses less than this part more than the optimum is not split.
        repair_limit: By what part mixing may make a kept channel dearer; a belief at which all
            candidates get dearer than that is solved on the spot. If not given, a fifth of its
            cost, or for far-sighted channels, which take a thousand times as long to solve as to
            mix, the mean cost of a step.
        max_channels: Keep no more than this.
        steps: Simulated steps; if not given, 16,000 for up to 24 symbols and 4,000 beyond, or
            40,000 far-sighted ones, most of them by kept channels. An eighth of them measures; all
            that a policy needs which solves at each step.
        seed: Of the simulation.
        sight: What beliefs are worth, for far-sighted channels: from `look_ahead`, which is asked
            if none is given.
        price: What `look_ahead` is told that a nat costs, in units of the loss.
        progress: Told how many steps of how many are done.

    Examples:
        >>> from sfumato.core.loss import hamming
        >>> chain = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> policy = compile_policy(chain, hamming(chain.alphabet), 1.0, steps=500)
        >>> policy.report.extra_loss < 0.02
        True
        >>> small = compile_policy(chain, hamming(chain.alphabet), 1.0, kind="solved", steps=500)
        >>> small.solves, small.channels
        (True, 0)
        >>> asked = {"method": Method.FAR_SIGHTED, "steps": 500}
        >>> ahead = compile_policy(chain, hamming(chain.alphabet), 1.0, **asked)
        >>> ahead.sight.epsilon, ahead.report.extra_loss < 0.02
        (1.0, True)
    """
    chosen = Method(method)
    if not isinstance(chain, MarkovChain):
        rule = "be one chain for all streams, with a belief about all its contexts"
        raise InvalidParameter("chain", type(chain).__name__, rule)
    if checks.count("width", width, at_most=limits.BATCH) > 1 or isinstance(loss, BatchLoss):
        # Patterns of a batch have no two outputs nearest: small programs lose 3 % on 64 of them.
        kind = PolicyKind.KEPT if kind is None else kind
        batches = listed(chain.size, width) if chain.size**width <= _MOST_BATCHES else None
        if batches is None:
            rule = f"have at most {_MOST_BATCHES} batches ({chain.size}**width) to be compiled"
            raise InvalidParameter("width", width, rule)
        loss = as_batch_loss(loss, chain.size).between(batches)
        chain = chain_of_batches(chain, width)
    _check(chain, loss, chosen)
    checks.positive("tolerance", tolerance)
    limit = repair_limit
    if limit is None:
        sighted = chosen is Method.FAR_SIGHTED
        # With a cap whatever the model a far-sighted step takes up to seconds: mix instead.
        limit = 1.0 if sighted and ldp is not None else _LIMITS[sighted]
    checks.positive("repair_limit", limit)
    budget = checks.epsilon("epsilon", epsilon)
    if budget > _MAX_EPSILON:
        rule = f"be at most {_MAX_EPSILON}: finer weights than a policy keeps would be needed"
        raise InvalidParameter("epsilon", budget, rule)
    cap = None if ldp is None else checks.epsilon("ldp", ldp)
    count = checks.count("max_channels", max_channels)
    far = chosen is Method.FAR_SIGHTED
    if far and kind is None and repair_limit is not None:
        kind = PolicyKind.KEPT
    paid = price if sight is None else sight.price
    kind = chosen_kind(kind, chain, loss, chosen, budget, cap, paid)
    solving = kind is PolicyKind.SOLVED and not far
    due = _default_steps(chain.size, chosen, solving=solving) if steps is None else steps
    rounds = -(-checks.count("steps", due) // WALKS)
    measured = -(-rounds // _CHECKED_PART)
    if far:
        measured = min(measured, _CHECKED_SIGHTED)
    asked = (chain, loss, budget, cap)
    pause = checks.count("every", every)
    problem: Sighted | StepWise
    if far:
        if pause > 1:
            raise InvalidParameter("every", every, "be 1 for far-sighted channels")
        if chain.order > 1:
            rule = "be of order 1 for far-sighted channels of single values"
            raise InvalidParameter("chain", f"order {chain.order}", rule)
        sight = look_ahead(chain, loss, budget, price=price) if sight is None else sight
        _check_sight(sight, chain, loss)
        if kind is PolicyKind.SOLVED and (sight.price or sight.epsilon < budget):
            rule = (
                "be kept where a nat has a price, or sight was made for less than a step may leak"
            )
            raise InvalidParameter("kind", PolicyKind.SOLVED.value, rule)
        problem = Sighted(*asked, sight)
    elif sight is not None or price:
        raise InvalidParameter("method", chosen.value, "be far-sighted for a sight or a price")
    else:
        problem = StepWise(*asked, pause, chosen)

    # What is not compiled is not simulated; where a floor takes long, some steps stand for all.
    rounds = 0 if solving else rounds
    part = max(1, min(WALKS, chain.size // _SIZE_IN_FULL)) if solving else 1

    def told(done: int) -> None:
        if progress:
            progress(done, rounds + measured)

    if solving:
        tables = solving_tables(loss, _outputs(budget))
    elif isinstance(problem, Sighted):
        count = min(count, _MOST_LEAVES) if kind is PolicyKind.SOLVED else count
        tables = sighted_tables(problem, kind, rounds, seeded(seed), tolerance, count, told)
    elif chosen is Method.OPTIMAL:
        beliefs, floors = problem.collected(rounds, seeded(seed), told)
        tables = _TreeBuilder(problem, beliefs, floors, tolerance, count).tables()
    else:
        tables = _single(problem)
    report = problem.measured(tables, limit, measured, seeded(seed + 1), rounds, told, part)
    return Policy(
        chain=chain.fingerprint,
        loss=loss.fingerprint,
        method=chosen.value,
        epsilon=budget,
        ldp=cap,
        repair_limit=limit,
        tables=tables,
        report=report,
        sight=sight,
    )


def _check(chain: MarkovChain, loss: Loss, method: Method) -> None:
    if not chain.full_support:
        raise InvalidParameter("model", "zeros", "give every value some probability")
    if len(loss) != chain.size:
        raise InvalidParameter("loss", len(loss), f"be one for {chain.size} symbols")
    if method in (Method.CALIBRATED, Method.PAPER):
        rule = "be far-sighted, optimal, randomized-response or context-free: "
        rule += "others depend on each belief"
        raise InvalidParameter("method", method.value, rule)


def chosen_kind(
    asked: PolicyKind | str | None,
    chain: MarkovChain,
    loss: Loss,
    method: Method,
    epsilon: float,
    ldp: float | None,
    price: float,
) -> PolicyKind:
    """What was asked for, if it can be had; else what loses least for such an alphabet."""
    names = [one.value for one in PolicyKind]
    if asked is not None and asked not in names:
        raise InvalidParameter("kind", asked, f"be one of {', '.join(names)}")
    far = method is Method.FAR_SIGHTED
    able = method is Method.OPTIMAL and chain.size <= _MOST_SOLVED and loss.storable
    able = able or (far and 2 < chain.size <= _MOST_PAIRED)
    if asked == PolicyKind.SOLVED and not able:
        rule = (
            f"be kept, but for the optimum of each step on at most {_MOST_SOLVED:,} symbols, and "
            f"for far-sighted steps on 3 to {_MOST_PAIRED}"
        )
        raise InvalidParameter("kind", PolicyKind.SOLVED.value, rule)
    if asked is not None:
        return PolicyKind(asked)
    # Below twice the budget a cap binds, and a small program that mixes for it loses more.
    free = ldp is None or ldp >= 2 * epsilon
    best = not price if far else chain.size > _MOST_KEPT
    return PolicyKind.SOLVED if able and free and best else PolicyKind.KEPT


def _outputs(epsilon: float) -> int:
    """Columns of a solved channel at most: a large budget tells more places apart."""
    return int(min(_MOST_OUTPUTS, max(_FEWEST_OUTPUTS, math.ceil(2 * portable.exp(epsilon)))))


def _check_sight(sight: ValueFunction, chain: MarkovChain, loss: Loss) -> None:
    if (sight.chain, sight.loss) != (chain.fingerprint, loss.fingerprint):
        raise InvalidParameter("sight", "that of others", "be made for this chain and loss")


def _default_steps(size: int, method: Method = Method.OPTIMAL, *, solving: bool = False) -> int:
    if solving:
        return _SOLVED_STEPS
    if method is Method.FAR_SIGHTED:
        return 40_000
    return 16_000 if size <= 24 else 4_000


def _single(problem: Problem) -> Tables:
    """The one channel of a method that does not look at the belief."""
    kept = problem.kept(problem.chain.first().marginal)
    return tabulated([kept], Tree(np.array([[-1, 0, 1]]), np.zeros(1), np.zeros(1, np.int64)))


class _TreeBuilder:
    """Grow the tree: split the leaf whose beliefs lose most, until all lose little."""

    def __init__(
        self, problem: StepWise, beliefs: Floats, floors: Floats, tolerance: float, most: int
    ) -> None:
        self._problem, self._beliefs, self._floors = problem, beliefs, floors
        self._reached = beliefs.cumsum(axis=1)
        self._tolerance = tolerance
        self._splits = [[-1, 0, 0]]
        self._thresholds = [0.0]
        self._leaves: dict[int, tuple[Ints, PolicyChannel]] = {}
        self._waiting: list[tuple[float, int]] = []
        self._settle(0, np.arange(len(beliefs)))
        while self._waiting and len(self._leaves) < most:
            self._split(heapq.heappop(self._waiting)[1])

    def _settle(self, place: int, members: Ints) -> None:
        """Make a place a leaf with a channel of its own; queue it if it loses too much."""
        mean = self._beliefs[members].mean(axis=0)
        kept = self._problem.kept(mean / mean.sum())
        self._leaves[place] = members, kept
        floor = float(self._floors[members].sum())
        prices = self._problem.prices(tabulated([kept], _NO_TREE), self._beliefs[members])
        lost = float(prices.sum() - self._floors[members].sum())
        much = lost > self._tolerance * floor
        if much and len(members) >= 2 * _SMALLEST_LEAF:
            heapq.heappush(self._waiting, (-lost, place))

    def _split(self, place: int) -> None:
        members, _ = self._leaves[place]
        reached = self._reached[members]
        # The running sum that varies most tells most beliefs apart by one comparison.
        symbol = int(reached.var(axis=0).argmax())
        threshold = float(np.median(reached[:, symbol]))
        low = reached[:, symbol] <= threshold
        if low.all() or not low.any():
            return
        del self._leaves[place]
        first = len(self._splits)
        self._splits[place] = [symbol, first, first + 1]
        self._thresholds[place] = threshold
        self._splits += [[-1, 0, 0], [-1, 0, 0]]
        self._thresholds += [0.0, 0.0]
        self._settle(first, members[low])
        self._settle(first + 1, members[~low])

    def tables(self) -> Tables:
        """The channels of all leaves, and for each leaf those that suit its beliefs best."""
        kept = [one for _, one in self._leaves.values()]
        channels, candidates = tabulated(kept, _NO_TREE), list[int]()
        for place, (members, _) in self._leaves.items():
            chosen = self._problem.candidates(channels, self._beliefs[members])
            self._splits[place] = [-1, len(candidates), len(candidates) + len(chosen)]
            candidates += chosen
        splits, thresholds = np.array(self._splits), np.array(self._thresholds)
        return tabulated(kept, Tree(splits, thresholds, np.array(candidates)))


_NO_TREE = Tree(np.zeros((0, 3), np.int64), np.zeros(0), np.zeros(0, np.int64))
