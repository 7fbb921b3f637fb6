"""One pass over a source by a release that learns: rows in, answers out, versions in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from sfumato.core.errors import CorruptData
from sfumato.core.numerics import add_up
from sfumato.core.randomness import Randomness
from sfumato.core.state import StreamState
from sfumato.store.ledgered_run import Group, LedgeredRun
from sfumato.store.protocol import Answer
from sfumato.stream.input_rows import Row, RowChecks, RowReader
from sfumato.stream.learning_plan import LearningPlan
from sfumato.stream.release_report import ReleaseReport
from sfumato.stream.row_run import Beside, Leaving, RowRun
from sfumato.stream.version_files import save_versions
from sfumato.stream.version_history import VersionHistory
from sfumato.tables.problems import BadTable


def recall(history: VersionHistory, answers: Iterable[Answer]) -> None:
    """Take what left before, in its order, and learn from it again.

    Raises:
        CorruptData: If an answer is not what the outputs before it led to.
    """
    rules, alphabet = history.rules, history.rules.alphabet
    for answer in answers:
        due = history.used(answer.stream, answer.sequence)
        named, output = (None, None) if answer.signal is None else rules.told_by(answer.signal)
        # A context-free value has no output to name: its signal is 0.
        right = due is not None and named == due and answer.signal == rules.signal(due, output)
        if not right or answer.released is None:
            raise CorruptData(
                f"the ledger holds an answer of stream {answer.stream!r} under another version "
                "than the outputs before it lead to"
            )
        history.add(answer.stream, alphabet.place(answer.released))


class LearningRowRun(RowRun):
    """Answers group by group; no group goes beyond the count at which a version is made.

    So a version is learnt from committed answers alone, and stands in its file before any value
    leaves under it.

    Args:
        reader: Of the input.
        checks: Of its rows.
        plan: The rule, with all that left before.
        ledger: Where answers are committed.
        randomness: Coins.
        kept: The file of versions; None for a release without a ledger.
        remark: Told when a version has been made.
    """

    def __init__(
        self,
        reader: RowReader,
        checks: RowChecks,
        plan: LearningPlan,
        ledger: LedgeredRun[StreamState],
        randomness: Randomness,
        kept: Path | None,
        remark: Callable[[str], None] | None,
    ) -> None:
        super().__init__(reader, checks, plan, ledger, randomness)
        self._learning, self._kept, self._told = plan, kept, remark
        self._known = len(plan.history.versions())
        self._estimates: dict[str, float] = {}
        self._under: Counter[bool] = Counter()
        if kept is not None and self._known:
            save_versions(plan.history, kept)

    def _answered(self, read: list[Row]) -> tuple[list[Beside], BadTable | None]:
        answers: list[Beside] = []
        problem: BadTable | None = None
        while read and problem is None:
            self._learn()
            room = self._learning.history.room
            part, read = read[:room], read[room:]
            found, problem = super()._answered(part)
            answers += found
        return answers, problem

    def _learn(self) -> None:
        """Make the version that is due, and keep it before anything leaves under it."""
        versions = self._learning.history.versions()
        if len(versions) == self._known:
            return
        self._known = len(versions)
        if self._kept is not None:
            save_versions(self._learning.history, self._kept)
        if self._told is not None:
            self._told(str(versions[-1]))

    def _complete(self, stream: str, released: Leaving, group: Group[StreamState]) -> None:
        (row,) = self._batches[stream].rows
        under = self._learning.under_estimate(group.state(stream))
        super()._complete(stream, released, group)
        (answer,) = released[row.id]
        assert answer.released is not None  # what cannot be released is refused
        self._learning.history.add(stream, self._plan.model.alphabet.index(answer.released))
        self._estimates[stream] = add_up(self._estimates.get(stream, 0.0), under.epsilon)
        self._under[bool(answer.signal)] += 1

    def report(self, *, interrupted: bool) -> ReleaseReport:
        """What was done, with the numbers of a release for many chains."""
        whole = super().report(interrupted=interrupted)
        versions = self._learning.history.versions()
        losses = versions[-1].losses if versions else None
        lost = silent = None
        if losses is not None and self._under.total():
            free, robust = self._under[False], self._under[True]
            lost = (free * losses.context_free + robust * losses.robust) / (free + robust)
            silent = losses.silent
        return replace(
            whole,
            largest_estimate=max(self._estimates.values(), default=0.0),
            confidence=self._learning.rules.confidence,
            expected_loss=lost,
            silent_loss=silent,
        )
