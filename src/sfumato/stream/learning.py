"""Learn how values follow each other from what left: from plan and outputs, and nothing else.

Whoever receives a release can do the same, so it costs no privacy. A learner has no way to a true
value: what it gets are outputs, and how likely each symbol was to make them. How much what it has
found is worth is part of the report: whether it predicts outputs of streams that were held out
better than the model of the release does, and which chains the outputs have not ruled out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event
from sfumato.core.progress import Progress
from sfumato.models.chain_bets import SYMBOLS, chains_left, inverse_weights
from sfumato.models.emissions import Emissions
from sfumato.models.expectation import as_guess
from sfumato.models.learning import FLOOR, SMOOTHING, LearntChain, learn_chain
from sfumato.models.learning_worth import information_share
from sfumato.models.learnt_history import LearntHistory
from sfumato.models.markov import MarkovChain
from sfumato.models.order_choice import HeldOut, held_out
from sfumato.models.output_sums import EmissionSums, OutputSums
from sfumato.models.plausible import PlausibleChains
from sfumato.models.stream_model import StreamModel
from sfumato.stream.evidence import evidence
from sfumato.stream.learning_plan import LearningPlan
from sfumato.stream.learnt_outputs import since_last_start
from sfumato.stream.one_channel import alike_over, channel_of
from sfumato.stream.plan import Plan
from sfumato.stream.released_tracks import ReleasedTracks

ORDERS = (0, 1, 2)
_GUIDING = 4
"""Every so many streams guide the bets on the others."""


@dataclass(frozen=True, slots=True, eq=False)
class Learning:
    """A chain that was learnt from what left, and what it is worth.

    Attributes:
        chain: The chain, with full support.
        order: How many past values matter, as chosen or given; 0 for none.
        streams: How many streams there were.
        values: How many values they had.
        telling: Of how many of them an output told anything.
        effective: How many transitions, had they been seen as they are, would tell as much.
        log_likelihood: Log probability of the outputs under the chain, up to a constant.
        model_log_likelihood: The same under the model of the release.
        independent_log_likelihood: The same for values that are independent, at their best.
        gain: Nats a value by which a chain learnt from some streams predicts the outputs of
            others better than the model of the release.
        gain_error: Its standard error.
        plausible: Chains of order 1 that the outputs have not ruled out; None where nothing is
            proven.
        remark: Why nothing is proven; "" where something is.
        converged: Whether learning had settled.
        left_out: Values that left before streams changed, as a release that learns noticed itself:
            nothing was learnt from them.

    Examples:
        >>> import sfumato as sf
        >>> nothing = sf.MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]])
        >>> loss, plain = sf.loss.hamming(nothing.alphabet), sf.Method.RANDOMIZED_RESPONSE
        >>> plan = sf.Plan(nothing, sf.PerStep(sf.SIP(2.0)), loss, method=plain)
        >>> state, left = plan.begin("ann"), []
        >>> for moment in range(60):
        ...     (event,), state = plan.step(state, [moment // 20 % 2], sf.secure())
        ...     left.append(event)
        >>> found = sf.stream.learn({"ann": left}, plan, order=1)
        >>> found.values, found.telling, found.plausible is None
        (60, 60, False)
    """

    chain: MarkovChain
    order: int
    streams: int
    values: int
    telling: int
    effective: float
    log_likelihood: float
    model_log_likelihood: float
    independent_log_likelihood: float
    gain: float
    gain_error: float
    plausible: PlausibleChains | None
    remark: str
    converged: bool
    left_out: int = 0

    @property
    def beats_model(self) -> bool:
        """Whether it predicts better than the model of the release, by two standard errors."""
        return self.gain > 2 * self.gain_error


def learn(
    released: ReleasedTracks | Mapping[str, Sequence[Event]],
    plan: Plan,
    *,
    order: int | None = None,
    smoothing: float = SMOOTHING,
    floor: float = FLOOR,
    confidence: float = 0.95,
    progress: Progress | None = None,
) -> Learning:
    """Learn a chain from released streams, given the public plan.

    Args:
        released: What left: from `read_tracks`, or the events of each stream from its first moment
            on.
        plan: The rule of the release; it holds the model, and the policy if one was used. Of a
            release that learns, `LearningRelease.plan` or `learnt_plan`: channels are those that
            were used, and what is learnt is how values move since it noticed a change last.
        order: How many past values the next one depends on; chosen among 0, 1 and 2 by streams
            held out if not given.
        smoothing: Pseudo-counts of each value after each context.
        floor: Least probability of any transition.
        confidence: That of the set of plausible chains.
        progress: Called with the number of passes over the outputs so far.

    Raises:
        InvalidParameter: If the plan could not have released this.

    Examples:
        >>> import sfumato as sf
        >>> nothing = sf.MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]])
        >>> plan = sf.Plan(
        ...     nothing,
        ...     sf.PerStep(sf.SIP(2.0)),
        ...     sf.loss.hamming(nothing.alphabet),
        ...     method=sf.Method.RANDOMIZED_RESPONSE,
        ... )
        >>> left = {}
        >>> for name in ("ann", "bob"):
        ...     state, left[name] = plan.begin(name), []
        ...     for moment in range(60):
        ...         (event,), state = plan.step(state, [moment // 20 % 2], sf.secure())
        ...         left[name].append(event)
        >>> found = learn(left, plan, order=1)
        >>> found.streams, found.values, bool(found.chain.transition()[0, 0] > 0.6)
        (2, 120, True)
    """
    check_learnable(plan)
    tracks = released
    if not isinstance(tracks, ReleasedTracks):
        tracks = ReleasedTracks.of(tracks, plan.model.alphabet)
    tracks = tracks.by_name()
    channel = channel_of(tracks, plan)
    emissions = told_by(tracks, plan, channel)
    found = learn_sums(
        EmissionSums(emissions),
        plan,
        channel,
        order=order,
        smoothing=smoothing,
        floor=floor,
        confidence=confidence,
        progress=progress,
    )
    return replace(found, left_out=len(tracks.places) - len(emissions))


def learnt_model(found: Learning, model: StreamModel, plan: Plan) -> StreamModel:
    """What was learnt as a model to release with; it says in its file what it was learnt from.

    Args:
        found: What was learnt.
        model: The model of the release, which says how values are read.
        plan: The rule of the release.
    """
    told = LearntHistory(plan.fingerprint, found.streams, found.values)
    moves, names = found.values - found.streams, (model.stream, model.values)
    return StreamModel(found.chain, model.encoding, *names, moves, model.unit, learnt=told)


def check_learnable(plan: Plan) -> MarkovChain:
    """The model of a plan, if it is one chain for all streams."""
    if not isinstance(plan.model, MarkovChain):
        rule = "be a chain of values, the same for all streams (a mixture: `learn --clusters`)"
        raise InvalidParameter("model", type(plan.model).__name__, rule)
    return plan.model


def learn_sums(
    sums: OutputSums,
    plan: Plan,
    channel: Floats | None,
    *,
    order: int | None = None,
    smoothing: float = SMOOTHING,
    floor: float = FLOOR,
    confidence: float = 0.95,
    progress: Progress | None = None,
) -> Learning:
    """Learn a chain from sums over what left, in whichever process it lies.

    Args:
        sums: Over the outputs.
        plan: The rule of the release.
        channel: The one channel that all outputs left through; None if there is none.
        order: As in `learn`, like all that follows.
        smoothing: Pseudo-counts of each value after each context.
        floor: Least probability of any transition.
        confidence: That of the set of plausible chains.
        progress: Called with the number of passes over the outputs so far.
    """
    model = check_learnable(plan)
    if not sums.telling:
        raise InvalidParameter("released", "constants", "tell something about the values")
    done = _Counted(progress)
    fit = partial(learn_chain, smoothing=smoothing, floor=floor)
    alphabet, orders = model.alphabet, ORDERS if order is None else (order,)
    apart = held_out(
        sums,
        alphabet,
        model,
        orders=orders,
        smoothing=smoothing,
        floor=floor,
        progress=done.part(),
    )
    best = apart.order
    found = fit(sums, alphabet, order=best, progress=done.part())
    alone = found
    if best:
        alone = fit(sums, alphabet, order=0, progress=done.part())
    proven = _plausible(sums, plan, channel, found.chain, confidence)
    return _told(model, sums, apart, (found, alone), proven, smoothing)


def emissions_of(tracks: ReleasedTracks, plan: Plan) -> Emissions:
    """How likely every value made what left: all that is learnt from.

    Of a release that learns, what left since it noticed a change last.
    """
    return told_by(tracks, plan, channel_of(tracks, plan))


def told_by(tracks: ReleasedTracks, plan: Plan, channel: Floats | None) -> Emissions:
    """The same, if it is known whether all values, of these and other streams, left by one channel.

    Args:
        tracks: What left.
        plan: The rule of the release.
        channel: That channel; None if there is none.
    """
    symbols = len(plan.model.alphabet)
    # One channel but for the last digits of its allowance: what is told needs no walk row by row.
    if channel is not None:
        told, values = np.ascontiguousarray(channel.T).ravel(), tracks.places
        return Emissions(symbols, tracks.starts, values * symbols, np.ones_like(values), told)
    found = evidence(tracks, plan)
    whole = Emissions(symbols, found.starts, found.begins, found.reaches, found.told)
    if isinstance(plan, LearningPlan) and plan.history.restarts:
        return whole.of_values(since_last_start(tracks, plan))
    return whole


class _Counted:
    """Passes of several parts, counted on."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress, self._before, self._last = progress, 0, 0

    def part(self) -> Progress:
        self._before += self._last
        self._last = 0
        return self._passed

    def _passed(self, passes: int) -> None:
        self._last = passes
        if self._progress:
            self._progress(self._before + passes)


def _plausible(
    sums: OutputSums,
    plan: Plan,
    channel: Floats | None,
    chain: MarkovChain,
    confidence: float,
) -> tuple[PlausibleChains | None, str]:
    """Chains that are not ruled out, or why nothing can be proven."""
    if isinstance(plan, LearningPlan):
        return (
            None,
            "channels change with what left; what is proven stands in the release's versions",
        )
    if channel is None:
        return None, "channels change with what left: `--method randomized-response` has one"
    if chain.order > 1:
        return None, "the chain is of higher order than 1"
    if len(channel) > SYMBOLS or inverse_weights(channel) is None:
        return None, f"the channel must tell apart at most {SYMBOLS} symbols"
    guide, alike = None, alike_over(plan, channel, int(sums.lengths().max(initial=0)))
    if sums.streams >= _GUIDING:
        guiding, sums = sums.every(_GUIDING, 0)
        guide = learn_chain(guiding, chain.alphabet, most=60).chain
    try:
        counts = sums.bets(channel, guide)._replace(alike=alike)
        return chains_left(counts, chain, confidence), ""
    except InvalidParameter as problem:
        return None, f"outputs must {problem.rule}"


def _told(
    model: MarkovChain,
    sums: OutputSums,
    apart: HeldOut,
    learnt: tuple[LearntChain, LearntChain],
    proven: tuple[PlausibleChains | None, str],
    smoothing: float,
) -> Learning:
    found, alone = learnt
    gain, error = apart.gain(apart.scores[found.order], apart.rival)
    moves = sums.values - sums.streams
    return Learning(
        chain=found.chain,
        order=found.order,
        streams=sums.streams,
        values=sums.values,
        telling=sums.telling,
        effective=moves * information_share(sums, found.guess, found.order, smoothing),
        log_likelihood=found.log_likelihood,
        model_log_likelihood=sums.score(as_guess(model)),
        independent_log_likelihood=alone.log_likelihood,
        gain=gain,
        gain_error=error,
        plausible=proven[0],
        remark=proven[1],
        converged=found.converged,
    )
