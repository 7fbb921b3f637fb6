"""The routes of the readouts, as a table that a server includes and a description lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

from sfumato.service import fleet_documents, stream_documents
from sfumato.service import readout_queries as queries
from sfumato.service.readouts import Readouts


class Scope(StrEnum):
    """Whose a readout is.

    Attributes:
        STREAM: The stream in its address: a key for it is enough.
        OWN: The streams in the scope of the key, whatever that is.
        NONE: Nobody's: it tells nothing of streams.
        ALL: All streams: a key for each of them is needed.
        COUNTED: The same, or a key for what is counted over all streams (`metrics`).
    """

    STREAM = "stream"
    OWN = "own"
    NONE = "none"
    ALL = "all"
    COUNTED = "counted"


@dataclass(frozen=True, slots=True)
class ReadoutRoute:
    """One thing that can be read.

    Attributes:
        path: Of the address; `{stream}` stands for the name of a stream.
        method: Of `Readouts`.
        query: What may be asked.
        reply: What is answered.
        summary: One line for a description.
        action: What an access key must allow.
        scope: Of which streams.
        beside: Whether it tells of other releases than the one that is named, too.
    """

    path: str
    method: str
    query: type[msgspec.Struct]
    reply: type[msgspec.Struct]
    summary: str
    action: str = "read"
    scope: Scope = Scope.ALL
    beside: bool = False

    def answer(
        self, readouts: Readouts, path: Mapping[str, str], query: Mapping[str, str]
    ) -> msgspec.Struct:
        """The document, from the texts of an address; it may take seconds."""
        asked = queries.read_query(self.query, dict(query))
        found: Any = getattr(readouts, self.method)(*path.values(), asked)
        assert isinstance(found, self.reply)
        return found


_STREAM = "/v1/streams/{stream}"

READOUT_ROUTES = (
    ReadoutRoute(
        "/v1/streams",
        "streams",
        queries.StreamsQuery,
        fleet_documents.StreamsDocument,
        "Streams by name, with what was charged to them",
        scope=Scope.OWN,
    ),
    ReadoutRoute(
        f"{_STREAM}/budget",
        "budget",
        queries.ReleaseQuery,
        stream_documents.BudgetDocument,
        "What a stream has spent and may still spend",
        scope=Scope.STREAM,
        beside=True,
    ),
    ReadoutRoute(
        f"{_STREAM}/ledger",
        "answers",
        queries.StreamLedgerQuery,
        fleet_documents.StreamLedgerDocument,
        "The answers of a stream, in order",
        scope=Scope.STREAM,
    ),
    ReadoutRoute(
        f"{_STREAM}/certificate",
        "certificate",
        queries.ReleaseQuery,
        stream_documents.CertificateDocument,
        "What a stream leaked in a release, and in all together, computed again",
        scope=Scope.STREAM,
        beside=True,
    ),
    ReadoutRoute(
        f"{_STREAM}/leakage",
        "leakage",
        queries.LastQuery,
        stream_documents.LeakageDocument,
        "What left over time, and what it leaked",
        scope=Scope.STREAM,
    ),
    ReadoutRoute(
        f"{_STREAM}/belief",
        "belief",
        queries.BeliefQuery,
        stream_documents.BeliefDocument,
        "What the adversary believed right after each output",
        scope=Scope.STREAM,
    ),
    ReadoutRoute(
        f"{_STREAM}/recovered",
        "recovered",
        queries.RecoveredQuery,
        stream_documents.RecoveredDocument,
        "What a receiver can infer of each value given all outputs",
        scope=Scope.STREAM,
    ),
    ReadoutRoute(
        "/v1/plan",
        "plan",
        queries.PlanQuery,
        fleet_documents.PlanDocument,
        "Loss against budget for the model, with the bound and silence",
        scope=Scope.NONE,
    ),
    ReadoutRoute(
        "/v1/ledger",
        "search",
        queries.SearchQuery,
        fleet_documents.LedgerDocument,
        "Search the ledger; every row is checked against its chain",
    ),
    ReadoutRoute(
        "/v1/ledger/head",
        "head",
        queries.ReleaseQuery,
        fleet_documents.HeadDocument,
        "The head of the ledger, to be written down elsewhere",
        scope=Scope.COUNTED,
    ),
    ReadoutRoute(
        "/v1/overview",
        "overview",
        queries.ReleaseQuery,
        fleet_documents.OverviewDocument,
        "All streams of a release together",
    ),
    ReadoutRoute(
        "/v1/drift",
        "drift",
        queries.DriftQuery,
        fleet_documents.DriftDocument,
        "A hint whether streams still move as the model says",
    ),
    ReadoutRoute(
        "/v1/catalogue",
        "catalogue",
        queries.ReleaseQuery,
        fleet_documents.CatalogueDocument,
        "Models, policies and releases, oldest first",
        scope=Scope.NONE,
        beside=True,
    ),
)
"""All of them; those with a stream in their path are within the streams of an access key."""
