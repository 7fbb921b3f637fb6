"""A service that listens and answers `p` to everything, with rules: for transcripts of pushes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sfumato.service.http_routes import OWN_OPERATIONS
from sfumato.service.operations import Call, Operation, Result
from sfumato.service.release_routes import RulesBody, RulesQuery
from tests.service.fakes import KEY
from tests.service.servers import served

__all__ = ["KEY", "echoed"]


async def _rules(call: Call) -> Result:
    return Result(RulesBody("city", "release", {"epsilon": 0.5}, only=True))


_OPERATION = Operation(
    name="get_rules",
    method="GET",
    path="/v1/rules",
    summary="Rules that nobody follows",
    handler=_rules,
    action="release",
    query=RulesQuery,
    replies={200: RulesBody},
)


@contextmanager
def echoed() -> Iterator[str]:
    """Its address."""
    with served(operations=(*OWN_OPERATIONS, _OPERATION)) as there:
        yield there.url
