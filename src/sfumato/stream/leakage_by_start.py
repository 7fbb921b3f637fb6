"""What a release that learns leaked, start by start: under what was learnt, and whatever is true.

Where learning starts anew no one chain, and no one set, is about all that left. Each start has its
own: the last estimate and the last set of its versions. An adversary is followed through the
outputs of a start as `other_truth.py` follows one; of a stream that goes on from before, he begins
with the long run of the estimate, and over the set with any belief at all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from sfumato.models.markov import MarkovChain
from sfumato.stream.audit_checks import CheckedBatch
from sfumato.stream.audit_report import AuditReport
from sfumato.stream.learning_plan import LearningPlan
from sfumato.stream.learnt_outputs import by_start, last_learnt, with_any_first
from sfumato.stream.model_versions import ModelVersion
from sfumato.stream.other_truth import OtherTruth
from sfumato.stream.truth_report import StepUnderTruth, TruthAudit, TruthReport


class LeakageByStart:
    """Three numbers of every stream, for each start of learning and summed: a check of an audit.

    Args:
        plan: The rule of the release, with all that left.
    """

    def __init__(self, plan: LearningPlan) -> None:
        self._history = plan.history
        self._parts = [_Start(plan, own) for own in by_start(plan.history.versions())]

    def see(self, batch: CheckedBatch) -> None:
        """Account for a value in the start that it left in."""
        began = self._history.starts(batch.stream)
        start = bisect_right(began, batch.state.sequence) - 1
        self._parts[start].see(batch, goes_on=began[start] > 0)

    def finish(self, report: AuditReport) -> None:
        """Write down what was found."""
        report.starts = tuple(part.report for part in self._parts)
        whole = TruthReport(
            model=report.starts[-1].model,
            widest=max(part.widest or 0.0 for part in report.starts),
            confidence=self._history.rules.confidence,
        )
        for start, part in enumerate(report.starts):
            for stream, entry in part.streams.items():
                entry.worst_at += self._history.starts(stream)[start]
                whole.streams.setdefault(stream, TruthAudit(over_set=0.0)).include(entry)
        report.truth = whole


class _Start:
    """What streams leaked in one start."""

    def __init__(self, plan: LearningPlan, versions: Sequence[ModelVersion]) -> None:
        found = last_learnt(versions)
        self._checks: tuple[OtherTruth, OtherTruth] | None = None
        self._report = TruthReport(plan.model.fingerprint, 1.0, plan.rules.confidence)
        if found is not None and found.chains is not None:
            chains = found.chains
            own = chains.estimate
            late = MarkovChain.from_matrix(own.transition(), own.stationary(), own.alphabet)
            chains_late = with_any_first(replace(chains, estimate=late))
            self._checks = OtherTruth(plan, own, chains), OtherTruth(plan, late, chains_late)
            self._report = self._checks[0].report

    def see(self, batch: CheckedBatch, *, goes_on: bool) -> None:
        """Account for a value of a stream that began here, or goes on from before."""
        if self._checks is not None:
            self._checks[goes_on].see(batch)
            return
        # Nothing was learnt: all of it is context-free, and no less holds than whatever is true.
        entry = self._report.streams.setdefault(batch.stream, TruthAudit(over_set=0.0))
        most = batch.due[-1].ldp.epsilon
        entry.add(StepUnderTruth(most, most, most, most, most), entry.steps)
        entry.steps += 1

    @property
    def report(self) -> TruthReport:
        """What was found of all streams."""
        if self._checks is not None:
            self._report.streams.update(self._checks[True].report.streams)
        return self._report
