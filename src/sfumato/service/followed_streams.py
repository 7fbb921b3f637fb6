"""Streams followed as an audit follows them: belief, channel and price of every output, anew.

Following a stream needs the plan and what left, nothing else. It takes a solver where there is no
policy, so what was followed is kept, a request goes on from there with what came since, and none
takes longer than it may: a document then says how far it came.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import Event
from sfumato.core.guard import Guarded, guarded
from sfumato.core.state import StreamState
from sfumato.models.library import PatternLibrary
from sfumato.service.readable_release import ReadableRelease, StreamRules
from sfumato.service.stream_bets import StreamBets
from sfumato.store.ledger_search import ReadableLedger
from sfumato.store.protocol import Answer
from sfumato.stream.audit_checks import CheckedBatch, Exposure, Totals
from sfumato.stream.audit_ledger import event_of
from sfumato.stream.audit_report import AuditReport, StreamAudit
from sfumato.stream.evidence import of_likelihoods, over_batches
from sfumato.stream.plan import Observed
from sfumato.stream.recovery import Recovery
from sfumato.stream.released_tracks import ReleasedTracks
from sfumato.stream.true_values import RealisedLoss

SECONDS = 2.0
"""How long one request follows a stream."""
_KEPT_STREAMS = 64
_KEPT_CELLS = 20_000_000
"""Probabilities that all followed streams together may hold: 160 MB."""
_RECENT = 512
"""Outputs of a stream that a hint of drift looks back on."""


class Surprise(NamedTuple):
    """One output beside what was expected of it.

    Attributes:
        excess: How much less probable it was than expected, as a logarithm.
        variance: Of that, under the model.
        place: The symbol that left; -1 for a batch.
        expected: The probability of each symbol to leave.
    """

    excess: float
    variance: float
    place: int
    expected: Floats


class FollowedStream(Guarded):
    """One stream of job `release`, followed from its first moment on.

    Attributes:
        report: What an audit of the stream says so far.
        events: What left, moment by moment.
        unlisted: Why there is no belief of each value; empty if there is.
    """

    def __init__(self, rules: StreamRules, stream: str) -> None:
        self.rules, self.stream = rules, stream
        self.report = AuditReport(streams={stream: StreamAudit()})
        self.events: list[Event] = []
        self._recent: deque[Surprise] = deque(maxlen=_RECENT)
        self.unlisted = ""
        plan, model = rules.plan, rules.model
        if isinstance(plan.model, PatternLibrary):
            self.unlisted = "a library of patterns has no belief of single values"
        self._state: StreamState = plan.begin(stream)
        self._told: list[tuple[int, Floats | None]] = []
        self._bets = StreamBets.against(plan.model, in_batches=plan.in_batches)
        width = getattr(plan.budget, "width", None)
        losses = RealisedLoss(model, plan.value_loss)
        self._checks = (Exposure(model, plan, losses), Totals(plan, self.report, width))

    @property
    def followed(self) -> int:
        """Moments followed so far."""
        return len(self.events)

    @property
    def cells(self) -> int:
        """Probabilities that it holds."""
        return 2 * sum(0 if told is None else told.size for _, told in self._told)

    @guarded
    def advance(self, ledger: ReadableLedger, seconds: float = SECONDS) -> None:
        """Follow what came since, for as long as this may take; nothing after a problem."""
        until = time.monotonic() + seconds
        if self.report.problem_count:
            return
        for _, batch in groupby(ledger.rest(self.stream, self.followed), key=_batch):
            if not self._follow(list(batch)) or time.monotonic() > until:
                return

    def _follow(self, answers: list[Answer]) -> bool:
        """Follow one batch; whether it is one that the plan does here."""
        plan, state = self.rules.plan, self._state
        said = [event_of(answer) for answer in answers]
        try:
            labels = [event.released for event in said]
            seen = plan.observed(state, labels, said[0].outcome, said[0].signal)
        except InvalidParameter as problem:
            rule = f"the {problem.name} must {problem.rule}"
            self.report.note(said[-1].sequence, f"{rule} (moments are rows here)")
            return False
        if tuple(said) != seen.events:
            rule = "what it says that it cost, or what left, is not what the plan does here"
            self.report.note(said[-1].sequence, f"{rule} (moments are rows here)")
            return False
        checked = CheckedBatch.of(state, seen)
        for check in self._checks:
            check.see(checked)
        self._remember(seen)
        self.report.rows += len(said)
        self.events += said
        self._state = seen.following
        return True

    def _remember(self, seen: Observed) -> None:
        """What an output told of its values, and how surprising it was."""
        length, told = len(seen.events), None
        if seen.design is not None and not seen.design.design.channel.is_constant:
            assert seen.output is not None  # a channel released it
            self._recent.append(_surprise(seen, self.rules))
            if not self.unlisted:
                likelihood = seen.design.design.channel.likelihood(seen.output)
                symbols = len(self.rules.plan.model.alphabet)
                try:
                    told, _ = over_batches(seen.design.partition, likelihood, length, symbols)
                except InvalidParameter as problem:
                    self.unlisted, self._told = str(problem), []
        if not self.unlisted:
            self._told.append((length, told))
        if self._bets is not None:
            self._bets = self._bets.passed(told)

    @guarded
    def audit(self) -> StreamAudit:
        """What the stream leaked, as `audit` says it."""
        for check in self._checks:
            check.finish(self.report)
        return self.report.streams[self.stream]

    @guarded
    def recent_outputs(self) -> list[Surprise]:
        """The last outputs that told something, and how surprising they were."""
        return list(self._recent)

    @guarded
    def bets(self) -> StreamBets | None:
        """What bets against the model made of it; None where there are none."""
        return self._bets

    @guarded
    def recovery(self) -> Recovery | None:
        """What a receiver can make of it; None before the first moment, or if nobody knows."""
        if self.unlisted or not self.events:
            return None
        plan = self.rules.plan
        told = of_likelihoods([self._told], len(plan.model.alphabet))
        tracks = ReleasedTracks.of(self.events, plan.model.alphabet)
        return Recovery(tracks, plan, told)


def _surprise(seen: Observed, rules: StreamRules) -> Surprise:
    """How much less probable an output was than outputs here are on average."""
    assert seen.design is not None and seen.output is not None
    channel, masses = seen.design.design.channel, seen.design.partition.masses
    chances = channel.marginal(masses / masses.sum())
    logs = -portable.log(np.maximum(chances, np.finfo(float).tiny))
    mean = float((chances * logs).sum())
    variance = float((chances * (logs - mean) ** 2).sum())
    excess = float(logs[channel.column(seen.output)]) - mean
    if rules.plan.in_batches:
        return Surprise(excess, variance, -1, np.empty(0))
    alphabet = rules.plan.model.alphabet
    released = seen.design.patterns[channel.outputs, 0]
    expected = np.bincount(released, chances, minlength=len(alphabet)).astype(np.float64)
    left = seen.events[0].released
    assert left is not None  # an output was released
    return Surprise(excess, variance, alphabet.index(left), expected)


class Followers(Guarded):
    """The streams that were looked at last, as far as they were followed."""

    def __init__(self) -> None:
        self._streams: OrderedDict[tuple[str, bytes, str], FollowedStream] = OrderedDict()

    def of(self, release: ReadableRelease, rules: StreamRules, stream: str) -> FollowedStream:
        """A stream, followed by what came since, for as long as a request may take."""
        found = self._kept(release, rules, stream)
        with release.ledger() as ledger:
            found.advance(ledger)
        return found

    @guarded
    def _kept(self, release: ReadableRelease, rules: StreamRules, stream: str) -> FollowedStream:
        key = (release.name, release.store.front.id, stream)
        if key not in self._streams:
            self._streams[key] = FollowedStream(rules, stream)
        self._streams.move_to_end(key)
        while len(self._streams) > 1 and self._too_many(self._streams.values()):
            self._streams.popitem(last=False)
        return self._streams[key]

    def _too_many(self, streams: Iterable[FollowedStream]) -> bool:
        if len(self._streams) > _KEPT_STREAMS:
            return True
        return sum(one.cells for one in streams) > _KEPT_CELLS


def _batch(answer: Answer) -> int:
    return answer.sequence if answer.batch is None else answer.batch
