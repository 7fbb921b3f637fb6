"""All streams of a release at one look, without looking at all of them each time.

Streams are counted once, page by page. From then on the rows that the ledger got since say which
streams have moved, and those alone are looked at again. What a ledger does not hold, when answers
left and what was refused, is counted as it happens, on this node.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Sequence

import numpy as np

from sfumato.core.budgets import PerStep, Window
from sfumato.core.guard import Guarded, guarded
from sfumato.core.ledger import Ledger
from sfumato.service.fleet_documents import Minute, OverviewDocument, Totals
from sfumato.service.moment_readouts import job_of, promise_of, rule_words
from sfumato.service.readable_release import (
    ReadableRelease,
    Rules,
    SeriesRules,
    StreamRules,
    TemporalRules,
)
from sfumato.service.stream_readouts import left_of, state_of
from sfumato.store.codec import from_bytes
from sfumato.store.ledger_search import ReadableLedger
from sfumato.store.live import Answered, Refused, Waiting
from sfumato.store.live_columns import ReplyColumns
from sfumato.store.protocol import Position
from sfumato.stream.remarks import large_total
from sfumato.temporal.temporal_plan import TemporalState

BINS = 10
_PAGE = 2_000
_ROWS = 5_000
_SECONDS = 0.5
"""How long one request counts streams; what is left is counted by the next ones."""
_MINUTES = 60


class Activity(Guarded):
    """What was answered and refused on this node, minute by minute for an hour.

    Examples:
        >>> from sfumato.store.live import Reason
        >>> seen = Activity()
        >>> others = {0: Answered(()), 1: Refused(Reason.BUDGET, "nothing is left")}
        >>> seen.saw(ReplyColumns(2, others=others), now=60.0)
        >>> seen.refused(), [minute.refused for minute in seen.minutes(now=61.0)][-1]
        ({'budget': 1}, 1)
    """

    def __init__(self) -> None:
        self._refused: Counter[str] = Counter()
        self._minutes: deque[tuple[int, Counter[str]]] = deque(maxlen=_MINUTES + 1)

    @guarded
    def saw(self, replies: ReplyColumns, now: float | None = None) -> None:
        """Count the replies of a group; cheap, for it is called for every one."""
        told = Counter(answered=len(replies) - len(replies.others))
        for reply in replies.others.values():
            match reply:
                case Answered():
                    told["repeated" if reply.repeated else "answered"] += max(1, len(reply.answers))
                case Refused():
                    told["refused"] += 1
                    self._refused[reply.reason.value] += 1
                case Waiting():
                    pass
        minute = int((time.time() if now is None else now) // 60)
        if not self._minutes or self._minutes[-1][0] < minute:
            self._minutes.append((minute, Counter()))
        self._minutes[-1][1].update(told)

    @guarded
    def refused(self) -> dict[str, int]:
        """Refusals since the node started, by reason."""
        return dict(self._refused)

    @guarded
    def minutes(self, now: float | None = None) -> list[Minute]:
        """The last hour, oldest first."""
        this = int((time.time() if now is None else now) // 60)
        known = dict(self._minutes)
        return [
            Minute(
                ago=ago,
                answered=known.get(this - ago, Counter())["answered"],
                repeated=known.get(this - ago, Counter())["repeated"],
                refused=known.get(this - ago, Counter())["refused"],
            )
            for ago in range(_MINUTES - 1, -1, -1)
        ]


class FleetOverview(Guarded):
    """Where the streams of one release stand, kept up to date by what is new."""

    def __init__(self, release: ReadableRelease) -> None:
        self._release, self._rules = release, release.rules
        rule = self._rules.plan.budget if isinstance(self._rules, StreamRules) else None
        self._every_step = isinstance(rule, PerStep)
        # Windows stand side by side for ever: they limit a whole stream no more than steps do.
        self._unlimited = isinstance(rule, PerStep | Window)
        self._leaked: dict[str, float] = {}
        self._bins: dict[str, int] = {}
        self._exhausted: set[str] = set()
        self._counts = [0] * BINS
        self._reached = ""  # name of the stream counted last, while not all are
        self._begun_at = 0  # rows there were when counting began
        self._entries: int | None = None  # rows that are accounted for, once all are

    @guarded
    def document(self, activity: Activity) -> OverviewDocument:
        """How all streams stand."""
        with self._release.ledger() as ledger:
            self._advance(ledger)
            head = ledger.front.head
        minutes = activity.minutes()
        # The minute that is not over yet says little: the last two count together.
        elapsed = 60.0 + time.time() % 60.0
        recent = sum(minute.answered for minute in minutes[-2:])
        return OverviewDocument(
            release=self._release.name,
            job=job_of(self._rules),
            rule=rule_words(self._rules),
            entries=head.entries,
            head=str(head),
            streams=len(self._bins),
            complete=self._entries == head.entries,
            exhausted=len(self._exhausted),
            left=[] if self._every_step else list(self._counts),
            totals=self._totals(),
            promise=promise_of(self._rules),
            refused=activity.refused(),
            minutes=minutes,
            per_second=recent / elapsed,
        )

    def _advance(self, ledger: ReadableLedger) -> None:
        until = time.monotonic() + _SECONDS
        if self._entries is None:
            self._count_all(ledger, until)
            return
        entries = ledger.front.head.entries
        while self._entries < entries and time.monotonic() < until:
            last = min(entries, self._entries + _ROWS)
            for position in ledger.standing_of(ledger.moved(self._entries + 1, last)):
                self._place(position)
            self._entries = last

    def _count_all(self, ledger: ReadableLedger, until: float) -> None:
        """Go on counting; rows that come meanwhile are accounted for once all are counted."""
        if not self._reached:
            self._begun_at = ledger.front.head.entries
        while time.monotonic() < until:
            page = ledger.standing(self._reached, _PAGE)
            for position in page:
                self._place(position)
            if len(page) < _PAGE:
                self._entries = self._begun_at
                return
            self._reached = page[-1].stream

    def _place(self, position: Position) -> None:
        if self._unlimited:
            self._leaked[position.stream] = position.leakage
        share, gone = standing(self._rules, position)
        found = min(BINS - 1, max(0, int(share * BINS)))
        before = self._bins.get(position.stream)
        if before is not None:
            self._counts[before] -= 1
        self._bins[position.stream] = found
        self._counts[found] += 1
        (self._exhausted.add if gone else self._exhausted.discard)(position.stream)

    def _totals(self) -> Totals | None:
        if not self._leaked:
            return None
        sums = np.fromiter(self._leaked.values(), np.float64, len(self._leaked))
        largest = float(sums.max())
        warning = large_total(largest) or ""
        return Totals(median=float(np.median(sums)), largest=largest, warning=warning)


def standing(rules: Rules, position: Position) -> tuple[float, bool]:
    """The part of its budget that a stream has left, and whether nothing may leave any more.

    A budget at every step is never used up: all of it is left.
    """
    match rules:
        case StreamRules():
            return _of_stream(rules, position)
        case SeriesRules():
            left = max(0, rules.spec.length - position.sequence)
            return left / rules.spec.length, left == 0
        case TemporalRules():
            plan = rules.spec.plan(position.stream)
            state = from_bytes(position.state, TemporalState)
            gone = plan.account(state).allowance <= 0.0
            if rules.spec.steps is None:
                return (0.0 if gone else 1.0), gone
            return max(0.0, 1 - position.sequence / rules.spec.steps), gone


def _of_stream(rules: StreamRules, position: Position) -> tuple[float, bool]:
    rule = rules.plan.budget
    ledger = Ledger(position.sequence, position.leakage, position.model_free)
    if rule.memory:  # only then is there more to know than what stands in the open
        ledger = state_of(rules, position.stream, position).ledger
    gone = rules.plan.allowance(ledger, rules.plan.width).exhausted
    parts = _shares(rule.limits.tolist(), [left_of(rule, ledger, part) for part in (0, 1)])
    return min(parts, default=1.0), gone


def _shares(limits: Sequence[float], left: Sequence[float | None]) -> list[float]:
    return [own / limit for limit, own in zip(limits, left, strict=True) if own is not None]
