r"""Whether what left lately still fits the model: a test that may be looked at for ever.

It needs the plan and what left, nothing else: whoever receives a release can do it, and it costs no
privacy. Others bet against the model on every block of outputs (`models/drift_capital.py`); as long
as streams follow it, the capital of all of them ever reaches $1/\alpha$ with probability at most
$\alpha$, however many blocks there are and however often somebody looks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event
from sfumato.core.numerics import UNIT, up
from sfumato.core.progress import Progress
from sfumato.models.belief_sets import most_scores
from sfumato.models.clustered_chain import ClusteredChain
from sfumato.models.drift_bets import bettors
from sfumato.models.drift_capital import drift_capital
from sfumato.models.drift_learner import distance_since
from sfumato.models.expectation import Guess, value_scores
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.output_blocks import OutputBlocks
from sfumato.models.periodic import PeriodicChain
from sfumato.models.plausible import PlausibleChains
from sfumato.stream.learning import emissions_of
from sfumato.stream.learning_plan import LearningPlan
from sfumato.stream.learnt_outputs import last_set, since_last_start, with_any_first
from sfumato.stream.one_channel import fixed_outputs
from sfumato.stream.plan import Plan
from sfumato.stream.released_tracks import ReleasedTracks

ALPHA, BLOCK = 0.01, 100
_OTHERS = {
    PeriodicChain: "a chain with phases",
    ClusteredChain: "a mixture of chains",
    PatternLibrary: "a library of patterns",
}


class OutputOrder(Enum):
    """In which order outputs are looked at: a change is one of this order.

    Attributes:
        ROWS: As rows were written. Rows that are appended change nothing of what was seen before.
        MOMENTS: By moments, all streams side by side: for tables that are sorted by stream.

    Examples:
        >>> OutputOrder("rows") is OutputOrder.ROWS
        True
    """

    ROWS = "rows"
    MOMENTS = "moments"


@dataclass(frozen=True, slots=True, eq=False)
class DriftReport:
    """What bets against a model made of released values.

    Attributes:
        streams: How many streams there were.
        values: How many values they had.
        telling: Of how many of them an output told anything.
        ends: How many values there were, over all streams, until the end of each block.
        log_capital: Logarithm of the capital of all who bet against the model, after each block;
            rounded down. They began with 1.
        alpha: Probability that the capital of a right model ever reaches `1/alpha`, at most.
        alarm: How many values there were when it did; None if it never did.
        since: How many values there were before the change, most likely; None without an alarm.
        kind: How streams move instead, by the bet that won most; "" without an alarm.
        tested: How far each probability may be off in the set that is tested; 0 for the model.
        distance: How far the probabilities of moves learnt since the change are off the model's,
            at most: an estimate; None without an alarm.
        version: The version of a release that learns whose set was tested, on what left since it
            noticed a change itself; None for other releases, and for a set that was given.
        missed: Probability that the true chain is not in that set, at most: it is to be added to
            `alpha`.

    Examples:
        >>> import sfumato as sf
        >>> model = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> plan = sf.Plan(model, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(model.alphabet))
        >>> events, _ = plan.step(plan.begin("ann"), [1], sf.secure())
        >>> found = sf.drift_test({"ann": events}, plan, along=sf.stream.OutputOrder.MOMENTS)
        >>> found.values, found.alarm, found.threshold
        (1, None, ...)
    """

    streams: int
    values: int
    telling: int
    ends: Ints
    log_capital: Floats
    alpha: float
    alarm: int | None
    since: int | None
    kind: str
    tested: float
    distance: float | None
    version: int | None = None
    missed: float = 0.0

    @property
    def threshold(self) -> float:
        """Logarithm of the capital at which the alarm is raised."""
        return -portable.log(self.alpha)

    @property
    def evidence(self) -> float:
        """Logarithm of the largest capital so far."""
        return float(self.log_capital.max())

    @property
    def chance(self) -> float:
        """How probable it is, at most, that a right model ever looks so wrong."""
        return min(1.0, up(portable.exp(-self.evidence)))


def drift_test(
    released: ReleasedTracks | Mapping[str, Sequence[Event]],
    plan: Plan,
    *,
    plausible: PlausibleChains | None = None,
    alpha: float = ALPHA,
    block: int = BLOCK,
    along: OutputOrder = OutputOrder.ROWS,
    progress: Progress | None = None,
) -> DriftReport:
    """Test whether released streams still follow the model of the release.

    Args:
        released: What left: from `read_tracks`, or the events of each stream from its first moment
            on.
        plan: The rule of the release; it holds the model, and the policy if one was used. Of a
            release that learns, `LearningRelease.plan` or `learnt_plan`: tested is the set of its
            last version, on what left since it noticed a change last.
        plausible: Test instead whether streams follow chains of this set, also others at each
            step: what a robust release covers. Only large changes are proof against that.
        alpha: Probability of a false alarm, over the whole life of the release, at most.
        block: Values, over all streams, after which the capital is counted and bets change. It
            must not be chosen by what was found.
        along: In which order outputs are looked at.
        progress: Called with the number of values done so far.

    Raises:
        InvalidParameter: If the plan could not have released this.

    Examples:
        >>> import sfumato as sf
        >>> model = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> plan = sf.Plan(model, sf.PerStep(sf.SIP(2.0)), sf.loss.hamming(model.alphabet))
        >>> state, left = plan.begin("ann"), []
        >>> for moment in range(400):  # values go to and fro, which the model calls rare
        ...     (event,), state = plan.step(state, [moment % 2], sf.secure())
        ...     left.append(event)
        >>> found = sf.drift_test({"ann": left}, plan, along=sf.stream.OutputOrder.MOMENTS)
        >>> found.alarm is not None, found.chance <= 0.01
        (True, True)
    """
    model = plan.model
    if not isinstance(model, MarkovChain):
        rule = (
            "be one chain for all streams and times: a change is not looked for under models of "
            "`fit` with --period, --clusters or --batch (`audit` still checks such a release)"
        )
        raise InvalidParameter("model", _kind(model), rule)
    checks.proper_fraction("alpha", alpha)
    tracks = released
    if not isinstance(tracks, ReleasedTracks):
        tracks = ReleasedTracks.of(tracks, model.alphabet)
    order, version, missed = _order(tracks, along), None, 0.0
    if isinstance(plan, LearningPlan):
        order = order[since_last_start(tracks, plan)]
        if plausible is None:
            version, plausible = _learnt_set(plan)
            missed = 1 - plan.rules.confidence
        if plan.history.restarts:
            plausible = with_any_first(plausible)
    emissions, fixed = emissions_of(tracks, plan), fixed_outputs(tracks, plan)
    blocks = OutputBlocks.of(emissions, order, block)
    # Whoever bets must not know what will leave: the model is older than that, an estimate is not.
    found = drift_capital(
        _scores(blocks, model, plausible),
        bettors(blocks, model, progress),
        alpha,
        _allowance(blocks, 0.0 if fixed is None else fixed.alike),
    )
    at, ends = found.alarm, blocks.ends
    middle = model if version is None or plausible is None else plausible.estimate
    return DriftReport(
        streams=emissions.streams,
        values=len(emissions),
        telling=emissions.telling,
        ends=ends,
        log_capital=found.log_capital,
        alpha=alpha,
        alarm=None if at is None else int(ends[at]),
        since=None if at is None else found.since * block,
        kind="" if at is None else found.best.name,
        tested=0.0 if plausible is None else plausible.radius,
        distance=None if at is None else distance_since(blocks, middle, found.since),
        version=version,
        missed=missed,
    )


def _learnt_set(plan: LearningPlan) -> tuple[int, PlausibleChains]:
    r"""The version whose set is tested, and the set.

    It was learnt from the very outputs that are looked at, which does no harm. Let $P$ be the true
    chain: what bettors have is at most $\prod q / P$ at every look where $P$ lies in the set of
    that look, and this is one martingale for all looks. So an alarm has probability at most `alpha`
    and that of a set without $P$ together.
    """
    found = last_set(plan)
    if found is None:
        rule = "have led to a version with bounds since learning started: nothing to test yet"
        raise InvalidParameter("released", f"{plan.history.count:,} values", rule)
    return found


def _kind(model: object) -> str:
    """What a model is that is no chain of values, in words."""
    for kind, words in _OTHERS.items():
        if isinstance(model, kind):
            return words
    return type(model).__name__


def _order(tracks: ReleasedTracks, along: OutputOrder) -> Ints:
    match along:
        case OutputOrder.ROWS:
            return tracks.rows
        case OutputOrder.MOMENTS:
            return tracks.moments
        case _:
            assert_never(along)


def _scores(blocks: OutputBlocks, model: MarkovChain, chains: PlausibleChains | None) -> Floats:
    """Log probability of each block under the model, or the largest over a set of chains."""
    if chains is not None:
        return blocks.summed(most_scores(blocks.emissions, chains))
    guess = Guess(model.initial.ravel(), np.array(model.transition()))
    return blocks.summed(value_scores(guess, blocks.emissions))


def _allowance(blocks: OutputBlocks, alike: float) -> Floats:
    """What rounding may have added to the logarithm of any capital until the end of each block.

    Args:
        blocks: What left.
        alike: What probabilities of the one channel may be off; 0 where each step has its own.
    """
    told, symbols = blocks.emissions.told, blocks.emissions.symbols
    # A filter errs by some roundings for each context, at each value; so does the one that bets.
    each = float(32 * symbols**blocks.emissions.span + 128) * UNIT
    if alike and told.size:
        each += 4 * symbols * alike / float(told.min())
    return each * blocks.ends.astype(np.float64)
