"""What may be asked of readouts, as it stands in an address: every field is text, read strictly."""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from sfumato.core.errors import InvalidParameter
from sfumato.store.ledger_search import Order

Query = TypeVar("Query", bound=msgspec.Struct)


class ReleaseQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which release; that of the stream, or the default, if not given."""

    release: Annotated[str, Meta(min_length=1)] | None = None


class LastQuery(ReleaseQuery, frozen=True, forbid_unknown_fields=True):
    """The last so many moments."""

    last: int = 500


class BeliefQuery(LastQuery, frozen=True, forbid_unknown_fields=True):
    """The last so many moments, in at most so many columns."""

    columns: int = 250


class RecoveredQuery(LastQuery, frozen=True, forbid_unknown_fields=True):
    """The last so many values, with credible sets of this probability."""

    cover: float = 0.9


class StreamsQuery(ReleaseQuery, frozen=True, forbid_unknown_fields=True):
    """Streams after a name, so many."""

    after: str = ""
    limit: int = 100


class StreamLedgerQuery(ReleaseQuery, frozen=True, forbid_unknown_fields=True):
    """Answers of a stream after the first so many, so many."""

    after: int = 0
    limit: int = 100


class SearchQuery(ReleaseQuery, frozen=True, forbid_unknown_fields=True):
    """Rows of a ledger; see `LedgerQuery`."""

    stream: str | None = None
    event: str | None = None
    outcome: str | None = None
    since: str | None = None
    until: str | None = None
    first: int | None = None
    last: int | None = None
    beyond: int | None = None
    order: Order = Order.NEWEST
    limit: int = 100


class PlanQuery(ReleaseQuery, frozen=True, forbid_unknown_fields=True):
    """Budgets of a step, separated by commas; some around the release's own if not given."""

    epsilon: str | None = None

    @property
    def epsilons(self) -> list[float] | None:
        """The budgets that were asked for."""
        if self.epsilon is None:
            return None
        try:
            return [float(part) for part in self.epsilon.split(",")]
        except ValueError:
            rule = "be numbers of nats, separated by commas"
            raise InvalidParameter("epsilon", "another text", rule) from None


class DriftQuery(ReleaseQuery, frozen=True, forbid_unknown_fields=True):
    """How many of the streams that were answered last are looked at."""

    streams: int = 12


def read_query(kind: type[Query], texts: dict[str, str]) -> Query:
    """A query from the texts of an address.

    Examples:
        >>> read_query(LastQuery, {"last": "20"})
        LastQuery(release=None, last=20)

    Raises:
        InvalidParameter: If a field is unknown, or is not what it must be.
    """
    try:
        return msgspec.convert(texts, kind, strict=False)
    except msgspec.ValidationError as problem:
        # The text of msgspec names field and type, and never quotes what was sent.
        raise InvalidParameter("query", "another", f"be as described: {problem}") from None
