r"""What left, against an adversary whose belief follows another chain than the plan's.

The channels of a release are functions of what left before: whoever knows the plan knows them,
whatever he believes. An adversary with a chain of his own weighs their outputs by his own belief,
so at each step he is told

$$\max_{x,y} \left|\log \frac{a(y \mid x)}{P_2(y)}\right|, \qquad P_2(y) = \sum_x b_2(x) a(y|x)$$

where $a$ is the channel that was used and $b_2$ his belief given all outputs before. Summed over
the steps it bounds what the sequence told him, for the reason that the stated leakage does: given
the values, an output depends on its own value and earlier outputs alone, under any chain.

References:
    [SIP, Thm. 1], [LIP, Lem. 3 and Eq. 12]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sfumato.core.arrays import Floats
from sfumato.core.belief import Model
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import OUTCOMES, Event
from sfumato.core.information_leakage import information_leakage
from sfumato.core.numerics import UNIT, up
from sfumato.core.prior_transfer import transfer_bound
from sfumato.models.belief_sets import carried, first_beliefs, informed
from sfumato.models.clustered_chain import ClusteredChain
from sfumato.models.encoding import Unreadable
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.periodic import PeriodicChain
from sfumato.models.plausible import PlausibleChains
from sfumato.solver.bounded_prior_channel import bounded_leakage
from sfumato.stream.audit_checks import CheckedBatch
from sfumato.stream.audit_report import AuditReport
from sfumato.stream.input_rows import phase_of
from sfumato.stream.partition.cells import Partition, StepDesign
from sfumato.stream.plan import Plan
from sfumato.stream.released_tracks import ReleasedTracks
from sfumato.stream.truth_beliefs import Cells, PhasedBelief, SteadyBelief
from sfumato.stream.truth_report import StepUnderTruth, TruthAudit, TruthReport
from sfumato.stream.worst_chain import Told, bad_chain

_SOUGHT = 200_000
"""Steps of all streams up to which channels are kept, to seek a bad chain in the end."""


class OtherTruth:
    """What every stream leaked to an adversary with another chain: a check of an audit.

    Args:
        plan: The rule of the release.
        truth: What the adversary knows instead of the plan's model: a chain, a mixture of chains,
            or one that changes with time.
        chains: Also the worst of these chains, for values that leave alone.
        seeks: Whether a bad one of them is sought, for the stream that leaked most over all.

    Attributes:
        report: What was found.
        needs_times: Whether batches must come with the times of their values, from which the phases
            of the truth follow.

    Raises:
        InvalidParameter: If beliefs under the truth cannot be about what the channels look at.

    Examples:
        >>> import sfumato as sf
        >>> model = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> truth = sf.MarkovChain.from_matrix([[0.98, 0.02], [0.02, 0.98]])
        >>> plan = sf.Plan(model, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(model.alphabet))
        >>> OtherTruth(plan, truth).report.streams
        {}
    """

    def __init__(
        self,
        plan: Plan,
        truth: Model | PeriodicChain,
        chains: PlausibleChains | None = None,
        *,
        seeks: bool = False,
    ) -> None:
        _check_truth(plan, truth)
        if chains is not None:
            _check_chains(plan, chains)
        self._truth, self._chains = truth, chains
        self._cycle = truth.cycle if isinstance(truth, PeriodicChain) else None
        self.needs_times = self._cycle is not None and not self._cycle.in_turn
        self._followed: dict[str, _Followed] = {}
        self._steps: dict[str, list[Told]] | None = {} if seeks and chains is not None else None
        self._kept = 0
        widest = None if chains is None else chains.widest
        confidence = None if chains is None else chains.confidence
        phases = None if self._cycle is None else str(self._cycle)
        self.report = TruthReport(truth.fingerprint, widest, confidence, phases=phases)

    def see(self, batch: CheckedBatch, phases: Sequence[int] | None = None) -> None:
        """Account for a batch, and move what the adversary believes on.

        Args:
            batch: What left.
            phases: Those of its values under the truth; from their times, or in turn, if not given.
        """
        none_yet = None if self._chains is None else 0.0
        entry = self.report.streams.setdefault(batch.stream, TruthAudit(over_set=none_yet))
        followed = self._followed.get(batch.stream) or _Followed(self._truth, self._chains)
        self._followed[batch.stream] = followed
        first, length = entry.steps, len(batch.due)
        own = self._phases(batch, first) if phases is None else phases
        entry.steps += length
        design = batch.design
        if design is None or batch.output is None or design.design.channel.is_constant:
            self._keep(batch.stream, [None] * length)
            followed.passed(length, own)
            return
        self._keep(batch.stream, [(design.design.channel, batch.output)])
        last = batch.due[-1]
        stated = (last.sip.epsilon, last.ldp.epsilon)
        entry.add(followed.told(design, length, batch.output, stated, own), first)

    def _phases(self, batch: CheckedBatch, first: int) -> Sequence[int]:
        """The phases of the values of a batch under the truth; none if it has none."""
        cycle, length = self._cycle, len(batch.due)
        if cycle is None:
            return ()
        if cycle.in_turn:
            return [cycle.turn(place) for place in range(first, first + length)]
        if len(batch.times) != length:
            rule = "be known of every value: the truth changes with time"
            raise InvalidParameter("times", "none", rule)
        try:
            return [phase_of(cycle, time) for time in batch.times]
        except Unreadable as problem:
            where = f" (row {batch.rows[0]:,})" if batch.rows else ""
            raise InvalidParameter(f"truth{where}", "another time", f"fit: {problem}") from None

    def _keep(self, stream: str, steps: list[Told]) -> None:
        """Remember what left, for a search, unless that is too much."""
        if self._steps is None:
            return
        self._kept += len(steps)
        self._steps.setdefault(stream, []).extend(steps)
        if self._kept > _SOUGHT:
            self._steps = None

    def finish(self, report: AuditReport) -> None:
        """Write down what was found, and seek a bad chain for the stream that leaked most."""
        worst = self.report.worst
        if self._steps is not None and self._chains is not None and worst is not None:
            self.report.bad = bad_chain(worst, self._steps[worst], self._chains)
        report.truth = self.report


def leakage_under(
    released: ReleasedTracks | Mapping[str, Sequence[Event]],
    plan: Plan,
    truth: Model | PeriodicChain,
    chains: PlausibleChains | None = None,
    phases: Mapping[str, Sequence[int]] | None = None,
) -> TruthReport:
    """What released streams leaked to an adversary with another chain than the plan's.

    Args:
        released: What left: of `read_tracks`, or the events of each stream from its first on.
        plan: The rule of the release.
        truth: What the adversary knows instead of the plan's model.
        chains: Also the worst of these chains, for values that leave alone.
        phases: Under a truth that changes with time: the phases of the values of each stream, if
            they do not have them in turn.

    Examples:
        >>> import sfumato as sf
        >>> model = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> truth = sf.MarkovChain.from_matrix([[0.98, 0.02], [0.02, 0.98]])
        >>> plan = sf.Plan(model, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(model.alphabet))
        >>> state, left = plan.begin("ann"), []
        >>> for _ in range(3):
        ...     (event,), state = plan.step(state, [0], sf.secure())
        ...     left.append(event)
        >>> told = leakage_under({"ann": left}, plan, truth).streams["ann"]
        >>> told.truth <= told.transfer, told.truth <= told.ldp
        (True, True)
    """
    check, alphabet = OtherTruth(plan, truth, chains), plan.model.alphabet
    tracks = released
    if not isinstance(tracks, ReleasedTracks):
        tracks = ReleasedTracks.of(tracks, alphabet)
    model = plan.model
    phased = tracks.value_phases(model.cycle) if isinstance(model, PeriodicChain) else None
    for stream, name in enumerate(tracks.streams):
        state = plan.begin(name)
        for first, length in tracks.batches(stream):
            places = tracks.places[first : first + length].tolist()
            left = [None if place < 0 else alphabet.labels[place] for place in places]
            outcome, signal = OUTCOMES[int(tracks.outcomes[first])], int(tracks.signals[first])
            phase = None if phased is None else int(phased[first])
            period = None if tracks.periods is None else int(tracks.periods[first])
            output = None if signal < 0 else signal
            seen = plan.observed(state, left, outcome, output, phase, period)
            begin = first - int(tracks.starts[stream])
            own = None if phases is None else phases[name][begin : begin + length]
            check.see(CheckedBatch.of(state, seen), own)
            state = seen.following
    return check.report


class _Followed:
    """What an adversary believes about one stream."""

    def __init__(self, truth: Model | PeriodicChain, chains: PlausibleChains | None) -> None:
        self._chains = chains
        self._own: SteadyBelief | PhasedBelief = (
            PhasedBelief(truth) if isinstance(truth, PeriodicChain) else SteadyBelief(truth)
        )
        self._beliefs = None if chains is None else first_beliefs(chains)

    def passed(self, length: int, phases: Sequence[int]) -> None:
        """Some moments told nothing."""
        self._own.passed(length, phases)
        for _ in range(length):
            self._move(None)

    def told(
        self,
        design: StepDesign,
        length: int,
        output: int,
        stated: tuple[float, float],
        phases: Sequence[int],
    ) -> StepUnderTruth:
        """What a batch told, and what is believed after it."""
        cells = self._own.cells(design.partition, length, phases)
        channel, (sip, ldp) = design.design.channel, stated
        near = None
        if self._beliefs is not None:
            near = min(bounded_leakage(channel, self._beliefs).epsilon, ldp)
        step = StepUnderTruth(
            sip,
            min(_leakage_at(channel, cells), ldp),
            near,
            min(_transferred(sip, design.partition, cells), ldp),
            ldp,
        )
        likelihood = channel.likelihood(output)
        self._own.told(cells, likelihood)
        self._move(likelihood)
        return step

    def _move(self, likelihood: Floats | None) -> None:
        """Carry the set of beliefs on."""
        if self._chains is None or self._beliefs is None:
            return
        after = self._beliefs if likelihood is None else informed(self._beliefs, likelihood)
        self._beliefs = carried(after, self._chains)


def _leakage_at(channel: Channel, cells: Cells) -> float:
    """Leakage of a channel under the exact probabilities of its cells, rounded up."""
    told = information_leakage(channel, cells.masses / cells.masses.sum()).epsilon
    return up(told + 2 * (cells.error + 2 * UNIT))


def _transferred(stated: float, model: Partition, truth: Cells) -> float:
    """LIP's bound under the truth of what was stated under the model."""
    prior, other = (masses / masses.sum() for masses in (model.masses, truth.masses))
    error = 2 * (model.error + truth.error + 4 * UNIT)
    return up(transfer_bound(stated, prior, other) + error)


