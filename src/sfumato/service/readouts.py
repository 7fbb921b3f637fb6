"""Readouts: documents of what releases leaked, told and may still do, from public things alone.

The seam to whatever serves them:

- `Readouts(releases)` is made once, with an object that finds releases (`Releases`), and closed at
  the end. Its methods block (they read ledgers and follow streams): call them in a thread.
- `READOUT_ROUTES` lists path, method, action and document of each. `route.answer(readouts, path,
  query)` takes texts as they stand in the address and returns a `msgspec.Struct`:
  `await to_thread(route.answer, readouts, request.path_params, dict(request.query_params))`.
- `readouts.saw(release, replies)` counts what was answered and refused; call it for each group.
- A name that does not exist is a `LookupError` (404); a parameter that breaks a rule is an
  `InvalidParameter`, which names it (422).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any

import msgspec

from sfumato.core import checks
from sfumato.core.errors import InvalidParameter
from sfumato.core.guard import Guarded, guarded
from sfumato.service import moment_readouts, stream_readouts
from sfumato.service.drift_hint import drift
from sfumato.service.fleet_documents import (
    AnswerRow,
    CatalogueDocument,
    CatalogueRow,
    DriftDocument,
    HeadDocument,
    LedgerDocument,
    LedgerRow,
    OverviewDocument,
    PlanDocument,
    StreamLedgerDocument,
    StreamsDocument,
)
from sfumato.service.fleet_overview import Activity, FleetOverview
from sfumato.service.followed_streams import FollowedStream, Followers
from sfumato.service.plan_readout import PlanDesk
from sfumato.service.readable_release import ReadableRelease, Releases, StreamRules, plain
from sfumato.service.readout_queries import (
    BeliefQuery,
    DriftQuery,
    LastQuery,
    PlanQuery,
    RecoveredQuery,
    ReleaseQuery,
    SearchQuery,
    StreamLedgerQuery,
    StreamsQuery,
)
from sfumato.service.stream_documents import (
    BeliefDocument,
    BudgetDocument,
    CertificateDocument,
    LeakageDocument,
    RecoveredDocument,
)
from sfumato.service.stream_listing import standing_within
from sfumato.service.stream_together import PARTIAL, beside
from sfumato.store.ledger_search import MOST_FOUND, Entry, LedgerQuery, ReadableLedger
from sfumato.store.live_columns import ReplyColumns
from sfumato.store.live_intake import ledger_id, own_id
from sfumato.store.protocol import Answer, Position

_NO_BELIEF = "values of this job have no belief: noise is added to numbers, not to symbols"
_NOTHING_YET = "nothing released yet under this name"


class Readouts(Guarded):
    """Everything that is read of releases; safe in threads.

    Args:
        releases: Where releases are found.
        plans: Who computes losses against budgets.
    """

    def __init__(self, releases: Releases, plans: PlanDesk | None = None) -> None:
        self._releases, self._plans = releases, plans or PlanDesk()
        self._followers = Followers()
        self._overviews: dict[tuple[str, bytes], FleetOverview] = {}
        self._activities: dict[str, Activity] = {}

    def saw(self, release: str, replies: ReplyColumns) -> None:
        """Count replies that leave, and refusals."""
        self._activity(release).saw(replies)

    def close(self) -> None:
        """Stop what is computed aside."""
        self._plans.close()

    def budget(
        self, stream: str, query: ReleaseQuery, within: Collection[str] | None = None
    ) -> BudgetDocument:
        """What a stream has spent and may still spend in a release, and beside it.

        Args:
            stream: The stream.
            query: Which release.
            within: Names of the releases that whoever asks may know of; None for all.
        """
        release = self._releases.readable(query.release, stream)
        with release.ledger() as ledger:
            position = ledger.position(stream)
        rules, charged = release.rules, (0.0, 0.0)
        if position is not None:
            charged = (position.leakage, position.model_free)
        if isinstance(rules, StreamRules):
            found = stream_readouts.budget(rules, release.name, stream, position)
        else:
            found = moment_readouts.budget(rules, release.name, stream, position)
        told = beside(self._releases, release, stream, *charged, within)
        return msgspec.structs.replace(
            found,
            others=told.others,
            unread=told.unread,
            together=told.together,
            remark="" if found.answers else _NOTHING_YET,
            partial="" if within is None else PARTIAL,
        )

    def certificate(
        self, stream: str, query: ReleaseQuery, within: Collection[str] | None = None
    ) -> CertificateDocument:
        """What a stream leaked in a release, computed again, and in all of them together.

        Args:
            stream: The stream.
            query: Which release.
            within: Names of the releases that whoever asks may know of; None for all.
        """
        release = self._releases.readable(query.release, stream)
        found = self._own_certificate(release, stream)
        told = beside(self._releases, release, stream, found.sip or 0.0, found.ldp or 0.0, within)
        return msgspec.structs.replace(
            found,
            guarantees=[*found.guarantees, *told.words],
            others=told.others,
            unread=told.unread,
            together=told.together,
        )

    def _own_certificate(self, release: ReadableRelease, stream: str) -> CertificateDocument:
        rules = release.rules
        with release.ledger() as ledger:
            position, head = _answered(ledger, stream), str(ledger.front.head)
            if not isinstance(rules, StreamRules):
                answers = list(ledger.rest(stream, 0))
                name = release.name
                return moment_readouts.certificate(rules, name, stream, answers, position, head)
        followed, count = self._followed(release, rules, stream)
        return stream_readouts.certificate(followed, release.name, count, head)

    def leakage(self, stream: str, query: LastQuery) -> LeakageDocument:
        """What left over time, and what it leaked."""
        release = self._releases.readable(query.release, stream)
        last = checks.count("last", query.last, at_most=10_000)
        with release.ledger() as ledger:
            _answered(ledger, stream)
            answers = list(ledger.rest(stream, 0))
        return moment_readouts.leakage(release.rules, release.name, stream, answers, last)

    def belief(self, stream: str, query: BeliefQuery) -> BeliefDocument:
        """What the adversary believed right after each output."""
        release = self._releases.readable(query.release, stream)
        rules, name = release.rules, release.name
        last = checks.count("last", query.last, at_most=10_000)
        columns = checks.count("columns", query.columns, at_most=1_000)
        with release.ledger() as ledger:
            _answered(ledger, stream)
        if not isinstance(rules, StreamRules):
            return BeliefDocument(
                release=name, stream=stream, answers=0, followed=0, unavailable=_NO_BELIEF
            )
        followed, count = self._followed(release, rules, stream)
        return stream_readouts.belief(followed, name, count, last, columns)

    def recovered(self, stream: str, query: RecoveredQuery) -> RecoveredDocument:
        """What a receiver can infer of each value."""
        release = self._releases.readable(query.release, stream)
        rules, name, cover = release.rules, release.name, query.cover
        checks.proper_fraction("cover", cover)
        last = checks.count("last", query.last, at_most=10_000)
        with release.ledger() as ledger:
            _answered(ledger, stream)
        if not isinstance(rules, StreamRules):
            return RecoveredDocument(
                release=name,
                stream=stream,
                answers=0,
                followed=0,
                cover=cover,
                unavailable=_NO_BELIEF,
            )
        followed, count = self._followed(release, rules, stream)
        return stream_readouts.recovered(followed, name, count, last, cover)

    def streams(self, query: StreamsQuery, patterns: Sequence[str] = ("*",)) -> StreamsDocument:
        """Streams by name that some patterns name, with what was charged to them."""
        release = self._releases.readable(query.release)
        limit = checks.count("limit", query.limit, at_most=1_000)
        with release.ledger() as ledger:
            found, further = standing_within(ledger, patterns, query.after, limit)
        lines = [moment_readouts.line_of(release.rules, one) for one in found]
        promise = moment_readouts.promise_of(release.rules)
        return StreamsDocument(release=release.name, streams=lines, next=further, promise=promise)

    def answers(self, stream: str, query: StreamLedgerQuery) -> StreamLedgerDocument:
        """The answers of a stream, in order; pages are told apart by its own moments."""
        release = self._releases.readable(query.release, stream)
        limit = checks.count("limit", query.limit, at_most=MOST_FOUND)
        first = checks.count("after", query.after, at_least=0, at_most=2**62)
        with release.ledger() as ledger:
            found = list(islice(ledger.rest(stream, first), limit + 1))
        promise = moment_readouts.promise_of(release.rules)
        return StreamLedgerDocument(
            release=release.name,
            stream=stream,
            rows=[AnswerRow(**_answer(one, promise is None)) for one in found[:limit]],
            next=found[limit].sequence if len(found) > limit else None,
        )

    def search(self, query: SearchQuery) -> LedgerDocument:
        """Rows of the ledger that are asked for; an event is one of its stream."""
        event = query.event
        if event is not None:
            if query.stream is None:
                raise InvalidParameter("event", "alone", "be given together with its stream")
            event = ledger_id(query.stream, event)
        release = self._releases.readable(query.release, query.stream)
        asked = LedgerQuery(
            query.stream,
            event,
            query.outcome,
            query.since,
            query.until,
            query.first,
            query.last,
            query.beyond,
            query.order,
            query.limit,
        )
        return _page(release, asked)

    def head(self, query: ReleaseQuery) -> HeadDocument:
        """The head of a ledger, to be written down elsewhere."""
        release = self._releases.readable(query.release)
        with release.ledger() as ledger:
            front = ledger.front
        return HeadDocument(
            release=release.name,
            entries=front.head.entries,
            head=str(front.head),
            ledger=front.id.hex(),
        )

    def overview(self, query: ReleaseQuery) -> OverviewDocument:
        """All streams of a release together."""
        release = self._releases.readable(query.release)
        return self._overview(release).document(self._activity(release.name))

    def plan(self, query: PlanQuery) -> PlanDocument:
        """Loss against budget, as far as it is computed."""
        release = self._releases.readable(query.release)
        return self._plans.document(release.rules, release.name, query.epsilons)

    def drift(self, query: DriftQuery) -> DriftDocument:
        """A hint whether streams still move as the model says."""
        release = self._releases.readable(query.release)
        rules = release.rules
        if not isinstance(rules, StreamRules):
            return DriftDocument(release=release.name, unavailable=_NO_BELIEF)
        most = checks.count("streams", query.streams, at_most=32)
        with release.ledger() as ledger:
            newest = ledger.search(LedgerQuery(limit=500)).entries
        names = islice(dict.fromkeys(entry.answer.stream for entry in newest), most)
        followed = [self._followers.of(release, rules, name) for name in names]
        bets = [made for one in followed if (made := one.bets()) is not None]
        looked_at = [one.recent_outputs() for one in followed]
        return drift(release.name, looked_at, rules.plan.model.alphabet.labels, bets)

    def catalogue(
        self, query: ReleaseQuery, within: Collection[str] | None = None
    ) -> CatalogueDocument:
        """Models, policies and releases of the registry; of some releases, what they rest on.

        Args:
            query: Nothing more is asked.
            within: Names of the releases that whoever asks may know of; None for all.
        """
        rows = [
            CatalogueRow(
                kind=line.kind,
                name=line.name,
                version=line.version,
                created=line.created,
                fingerprint=line.fingerprint,
                uses=list(line.uses),
                job=line.job,
                status=line.status,
                default=line.default,
                detail=line.detail,
                closed=line.closed,
            )
            for line in self._releases.catalogue(within)
        ]
        return CatalogueDocument(rows=rows, limited=within is not None)

    def _followed(
        self, release: ReadableRelease, rules: StreamRules, stream: str
    ) -> tuple[FollowedStream, int]:
        """A stream as far as it was followed, and how many answers it has."""
        followed = self._followers.of(release, rules, stream)
        with release.ledger() as ledger:
            standing = ledger.standing_of([stream])
        return followed, standing[0].sequence if standing else 0

    @guarded
    def _overview(self, release: ReadableRelease) -> FleetOverview:
        key = (release.name, release.store.front.id)
        if key not in self._overviews:
            self._overviews[key] = FleetOverview(release)
        return self._overviews[key]

    @guarded
    def _activity(self, release: str) -> Activity:
        return self._activities.setdefault(release, Activity())


class NoAnswers(LookupError):
    """Nothing left under the name of a stream; whether values came is not told."""


def _answered(ledger: ReadableLedger, stream: str) -> Position:
    """Where a stream stands that has answers.

    Raises:
        NoAnswers: If it has none.
    """
    position = ledger.position(stream)
    if position is None or not position.sequence:
        raise NoAnswers("no answers of this stream in this release")
    return position


def _page(release: ReadableRelease, asked: LedgerQuery) -> LedgerDocument:
    with release.ledger() as ledger:
        page, entries = ledger.search(asked), ledger.front.head.entries
    promise = moment_readouts.promise_of(release.rules)
    return LedgerDocument(
        release=release.name,
        entries=entries,
        rows=[_row(entry, promise is None) for entry in page.entries],
        next=page.next,
        promise=promise,
    )


def _row(entry: Entry, adds: bool) -> LedgerRow:
    """A row; charges where they are leakage."""
    return LedgerRow(entry=entry.entry, **_answer(entry.answer, adds))


def _answer(answer: Answer, adds: bool) -> dict[str, Any]:
    return {
        "event": own_id(answer.id),
        "stream": answer.stream,
        "sequence": answer.sequence,
        "outcome": answer.outcome,
        "released": plain(answer.released),
        "sip": answer.leakage if adds else None,
        "ldp": answer.model_free if adds else None,
        "signal": answer.signal,
        "batch": answer.batch,
        "time": answer.time,
    }
