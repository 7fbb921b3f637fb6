"""Learn how values follow each other from what left: from plan and outputs, and nothing else.

Whoever receives a release can do the same, so it costs no privacy. A learner has no way to a true
value: what it gets are outputs, and how likely each symbol was to make them. How much what it has
found is worth is part of the report: whether it foretells outputs of streams that were held out
better than the model of the release does, and which chains the outputs have not ruled out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sfumato.core.errors import InvalidParameter
from sfumato.core.events import OUTCOMES, Event, Outcome
from sfumato.core.progress import Progress
from sfumato.models.chain_bets import SYMBOLS, FixedOutputs, inverse_weights, plausible_chains
from sfumato.models.emissions import Emissions
from sfumato.models.learning import FLOOR, SMOOTHING, LearntChain, learn_chain, log_likelihoods
from sfumato.models.learning_worth import information_share
from sfumato.models.markov import MarkovChain
from sfumato.models.order_choice import HeldOut, held_out
from sfumato.models.plausible import PlausibleChains
from sfumato.stream.evidence import evidence
from sfumato.stream.plan import Plan
from sfumato.stream.recovered_counts import has_one_channel
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
        gain: Nats a value by which a chain learnt from some streams foretells the outputs of
            others better than the model of the release.
        gain_error: Its standard error.
        plausible: Chains of order 1 that the outputs have not ruled out; None where nothing is
            proven.
        remark: Why nothing is proven; "" where something is.
        converged: Whether learning had settled.

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

    @property
    def beats_model(self) -> bool:
        """Whether it foretells better than the model of the release, by two standard errors."""
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
        plan: The rule of the release; it holds the model, and the policy if one was used.
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
    if not isinstance(plan.model, MarkovChain):
        rule = "be a chain of values, the same for all streams (a mixture: `learn --clusters`)"
        raise InvalidParameter("model", type(plan.model).__name__, rule)
    tracks = released
    if not isinstance(tracks, ReleasedTracks):
        tracks = ReleasedTracks.of(tracks, plan.model.alphabet)
    emissions = emissions_of(tracks, plan)
    if not emissions.telling:
        raise InvalidParameter("released", "constants", "tell something about the values")
    done = _Counted(progress)
    fit = partial(learn_chain, smoothing=smoothing, floor=floor)
    alphabet, orders = plan.model.alphabet, ORDERS if order is None else (order,)
    apart = held_out(
        emissions,
        alphabet,
        plan.model,
        orders=orders,
        smoothing=smoothing,
        floor=floor,
        progress=done.part(),
    )
    best = apart.order
    found = fit(emissions, alphabet, order=best, progress=done.part())
    alone = found
    if best:
        alone = fit(emissions, alphabet, order=0, progress=done.part())
    box, remark = _plausible(tracks, plan, emissions, found.chain, confidence)
    return _told(plan.model, emissions, apart, (found, alone), (box, remark), smoothing)


def emissions_of(tracks: ReleasedTracks, plan: Plan) -> Emissions:
    """How likely every value made what left: all that is learnt from."""
    symbols = len(plan.model.alphabet)
    fixed = _fixed(tracks, plan)
    # One channel but for the last digits of its allowance: what is told needs no walk row by row.
    if fixed is not None:
        told, values = np.ascontiguousarray(fixed.channel.T).ravel(), fixed.columns
        return Emissions(symbols, tracks.starts, values * symbols, np.ones_like(values), told)
    found = evidence(tracks, plan)
    return Emissions(symbols, found.starts, found.begins, found.reaches, found.told)


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


def _fixed(tracks: ReleasedTracks, plan: Plan) -> FixedOutputs | None:
    """The outputs as columns of the one channel that all values left through; None if not so."""
    released = OUTCOMES.index(Outcome.RELEASED)
    if not has_one_channel(plan) or np.any(tracks.outcomes != released):
        return None
    step = plan.prepare(plan.begin(""), 1)
    if step is None:
        return None
    channel = step.design.channel
    found = [step.output(np.array([place])) for place in range(len(plan.model.alphabet))]
    outputs = [output for output in found if output is not None]
    if len(outputs) != len(found) or len(outputs) != len(channel.outputs):
        return None
    rows = np.stack([channel.likelihood(output) for output in outputs], axis=1)
    return FixedOutputs(rows, tracks.starts, tracks.places)


def _plausible(
    tracks: ReleasedTracks,
    plan: Plan,
    emissions: Emissions,
    chain: MarkovChain,
    confidence: float,
) -> tuple[PlausibleChains | None, str]:
    """Chains that are not ruled out, or why nothing can be proven."""
    fixed = _fixed(tracks, plan)
    if fixed is None:
        return None, "channels change with what left: `--method randomized-response` has one"
    if chain.order > 1:
        return None, "the chain is of higher order than 1"
    if len(fixed.channel) > SYMBOLS or inverse_weights(fixed.channel) is None:
        return None, f"the channel must tell apart at most {SYMBOLS} symbols"
    places, guide = np.arange(emissions.streams), None
    if emissions.streams >= _GUIDING:
        guiding = places % _GUIDING == 0
        seen = emissions.of_streams(places[guiding])
        guide = learn_chain(seen, chain.alphabet, most=60).chain
        fixed = fixed.of_streams(places[~guiding])
    try:
        return plausible_chains(fixed, chain, guide=guide, confidence=confidence), ""
    except InvalidParameter as problem:
        return None, f"outputs must {problem.rule}"


def _told(
    model: MarkovChain,
    emissions: Emissions,
    apart: HeldOut,
    learnt: tuple[LearntChain, LearntChain],
    proven: tuple[PlausibleChains | None, str],
    smoothing: float,
) -> Learning:
    found, alone = learnt
    gain, error = apart.gain(apart.scores[found.order], apart.rival)
    moves = len(emissions) - int((np.diff(emissions.starts) > 0).sum())
    return Learning(
        chain=found.chain,
        order=found.order,
        streams=emissions.streams,
        values=len(emissions),
        telling=emissions.telling,
        effective=moves * information_share(emissions, found.guess, found.order, smoothing),
        log_likelihood=found.log_likelihood,
        model_log_likelihood=float(log_likelihoods(emissions, model).sum()),
        independent_log_likelihood=alone.log_likelihood,
        gain=gain,
        gain_error=error,
        plausible=proven[0],
        remark=proven[1],
        converged=found.converged,
    )
