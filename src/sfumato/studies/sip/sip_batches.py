r"""Loss against leakage on a binary chain: value by value, in batches, and the rivals.

A bit is 1 with probability $P_1$ at first and stays as it is with probability $q$: setting (a),
$P_1 = q = .5$, is independent data and (b), $P_1 = q = .9$, is correlated (the paper's text calls
(a) "more correlated"). All curves have the same total budget: a batch of $w$ values may leak
$w \epsilon$. The loss is the expected share of wrong bits, computed on the tree of everything that
can be released: each moment counts with the expected cost of its channel, branches with the same
belief are one, and where more than `branches` remain they are thinned at random, without bias.

*Batches gain on independent data, too*: in a product of single releases only the pattern that is
wrong everywhere is as unlikely as the budget allows, while one channel for the whole batch makes
every pattern that is far from the truth as unlikely as that.

The paper says that batched release always outperforms instantaneous release, and the more so the
wider the batch. What is true of the certified optimum:

- One batch over the whole horizon never loses more than narrower ones in turn: what those do
  together is a channel for the whole. On independent data the same holds whenever one width
  divides the other. On chain (b) no wider batch was found to lose more: 6 values, widths 1, 2,
  3, 6, budgets .005 to 1.5 in steps of .005; 12 values, widths 2, 3, 4, 6, budgets .01 to 1.
- It is false on independent data where neither width divides the other. The loss of a width
  bends where $1/(e^{w\epsilon} + 1)$ is just the share of the patterns with at most one wrong
  bit. At such a point, $\epsilon = \ln(13/3)/5 = .2933$, batches of 5 lose 19/78 = .24359 of the
  bits and *no* channel for 6 loses less than .24455; 6 is worse than 5 from .2882 to .2955. At
  $\ln(11/5)/4 = .1971$ batches of 4 lose 37/110 = .33636 and batches of 5 lose .33643; 5 is worse
  than 4 from .1966 to .1974.
- "Always" is false where the best channel tells nothing: on chain (b), 6 values, batches of 2
  lose as much as single values, .254048, up to $\epsilon = .1520$, and batches of 3 up to .1013.

The optimum of a step is not that of a stream. On chain (b) at small budgets it says nothing for a
while and stays ignorant: value by value it loses .354 of the bits at $\epsilon = .25$ and .277 at
.5, calibrated randomised response followed by the best guess .344 and .273. The far-sighted release
looks at all that follows a step, and stands beside a bound that nothing value by value is below.

References:
    [SIP, Fig. 5], [SIP, Sec. VI-A]
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sfumato.core import checks
from sfumato.core.belief import Belief
from sfumato.core.budgets import PerStep
from sfumato.core.guarantees import SIP
from sfumato.core.loss import hamming
from sfumato.models.markov import MarkovChain
from sfumato.plots.points import BatchPoint
from sfumato.solver.certify import certified
from sfumato.solver.design_methods import Method
from sfumato.solver.design_result import measured
from sfumato.stream.loss_floor import loss_floor
from sfumato.stream.output_tree import OutputTree
from sfumato.stream.partition.batch_design import design_batch
from sfumato.stream.partition.batch_loss import additive, listed
from sfumato.stream.partition.cells import StepDesign
from sfumato.stream.partition.patterns import Patterns
from sfumato.stream.plan import Plan
from sfumato.stream.simulated_stream import as_simulation
from sfumato.studies.sip.belief_tree import Tree, grow
from sfumato.studies.sip.fixed_channels import FixedChannel, temporal_response, topl, tops

EPSILONS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0)
HORIZON, BRANCHES = 30, 48
KINK = math.log(13 / 3) / 5
"""Budget per value at which batches of 5 lose less than batches of 6, on independent data."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A binary chain.

    Attributes:
        name: What the paper calls it.
        first_prior: Probability that the first bit is 1.
        stay: Probability that a bit is the one before it.
    """

    name: str
    first_prior: float
    stay: float

    @property
    def chain(self) -> MarkovChain:
        """The chain itself."""
        return MarkovChain.from_matrix(
            [[self.stay, 1 - self.stay], [1 - self.stay, self.stay]],
            [1 - self.first_prior, self.first_prior],
        )


SETTINGS = (Setting("a", 0.5, 0.5), Setting("b", 0.9, 0.9))


@dataclass(frozen=True, slots=True)
class Curve:
    """One way to release.

    Attributes:
        name: What tables and figures call it.
        method: How its channels are found.
        width: Values of a batch.
        multiple: Its budget is that many times epsilon; 1 but for one of the paper's rivals.
        rival: A channel that does not look at the belief, for a chain and a promise; in place of
            the method.
    """

    name: str
    method: Method | None
    width: int = 1
    multiple: float = 1.0
    rival: Callable[[MarkovChain, float], FixedChannel] | None = None


CURVES = (
    Curve("randomized response", Method.RANDOMIZED_RESPONSE),
    Curve("randomized response, 2 epsilon", Method.RANDOMIZED_RESPONSE, multiple=2.0),
    Curve("ToPS", None, rival=lambda chain, epsilon: tops(chain.size, epsilon, 1)),
    Curve("ToPL", None, rival=lambda chain, epsilon: topl(chain.size, epsilon, 1)),
    Curve("temporal LDP", None, rival=temporal_response),
    Curve("calibrated", Method.CALIBRATED),
    Curve("published", Method.PAPER),
    Curve("instantaneous", Method.OPTIMAL),
    Curve("batches of 2", Method.OPTIMAL, width=2),
    Curve("batches of 3", Method.OPTIMAL, width=3),
    Curve("batches of 5", Method.OPTIMAL, width=5),
)
SILENCE = "say nothing"
FIXED = ("randomized response", "randomized response, 2 epsilon", "ToPS", "ToPL", "temporal LDP")
"""Rivals whose channel never changes: their promise is in another unit."""
CERTIFIED = (
    "calibrated",
    "instantaneous",
    "far-sighted",
    "batches of 2",
    "batches of 3",
    "batches of 5",
)
"""Curves that promise a leakage of at most epsilon per value under the model."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two widths of a batch on the same values with the same total budget.

    Attributes:
        setting: Name of the chain.
        epsilon: Budget per value.
        horizon: Values released.
        narrow: The smaller width.
        wide: The larger one.
        narrow_loss: Expected share of wrong bits in narrow batches.
        wide_loss: The same in wide ones.
    """

    setting: str
    epsilon: float
    horizon: int
    narrow: int
    wide: int
    narrow_loss: float
    wide_loss: float

    @property
    def dearer(self) -> bool:
        """Whether the wider batches lose more, by more than what the solver leaves open."""
        return self.wide_loss > self.narrow_loss * (1 + 1e-6) + 1e-9

    @property
    def divides(self) -> bool:
        """Whether whole narrow batches make up a wide one."""
        return self.wide % self.narrow == 0


def batch_points(
    settings: Sequence[Setting] = SETTINGS,
    epsilons: Sequence[float] = EPSILONS,
    curves: Sequence[Curve] = CURVES,
    *,
    horizon: int = HORIZON,
    branches: int | None = BRANCHES,
    seed: int = 5,
    progress: Callable[[int], None] | None = None,
) -> list[BatchPoint]:
    """Every curve of the figure, one point for each budget.

    Args:
        settings: The chains.
        epsilons: Budgets per value.
        curves: The ways to release.
        horizon: Values of a stream; every width must divide it.
        branches: Most beliefs that are followed at once; None for all, which makes every
            number exact and is for short horizons.
        seed: Of the thinning.
        progress: Called with the number of points done so far.

    Examples:
        >>> alone, pairs = batch_points([SETTINGS[0]], [1.0], CURVES[7:9], horizon=6)
        >>> alone.loss, pairs.loss, pairs.leakage <= 1.0, pairs.exact
        (0.183940, 0.067668, True, True)

    References:
        [SIP, Fig. 5]
    """
    points = []
    for setting, epsilon, curve in itertools.product(settings, epsilons, curves):
        tree = _grown(setting, curve, epsilon, horizon, branches, seed)
        points.append(
            BatchPoint(
                setting=setting.name,
                curve=curve.name,
                width=curve.width,
                epsilon=epsilon,
                loss=tree.loss / horizon,
                guessed_loss=tree.guessed / horizon,
                leakage=tree.leakage,
                exact=tree.exact,
            )
        )
        if progress:
            progress(len(points))
    return points


def sighted_points(
    settings: Sequence[Setting] = SETTINGS,
    epsilons: Sequence[float] = EPSILONS,
    *,
    horizon: int = HORIZON,
    branches: int = BRANCHES,
    seed: int = 5,
    progress: Callable[[int], None] | None = None,
) -> list[BatchPoint]:
    """Value by value with foresight, and what no release value by value can be better than.

    Args:
        settings: The chains.
        epsilons: Budgets per value.
        horizon: Values of a stream.
        branches: Most histories of outputs that are followed at once.
        seed: Of the thinning.
        progress: Called with the number of budgets done so far.

    Examples:
        >>> sighted, bound = sighted_points(SETTINGS[1:], [1.0], horizon=10)
        >>> sighted.curve, round(sighted.loss, 2), bound.loss < sighted.loss, sighted.leakage <= 1.0
        ('far-sighted', 0.15, True, True)
    """
    points: list[BatchPoint] = []
    for setting, epsilon in itertools.product(settings, epsilons):
        chain, budget = setting.chain, PerStep(SIP(epsilon))
        wrong = hamming(chain.alphabet)
        plan = as_simulation(Plan(chain, budget, wrong, method=Method.FAR_SIGHTED))
        tree = OutputTree(plan, wrong, branches, seed)
        loss, _ = tree.mean_loss(horizon)
        bound = loss_floor(chain, wrong, budget, horizon)
        at = (setting.name, epsilon)
        points.append(_single("far-sighted", *at, loss, tree.most_charged, exact=not tree.thinned))
        points.append(_single("bound", *at, bound, epsilon, exact=True))
        if progress:
            progress(len(points) // 2)
    return points


def silent_points(
    settings: Sequence[Setting] = SETTINGS,
    epsilons: Sequence[float] = EPSILONS,
    horizon: int = HORIZON,
) -> list[BatchPoint]:
    """What the likelier bit of each moment loses, which tells nothing.

    Examples:
        >>> silent_points(SETTINGS[1:], [1.0], horizon=2)[0].loss  # .1 at first, then .18
        0.14
    """
    points = []
    for setting in settings:
        belief, lost = setting.chain.first(), 0.0
        for _ in range(horizon):
            lost += float(belief.marginal.min()) / horizon
            belief = setting.chain.following(belief)
        points += [_single(SILENCE, setting.name, each, lost, 0.0, exact=True) for each in epsilons]
    return points


def _single(
    curve: str, setting: str, epsilon: float, loss: float, leakage: float, *, exact: bool
) -> BatchPoint:
    return BatchPoint(setting, curve, 1, epsilon, loss, loss, leakage, exact)


def compare_widths(
    setting: Setting, epsilon: float, widths: Sequence[int] = (1, 2, 3, 6), horizon: int = 6
) -> list[Comparison]:
    """Whether a wider batch ever loses more: the exact expected loss for every pair of widths.

    Where several channels are best for a batch, what later batches lose depends on the one that the
    solver takes.

    Args:
        setting: The chain.
        epsilon: Budget per value.
        widths: Values of a batch, the smaller first.
        horizon: Values of a stream; every width must divide it.

    Examples:
        >>> pair, = compare_widths(SETTINGS[0], KINK, (5, 6), horizon=30)
        >>> pair.narrow_loss, pair.wide_loss, pair.dearer
        (0.243590, 0.244560, True)
    """
    losses = {}
    for width in widths:
        curve = Curve(f"batches of {width}", Method.OPTIMAL, width)
        tree = _grown(setting, curve, epsilon, horizon, None, 0)
        losses[width] = tree.loss / horizon
    return [
        Comparison(setting.name, epsilon, horizon, narrow, wide, losses[narrow], losses[wide])
        for narrow, wide in itertools.combinations(widths, 2)
    ]


def _grown(
    setting: Setting, curve: Curve, epsilon: float, horizon: int, most: int | None, seed: int
) -> Tree:
    chain = setting.chain
    budget = checks.epsilon("epsilon", epsilon) * curve.multiple * curve.width
    if curve.rival is not None:
        found = partial(_fixed, chain, curve.rival(chain, budget))
    else:
        found = partial(_designed, chain, curve, budget)
    return grow(chain, curve.width, found, horizon, most, seed)


def _fixed(chain: MarkovChain, rival: FixedChannel, belief: Belief) -> StepDesign:
    """The channel of a rival, whatever is believed; its outputs are read as bits."""
    partition = Patterns(chain, belief, 1)
    told = measured(rival.channel, partition.masses, (1 - np.eye(2))[:, rival.shown])
    return StepDesign(partition, told, rival.shown[:, None], exact=True)


def _designed(chain: MarkovChain, curve: Curve, budget: float, belief: Belief) -> StepDesign:
    if curve.method is Method.CALIBRATED and curve.width == 1:
        return _calibrated(chain, belief, budget)
    assert curve.method is not None
    each = additive(hamming(chain.alphabet))
    return design_batch(chain, belief, curve.width, each, budget, method=curve.method)


def _calibrated(chain: MarkovChain, belief: Belief, budget: float) -> StepDesign:
    """Calibrated randomised response on a bit, by formula: a search for each belief takes long.

    With the rarer bit believed in with probability `rare`, its output has the largest ratio
    `keep / P(y)`, the other output the smallest, `(1 - keep) / P(y)`.
    """
    partition = Patterns(chain, belief, 1)
    k, rare = math.exp(budget), float(partition.masses.min() / partition.masses.sum())
    keep = min(k * (1 - rare) / (1 + k * (1 - 2 * rare)), (k - rare) / (k + 1 - 2 * rare))
    rows = np.array([[keep, 1 - keep], [1 - keep, keep]])
    channel = certified(rows, partition.masses, budget)
    told = measured(channel, partition.masses, 1 - np.eye(2))
    return StepDesign(partition, told, listed(2, 1), exact=True)
