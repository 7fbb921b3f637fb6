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

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.belief import Belief, Model
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import OUTCOMES, Event
from sfumato.core.information_leakage import information_leakage
from sfumato.core.numerics import UNIT, up
from sfumato.core.prior_transfer import transfer_bound
from sfumato.models.belief_sets import carried, first_beliefs, informed
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.periodic import PeriodicChain
from sfumato.models.plausible import PlausibleChains
from sfumato.solver.bounded_prior_channel import bounded_leakage
from sfumato.stream.audit_checks import CheckedBatch
from sfumato.stream.audit_report import AuditReport
from sfumato.stream.evidence import cells_of
from sfumato.stream.partition.cells import Partition, StepDesign
from sfumato.stream.partition.patterns import Patterns, WholeBatches
from sfumato.stream.plan import Plan
from sfumato.stream.released_tracks import ReleasedTracks
from sfumato.stream.truth_report import StepUnderTruth, TruthAudit, TruthReport
from sfumato.stream.worst_chain import Told, bad_chain

_SOUGHT = 200_000
"""Steps of all streams up to which channels are kept, to seek a bad chain in the end."""


class OtherTruth:
    """What every stream leaked to an adversary with another chain: a check of an audit.

    Args:
        plan: The rule of the release.
        truth: What the adversary knows instead of the plan's model.
        chains: Also the worst of these chains, for values that leave alone.
        seeks: Whether a bad one of them is sought, for the stream that leaked most over all.

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
        truth: Model,
        chains: PlausibleChains | None = None,
        *,
        seeks: bool = False,
    ) -> None:
        _check_truth(plan, truth)
        if chains is not None:
            _check_chains(plan, chains)
        self._truth, self._chains = truth, chains
        self._followed: dict[str, _Followed] = {}
        self._steps: dict[str, list[Told]] | None = {} if seeks and chains is not None else None
        self._kept = 0
        widest = None if chains is None else chains.widest
        confidence = None if chains is None else chains.confidence
        self.report = TruthReport(truth.fingerprint, widest, confidence)

    def see(self, batch: CheckedBatch) -> None:
        """Account for a batch, and move what the adversary believes on."""
        none_yet = None if self._chains is None else 0.0
        entry = self.report.streams.setdefault(batch.stream, TruthAudit(over_set=none_yet))
        followed = self._followed.get(batch.stream) or _Followed(self._truth, self._chains)
        self._followed[batch.stream] = followed
        first, length = entry.steps, len(batch.due)
        entry.steps += length
        design = batch.design
        if design is None or batch.output is None or design.design.channel.is_constant:
            self._keep(batch.stream, [None] * length)
            followed.passed(length)
            return
        self._keep(batch.stream, [(design.design.channel, batch.output)])
        last = batch.due[-1]
        stated = (last.sip.epsilon, last.ldp.epsilon)
        entry.add(followed.told(design, length, batch.output, stated), first)

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
    truth: Model,
    chains: PlausibleChains | None = None,
) -> TruthReport:
    """What released streams leaked to an adversary with another chain than the plan's.

    Args:
        released: What left: of `read_tracks`, or the events of each stream from its first on.
        plan: The rule of the release.
        truth: What the adversary knows instead of the plan's model.
        chains: Also the worst of these chains, for values that leave alone.

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
    for stream, name in enumerate(tracks.streams):
        state = plan.begin(name)
        for first, length in tracks.batches(stream):
            places = tracks.places[first : first + length].tolist()
            left = [None if place < 0 else alphabet.labels[place] for place in places]
            outcome, signal = OUTCOMES[int(tracks.outcomes[first])], int(tracks.signals[first])
            seen = plan.observed(state, left, outcome, None if signal < 0 else signal)
            check.see(CheckedBatch.of(state, seen))
            state = seen.following
    return check.report


class _Followed:
    """What an adversary believes about one stream."""

    def __init__(self, truth: Model, chains: PlausibleChains | None) -> None:
        self._truth, self._chains = truth, chains
        self._belief = truth.first()
        self._beliefs = None if chains is None else first_beliefs(chains)

    def passed(self, length: int) -> None:
        """Some moments told nothing."""
        for _ in range(length):
            self._belief = self._truth.following(self._belief)
            self._move(None)

    def told(
        self, design: StepDesign, length: int, output: int, stated: tuple[float, float]
    ) -> StepUnderTruth:
        """What a batch told, and what is believed after it."""
        cells = _cells_under(self._truth, self._belief, design.partition, length)
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
        self._belief = cells.after(likelihood)
        self._move(likelihood)
        return step

    def _move(self, likelihood: Floats | None) -> None:
        """Carry the set of beliefs on."""
        if self._chains is None or self._beliefs is None:
            return
        after = self._beliefs if likelihood is None else informed(self._beliefs, likelihood)
        self._beliefs = carried(after, self._chains)


def _leakage_at(channel: Channel, cells: WholeBatches | _Grouped) -> float:
    """Leakage of a channel under the exact probabilities of its cells, rounded up."""
    told = information_leakage(channel, cells.masses / cells.masses.sum()).epsilon
    return up(told + 2 * (cells.error + 2 * UNIT))


def _transferred(stated: float, model: Partition, truth: WholeBatches | _Grouped) -> float:
    """LIP's bound under the truth of what was stated under the model."""
    prior, other = (masses / masses.sum() for masses in (model.masses, truth.masses))
    error = 2 * (model.error + truth.error + 4 * UNIT)
    return up(transfer_bound(stated, prior, other) + error)


class _Grouped:
    """Cells that several batches share, under a belief about their first value."""

    def __init__(self, chain: MarkovChain, belief: Belief, length: int, partition: Partition):
        self._patterns = Patterns(chain, belief, length)
        self._cells = cells_of(partition, length, chain.size)
        masses = self._patterns.masses
        self.masses = np.bincount(self._cells, masses, minlength=partition.masses.size)
        self.error = self._patterns.error + masses.size * UNIT

    def after(self, likelihood: Floats) -> Belief:
        """Belief about the value after the batch."""
        return self._patterns.after(likelihood[self._cells])


def _cells_under(
    truth: Model, belief: Belief, partition: Partition, length: int
) -> WholeBatches | _Grouped:
    """What a channel looks at, as the adversary sees it."""
    if length == 1 and partition.masses.size == len(truth.alphabet):
        return WholeBatches(truth, belief, len(truth.alphabet))
    assert isinstance(truth, MarkovChain)  # `_check_truth` saw to it
    return _Grouped(truth, belief, length, partition)


def _check_truth(plan: Plan, truth: Model) -> None:
    if isinstance(truth, PeriodicChain):
        rule = "be a chain that does not change with time, to hold a release against it"
        raise InvalidParameter("truth", "a chain with phases", rule)
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
    if plan.in_batches and not isinstance(truth, MarkovChain):
        rule = "be a plain chain, for values that leave in batches"
        raise InvalidParameter("truth", type(truth).__name__, rule)


def _check_chains(plan: Plan, chains: PlausibleChains) -> None:
    if plan.in_batches or chains.estimate.order != 1:
        rule = "be of order 1, and values leave one by one, to be followed as a set"
        raise InvalidParameter("chains", "others", rule)
    if chains.estimate.alphabet != plan.model.alphabet:
        raise InvalidParameter("chains", "other symbols", "have the symbols of the model")