def _check_truth(plan: Plan, truth: Model | PeriodicChain) -> None:
    if isinstance(truth, PatternLibrary):
        raise InvalidParameter("truth", "a library of patterns", "be a chain of values")
    if truth.alphabet != plan.model.alphabet:
        rule = "have the symbols of the model, in their order: fit it with them"
        raise InvalidParameter("truth", f"{len(truth.alphabet)} others", rule)
    if not truth.full_support:
        rule = "give every value some probability: fit it with a floor"
        raise InvalidParameter("truth", "zeros", rule)
    if plan.memory > 1:
        raise InvalidParameter("plan", "a memory", "look at one batch alone")
    known = isinstance(truth, MarkovChain | PeriodicChain | ClusteredChain)
    if plan.in_batches and not known:
        rule = "be a chain whose beliefs are about values, for values that leave in batches"
        raise InvalidParameter("truth", type(truth).__name__, rule)


def _check_chains(plan: Plan, chains: PlausibleChains) -> None:
    if plan.in_batches or chains.estimate.order != 1:
        rule = "be of order 1, and values leave one by one, to be followed as a set"
        raise InvalidParameter("chains", "others", rule)
    if chains.estimate.alphabet != plan.model.alphabet:
        raise InvalidParameter("chains", "other symbols", "have the symbols of the model")
