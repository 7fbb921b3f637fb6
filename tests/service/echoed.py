"""A service that listens and answers `p` to everything, with rules: for transcripts of pushes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sfumato.service.http_routes import OWN_OPERATIONS
from sfumato.service.operations import Call, Result
from sfumato.service.release_routes import RulesBody, rules_operation
from tests.service.fakes import KEY
from tests.service.servers import served

__all__ = ["KEY", "echoed"]


async def _rules(call: Call) -> Result:
    return Result(RulesBody("city", "release", {"epsilon": 0.5}, only=True))


@contextmanager
def echoed() -> Iterator[str]:
    """Its address."""
    with served(operations=(*OWN_OPERATIONS, rules_operation(_rules))) as there:
        yield there.url
